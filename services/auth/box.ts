import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { MissingKey } from '#contracts/ports/data-keys.ts';
import type { Purpose, Secrets } from '#runtime/identity/secrets.ts';

/** A text that a table keeps encrypted: AES-256-GCM, as 12 bytes of nonce, 16 of tag, then the text. */
export interface Boxed {
  readonly version: string;
  readonly sealed: Buffer;
}

/** @param place where it is stored: the text cannot be moved to another row */
export const box = (secrets: Secrets, purpose: Purpose, place: string, text: string): Boxed => {
  const version = secrets.current;
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', secrets.subKey(purpose, version), nonce).setAAD(Buffer.from(place));
  const bytes = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return { version, sealed: Buffer.concat([nonce, cipher.getAuthTag(), bytes]) };
};

/** @throws MissingKey */
export const unbox = (secrets: Secrets, purpose: Purpose, place: string, { version, sealed }: Boxed): string => {
  try {
    const key = secrets.subKey(purpose, version);
    const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, 12)).setAAD(Buffer.from(place));
    decipher.setAuthTag(sealed.subarray(12, 28));
    return Buffer.concat([decipher.update(sealed.subarray(28)), decipher.final()]).toString('utf8');
  } catch (cause) {
    throw new MissingKey(`SECRET_KEY ${version} does not open a value that signs people or apps in`, { cause });
  }
};
