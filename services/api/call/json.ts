import { setImmediate } from 'node:timers/promises';
import type { Issue } from '#schemas/issues.ts';
import { issueAt, maxIssues } from '#schemas/validator.ts';
import { Refusal } from './refusal.ts';

/**
 * Turns bytes into a JSON value that every store can hold. Postgres refuses NUL, and a lone surrogate is not valid
 * Unicode.
 */

/** Largest body in bytes, unless the operation sets another limit. */
export const defaultBodyLimit = 1024 * 1024;
/** Most values in a body, unless the operation sets another limit. */
export const defaultValueLimit = 10_000;
const deepest = 32;
const utf8 = new TextDecoder('utf-8', { fatal: true });

const invalidJson = (detail: string) => new Refusal('invalid_json', detail);

const [quote, backslash, comma, bracket, brace, bracketEnd, braceEnd] = Buffer.from('"\\,[{]}');

/**
 * Counts values and depth of a JSON text while its bytes come: the parser and the validator hold the event loop for as
 * long as there are values, so a body with too many is refused before either sees it.
 */
export class JsonMeter {
  readonly #limit: number;
  #values = 1;
  #depth = 0;
  #inText = false;
  /** The byte before was a backslash; it may have been the last of its chunk. */
  #escaped = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Values counted so far; never fewer than the text has. */
  get values(): number {
    return this.#values;
  }

  /** Every value but the first follows a comma or opens its object or array. @throws Refusal 413, 400 */
  take(chunk: Uint8Array): void {
    let inText = this.#inText;
    let escaped = this.#escaped;
    for (let at = 0; at < chunk.length; at += 1) {
      const byte = chunk[at];
      if (inText) {
        if (escaped) escaped = false;
        else if (byte === backslash) escaped = true;
        else if (byte === quote) inText = false;
      } else if (byte === quote) inText = true;
      else if (byte === comma) this.#count();
      else if (byte === bracket || byte === brace) {
        this.#depth += 1;
        if (this.#depth > deepest) throw invalidJson(`The body is more than ${deepest} levels deep.`);
        this.#count();
      } else if (byte === bracketEnd || byte === braceEnd) this.#depth -= 1;
    }
    this.#inText = inText;
    this.#escaped = escaped;
  }

  #count(): void {
    this.#values += 1;
    if (this.#values > this.#limit) throw new Refusal('too_many_values', `The body may have ${this.#limit} values.`);
  }
}

const textIssue = (text: string): string | null => {
  if (text.includes('\0')) return 'must not contain NUL';
  return text.isWellFormed() ? null : 'must be well-formed Unicode (it has a lone surrogate)';
};

/**
 * The meter has bounded the depth and the number of these values. `path` leads to the value; the function restores it
 * before it returns.
 */
const inspect = (value: unknown, path: string[], issues: Issue[]): void => {
  if (issues.length === maxIssues) return;
  const tell = (code: Issue['code'], message: string): void => void issues.push(issueAt(path, code, message));
  if (typeof value === 'string') {
    const message = textIssue(value);
    if (message !== null) tell('invalid_text', message);
  } else if (typeof value === 'number') {
    if (!Number.isFinite(value)) tell(value > 0 ? 'too_large' : 'too_small', 'must be a number that a double can hold');
  } else if (typeof value === 'object' && value !== null) {
    const list = Array.isArray(value);
    for (const member of Object.keys(value)) {
      const message = list ? null : textIssue(member);
      if (message === null) {
        path.push(member);
        inspect((value as Record<string, unknown>)[member], path, issues);
        path.pop();
      } else if (issues.length < maxIssues) tell('invalid_text', `has a member name that ${message}`);
    }
  }
};

/**
 * @param bytes of a text that a meter has accepted.
 * @throws Refusal 400 for text that is not JSON, 422 for values that no store can hold.
 */
export const parseJson = (bytes: Buffer): unknown => {
  let value: unknown;
  try {
    value = JSON.parse(utf8.decode(bytes));
  } catch {
    throw invalidJson('The body is not well-formed JSON in UTF-8.');
  }
  const issues: Issue[] = [];
  inspect(value, [], issues);
  if (issues.length > 0) throw new Refusal('validation_failed', 'The input is not valid.', { errors: issues });
  return value;
};

/**
 * JSON texts in pieces. A post shows its content once for each of its targets, so an answer may be five hundred times as
 * large as the body that asked for it: written in one turn, it would hold the event loop and its memory for all others.
 */

/** Characters of a text that is written at once, about. */
const maxAtOnce = 64 * 1_024;

/** Of a member besides its text: its name and its signs, about. */
const ofMember = 24;

/**
 * What is left of `room` beside the text of an object or list; below zero it is longer, and looked at no further. Every
 * answer is looked at, so names are counted and not read, and members without members of their own cost no call.
 */
const roomBeside = (value: object, room: number): number => {
  const members: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
  let left = room - ofMember * members.length;
  for (const member of members) {
    if (left < 0) break;
    if (typeof member === 'string') left -= member.length;
    else if (typeof member === 'object' && member !== null) left = roomBeside(member, left);
  }
  return left;
};

/** Whether the JSON text of the value has at most so many characters, about. */
export const isShort = (value: object, characters = maxAtOnce): boolean => roomBeside(value, characters) >= 0;

/** As `JSON.stringify` writes it. Each piece is short, or one text of the value. */
function* partsOf(value: unknown): Generator<string> {
  if (typeof value !== 'object' || value === null || isShort(value)) {
    yield JSON.stringify(value) ?? 'null';
    return;
  }
  const isList = Array.isArray(value);
  let before = isList ? '[' : '{';
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined && !isList) continue;
    yield isList ? before : `${before}${JSON.stringify(name)}:`;
    before = ',';
    yield* partsOf(member);
  }
  yield isList ? ']' : '}';
}

/** The JSON text of a value, a piece in each turn of the event loop. */
export async function* jsonPieces(value: unknown): AsyncGenerator<string> {
  let piece = '';
  for (const part of partsOf(value)) {
    piece += part;
    if (piece.length < maxAtOnce) continue;
    yield piece;
    piece = '';
    await setImmediate();
  }
  if (piece !== '') yield piece;
}
