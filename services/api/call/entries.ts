import { hash } from 'node:crypto';
import { type TObject, type TSchema, Type } from 'typebox';
import { canonicalJson } from '#domain/canonical.ts';
import { Rejection } from '#domain/decider.ts';
import { BodyNotes, clean } from '#schemas/http/clean.ts';
import { issuesOf } from '#schemas/validator.ts';
import type { Piece } from './bodies.ts';
import { defaultBodyLimit, defaultValueLimit, JsonMeter, parseJson } from './json.ts';
import { Refusal } from './refusal.ts';

/**
 * A body with a long list whose entries stand for calls of their own. Each entry is parsed and checked alone: one that
 * does not fit refuses no other, and no step holds the event loop for longer than a single call does.
 */

/** One entry of the list: what the caller sent, or why it does not fit. Pointers lead into the entry. */
export type Entry<Body> = { readonly body: Body; readonly notes: BodyNotes } | { readonly refusal: Rejection };

export interface ReadEntries {
  /** In the order of the list. */
  readonly entries: readonly Entry<unknown>[];
  /** A digest of each entry: equal for equal entries. */
  readonly digests: readonly string[];
}

/** Bytes scanned in one turn of the event loop. */
const scannedAtOnce = 256 * 1_024;

const [quote, backslash, bracket, brace, bracketEnd, braceEnd] = Buffer.from('"\\[{]}');

interface CutText {
  /** The text with `{"at": n}` in the place of object n. */
  readonly envelope: Buffer;
  readonly objects: readonly Buffer[];
}

/**
 * Cuts the objects in the lists of the outermost object out of the text. The text is JSON exactly when the envelope and
 * every object are.
 */
const cut = async (text: Buffer, piece: Piece): Promise<CutText> => {
  const parts: Buffer[] = [];
  const objects: Buffer[] = [];
  let [depth, kept, begun] = [0, 0, -1];
  let [inText, escaped, inList] = [false, false, false];
  const scan = (from: number, to: number): void => {
    for (let at = from; at < to; at += 1) {
      const byte = text[at];
      if (inText) {
        if (escaped) escaped = false;
        else if (byte === backslash) escaped = true;
        else if (byte === quote) inText = false;
      } else if (byte === quote) inText = true;
      else if (byte === bracket || byte === brace) {
        depth += 1;
        if (depth === 2) inList = byte === bracket;
        if (depth === 3 && inList && byte === brace) begun = at;
      } else if (byte === bracketEnd || byte === braceEnd) {
        depth -= 1;
        if (depth !== 2 || begun < 0) continue;
        parts.push(text.subarray(kept, begun), Buffer.from(`{"at":${objects.length}}`));
        objects.push(text.subarray(begun, at + 1));
        [kept, begun] = [at + 1, -1];
      }
    }
  };
  for (let from = 0; from < text.length; from += scannedAtOnce) {
    await piece(() => scan(from, Math.min(text.length, from + scannedAtOnce)));
  }
  return { envelope: Buffer.concat([...parts, text.subarray(kept)]), objects };
};

const invalid = (issues: Rejection['errors']): Refusal =>
  new Refusal('validation_failed', 'The input is not valid.', { errors: issues });

/** A value that JSON cannot hold, or too much of it, refuses the entry; a text that is not JSON refuses the call. */
const parsed = (bytes: Buffer): { readonly value: unknown } | { readonly refusal: Rejection } => {
  try {
    if (bytes.length > defaultBodyLimit) {
      throw new Refusal('payload_too_large', `One entry may have ${defaultBodyLimit} bytes.`);
    }
    new JsonMeter(defaultValueLimit).take(bytes);
    return { value: parseJson(bytes) };
  } catch (error) {
    if (!(error instanceof Rejection) || error.code === 'invalid_json') throw error;
    return { refusal: error };
  }
};

const digestOf = (text: string | Buffer): string => hash('sha256', text, 'base64url');
/** Of an entry that fits: equal for equal entries, whatever their form. */
export const digestOfEntry = (body: unknown): string => digestOf(canonicalJson(body));

/** Objects that one turn of the event loop parses, besides the bytes. */
const parsedAtOnce = 1_000;

/** @throws Refusal 400 */
const checkJson = async (objects: readonly Buffer[], piece: Piece): Promise<void> => {
  let at = 0;
  while (at < objects.length) {
    await piece(() => {
      let bytes = 0;
      for (const end = at + parsedAtOnce; at < Math.min(end, objects.length) && bytes < scannedAtOnce; at += 1) {
        const one = objects[at] ?? Buffer.alloc(0);
        bytes += one.length;
        parsed(one);
      }
    });
  }
};

const envelopes = new WeakMap<TObject, TObject>();

/** The schema of a body whose entries are checked one by one. Made once, because the validator keeps what it compiles. */
const envelopeOf = (schema: TObject, member: string, minItems: number, maxItems: number): TObject => {
  const known = envelopes.get(schema) ?? Type.Object({ [member]: Type.Array(Type.Unknown(), { minItems, maxItems }) });
  envelopes.set(schema, known);
  return known;
};

/** @param member the list in the body @param notes of the members beside it @throws Refusal 400, 422 about the body as a whole */
export const readEntries = async (
  schema: TObject,
  member: string,
  text: Buffer,
  notes: BodyNotes,
  piece: Piece,
): Promise<ReadEntries> => {
  const { items, minItems, maxItems } = schema.properties[member] as unknown as {
    readonly items: TSchema;
    readonly minItems: number;
    readonly maxItems: number;
  };
  const { envelope, objects } = await cut(text, piece);
  const sent = await piece(() => parseJson(envelope));
  const issues = issuesOf(envelopeOf(schema, member, minItems, maxItems), sent);
  if (issues.length > 0) {
    await checkJson(objects, piece);
    throw invalid(issues);
  }
  clean(envelopeOf(schema, member, minItems, maxItems), sent, { notes });
  const listed = (sent as Readonly<Record<string, readonly unknown[]>>)[member] ?? [];
  const places = listed.map((one) => (one as { readonly at?: number } | null)?.at ?? -1);
  const entries: Entry<unknown>[] = [];
  const digests: string[] = [];
  for (const [index, place] of places.entries()) {
    const bytes = objects[place];
    const read = bytes === undefined ? { value: listed[index] } : await piece(() => parsed(bytes));
    const refuse = (refusal: Rejection): void => {
      entries.push({ refusal });
      digests.push(digestOf(bytes ?? JSON.stringify(listed[index])));
    };
    if ('refusal' in read) {
      refuse(read.refusal);
      continue;
    }
    const wrong = await piece(() => issuesOf(items, read.value));
    if (wrong.length > 0) {
      refuse(invalid(wrong));
      continue;
    }
    const own = new BodyNotes([member, String(index)]);
    const body = await piece(() => clean(items, read.value, { notes: own }));
    entries.push({ body, notes: own });
    digests.push(await piece(() => digestOfEntry(body)));
  }
  // Objects of other lists are ignored, and must be JSON all the same.
  const used = new Set(places);
  await checkJson(
    objects.filter((_, place) => !used.has(place)),
    piece,
  );
  return { entries, digests };
};
