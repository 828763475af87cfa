import { createSecretKey, type KeyObject } from 'node:crypto';

/**
 * The key that sealed stored bytes is missing, or does not open them. The reader may conclude nothing from that, and no
 * event is to blame: the reader stops, and tries again, since an operator may restore the key.
 */
export class MissingKey extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'MissingKey';
  }
}

const keyObjects = new WeakMap<Buffer, KeyObject>();

/** Node prepares raw bytes anew for each cipher, which takes longer than a short text; this form is prepared once. */
export const cipherKeyOf = (key: Buffer): KeyObject => {
  const known = keyObjects.get(key);
  if (known !== undefined) return known;
  const made = createSecretKey(key);
  keyObjects.set(key, made);
  return made;
};
