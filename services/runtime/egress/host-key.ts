import { isIP } from 'node:net';
import { addressBytes, isWithin } from './addresses.ts';
import { hostOf, portOf } from './guard.ts';

/** IPv4 addresses written as IPv6: mapped ones, and those behind NAT64. */
const embedded = ['::ffff:0:0', '64:ff9b::'].map((text) => ({ bytes: addressBytes(text) ?? [], bits: 96 }));

const hex = (bytes: readonly number[]): string => Buffer.from(bytes).toString('hex');

const ofAddress = (address: string): string => {
  const bytes = addressBytes(address) ?? [];
  if (bytes.length === 4) return hex(bytes);
  if (embedded.some((range) => isWithin(bytes, range))) return hex(bytes.slice(12));
  // One machine may use all addresses of a /64.
  return hex(bytes.slice(0, 8));
};

/**
 * The receiver that a url names, in one spelling: its name and port. Two ports are two servers; in production all are
 * 443, so the name decides. The addresses of a name decide nothing: hosts of many customers share one.
 */
export const hostKey = (url: string): string => {
  if (!URL.canParse(url)) return url;
  const parsed = new URL(url);
  const host = hostOf(parsed).replace(/\.$/, '');
  return `${isIP(host) === 0 ? host : ofAddress(host)}:${portOf(parsed)}`;
};
