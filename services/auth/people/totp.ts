import { randomBytes } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';

/** Codes of an authenticator app: RFC 6238 with SHA-1, 6 digits, 30 s, which is what the apps support. */

const period = 30;
/** Steps by which the clock of a device may be off, in both directions (RFC 6238, 5.2). */
const window = 1;
/** 160 bits (RFC 4226, 4). */
export const newTotpSecret = (): Buffer => randomBytes(20);

const totpOf = (secret: Buffer, label = ''): TOTP =>
  new TOTP({
    issuer: 'Postline',
    label,
    secret: new Secret({ buffer: new Uint8Array(secret).buffer }),
    ...{ algorithm: 'SHA1', digits: 6, period },
  });

/** For the app: as a link, which is also what the picture holds, and as text to type. */
export const totpOffer = (secret: Buffer, email: string): { readonly uri: string; readonly text: string } => {
  const totp = totpOf(secret, email);
  return { uri: totp.toString(), text: totp.secret.base32 };
};

/** The step of the code; null for a wrong one. @param now milliseconds since the epoch */
export const totpStepOf = (secret: Buffer, code: string, now: number): number | null => {
  const token = code.replaceAll(' ', '');
  if (!/^\d{6}$/.test(token)) return null;
  const delta = totpOf(secret).validate({ token, timestamp: now, window });
  return delta === null ? null : Math.floor(now / 1000 / period) + delta;
};
