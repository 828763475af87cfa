/** Digits and letters for the ids of networks. */
import { createHash } from 'node:crypto';

export const base32 = 'abcdefghijklmnopqrstuvwxyz234567';
export const tidAlphabet = '234567abcdefghijklmnopqrstuvwxyz';

export const digits = (bytes: Buffer, count: number) =>
  (BigInt(`0x${bytes.toString('hex')}`) % 10n ** BigInt(count)).toString().padStart(count, '0');
export const letters = (bytes: Buffer, alphabet: string, count: number) =>
  Array.from(bytes.subarray(0, count), (byte) => alphabet[byte % alphabet.length]).join('');
export const sha256 = (text: string) => createHash('sha256').update(text).digest();
