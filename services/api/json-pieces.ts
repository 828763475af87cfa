import { setImmediate } from 'node:timers/promises';

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
