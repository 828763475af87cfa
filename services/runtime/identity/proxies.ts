import type { Logger } from 'pino';
import { addressBytes, isPublic, isWithin, type Range } from '#runtime/egress/addresses.ts';

/**
 * Finds the caller's address behind proxies: which forwarded headers to trust, whose allowance a request counts against,
 * and which requests show a proxy that no setting names.
 */

/** How many proxies every request passes, or which addresses they have. Neither: no forwarded header is trusted. */
export interface TrustedProxies {
  readonly hops: number;
  readonly ranges: readonly Range[];
}

export const noProxies: TrustedProxies = { hops: 0, ranges: [] };

const maxHops = 16;
/** Characters of an entry; no address with its port is longer, and a longer entry is not parsed. */
const maxEntry = 64;

/** Turns an IPv4 address that is written as IPv6 into the IPv4 address. */
const plain = (bytes: readonly number[]): readonly number[] => {
  const mapped = bytes.length === 16 && bytes.slice(0, 10).every((one) => one === 0);
  return mapped && bytes[10] === 0xff && bytes[11] === 0xff ? bytes.slice(12) : bytes;
};

const readAddress = (text: string): readonly number[] | null => {
  const bytes = addressBytes(text);
  return bytes === null ? null : plain(bytes);
};

/** @throws Error that says what the setting must be */
export const readTrustedProxies = (text: string): TrustedProxies => {
  if (/^\d+$/.test(text.trim())) {
    const hops = Number(text);
    if (hops <= maxHops) return { hops, ranges: [] };
    throw new Error(`must be at most ${maxHops} hops`);
  }
  const ranges = text.split(',').map((one) => readRange(one.trim()));
  return { hops: 0, ranges };
};

const readRange = (text: string): Range => {
  const [, address = '', bits] = /^([0-9a-f.:]+)(?:\/(\d{1,3}))?$/i.exec(text) ?? [];
  const bytes = addressBytes(address);
  const max = (bytes?.length ?? 0) * 8;
  if (bytes === null || Number(bits ?? max) > max) {
    throw new Error('must be a number of hops, or a list of addresses and ranges like 10.0.0.0/8,2001:db8::1');
  }
  if (Number(bits) === 0) throw new Error('must not trust every address: name the number of hops instead');
  const shorter = plain(bytes);
  if (shorter === bytes) return { bytes, bits: Number(bits ?? max) };
  // A range of IPv4 addresses written as IPv6, as they are compared: by their last 32 bits.
  if (Number(bits ?? max) <= 96) throw new Error('must write ranges of IPv4 addresses as IPv4');
  return { bytes: shorter, bits: Number(bits ?? max) - 96 };
};

const isTrusted = ({ hops, ranges }: TrustedProxies, address: readonly number[], hop: number): boolean =>
  hop <= hops || ranges.some((range) => range.bytes.length === address.length && isWithin(address, range));

/**
 * `1.2.3.4`, `1.2.3.4:5678`, `2001:db8::1`, `[2001:db8::1]` and `[2001:db8::1]:5678` are addresses; any other text is
 * not.
 */
const readEntry = (text: string): readonly number[] | null => {
  if (text.length > maxEntry) return null;
  const [, bracketed, dotted] = /^(?:\[([^\]]+)\]|([\d.]+))(?::\d{1,5})?$/.exec(text) ?? [];
  return readAddress(bracketed ?? dotted ?? text);
};

/** The zone of a link-local peer (`%eth0`) is this machine's own name for the link. */
const peerOf = (peer: string | undefined): readonly number[] | null => readAddress((peer ?? '').replace(/%.*$/, ''));

/** Whether the peer of a connection is a trusted proxy. */
export const isProxy = (peer: string | undefined, trusted: TrustedProxies): boolean => {
  const address = peerOf(peer);
  return address !== null && isTrusted(trusted, address, 1);
};

/** Owner of an allowance: an IPv4 address, or the /64 of an IPv6 address, since one machine may have all of a /64. */
const ownerOf = (address: readonly number[]): string =>
  address.length === 4 ? address.join('.') : `${Buffer.from(address.slice(0, 8)).toString('hex')}/64`;

/**
 * What one network may have of the addresses: the /16 of an IPv4 address, the /32 of an IPv6 address, which is what a
 * provider gets. A tenant of a /48 has 65,536 owners of an allowance.
 * @param owner as `readCaller` gives it
 */
