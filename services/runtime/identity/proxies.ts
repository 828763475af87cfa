import { addressBytes, isWithin, type Range } from '#runtime/egress/addresses.ts';

/**
 * Finds the caller's address behind proxies: which forwarded headers to trust, and whose allowance a request counts
 * against.
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
 * The caller's address, in the form by which allowances are counted. X-Forwarded-For is read from the right, where our
 * own proxies write: an entry counts when a trusted proxy wrote it, and an entry that is not an address ends the trust.
 */
export const callerAddress = (
  peer: string | undefined,
  forwarded: string | undefined,
  trusted: TrustedProxies,
): string => {
  let address = peerOf(peer);
  if (address === null) return 'unknown';
  let rest = forwarded ?? '';
  for (let hop = 1; hop <= maxHops && rest !== '' && isTrusted(trusted, address, hop); hop += 1) {
    const comma = rest.lastIndexOf(',');
    const entry = readEntry(rest.slice(comma + 1).trim());
    if (entry === null) break;
    address = entry;
    rest = rest.slice(0, Math.max(0, comma));
  }
  return ownerOf(address);
};
