/**
 * A socket to a checked url, opened only to addresses that were judged for this connection, and checked again once it
 * stands.
 */
import { connect as connectTcp, isIP, type LookupFunction, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { sameAddress } from './addresses.ts';
import { type EgressGuard, hostOf, NotAllowed, portOf } from './guard.ts';

export type DialFailure = 'url_not_allowed' | 'connection_failed' | 'tls_failed' | 'timeout';

export class DialError extends Error {
  readonly failure: DialFailure;
  constructor(failure: DialFailure) {
    super(failure);
    this.name = 'DialError';
    this.failure = failure;
  }
}

export interface Target {
  readonly addresses: readonly string[];
  readonly port: number;
}

export interface DialOptions {
  /** Milliseconds for TCP and TLS together; the lookup before them has its own limit in the guard. */
  readonly connectMs: number;
  /**
   * Where judged addresses are really dialled: a test uses it to have "public" servers on loopback. Default: the
   * address itself.
   */
  readonly connectTo?: (judged: Target) => Target;
}

/** A silent address costs this, then the next is tried; the last one has the remaining time. */
const ATTEMPT_MS = 1_000;

/**
 * Calls `done` once, unless the returned function was called before. No proxy of the environment is used: it would
 * resolve the name itself, and the judgement here would be void.
 */
export const dial = (
  guard: EgressGuard,
  url: URL,
  { connectMs, connectTo }: DialOptions,
  done: (error: DialError | null, socket: Socket | null) => void,
): (() => void) => {
  let open = true;
  let timer: NodeJS.Timeout | undefined;
  let socket: Socket | null = null;

  const settle = (failure: DialFailure | null): void => {
    if (!open) return;
    open = false;
    clearTimeout(timer);
    if (failure !== null) socket?.destroy();
    if (failure === null) done(null, socket);
    else done(new DialError(failure), null);
  };

  const connect = (addresses: readonly string[]): void => {
    if (!open) return;
    timer = setTimeout(settle, connectMs, 'timeout');
    const judged = { addresses, port: Number(portOf(url)) };
    const target = connectTo?.(judged) ?? judged;
    const [first, ...others] = target.addresses;
    const tcp = connectTcp({
      // Of several addresses the first that answers counts: a made-up name, which `lookup` answers with them alone.
      ...(first !== undefined && others.length === 0
        ? { host: first }
        : {
            ...{ host: 'judged.invalid', lookup: answer(target.addresses) },
            ...{ autoSelectFamily: true, autoSelectFamilyAttemptTimeout: ATTEMPT_MS },
          }),
      port: target.port,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: 60_000,
    });
    socket = tcp;
    // The listeners stay: an error without a listener would end the process.
    tcp.on('error', () => settle('connection_failed')).on('close', () => settle('connection_failed'));
    tcp.once('connect', () => {
      if (!isPinned(tcp.remoteAddress, target.addresses)) settle('url_not_allowed');
      else if (url.protocol === 'http:') settle(null);
      else secure(tcp);
    });
  };

  const secure = (tcp: Socket): void => {
    if (!open) return;
    const host = hostOf(url);
    const tls = connectTls({
      socket: tcp,
      host,
      // An address is not a server name (RFC 6066); the certificate is then compared with `host`.
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ALPNProtocols: ['http/1.1'],
    });
    socket = tls;
    tls.on('error', (error) => settle(isOfNetwork(error) ? 'connection_failed' : 'tls_failed'));
    tls.on('close', () => settle('connection_failed'));
    tls.once('secureConnect', () => settle(null));
  };

  guard
    .addresses(url)
    .then(connect)
    .catch((error: unknown) => settle(error instanceof NotAllowed ? 'url_not_allowed' : 'connection_failed'));

  return () => {
    open = false;
    clearTimeout(timer);
    socket?.destroy();
  };
};

const answer =
  (addresses: readonly string[]): LookupFunction =>
  (_name, options, callback) => {
    const all = addresses.map((address) => ({ address, family: isIP(address) }));
    if (options.all === true) callback(null, all);
    else callback(null, all[0]?.address ?? '', all[0]?.family);
  };

/** The last check before a byte is sent: is the other end one of the judged addresses? */
export const isPinned = (remote: string | undefined, judged: readonly string[]): boolean =>
  remote !== undefined && judged.some((one) => sameAddress(one, remote));

/** Errors of the socket, not of TLS: those of a certificate or a handshake have no system call, and no system code. */
const isOfNetwork = (error: NodeJS.ErrnoException): boolean =>
  error.syscall !== undefined || error.code === 'ECONNRESET' || error.code === 'EPIPE';
