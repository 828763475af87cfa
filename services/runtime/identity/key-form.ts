import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Mode } from '#schemas/common.ts';

/**
 * What an API key looks like: `sk_live_` or `sk_test_`, 43 characters of base64url (256 random bits), then six of base 62,
 * the CRC-32 of all before them. Scanners of repositories find keys by the pattern and tell them from other texts by the
 * checksum.
 */

/** As the guides give it to scanners. */
export const keyPattern = 'sk_(live|test)_[A-Za-z0-9_-]{43}[0-9A-Za-z]{6}';

const whole = new RegExp(`^${keyPattern}$`);
/** Any text in which keys stand: a key ends where no further character of one follows. */
const keysIn = new RegExp(`(?<![A-Za-z0-9_-])${keyPattern}(?![A-Za-z0-9_-])`, 'g');

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const checksumLength = 6;

const checksumOf = (text: string): string => {
  let rest = crc32(text);
  let shown = '';
  for (let at = 0; at < checksumLength; at += 1) {
    shown = (digits[rest % digits.length] ?? '') + shown;
    rest = Math.floor(rest / digits.length);
  }
  return shown;
};

export const mintSecret = (mode: Mode): string => {
  const text = `sk_${mode}_${randomBytes(32).toString('base64url')}`;
  return text + checksumOf(text);
};

const isChecked = (key: string): boolean => checksumOf(key.slice(0, -checksumLength)) === key.slice(-checksumLength);

/** Whether the token may be a key. */
export const isKeyForm = (token: string): boolean => whole.test(token) && isChecked(token);

/** The different texts in a text that may be keys, in their order. */
export const keysOf = (text: string): readonly string[] => [...new Set(text.match(keysIn) ?? [])].filter(isKeyForm);
