import {
  bytesCode,
  copyOf,
  hashCode,
  hexValue,
  instantCode,
  type Known,
  KnownUuids,
  knownCode,
  longWordCode,
  parseUuid,
  uuidCode,
  uuidLength,
  wordCode,
} from './form.ts';
import { words } from './words.ts';

/**
 * Finds words, a character a node: `child` is the first node behind one, `sibling` the next one beside it, 0 where
 * there is none; the root is node 0. Frequent words come first, so lists of siblings are short for them.
 */
const tree = (() => {
  const most = words.reduce((sum, { length }) => sum + length, 1);
  const [child, sibling] = [new Uint16Array(most), new Uint16Array(most)];
  const [char, wordAt] = [new Uint8Array(most), new Int16Array(most).fill(-1)];
  let count = 1;
  const add = (parent: number, wanted: number): number => {
    let last = 0;
    for (let node = child[parent] ?? 0; node !== 0; node = sibling[node] ?? 0) {
      if (char[node] === wanted) return node;
      last = node;
    }
    if (last === 0) child[parent] = count;
    else sibling[last] = count;
    char[count] = wanted;
    return count++;
  };
  for (const [number, word] of words.entries()) {
    let node = 0;
    for (let at = 0; at < word.length; at += 1) node = add(node, word.charCodeAt(at));
    // A word that stands twice keeps its shorter number.
    if (wordAt[node] === -1) wordAt[node] = number;
  }
  const rooted = new Uint16Array(256);
  for (let node = child[0] ?? 0; node !== 0; node = sibling[node] ?? 0) rooted[char[node] ?? 0] = node;
  return { rooted, child, sibling, char, wordAt };
})();
const wordLengths = Uint8Array.from(words, ({ length }) => length);

const instantLength = 24;
const hashLength = 64;
/** Characters of an instant: any digit stands for all. */
const instantShape = Buffer.from('0000-00-00T00:00:00.000Z');
/** A run of bytes goes on over so many that could stand for themselves: ending it costs as much. */
const maxGap = 3;

const isPlain = (byte: number): boolean => byte >= 0x20 && byte <= 0x7e;
const uuids = new KnownUuids();
const uuid = new Int32Array(4);
let out = Buffer.allocUnsafe(4_096);

/** The number in the digits from `at` on. */
const numberAt = (input: Uint8Array, at: number, digits: number): number => {
  let value = 0;
  for (let end = at + digits; at < end; at += 1) value = value * 10 + ((input[at] ?? 0) - 0x30);
  return value;
};

/** Milliseconds since 1970 of the instant that stands there; −1 where the same text would not come back. */
const instantAt = (input: Uint8Array, at: number): number => {
  for (let i = 0; i < instantLength; i += 1) {
    const byte = input[at + i] ?? 0;
    const shape = instantShape[i];
    if (shape === 0x30 ? byte < 0x30 || byte > 0x39 : byte !== shape) return -1;
  }
  const year = numberAt(input, at, 4);
  const month = numberAt(input, at + 5, 2);
  const day = numberAt(input, at + 8, 2);
  const hour = numberAt(input, at + 11, 2);
  const minute = numberAt(input, at + 14, 2);
  const second = numberAt(input, at + 17, 2);
  if (year < 1970 || month < 1 || month > 12 || hour > 23 || minute > 59 || second > 59) return -1;
  const days = Date.UTC(year, month - 1, day);
  // The day that a month does not have is one of the next month.
  if (day < 1 || (day > 28 && new Date(days).getUTCDate() !== day)) return -1;
  return days + ((hour * 60 + minute) * 60 + second) * 1_000 + numberAt(input, at + 20, 3);
};

const isHashAt = (input: Uint8Array, at: number): boolean => {
  for (let i = 0; i < hashLength; i += 1) if ((hexValue[input[at + i] ?? 0] ?? -1) < 0) return false;
  return true;
};

/** The end of a run of bytes that cannot stand for themselves. */
const runEnd = (input: Uint8Array, from: number): number => {
  let end = from + 1;
  for (let at = end; at < input.length && at - end <= maxGap; at += 1) if (!isPlain(input[at] ?? 0)) end = at + 1;
  return end;
};

/** The packed form. It can be longer: bytes that are no text grow by half at most. */
export const pack = (input: Uint8Array, known: Known): Buffer => {
  uuids.reset(known);
  const { rooted, child, sibling, char, wordAt } = tree;
  const { length } = input;
  if (out.length < length * 2 + 16) out = Buffer.allocUnsafe(length * 2 + 16);
  const packed = out;
  let to = 0;
  let at = 0;
  while (at < length) {
    const byte = input[at] ?? 0;
    if (!isPlain(byte)) {
      const end = runEnd(input, at);
      packed[to++] = bytesCode;
      let count = end - at;
      for (; count > 0x7f; count >>>= 7) packed[to++] = (count & 0x7f) | 0x80;
      packed[to++] = count;
      for (; at < end; at += 1) packed[to++] = input[at] ?? 0;
      continue;
    }
    let word = -1;
    for (let node = rooted[byte] ?? 0, i = at; node !== 0; ) {
      const found = wordAt[node] ?? -1;
      if (found >= 0) word = found;
      i += 1;
      const wanted = i < length ? (input[i] ?? 0) : 0;
      node = child[node] ?? 0;
      while (node !== 0 && char[node] !== wanted) node = sibling[node] ?? 0;
    }
    if (word >= 0) {
      if (word < 128) packed[to++] = wordCode + word;
      else {
        packed[to++] = longWordCode + ((word - 128) >> 8);
        packed[to++] = (word - 128) & 0xff;
      }
      at += wordLengths[word] ?? 0;
      continue;
    }
    if ((hexValue[byte] ?? -1) >= 0) {
      if (input[at + 8] === 0x2d && at + uuidLength <= length && parseUuid(input, at, uuid)) {
        const number = uuids.find(uuid);
        if (number >= 0) packed[to++] = knownCode + number;
        else {
          packed[to++] = uuidCode;
          for (let part = 0; part < 4; part += 1) to = packed.writeInt32BE(uuid[part] ?? 0, to);
          uuids.add(uuid);
        }
        at += uuidLength;
        continue;
      }
      if (input[at + 10] === 0x54 && at + instantLength <= length) {
        const instant = instantAt(input, at);
        if (instant >= 0) {
          packed[to++] = instantCode;
          to = packed.writeUIntBE(instant, to, 6);
          at += instantLength;
          continue;
        }
      }
      if (at + hashLength < length && input[at + hashLength] === 0x22 && isHashAt(input, at)) {
        packed[to++] = hashCode;
        for (const end = at + hashLength; at < end; at += 2) {
          packed[to++] = ((hexValue[input[at] ?? 0] ?? 0) << 4) | (hexValue[input[at + 1] ?? 0] ?? 0);
        }
        continue;
      }
    }
    packed[to++] = byte;
    at += 1;
  }
  return copyOf(packed, to);
};
