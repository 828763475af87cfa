/** How the secret of a network credential is stored: AES-256-GCM under the data key of the account's client. */
import type { Credential } from '#contracts/ports/credentials.ts';
import type { Json } from '#contracts/ports/platform.ts';
import { openJson, sealJson } from './sealed-json.ts';

export type Secret = Credential['secret'];

/** Which credential it is. Account and version are authenticated, so that no row can replace another. */
export interface SealedPlace {
  readonly accountId: string;
  readonly version: number;
}

/** Longest secret, in bytes. Networks give a few kilobytes. */
const maxBytes = 65_536;

const boundTo = ({ accountId, version }: SealedPlace): string => `network credential\n${accountId}\n${version}`;

/** ISO 8601 in UTC. @throws RangeError when the text is no instant */
export const instantOf = (text: string | null): string | null => (text === null ? null : new Date(text).toISOString());

export const seal = (key: Buffer, place: SealedPlace, secret: Secret): Buffer =>
  sealJson(key, boundTo(place), secret, maxBytes);

/** @throws MissingKey when the key does not open it: the row or the key was restored from another time */
export const open = (key: Buffer, place: SealedPlace, sealed: Buffer): Secret =>
  openJson(key, boundTo(place), sealed) as Secret;

/** Shorter texts are words such as `bearer`, which a reason may well have. */
const shortestSecret = 8;
/** Longest reason that is stored or answered, in characters. */
const maxReason = 380;

const textsIn = (value: Json): readonly string[] => {
  if (typeof value === 'string') return value.length >= shortestSecret ? [value] : [];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value as Readonly<Record<string, Json>>).flatMap(textsIn);
};

/**
 * The forms in which a network may repeat a text: as it is, in a url or a form, and in base64, as of a header of basic
 * authentication. There the text may stand behind a user name, so that its first and last characters mix with others:
 * what is the same at each of the three offsets is removed.
 */
const formsOf = (text: string): readonly string[] => {
  const bytes = Buffer.from(text, 'utf8');
  const inBase64 = [0, 1, 2].flatMap((offset) => {
    const encoded = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64url');
    // Characters that hold bits of a neighbour differ with it.
    const own = encoded.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + bytes.length) * 8) / 6));
    const standard = own.replaceAll('-', '+').replaceAll('_', '/');
    return [own, standard, encodeURIComponent(standard)];
  });
  const inUrl = encodeURIComponent(text.toWellFormed());
  const inForm = new URLSearchParams([['', text]]).toString().slice(1);
  const encoded = [inUrl, inForm].flatMap((one) => [one, one.replaceAll(/%../g, (hex) => hex.toLowerCase())]);
  return [text, ...encoded, ...inBase64].filter((one) => one.length >= shortestSecret);
};

/** The words of a network, without any text of the secrets that they repeat, and short enough to store. */
export const reasonWithout = (reason: string, ...secrets: readonly Secret[]): string => {
  // The longest first: one text may be a part of another.
  const texts = [...new Set(secrets.flatMap(textsIn).flatMap(formsOf))].sort((a, b) => b.length - a.length);
  const clean = texts.reduce((text, one) => text.replaceAll(one, '[removed]'), reason);
  return clean.slice(0, maxReason).toWellFormed().replaceAll('\0', '');
};
