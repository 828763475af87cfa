/**
 * Which addresses a caller may have this system connect to: https on public addresses, and none of our own. Each
 * feature with outgoing calls (webhooks, media import, OAuth, link previews) uses this guard, and connects only to the
 * judged addresses.
 */
import { lookup, Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { within } from '#contracts/base/pause.ts';
import { Rejection } from '#domain/decider.ts';
import { isPublicAddress } from './addresses.ts';

/** Addresses of a name. Empty or rejected: there are none, or none could be resolved. */
export type Resolve = (name: string) => Promise<readonly string[]>;

/**
 * Asks name servers, those of the system unless others are given. NOTE: not `dns.lookup`: that occupies one of the few
 * threads of the process, so four names whose servers never answer would stop file access and every other lookup; and
 * it tries the search domains of the machine, so `intranet` would mean `intranet.corp.example`.
 */
export const resolveByDns = (servers?: readonly string[]): Resolve => {
  // Both tries together stay under the 2 s of a lookup, so that one address family without an answer costs only itself.
  const resolver = new Resolver({ timeout: 600, tries: 2, maxTimeout: 900 });
  if (servers !== undefined) resolver.setServers(servers);
  return async (name) => {
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  };
};

/** Resolves as the machine does, with its hosts file and search domains. Only for targets that the config names. */
export const resolveBySystem: Resolve = async (name) =>
  (await lookup(name, { all: true, order: 'verbatim' })).map(({ address }) => address);

/** A refused url. Its message is for the caller: it states the rule, never the addresses of a name. */
export class NotAllowed extends Rejection {
  constructor(message: string) {
    super('url_not_allowed', message);
    this.name = 'NotAllowed';
  }
}

/** A name that could not be resolved in time, or that has no address. */
export class Unresolved extends Error {
  constructor() {
    super('the name does not resolve');
    this.name = 'Unresolved';
  }
}

export interface GuardOptions {
  /** `host:port` that may be private and plain http; `*` for any. */
  readonly privateTargets: readonly string[];
  /** Our own hosts as `URL.host` gives them: `api.example.com`, `127.0.0.1:8080`. */
  readonly ownHosts: () => readonly string[];
  /** Resolves public names; default the name servers of the system. */
  readonly resolve?: Resolve;
  /** Milliseconds for a lookup; default 2,000. */
  readonly dnsMs?: number;
}

const MAX_LENGTH = 2048;
const DNS_MS = 2_000;

export class EgressGuard {
  readonly #anyPrivate: boolean;
  readonly #privateTargets: ReadonlySet<string>;
  readonly #ownHosts: () => readonly string[];
  readonly #resolve: Resolve;
  readonly #dnsMs: number;

  constructor(options: GuardOptions) {
    this.#anyPrivate = options.privateTargets.includes('*');
    this.#privateTargets = new Set(options.privateTargets.filter((one) => one !== '*').map(canonicalTarget));
    this.#ownHosts = options.ownHosts;
    this.#resolve = options.resolve ?? resolveByDns();
    this.#dnsMs = options.dnsMs ?? DNS_MS;
  }

  /**
   * Judges the text alone; `vet` judges a name's addresses, and each connection does again.
   * @returns the url in the form that is used: no fragment, no dot at the end of the host
   * @param maxLength characters; calls of our own make longer ones than a caller may give
   * @throws NotAllowed
   */
  checkUrl(text: string, maxLength: number = MAX_LENGTH): URL {
    if (text.length > maxLength) throw new NotAllowed(`The url is longer than ${maxLength} characters.`);
    // `URL` drops tabs and line ends and accepts `https:host` and `https:\\host`: then the text shows another url than
    // is used.
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern searches for control characters
    if (!/^https?:\/\/[^\u0000-\u0020\u007f\\]+$/i.test(text) || !URL.canParse(text))
      throw new NotAllowed('The url must be an absolute https url.');
    const url = new URL(text);
    if (url.username !== '' || url.password !== '')
      throw new NotAllowed('The url must not hold a user name or password.');
    url.hash = '';
    if (url.hostname.endsWith('.')) url.hostname = url.hostname.slice(0, -1);
    if (url.href.length > maxLength) throw new NotAllowed(`The url is longer than ${maxLength} characters.`);
    const named = this.isPrivateTarget(url);
    if (this.#isOurs(url)) throw new NotAllowed('The url must not point back at this service.');
    // In development we and a receiver share a machine: only our own port is refused.
    if (named) return url;
    if (url.protocol !== 'https:') throw new NotAllowed('The url must begin with https://.');
    if (url.port !== '') throw new NotAllowed('The url must use port 443.');
    const host = hostOf(url);
    const allowed = isIP(host) === 0 ? isPublicName(host) : isPublicAddress(host);
    if (!allowed) throw new NotAllowed(NOT_PUBLIC);
    // A proxy may lead the port of https to us though we name another.
    if (this.#isOurs(url, 'any port')) throw new NotAllowed('The url must not name a host of this service.');
    return url;
  }

  /** Whether the config names it as allowed to be private. */
  isPrivateTarget(url: URL): boolean {
    return this.#anyPrivate || this.#privateTargets.has(`${url.hostname}:${portOf(url)}`);
  }

  /**
   * At registration: accepts a url without a known fault. A name that does not resolve now is no reason to refuse it.
   * @throws NotAllowed
   */
  async vet(url: URL): Promise<'resolved' | 'unresolved'> {
    try {
      await this.addresses(url);
      return 'resolved';
    } catch (error) {
      if (error instanceof Unresolved) return 'unresolved';
      throw error;
    }
  }

  /**
   * The addresses to which a connection to a checked url may go: one lookup, and a single private address refuses them
   * all.
   * @throws NotAllowed, Unresolved
   */
  async addresses(url: URL): Promise<readonly string[]> {
    const host = hostOf(url);
    const named = this.isPrivateTarget(url);
    const found = isIP(host) === 0 ? await this.#lookup(host, named ? resolveBySystem : this.#resolve) : [host];
    if (found.length === 0) throw new Unresolved();
    if (!named && !found.every(isPublicAddress)) throw new NotAllowed(NOT_PUBLIC);
    return found;
  }

  async #lookup(name: string, resolve: Resolve): Promise<readonly string[]> {
    try {
      return await within(this.#dnsMs, resolve(name));
    } catch {
      // The resolver's own error stays here: it reveals facts about our network.
      throw new Unresolved();
    }
  }

  #isOurs(url: URL, on: 'our port' | 'any port' = 'our port'): boolean {
    return this.#ownHosts().some((own) => {
      const [host = '', port] = splitHost(own);
      if (host !== url.hostname) return false;
      return on === 'any port' || (port === undefined ? ['80', '443'] : [port]).includes(portOf(url));
    });
  }
}

const NOT_PUBLIC = 'The url must point at a public address.';

/**
 * A name of one label is never in the public DNS, and `localhost` with all names under it is this machine (RFC 6761).
 */
const isPublicName = (name: string): boolean =>
  name.includes('.') && !/(^|\.)localhost$/.test(name) && !name.split('.').includes('');

/** The default port included. */
export const portOf = (url: URL): string => (url.port !== '' ? url.port : url.protocol === 'http:' ? '80' : '443');

/** Without the brackets that a url has around an IPv6 address. */
export const hostOf = (url: URL): string => (url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname);

/** `Host.:8080` → `['host', '8080']`, in the spelling of `URL`. */
const splitHost = (text: string): readonly [host: string, port?: string] => {
  const port = /:(\d+)$/.exec(text)?.[1];
  const bare = port === undefined ? text : text.slice(0, -port.length - 1);
  const host = URL.canParse(`http://${bare}`) ? new URL(`http://${bare}`).hostname : bare.toLowerCase();
  const undotted = host.replace(/\.$/, '');
  return port === undefined ? [undotted] : [undotted, String(Number(port))];
};

const canonicalTarget = (text: string): string => splitHost(text).join(':');
