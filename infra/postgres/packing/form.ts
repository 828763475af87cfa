/**
 * The packed form of an event's bytes, version 1: a sequence of codes, in which a byte from 0x20 to 0x7e stands for
 * itself. Packing searches for texts, never for meaning: whatever it finds, unpacking gives the same bytes back.
 */

/** In the column `packing`. Null there: the bytes are as they were appended. */
export const packingVersion = 1;

/** A length (7 bits a byte, the lowest first, the high bit: more follows), then so many bytes as they are. */
export const bytesCode = 0x00;
/** 16 bytes: a uuid in lower case. It takes the next number, while there is one: it is known from then on. */
export const uuidCode = 0x01;
/** 6 bytes, the highest first: milliseconds since 1970 of an instant such as 2026-01-31T08:00:00.000Z. */
export const instantCode = 0x02;
/** 32 bytes: 64 hexadecimal digits in lower case. */
export const hashCode = 0x03;
/** A known uuid, by its number. */
export const knownCode = 0x04;
export const maxKnown = 12;
/** With the next byte, the word 128 + 256 × (code − 0x10) + byte. */
export const longWordCode = 0x10;
/** A word of the first 128. */
export const wordCode = 0x80;

export const uuidLength = 36;

/** Value of a byte as a hexadecimal digit in lower case; −1 for all others. */
export const hexValue = new Int8Array(256).fill(-1);
for (let digit = 0; digit < 16; digit += 1) hexValue[digit.toString(16).charCodeAt(0)] = digit;

/** The first bytes of a buffer that is used again. */
export const copyOf = (from: Buffer, length: number): Buffer => {
  const copy = Buffer.allocUnsafe(length);
  from.copy(copy, 0, 0, length);
  return copy;
};

/*
 * Uuids that need not stand in an event's bytes: its row has them in other columns, or they stand further ahead in the
 * same bytes.
 */

/** Numbers of what the columns hold; uuids of the event itself follow. */
const workspaceNumber = 0;
const keyNumber = 1;
const streamNumber = 2;
const firstOther = 3;

/** What a row knows without its bytes. A column without a uuid leaves its number without one. */
export interface Known {
  readonly workspace: string | null;
  readonly partitionKey: string;
  /** Null for metadata, which rows of several streams may share. */
  readonly stream: string | null;
}

/** The uuids that an event's row knows by number, each as four numbers of 32 bits. */
export class KnownUuids {
  readonly #numbers = new Int32Array(maxKnown * 4);
  /** What the columns held: rows that follow each other mostly have the same. */
  readonly #texts: (string | null)[] = new Array<string | null>(firstOther).fill(null);
  /** A bit for each number that has a uuid. */
  #filled = 0;
  #count = firstOther;

  reset({ workspace, partitionKey, stream }: Known): void {
    this.#count = firstOther;
    this.#filled &= (1 << firstOther) - 1;
    this.#fill(workspaceNumber, workspace);
    this.#fill(keyNumber, partitionKey);
    this.#fill(streamNumber, stream);
  }

  /** Gives the uuid the next number, while there is one. */
  add(uuid: Int32Array): void {
    if (this.#count === maxKnown) return;
    this.#numbers.set(uuid, this.#count * 4);
    this.#filled |= 1 << this.#count;
    this.#count += 1;
  }

  /** Its number; −1 where it is not known. */
  find(uuid: Int32Array): number {
    const known = this.#numbers;
    for (let number = 0, at = 0; number < this.#count; number += 1, at += 4) {
      if (known[at] !== uuid[0] || known[at + 1] !== uuid[1]) continue;
      if (known[at + 2] !== uuid[2] || known[at + 3] !== uuid[3]) continue;
      if ((this.#filled & (1 << number)) !== 0) return number;
    }
    return -1;
  }

  /** @throws RangeError where the number has no uuid */
  take(number: number, to: Int32Array): void {
    if ((this.#filled & (1 << number)) === 0) throw new RangeError(`no uuid has number ${number}`);
    for (let part = 0; part < 4; part += 1) to[part] = this.#numbers[number * 4 + part] ?? 0;
  }

  #fill(number: number, text: string | null): void {
    if (text === this.#texts[number]) return;
    this.#texts[number] = text;
    this.#filled &= ~(1 << number);
    if (text === null || text.length < uuidLength) return;
    for (let i = 0, at = text.length - uuidLength; i < uuidLength; i += 1, at += 1) {
      const char = text.charCodeAt(at);
      tail[i] = char < 0x80 ? char : 0;
    }
    if (!parseUuid(tail, 0, found)) return;
    this.#numbers.set(found, number * 4);
    this.#filled |= 1 << number;
  }
}

const tail = new Uint8Array(uuidLength);
const found = new Int32Array(4);

/** Negative after a character that is no digit. */
let valid = 0;

const digitsAt = (bytes: Uint8Array, at: number, count: number): number => {
  let value = 0;
  for (let end = at + count; at < end; at += 1) {
    const digit = hexValue[bytes[at] ?? 0] ?? -1;
    valid |= digit;
    value = (value << 4) | (digit & 15);
  }
  return value;
};

const hyphen = 0x2d;

/** Reads 36 characters; false where they are no uuid in lower case. */
export const parseUuid = (bytes: Uint8Array, at: number, to: Int32Array): boolean => {
  if (bytes[at + 8] !== hyphen || bytes[at + 13] !== hyphen) return false;
  if (bytes[at + 18] !== hyphen || bytes[at + 23] !== hyphen) return false;
  valid = 0;
  to[0] = digitsAt(bytes, at, 8);
  to[1] = (digitsAt(bytes, at + 9, 4) << 16) | digitsAt(bytes, at + 14, 4);
  to[2] = (digitsAt(bytes, at + 19, 4) << 16) | digitsAt(bytes, at + 24, 4);
  to[3] = digitsAt(bytes, at + 28, 8);
  return valid >= 0;
};