export const networkOf = (owner: string): string =>
  owner.endsWith('/64') ? `${owner.slice(0, 8)}/32` : owner.split('.').slice(0, 2).join('.');

const textOf = (address: readonly number[]): string =>
  address.length === 4 ? address.join('.') : (Buffer.from(address).toString('hex').match(/.{4}/g)?.join(':') ?? '');

export interface ReadCaller {
  /** In the form by which allowances are counted. */
  readonly address: string;
  /**
   * A proxy that wrote the header and that the setting does not name: its address, or `a public address`, which may be
   * that of a person. Its callers all count as one. Null: the request shows none.
   */
  readonly unnamed: string | null;
}

/**
 * X-Forwarded-For is read from the right, where our own proxies write: an entry counts when a trusted proxy wrote it, and
 * an entry that is not an address ends the trust. Entries that are left were written by somebody else: by a caller, who
 * may write what it likes, or by a proxy that nobody named, if they come from the peer itself or from a private address.
 */
export const readCaller = (
  peer: string | undefined,
  forwarded: string | undefined,
  trusted: TrustedProxies,
): ReadCaller => {
  let address = peerOf(peer);
  if (address === null) return { address: 'unknown', unnamed: null };
  let rest = (forwarded ?? '').trim();
  let hop = 1;
  for (; hop <= maxHops && rest !== '' && isTrusted(trusted, address, hop); hop += 1) {
    const comma = rest.lastIndexOf(',');
    const entry = readEntry(rest.slice(comma + 1).trim());
    if (entry === null) return { address: ownerOf(address), unnamed: null };
    address = entry;
    rest = rest.slice(0, Math.max(0, comma)).trim();
  }
  const isOpen = isPublic(address);
  const isUnnamed = rest !== '' && hop <= maxHops && (hop === 1 || !isOpen);
  return { address: ownerOf(address), unnamed: isUnnamed ? (isOpen ? 'a public address' : textOf(address)) : null };
};

/** The caller's address, in the form by which allowances are counted. */
export const callerAddress = (
  peer: string | undefined,
  forwarded: string | undefined,
  trusted: TrustedProxies,
): string => readCaller(peer, forwarded, trusted).address;

interface Sighting {
  requests: number;
  lastAt: number;
}

/** Milliseconds after its last request for which /readyz names a proxy. */
const rememberedMs = 3_600_000;
/** The most addresses that are remembered, so that callers of a private network fill neither the memory nor the log. */
const maxSightings = 8;

/** The proxies that requests to this process came through and that TRUSTED_PROXIES does not name. */
export class UnnamedProxies {
  readonly #logger: Pick<Logger, 'warn'>;
  readonly #now: () => number;
  readonly #sightings = new Map<string, Sighting>();

  /** @param now monotonic milliseconds */
  constructor(logger: Pick<Logger, 'warn'>, now: () => number = () => performance.now()) {
    this.#logger = logger;
    this.#now = now;
  }

  /** The log tells of each address once, and again after an hour without it. @param proxy as `readCaller` gives it */
  note(proxy: string): void {
    this.#forgetOld();
    const known = this.#sightings.get(proxy);
    if (known === undefined && this.#sightings.size >= maxSightings) return;
    this.#sightings.set(proxy, { requests: (known?.requests ?? 0) + 1, lastAt: this.#now() });
    if (known !== undefined) return;
    this.#logger.warn(
      { proxy },
      'X-Forwarded-For came from an address that TRUSTED_PROXIES does not name: if a proxy of yours wrote it, name it, or all of its callers share one allowance and wait for the wrong sign-ins of each other',
    );
  }

  /** The line for /readyz; null: there is nothing to tell. */
  line(): string | null {
    this.#forgetOld();
    const seen = [...this.#sightings];
    if (seen.length === 0) return null;
    const list = seen.map(([proxy, { requests }]) => `${proxy} (${requests} requests)`).join(', ');
    return `X-Forwarded-For came from ${list}: TRUSTED_PROXIES does not name it. If it is a proxy of yours, all of its callers share one allowance, and wait for the wrong sign-ins of each other`;
  }

  #forgetOld(): void {
    for (const [proxy, { lastAt }] of this.#sightings) {
      if (this.#now() - lastAt > rememberedMs) this.#sightings.delete(proxy);
    }
  }
}
