/**
 * Decides which IP addresses belong to the public internet. Pure: texts are parsed to bytes, and ranges are compared as
 * numbers.
 */
import { isIPv4, isIPv6 } from 'node:net';

/** @returns 4 or 16 bytes; null when the text is not a plain address. A zone id (`fe80::1%lo`) is refused. */
export const addressBytes = (text: string): readonly number[] | null => {
  if (isIPv4(text)) return text.split('.').map(Number);
  if (!isIPv6(text) || text.includes('%')) return null;
  const groups = (part: string): number[] =>
    part === '' ? [] : part.split(':').flatMap((one) => (one.includes('.') ? pairs(one) : [Number.parseInt(one, 16)]));
  const [head = '', tail] = text.split('::');
  const [before, after] = [groups(head), tail === undefined ? [] : groups(tail)];
  const zeros = Array<number>(8 - before.length - after.length).fill(0);
  return [...before, ...zeros, ...after].flatMap((group) => [group >> 8, group & 0xff]);
};

/** The last 32 bits of an IPv6 text may be written as IPv4. */
const pairs = (dotted: string): number[] => {
  const [a = 0, b = 0, c = 0, d = 0] = dotted.split('.').map(Number);
  return [(a << 8) | b, (c << 8) | d];
};

export interface Range {
  readonly bytes: readonly number[];
  readonly bits: number;
}

const range = (cidr: string): Range => {
  const [address = '', bits = ''] = cidr.split('/');
  return { bytes: addressBytes(address) ?? [], bits: Number(bits) };
};

/** Only for an address of the range's own length. */
export const isWithin = (address: readonly number[], { bytes: start, bits }: Range): boolean => {
  for (let index = 0, left = bits; left > 0; index += 1, left -= 8) {
    const mask = left >= 8 ? 0xff : (0xff00 >> left) & 0xff;
    if (((address[index] ?? 0) & mask) !== ((start[index] ?? 0) & mask)) return false;
  }
  return true;
};

/** IANA's special-purpose IPv4 blocks, multicast and the reserved rest. */
const CLOSED_IPV4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
].map(range);

/**
 * Global unicast is 2000::/3 and nothing else: that leaves out ::/8 with all its ways to write an IPv4 address, and
 * 100::/64, 5f00::/16, fc00::/7, fe80::/10, fec0::/10, ff00::/8. Inside it these are special, or tunnels to any IPv4.
 */
const GLOBAL_UNICAST = range('2000::/3');
const CLOSED_IPV6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'].map(range);

/** A host with IPv6 only reaches IPv4 hosts under this prefix (DNS64): the IPv4 address at its end decides. */
const NAT64 = range('64:ff9b::/96');

/** False for any text that is not an address. */
export const isPublicAddress = (address: string): boolean => {
  const bytes = addressBytes(address);
  return bytes !== null && isPublic(bytes);
};

/** @param bytes 4 or 16 */
export const isPublic = (bytes: readonly number[]): boolean => {
  if (bytes.length === 4) return !CLOSED_IPV4.some((one) => isWithin(bytes, one));
  if (isWithin(bytes, NAT64)) return isPublic(bytes.slice(12));
  return isWithin(bytes, GLOBAL_UNICAST) && !CLOSED_IPV6.some((one) => isWithin(bytes, one));
};

/** Two spellings of one address are the same address. */
export const sameAddress = (one: string, other: string): boolean => {
  const [a, b] = [addressBytes(one), addressBytes(other)];
  return a !== null && b !== null && a.length === b.length && a.every((byte, index) => byte === b[index]);
};
