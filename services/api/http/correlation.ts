import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import type { Context, Middleware } from 'koa';
import { isProxy, noProxies, readCaller, UnnamedProxies } from '#runtime/identity/proxies.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import type { Allowances } from '../call/allowances.ts';
import type { Deps } from '../call/deps.ts';
import { type CallState, newState } from '../call/operation.ts';

/** The state of the call that a request makes, shared by the middleware of the request. */

const states = new WeakMap<object, CallState>();

const begin = (ctx: Context, state: CallState): void => {
  states.set(ctx.req, state);
};

/** @throws when the first middleware did not run: a bug of this service. */
export const stateOf = (ctx: Pick<Context, 'req'>): CallState => {
  const state = states.get(ctx.req);
  if (state === undefined) throw new BrokenInvariant('the request has no state yet');
  return state;
};

/** A caller's own id: visible ASCII, at most 128. */
const acceptable = /^[\x21-\x7e]{1,128}$/;

/** What follows these names one person's link or authorization. */
const personal = /^\/(?:invite|consent|oauth\/authorize|oauth\/interaction)\//i;

/**
 * A path as the log may show it, without parts that are or could be tokens: a part longer than a uuid, and what follows
 * the beginning of a link for one person.
 */
const loggable = (path: string): string => {
  const [link] = personal.exec(path) ?? [];
  if (link !== undefined) return `${link}…`;
  return path
    .split('/')
    .map((segment) => (segment.length > 36 || /sk_|sess_/.test(segment) ? '…' : segment))
    .join('/');
};

/** Whether callers use TLS: the public address says https, or the nearest proxy forwards it. */
const isSecure = ({ baseUrl, consoleUrl }: Deps, forwarded: string): boolean =>
  [baseUrl(), consoleUrl()].some((url) => url.startsWith('https:')) || /(?:^|,) *https *$/i.test(forwarded);

/** The other end of a connection, read once for all of its requests. */
interface Peer {
  readonly isProxy: boolean;
  /** Of the caller, where no header names another. */
  readonly address: string;
}

/**
 * Gives every request an id, sets the headers that every answer has, and writes one log line. The log line holds no
 * header and no body.
 */
export const correlation = (deps: Deps): Middleware => {
  const { logger, trustedProxies = noProxies, unnamedProxies = new UnnamedProxies(logger) } = deps;
  const peers = new WeakMap<Socket, Peer>();
  const peerOf = (socket: Socket): Peer => {
    const { remoteAddress } = socket;
    const known = peers.get(socket) ?? {
      isProxy: isProxy(remoteAddress, trustedProxies),
      address: readCaller(remoteAddress, '', trustedProxies).address,
    };
    peers.set(socket, known);
    return known;
  };
  return async (ctx, next) => {
    const peer = peerOf(ctx.req.socket);
    const sent = ctx.get('X-Correlation-Id');
    const correlationId = acceptable.test(sent) ? sent : randomUUID();
    const path = loggable(ctx.path);
    const forwardedFor = ctx.get('X-Forwarded-For');
    const { address, unnamed } =
      forwardedFor === ''
        ? { address: peer.address, unnamed: null }
        : readCaller(ctx.req.socket.remoteAddress, forwardedFor, trustedProxies);
    if (unnamed !== null) unnamedProxies.note(unnamed);
    begin(ctx, newState(correlationId, address));
    ctx.set('X-Correlation-Id', correlationId);
    ctx.set('Cache-Control', 'no-store');
    ctx.set('X-Content-Type-Options', 'nosniff');
    const forwarded = peer.isProxy ? ctx.get('X-Forwarded-Proto') : '';
    if (isSecure(deps, forwarded)) ctx.set('Strict-Transport-Security', 'max-age=31536000');
    const started = performance.now();
    await next();
    const { operation, principal } = stateOf(ctx);
    logger.info(
      {
        correlationId,
        method: ctx.method,
        path,
        operation: operation?.id,
        status: ctx.status,
        ms: Math.round(performance.now() - started),
        credential: principal?.id,
        workspaceId: principal?.workspaceId,
      },
      'answered',
    );
  };
};

/** Every answer shows an allowance, also the answer to a request that was refused before it spent anything. */
export const showAllowance =
  (allowances: Allowances): Middleware =>
  async (ctx, next) => {
    await next();
    if (ctx.res.getHeader('RateLimit') !== undefined) return;
    await allowances.of(stateOf(ctx)).show(ctx);
  };
