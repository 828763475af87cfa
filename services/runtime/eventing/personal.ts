import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { TSchema } from 'typebox';
import { cipherKeyOf, MissingKey } from '#contracts/ports/data-keys.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';

/**
 * Personal members are encrypted at the store's edge with the data key of the client, person or invitation that the event
 * names. In the stored JSON such a member is `{"$sealed": "<base64 of iv, tag, ciphertext>"}`; null stays null; after the
 * key's destruction it reads as null.
 */

interface Sealed {
  readonly $sealed: string;
}

const isSealed = (value: unknown): value is Sealed =>
  typeof value === 'object' && value !== null && typeof (value as Sealed).$sealed === 'string';

const found = new WeakMap<TSchema, readonly string[]>();

/** Names of the personal members at the top of an event's data. */
export const personalMembers = (schema: TSchema): readonly string[] => {
  const known = found.get(schema);
  if (known !== undefined) return known;
  const properties = (schema as { properties?: Record<string, { personal?: boolean }> }).properties ?? {};
  const names = Object.entries(properties).flatMap(([name, member]) => (member.personal === true ? [name] : []));
  found.set(schema, names);
  return names;
};

type Data = Record<string, unknown>;

/** Whose data key seals the personal members: the client, person or invitation that the event names. */
const subjectOf = ({ clientId, personId, inviteId }: Data): string => {
  const subject = clientId ?? personId ?? inviteId;
  if (typeof subject !== 'string')
    throw new BrokenInvariant('an event with personal members must name its clientId, personId or inviteId');
  return subject;
};

/** The member's place is authenticated with the ciphertext, so that it cannot be moved to another event or member. */
const place = (stream: string, type: string, member: string): Buffer => Buffer.from(`${stream}\n${type}\n${member}`);

export const sealPersonal = async (
  keys: DataKeys,
  stream: string,
  type: string,
  members: readonly string[],
  data: Data,
): Promise<Data> => {
  if (members.every((member) => data[member] === null || data[member] === undefined)) return data;
  const key = await keys.forWriting(subjectOf(data));
  const sealed: Data = { ...data };
  for (const member of members) {
    const value = data[member];
    if (value === null || value === undefined) continue;
    if (key === null) {
      sealed[member] = null;
      continue;
    }
    const iv = randomBytes(12);
    const cipher = createCipheriv('aes-256-gcm', cipherKeyOf(key), iv).setAAD(place(stream, type, member));
    const text = Buffer.concat([cipher.update(String(value), 'utf8'), cipher.final()]);
    sealed[member] = { $sealed: Buffer.concat([iv, cipher.getAuthTag(), text]).toString('base64') };
  }
  return sealed;
};

/** @throws MissingKey where another key of the client sealed the bytes */
const unsealed = (key: Buffer, bytes: Buffer, aad: Buffer): string => {
  try {
    const decipher = createDecipheriv('aes-256-gcm', cipherKeyOf(key), bytes.subarray(0, 12)).setAAD(aad);
    decipher.setAuthTag(bytes.subarray(12, 28));
    return Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString('utf8');
  } catch (cause) {
    throw new MissingKey('the data key of its client does not authenticate a personal member', { cause });
  }
};

export const openPersonal = async (
  keys: DataKeys,
  stream: string,
  type: string,
  members: readonly string[],
  data: Data,
): Promise<Data> => {
  if (!members.some((member) => isSealed(data[member]))) return data;
  const key = await keys.forReading(subjectOf(data));
  const opened: Data = { ...data };
  for (const member of members) {
    const value = data[member];
    if (!isSealed(value)) continue;
    if (key === null) {
      opened[member] = null;
      continue;
    }
    opened[member] = unsealed(key, Buffer.from(value.$sealed, 'base64'), place(stream, type, member));
  }
  return opened;
};

/** Keys that encrypt one client's personal members. Destroying a client's key erases the client. */
export interface DataKeys {
  /** 32 bytes. Created and committed before the first use. Null when the client's key was destroyed. */
  forWriting(clientId: string): Promise<Buffer | null>;
  /**
   * Null when the key was destroyed. @throws when it is missing or cannot be unwrapped: that is a fault, never "null"
   */
  forReading(clientId: string): Promise<Buffer | null>;
}
