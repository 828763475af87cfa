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
 * Each hash takes 19 MiB and some 30 ms of a core. Beyond this number at once they wait; beyond that queue a caller is asked
 * to come again, so that a flood of sign-ins fills neither the memory nor the threads of the process.
 */
const maxAtOnce = 2;
/** In each lane. */
const maxWaiting = 64;

/** Who asks for a hash. */
export interface HashFor {
  /**
   * Whether something shows who it is: a session, a link, or a browser that has signed the person in before. They have a
   * lane of their own, so that strangers hold up nobody who was here before.
   */
  readonly known: boolean;
  /** Whose share of the lane it takes: a person or link; a network (`networkOf`) for a stranger. */
  readonly owner: string;
}

interface Waiter {
  readonly owner: string;
  readonly begin: () => void;
  readonly refuse: (reason: Unavailable) => void;
}

const tooMany = (): Unavailable => new Unavailable('Too many people sign in at once.');

/** Hashes that wait. Owners take turns; in a full lane the owner with the most hashes gives a place to an owner with fewer. */
class HashLane {
  readonly #lines = new Map<string, Waiter[]>();
  #waiting = 0;

  /** @throws Unavailable, also later, when somebody with less of the lane takes the place */
  wait(owner: string): Promise<void> {
    if (this.#waiting >= maxWaiting) this.#makeRoomFor(owner);
    this.#waiting += 1;
    return new Promise((begin, refuse) => {
      const line = this.#lines.get(owner) ?? [];
      line.push({ owner, begin, refuse });
      this.#lines.set(owner, line);
    });
  }

  /** The next one; null: nobody waits. */
  next(): Waiter | null {
    const [first] = this.#lines;
    if (first === undefined) return null;
    const [owner, line] = first;
    const next = line.shift() ?? null;
    this.#waiting -= 1;
    // An owner with more goes to the end of the round.
    this.#lines.delete(owner);
    if (line.length > 0) this.#lines.set(owner, line);
    return next;
  }

  #makeRoomFor(owner: string): void {
    const [, most] = [...this.#lines].reduce((one, other) => (other[1].length > one[1].length ? other : one));
    if (most.length <= (this.#lines.get(owner)?.length ?? 0) + 1) throw tooMany();
    this.#waiting -= 1;
    most.pop()?.refuse(tooMany());
  }
}

let running = 0;
const lanes = { known: new HashLane(), strangers: new HashLane() };
let isKnownNext = true;

/** The lanes take turns, so that neither starves the other. */
const nextWaiter = (): Waiter | null => {
  const { known, strangers } = lanes;
  const [first, second] = isKnownNext ? [known, strangers] : [strangers, known];
  isKnownNext = !isKnownNext;
  return first.next() ?? second.next();
};

const queued = async <T>({ known, owner }: HashFor, work: () => Promise<T>): Promise<T> => {
  if (running >= maxAtOnce) await (known ? lanes.known : lanes.strangers).wait(owner);
  else running += 1;
  try {
    return await work();
  } finally {
    const next = nextWaiter();
    if (next === null) running -= 1;
    else next.begin();
  }
};

const derive = (
  password: string,
  salt: Buffer,
  { memory, passes, parallelism }: { memory: number; passes: number; parallelism: number },
  caller: HashFor,
): Promise<Buffer> =>
  queued(
    caller,
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

/**
 * In the PHC string format: `$argon2id$v=19$m=19456,t=2,p=1$<salt>$<hash>`.
 * @param owner of somebody known: only such a one sets a password
 * @throws Unavailable
 */
export const hashPassword = async (password: string, owner: string): Promise<string> => {
  const salt = randomBytes(16);
  const tag = await derive(password, salt, parameters, { known: true, owner });
  const { memory, passes, parallelism } = parameters;
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${encoded(salt)}$${encoded(tag)}`;
};

const form = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,2})\$([A-Za-z0-9+/]{1,88})\$([A-Za-z0-9+/]{1,88})$/;

let nobodys: Promise<string> | null = null;

/** A hash to compare with where there is none, so that the time tells nothing. Made once, by the first who signs in. */
const nobodysHash = (): Promise<string> => {
  nobodys ??= hashPassword(randomBytes(16).toString('hex'), 'nobody').catch((error: unknown) => {
    nobodys = null;
    throw error;
  });
  return nobodys;
};

/** Takes as long for a person without a password, or for no person at all. @throws Unavailable */
export const isPassword = async (password: string, hash: string | null, caller: HashFor): Promise<boolean> => {
  // Made for everybody, or the first to sign in would tell by the time whether the account exists.
  const other = await nobodysHash();
  const [, memory, passes, parallelism, salt = '', tag = ''] = form.exec(hash ?? other) ?? [];
  if (password.length > maxPassword) return false;
  const expected = Buffer.from(tag, 'base64');
  const own = { memory: Number(memory), passes: Number(passes), parallelism: Number(parallelism) };
  const given = await derive(password, Buffer.from(salt, 'base64'), own, caller);
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
