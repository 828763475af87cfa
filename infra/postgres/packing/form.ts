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
