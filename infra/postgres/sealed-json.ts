/** JSON as a table keeps it where it is secret: AES-256-GCM, as 12 bytes of iv, 16 of tag, then the text. */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { cipherKeyOf, MissingKey } from '#contracts/ports/data-keys.ts';

/**
 * @param boundTo what the row is: it is authenticated, so that no row can replace another
 * @param maxBytes longest JSON
 */
export const sealJson = (key: Buffer, boundTo: string, value: unknown, maxBytes: number): Buffer => {
  const plain = Buffer.from(JSON.stringify(value), 'utf8');
  if (plain.length > maxBytes) throw new Error(`what is to be sealed is longer than ${maxBytes} bytes`);
  const iv = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', cipherKeyOf(key), iv).setAAD(Buffer.from(boundTo));
  const text = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), text]);
};

/** @throws MissingKey when the key does not open it: the row or the key was restored from another time */
export const openJson = (key: Buffer, boundTo: string, sealed: Buffer): unknown => {
  let plain: string;
  try {
    const decipher = createDecipheriv('aes-256-gcm', cipherKeyOf(key), sealed.subarray(0, 12)).setAAD(
      Buffer.from(boundTo),
    );
    decipher.setAuthTag(sealed.subarray(12, 28));
    plain = Buffer.concat([decipher.update(sealed.subarray(28)), decipher.final()]).toString('utf8');
  } catch (cause) {
    throw new MissingKey(`the client's data key does not open the ${boundTo.replaceAll('\n', ' ')}`, { cause });
  }
  // Parsed outside of the try: a parser's error would quote the secret, and a text that was sealed always parses.
  return JSON.parse(plain);
};
