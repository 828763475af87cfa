import { maxAppendBytes } from '#contracts/ports/event-store.ts';
import {
  bytesCode,
  copyOf,
  hashCode,
  instantCode,
  knownCode,
  longWordCode,
  uuidCode,
  uuidLength,
  wordCode,
} from './form.ts';
import { type Known, KnownUuids } from './known-uuids.ts';
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

const digitsOf = (part: number, count: number, at: number): number => {
  for (let shift = 4 * (count - 1); shift >= 0; shift -= 4, at += 1) out[at] = digits[(part >>> shift) & 15] ?? 0;
  return at;
};

/** Writes the uuid and returns where it ends. */
const writeUuid = (at: number): number => {
  const [, second = 0, third = 0] = uuid;
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
      to += out.write(new Date(packed.readUIntBE(at, 6)).toISOString(), to, 'latin1');
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
