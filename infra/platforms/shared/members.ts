/** Reads members of answers, which may be anything. */
import type { Json } from '#contracts/ports/platform.ts';

export type Members = { readonly [name: string]: Json };

export const membersOf = (value: Json | undefined): Members | null =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Members) : null;

export const textIn = (value: Json | undefined, name: string): string | null => {
  const member = membersOf(value)?.[name];
  return typeof member === 'string' ? member : null;
};

export const numberIn = (value: Json | undefined, name: string): number | null => {
  const member = membersOf(value)?.[name];
  return typeof member === 'number' && Number.isFinite(member) ? member : null;
};

/** An integer that is exact. */
export const integerIn = (value: Json | undefined, name: string): number | null => {
  const member = numberIn(value, name);
  return Number.isSafeInteger(member) ? member : null;
};

/** The last instant that ISO 8601 writes with four digits of the year. */
export const lastInstant = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/**
 * ISO 8601 of an instant that a network names, in milliseconds since the epoch. Null: it is none of 1970 to 9999, which no
 * date and no column of ours holds.
 */
export const instantOf = (at: number | null): string | null =>
  at !== null && at >= 0 && at <= lastInstant ? new Date(at).toISOString() : null;

/** Those of a list that have members. */
export const listIn = (value: Json | undefined, name: string): readonly Members[] => {
  const member = membersOf(value)?.[name];
  const list: readonly Json[] = Array.isArray(member) ? member : [];
  return list.map(membersOf).filter((one) => one !== null);
};

/** Networks write ids as integers beyond 2^53, which a number would round to the id of another post: they stay as written. */
const exact = (_name: string, value: unknown, { source }: { readonly source?: string } = {}): unknown =>
  typeof value === 'number' && !Number.isSafeInteger(value) && source !== undefined && /^-?\d+$/.test(source)
    ? source
    : value;

/** What walks through an answer calls itself for each level, and would run out of stack. */
const maxDepth = 100;

const [quote, backslash, openList, closeList, openMembers, closeMembers] = Buffer.from('"\\[]{}');

/** Reads bytes: those of other characters are none of these. */
const isTooDeep = (body: Buffer): boolean => {
  let [depth, isWord] = [0, false];
  for (let at = 0; at < body.length; at += 1) {
    const one = body[at];
    if (one === quote) isWord = !isWord;
    else if (isWord) {
      if (one === backslash) at += 1;
    } else if (one === openList || one === openMembers) {
      depth += 1;
      if (depth > maxDepth) return true;
    } else if (one === closeList || one === closeMembers) depth -= 1;
  }
  return false;
};

/** An integer beyond 2^53 is a string. Null: the body is no JSON object, or nests deeper than any network does. */
export const parsed = (body: Buffer): Members | null => {
  if (body.length > maxDepth && isTooDeep(body)) return null;
  const text = body.toString('utf8');
  try {
    // Looking at each member costs several times as much as reading them.
    return membersOf((/\d{16}/.test(text) ? JSON.parse(text, exact) : JSON.parse(text)) as Json);
  } catch {
    return null;
  }
};

/** A shorter word is none of a network's secrets, and may be anywhere. */
const minSecret = 8;

/** An answer without what it repeats of ours that lets anybody in, in the ways in which JSON and addresses write it. */
export const withoutSecrets = (body: Buffer, secrets: readonly (string | null | undefined)[]): Buffer => {
  const ways = secrets.flatMap((secret) => {
    if (secret === null || secret === undefined || secret.length < minSecret) return [];
    const inJson = JSON.stringify(secret).slice(1, -1);
    return [secret, inJson, inJson.replaceAll('/', '\\/'), encodeURIComponent(secret)];
  });
  const found = ways.filter((way) => body.includes(way));
  if (found.length === 0) return body;
  return Buffer.from(found.reduce((text, way) => text.replaceAll(way, '…'), body.toString('utf8')));
};
