import { argon2, randomBytes, timingSafeEqual } from 'node:crypto';
import { Rejection } from '#domain/decider.ts';
import { Unavailable } from '#runtime/eventing/domain-store.ts';

/**
 * Passwords by Argon2id, which Node brings. Parameters: OWASP Password Storage Cheat Sheet, 19 MiB, two passes, one
 * lane. A hash says its parameters, so that they may grow.
 */

const parameters = { memory: 19_456, passes: 2, parallelism: 1 } as const;
const tagLength = 32;

export const minPassword = 12;
export const maxPassword = 256;

/**
 * Each hash takes 19 MiB and some 30 ms of a core. Beyond this number at once they wait; beyond that queue the caller is
 * told to come again, so that a flood of sign-ins fills neither the memory nor the threads of the process.
 */
const maxAtOnce = 2;
const maxWaiting = 64;

let running = 0;
const waiting: (() => void)[] = [];

const inTurn = async <T>(work: () => Promise<T>): Promise<T> => {
  if (running >= maxAtOnce) {
    if (waiting.length >= maxWaiting) throw new Unavailable('Too many people sign in at once.');
    await new Promise<void>((resolve) => waiting.push(resolve));
  } else {
    running += 1;
  }
  try {
    return await work();
  } finally {
    const next = waiting.shift();
    if (next === undefined) running -= 1;
    else next();
  }
};

const derive = (
  password: string,
  salt: Buffer,
  { memory, passes, parallelism }: { memory: number; passes: number; parallelism: number },
): Promise<Buffer> =>
  inTurn(
    () =>
      new Promise((resolve, reject) => {
        const options = {
          message: Buffer.from(password.normalize('NFKC'), 'utf8'),
          nonce: salt,
          ...{ memory, passes, parallelism, tagLength },
        };
        argon2('argon2id', options, (error, tag) => (error === null ? resolve(tag) : reject(error)));
      }),
  );

const encoded = (bytes: Buffer): string => bytes.toString('base64').replaceAll('=', '');

/** In the PHC string format: `$argon2id$v=19$m=19456,t=2,p=1$<salt>$<hash>`. */
export const hashPassword = async (password: string): Promise<string> => {
  const salt = randomBytes(16);
  const tag = await derive(password, salt, parameters);
  const { memory, passes, parallelism } = parameters;
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${encoded(salt)}$${encoded(tag)}`;
};

const form = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,2})\$([A-Za-z0-9+/]{1,88})\$([A-Za-z0-9+/]{1,88})$/;

let nobodys: Promise<string> | null = null;

/** A hash to compare with where there is none, so that the time tells nothing. Made once, by the first who signs in. */
const nobodysHash = (): Promise<string> => {
  nobodys ??= hashPassword(randomBytes(16).toString('hex')).catch((error: unknown) => {
    nobodys = null;
    throw error;
  });
  return nobodys;
};

/** Takes as long for a person without a password, or for no person at all. */
export const isPassword = async (password: string, hash: string | null): Promise<boolean> => {
  // Made for everybody, or the first to sign in would tell by the time whether the account exists.
  const other = await nobodysHash();
  const [, memory, passes, parallelism, salt = '', tag = ''] = form.exec(hash ?? other) ?? [];
  if (password.length > maxPassword) return false;
  const expected = Buffer.from(tag, 'base64');
  const given = await derive(password, Buffer.from(salt, 'base64'), {
    memory: Number(memory),
    passes: Number(passes),
    parallelism: Number(parallelism),
  });
  return hash !== null && given.length === expected.length && timingSafeEqual(given, expected);
};

const refuse = (message: string): never => {
  throw new Rejection('validation_failed', message, {
    errors: [{ path: '/password', code: 'not_allowed', message }],
  });
};

/**
 * Length is what counts (NIST SP 800-63B, 5.1.1.2): no rule about kinds of characters, but nothing that follows from the
 * person, and no pattern of a few characters. @throws Rejection with words for the person
 */
export const requireGoodPassword = (
  password: string,
  person: { readonly email: string; readonly name: string },
): void => {
  if (password.length < minPassword) refuse(`A password has at least ${minPassword} characters.`);
  if (password.length > maxPassword) refuse(`A password has at most ${maxPassword} characters.`);
  const low = password.toLowerCase();
  const [mailbox = ''] = person.email.split('@');
  const own = [mailbox, ...person.name.toLowerCase().split(/\s+/)].filter((word) => word.length >= 4);
  const rest = own.reduce((text, word) => text.replaceAll(word, ''), low);
  if (rest.length < minPassword / 2) refuse('Choose a password that is not made of your name or address.');
  if (new Set(low).size < 5) refuse('Choose a password with more different characters.');
  if (/^(?:0123456789|1234567890|qwertyuiop|password|passwort|letmein|welcome)/.test(low) && low.length < 16) {
    refuse('Choose a password that others do not choose.');
  }
};
