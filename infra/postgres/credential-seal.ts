/** How the secret of a network credential is stored: AES-256-GCM under the data key of the account's client. */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { Credential } from '#contracts/ports/credentials.ts';
import { MissingKey } from '#contracts/ports/data-keys.ts';
import type { Json } from '#contracts/ports/platform.ts';

export type Secret = Credential['secret'];

/** Which credential it is. Account and version are authenticated, so that no row can replace another. */
export interface SealedPlace {
  readonly accountId: string;
  readonly version: number;
}

/** Longest secret, in bytes. Networks give a few kilobytes. */
const maxBytes = 65_536;

const boundTo = ({ accountId, version }: SealedPlace): Buffer =>
  Buffer.from(`network credential\n${accountId}\n${version}`);

/** ISO 8601 in UTC. @throws RangeError when the text is no instant */
export const instantOf = (text: string | null): string | null => (text === null ? null : new Date(text).toISOString());

/** iv, tag, ciphertext. */
export const seal = (key: Buffer, place: SealedPlace, secret: Secret): Buffer => {
  const plain = Buffer.from(JSON.stringify(secret), 'utf8');
  if (plain.length > maxBytes) {
    throw new Error(`the credential of account ${place.accountId} is longer than ${maxBytes} bytes`);
  }
  const iv = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(boundTo(place));
  const text = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), text]);
};

/** @throws MissingKey when the key does not open it: the row or the key was restored from another time */
export const open = (key: Buffer, place: SealedPlace, sealed: Buffer): Secret => {
  let plain: string;
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, 12)).setAAD(boundTo(place));
    decipher.setAuthTag(sealed.subarray(12, 28));
    plain = Buffer.concat([decipher.update(sealed.subarray(28)), decipher.final()]).toString('utf8');
  } catch (cause) {
    throw new MissingKey(`the client's data key does not open the credential of account ${place.accountId}`, { cause });
  }
  // Parsed outside of the try: a parser's error would quote the secret, and a text that was sealed always parses.
  return JSON.parse(plain) as Secret;
};

/** Shorter texts are words such as `bearer`, which a reason may well have. */
const shortestSecret = 8;
/** Longest reason that is stored or answered, in characters. */
const maxReason = 380;

const textsIn = (value: Json): readonly string[] => {
  if (typeof value === 'string') return value.length >= shortestSecret ? [value] : [];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value as Readonly<Record<string, Json>>).flatMap(textsIn);
};

/** The words of a network, without any text of the secrets that they repeat, and short enough to store. */
export const reasonWithout = (reason: string, ...secrets: readonly Secret[]): string => {
  // The longest first: one text may be a part of another.
  const texts = secrets.flatMap(textsIn).sort((a, b) => b.length - a.length);
  const clean = texts.reduce((text, one) => text.replaceAll(one, '[removed]'), reason);
  return clean.slice(0, maxReason).toWellFormed().replaceAll('\0', '');
};
