import { randomInt } from 'node:crypto';

/** One-time codes, posted in a chat by somebody who may speak for it: `/connect CODE`. */

/** Without letters and digits that look alike. */
const alphabet = 'ABCDEFGHJKMNPQRSTUVWXYZ23456789';
const length = 10;

/** About 2^49 of them. */
export const newCode = (): string => Array.from({ length }, () => alphabet.charAt(randomInt(alphabet.length))).join('');

const command = /^\/connect(?:@\w{1,64})?[ \n]{1,4}([A-HJKMNP-Z2-9]{10})$/i;

/** Null: the message is no such command. */
export const codeIn = (text: string): string | null =>
  text.length > 200 ? null : (command.exec(text.trim())?.[1]?.toUpperCase() ?? null);
