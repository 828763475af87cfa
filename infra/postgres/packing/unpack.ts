import { maxAppendBytes } from '#contracts/ports/event-store.ts';
import {
  bytesCode,
  copyOf,
  hashCode,
  instantCode,
  type Known,
  KnownUuids,
  knownCode,
  longWordCode,
  uuidCode,
  uuidLength,
  wordCode,
} from './form.ts';
import { words } from './words.ts';

const hashBytes = 32;
const hyphen = 0x2d;

/** All words end to end, and where each begins. */
const spelled = Buffer.from(words.join(''), 'latin1');
const starts = new Uint16Array(words.length + 1);
for (const [number, { length }] of words.entries()) starts[number + 1] = (starts[number] ?? 0) + length;

const digits = Buffer.from('0123456789abcdef');
const uuids = new KnownUuids();
const uuid = new Int32Array(4);

/** What one code but `bytesCode` stands for is shorter. */
const maxCode = 256;
/** No append is longer, so nothing that it packed is. */
const maxBytes = maxAppendBytes;
const out = Buffer.allocUnsafe(maxBytes + maxCode);

/** Two digits of each byte, as one number. */
const pairs = Uint16Array.from(
  { length: 256 },
  (_, byte) => ((digits[byte >> 4] ?? 0) << 8) | (digits[byte & 15] ?? 0),
);

/** Writes so many digits, of which there are two or more, and returns where they end. */
const digitsOf = (part: number, count: number, at: number): number => {
  for (let shift = 4 * (count - 2); shift >= 0; shift -= 8, at += 2) {
    const pair = pairs[(part >>> shift) & 255] ?? 0;
    out[at] = pair >> 8;
    out[at + 1] = pair & 255;
  }
  return at;
};

/** Writes the uuid and returns where it ends. */
const writeUuid = (at: number): number => {
  const second = uuid[1] ?? 0;
  const third = uuid[2] ?? 0;
  digitsOf(uuid[0] ?? 0, 8, at);
  out[at + 8] = hyphen;
  digitsOf(second >>> 16, 4, at + 9);
  out[at + 13] = hyphen;
  digitsOf(second & 0xffff, 4, at + 14);
  out[at + 18] = hyphen;
  digitsOf(third >>> 16, 4, at + 19);
  out[at + 23] = hyphen;
  digitsOf(third & 0xffff, 4, at + 24);
  digitsOf(uuid[3] ?? 0, 8, at + 28);
  return at + uuidLength;
};

const dayMs = 86_400_000;
/** `2026-01-31T`, of the day that was written last. */
const date = Buffer.alloc(11);
let dateOf = -1;

const decimalsOf = (value: number, count: number, at: number): void => {
  for (let place = at + count - 1, rest = value; place >= at; place -= 1, rest = Math.floor(rest / 10)) {
    out[place] = 0x30 + (rest % 10);
  }
};

/** Writes the instant as `toISOString` does, and returns where it ends. */
const writeInstant = (ms: number, at: number): number => {
  const day = Math.floor(ms / dayMs);
  if (day !== dateOf) {
    date.write(new Date(day * dayMs).toISOString().slice(0, date.length), 'latin1');
    dateOf = day;
  }
  for (let i = 0; i < date.length; i += 1) out[at + i] = date[i] ?? 0;
  const rest = ms - day * dayMs;
  decimalsOf(Math.floor(rest / 3_600_000), 2, at + 11);
  out[at + 13] = 0x3a;
  decimalsOf(Math.floor(rest / 60_000) % 60, 2, at + 14);
  out[at + 16] = 0x3a;
  decimalsOf(Math.floor(rest / 1_000) % 60, 2, at + 17);
  out[at + 19] = 0x2e;
  decimalsOf(rest % 1_000, 3, at + 20);
  out[at + 23] = 0x5a;
  return at + 24;
};

/**
 * The bytes that `pack` was given.
 * @throws RangeError where the packed bytes end early or name what is not there: they are not of this version
 */
export const unpack = (packed: Buffer, known: Known): Buffer => {
  uuids.reset(known);
  const { length } = packed;
  let to = 0;
  for (let at = 0; at < length; ) {
    if (to > maxBytes) throw new RangeError('the packed bytes are longer than any append');
    const code = packed[at++] ?? 0;
    if (code >= 0x20 && code < wordCode) out[to++] = code;
    else if (code >= longWordCode) {
      const word = code >= wordCode ? code - wordCode : 128 + ((code - longWordCode) << 8) + packed.readUInt8(at++);
      const end = starts[word + 1] ?? 0;
      let from = starts[word] ?? 0;
      if (from >= end) throw new RangeError(`word ${word} is not of this version`);
      while (from < end) out[to++] = spelled[from++] ?? 0;
    } else if (code >= knownCode) {
      uuids.take(code - knownCode, uuid);
      to = writeUuid(to);
    } else if (code === uuidCode) {
      for (let part = 0; part < 4; part += 1, at += 4) uuid[part] = packed.readInt32BE(at);
      uuids.add(uuid);
      to = writeUuid(to);
    } else if (code === instantCode) {
      to = writeInstant(packed.readUIntBE(at, 6), to);
      at += 6;
    } else if (code === hashCode) {
      for (const end = at + hashBytes; at < end; at += 1) to = digitsOf(packed.readUInt8(at), 2, to);
    } else if (code === bytesCode) {
      let count = 0;
      for (let shift = 0, more = true; more; shift += 7) {
        const part = packed.readUInt8(at++);
        count += (part & 0x7f) * 2 ** shift;
        more = part > 0x7f;
      }
      if (to + count > maxBytes) throw new RangeError('the packed bytes are longer than any append');
      for (const end = at + count; at < end; at += 1) out[to++] = packed.readUInt8(at);
    }
  }
  return copyOf(out, to);
};
