import { randomBytes } from 'node:crypto';
import type { Secrets } from '#runtime/identity/secrets.ts';

/** Codes for a person who has lost the device of the second factor: shown once, each works once. */

const count = 10;
/** Without letters and digits that look alike. */
const alphabet = 'abcdefghjkmnpqrstuvwxyz23456789';
const length = 12;

/** Draws without bias: bytes beyond the last whole multiple of the alphabet are left out. */
const drawCode = (): string => {
  const limit = 256 - (256 % alphabet.length);
  let code = '';
  while (code.length < length) {
    for (const byte of randomBytes(length * 2)) {
      if (byte < limit && code.length < length) code += alphabet.charAt(byte % alphabet.length);
    }
  }
  return `${code.slice(0, 4)}-${code.slice(4, 8)}-${code.slice(8)}`;
};

export const newRecoveryCodes = (): readonly string[] => Array.from({ length: count }, drawCode);

/** As a person types it: blanks, hyphens and case do not matter. */
const plain = (code: string): string => code.toLowerCase().replaceAll(/[\s-]/g, '');

export const isRecoveryCode = (code: string): boolean => /^[a-z2-9]{12}$/.test(plain(code));

export const recoveryMac = (secrets: Secrets, personId: string, code: string, version: string): Buffer =>
  secrets.mac('second-factors', `recovery code\n${personId}\n${plain(code)}`, version);
