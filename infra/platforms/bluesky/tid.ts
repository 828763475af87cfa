/** Keys of records: a TID has 13 characters, 53 bits of microseconds and 10 bits of a clock (atproto.com, "TID"). */

const alphabet = '234567abcdefghijklmnopqrstuvwxyz';

/**
 * @param ms milliseconds since the epoch
 * @param seed text that tells records of one millisecond apart: it fills the microseconds and the clock
 */
export const tidOf = (ms: number, seed: Uint8Array): string => {
  const [a = 0, b = 0, c = 0] = seed;
  const micros = BigInt(Math.trunc(ms)) * 1_000n + BigInt(((a << 8) | b) % 1_000);
  let value = (micros << 10n) | BigInt(((b << 8) | c) & 0x3ff);
  let text = '';
  for (let at = 0; at < 13; at += 1) {
    text = `${alphabet[Number(value & 31n)]}${text}`;
    value >>= 5n;
  }
  return text;
};

export const isTid = (text: string): boolean => /^[2-7a-j][2-7a-z]{12}$/.test(text);
