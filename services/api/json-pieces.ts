import { setImmediate } from 'node:timers/promises';

/**
 * JSON texts in pieces. A post shows its content once for each of its targets, so an answer may be five hundred times as
 * large as the body that asked for it: written in one turn, it would hold the event loop and its memory for all others.
 */

/** Characters of a text that is written at once, about. */
const maxAtOnce = 64 * 1_024;

/** Of a member, besides its name and its text. */
const ofMember = 8;

/**
 * What is left of `room` beside the text of an object or list; below zero it is longer, and looked at no further. Every
 * answer is looked at, so members without members of their own cost no call.
 */
const roomBeside = (value: object, room: number): number => {
  let left = room;
  for (const name in value) {
    const member = (value as Readonly<Record<string, unknown>>)[name];
    left -= ofMember + name.length;
    if (typeof member === 'string') left -= member.length;
    else if (typeof member === 'object' && member !== null) left = roomBeside(member, left);
    if (left < 0) break;
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
