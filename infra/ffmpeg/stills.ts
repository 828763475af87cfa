/**
 * Counts the pictures of a file that a decoder of stills opens without a word about the others: animations and pages,
 * of which the first alone would be published.
 */
import { type Budget, spend } from './budget.ts';
import type { Bytes } from './bytes.ts';
import { unsupported } from './failures.ts';
import { sequenceOf } from './mp4.ts';

/** In the budget: each is a read of its own, and honest pictures have few. */
const partCost = 100;

/** An animated PNG states its pictures before the first of them. */
const framesOfPng = async (bytes: Bytes, budget: Budget): Promise<number> => {
  for (let at = 8; at + 12 <= bytes.size; ) {
    spend(budget, partCost);
    const head = await bytes.read(at, 12);
    const type = head.toString('latin1', 4, 8);
    if (type === 'acTL') return head.readUInt32BE(8);
    if (type === 'IDAT') return 1;
    at += 12 + head.readUInt32BE(0);
  }
  return 1;
};

/** Bits of the tag 254, of pictures that belong to another one: its thumbnail, its mask. */
const subfileTag = 254;
const belongs = 0b101;

/** Sizes of what a directory of a TIFF consists of: its count, an entry, the value's place in it, an offset. */
const classic = { count: 2, entry: 12, value: 8, offset: 4 };
const large = { count: 8, entry: 20, value: 12, offset: 8 };

const maxEntries = 4_096;

const pagesOfTiff = async (bytes: Bytes, budget: Budget): Promise<number> => {
  const head = await bytes.read(0, 16);
  const little = head.toString('latin1', 0, 2) === 'II';
  const number = (from: Buffer, at: number, length: number): number => {
    if (at + length > from.length) return 0;
    if (length === 8) return Number(little ? from.readBigUInt64LE(at) : from.readBigUInt64BE(at));
    return little ? from.readUIntLE(at, length) : from.readUIntBE(at, length);
  };
  const layout = number(head, 2, 2) === 43 ? large : classic;
  let pages = 0;
  // Two pages are enough to know; a list that leads back to itself ends by the budget.
  for (let at = number(head, layout === large ? 8 : 4, layout.offset); at > 0 && pages < 2; ) {
    spend(budget, partCost);
    const count = Math.min(maxEntries, number(await bytes.read(at, layout.count), 0, layout.count));
    const length = count * layout.entry;
    const directory = await bytes.read(at + layout.count, length + layout.offset);
    const entries = Array.from({ length: count }, (_, index) => index * layout.entry);
    const subfile = entries.find((entry) => number(directory, entry, 2) === subfileTag);
    const kind = subfile === undefined ? 0 : number(directory, subfile + layout.value, 4);
    if ((kind & belongs) === 0) pages += 1;
    at = number(directory, length, layout.offset);
  }
  return pages;
};

const animated = (name: string) => unsupported(`Animated ${name} is not taken; send a GIF or a video.`);

/** @throws TranscodeError for a file of several pictures */
export const refuseSeveral = async (bytes: Bytes, contentType: string, budget: Budget): Promise<void> => {
  switch (contentType) {
    case 'image/png':
      if ((await framesOfPng(bytes, budget)) > 1) throw animated('PNG');
      return;
    case 'image/avif':
    case 'image/heic':
      if ((await sequenceOf(bytes, budget)) > 1) throw animated(contentType === 'image/avif' ? 'AVIF' : 'HEIC');
      return;
    case 'image/tiff':
      if ((await pagesOfTiff(bytes, budget)) > 1) {
        throw unsupported('A TIFF of several pages is not taken; send each page as a picture, or all as a PDF.');
      }
  }
};
