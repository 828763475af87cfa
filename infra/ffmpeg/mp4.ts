/**
 * Reads the boxes of an MP4 or MOV: facts that ffprobe does not report, and whether all data that the index names is
 * there. Recorders append what they like behind the last box and state sizes that they did not reach, so the index
 * decides what belongs to the film, and no box that surrounds it.
 */
import { type Budget, spend } from './budget.ts';
import type { Bytes } from './bytes.ts';
import { bomb, unreadable, unsupported } from './failures.ts';
import { heaviest, marksOf } from './marks.ts';

export interface Layout {
  readonly indexFirst: boolean;
  readonly editList: boolean;
  readonly located: boolean;
  readonly sourceType: string | null;
}

export const cutOff = () => unreadable('The file is cut off: it is shorter than it says it is.');

interface Box {
  readonly type: string;
  /** Start of the box's content. */
  readonly from: number;
  readonly to: number;
  /** Whether it says that it goes on behind the end of what it lies in. */
  readonly cut: boolean;
}

/** Short boxes lie side by side: one read each would take longer than everything else. */
const readBytes = 4_096;
const longestHeader = 16;

async function* boxes(bytes: Bytes, { from, to }: Box, budget: Budget): AsyncGenerator<Box> {
  let begins = from;
  let window: Buffer = Buffer.alloc(0);
  for (let at = from; at + 8 <= to; ) {
    spend(budget);
    if (at + longestHeader > begins + window.length) {
      begins = at;
      window = await bytes.read(at, readBytes);
    }
    const head = window.subarray(at - begins, at - begins + longestHeader);
    const short = head.readUInt32BE(0);
    const type = head.toString('latin1', 4, 8);
    const header = short === 1 ? 16 : 8;
    const size = short === 0 ? to - at : short !== 1 ? short : head.length < 16 ? 0 : Number(head.readBigUInt64BE(8));
    // A box that is shorter than its own header is none, nor is anything behind it.
    const cut = size < header || at + size > to;
    yield { type, from: Math.min(at + header, to), to: cut ? to : at + size, cut };
    if (cut) return;
    at += size;
  }
}

/** The boxes that are read, by what they lie in; no other is opened, so a file's depth costs nothing. */
const opened: Readonly<Record<string, readonly string[]>> = {
  file: ['moov'],
  moov: ['trak'],
  trak: ['edts', 'mdia'],
  mdia: ['minf'],
  minf: ['stbl'],
};

type Inner = Box & { readonly inside: string };

/** The boxes of a file and, along those paths, those inside them. */
async function* walk(bytes: Bytes, outer: Box, budget: Budget): AsyncGenerator<Inner> {
  for await (const box of boxes(bytes, outer, budget)) {
    yield { ...box, inside: outer.type };
    if (box.cut) return;
    if (opened[outer.type]?.includes(box.type)) yield* walk(bytes, box, budget);
  }
}

const whole = ({ size }: Bytes): Box => ({ type: 'file', from: 0, to: size, cut: false });

interface Edits {
  /** It delays, cuts the beginning, or puts parts together. */
  readonly changes: boolean;
  /** Length of an edit that begins at 0, in the units of the film; null: to the end. */
  readonly length: number | null;
}

const editsOf = async (bytes: Bytes, { from, to }: Box): Promise<Edits> => {
  const box = await bytes.read(from, Math.min(to - from, 64));
  const long = box[0] === 1;
  const count = box.length < 8 ? 0 : box.readUInt32BE(4);
  if (count !== 1 || box.length < (long ? 28 : 20)) return { changes: count > 1, length: null };
  const length = long ? Number(box.readBigUInt64BE(8)) : box.readUInt32BE(8);
  const begin = long ? Number(box.readBigInt64BE(16)) : box.readInt32BE(12);
  const rate = box.readInt32BE(long ? 24 : 16);
  return { changes: begin !== 0 || rate !== 0x10000, length: length === 0 ? null : length };
};

const tables = ['stts', 'stsc', 'stsz', 'stz2', 'stco', 'co64'] as const;
type Table = (typeof tables)[number];

export interface Track {
  /** Its handler: `vide`, `soun`, `pict`. */
  kind: string;
  /** Units a second; 0: not stated. */
  scale: number;
  edits: Edits | null;
  readonly tables: Partial<Record<Table, Box>>;
}

const scaleOf = async (bytes: Bytes, { from }: Box): Promise<number> => {
  const box = await bytes.read(from, 24);
  const at = box[0] === 1 ? 20 : 12;
  return box.length < at + 4 ? 0 : box.readUInt32BE(at);
};

const words = async (bytes: Bytes, at: number): Promise<string> => (await bytes.read(at, 4)).toString('latin1');

/** Sample entries of protected tracks: ISO/IEC 14496-12, 8.12, and those of films from shops. */
const protectedEntries = ['encv', 'enca', 'drmi', 'drms'];

/** Takes in a box of the index. @throws TranscodeError for a protected film */
const note = async (bytes: Bytes, box: Inner, tracks: Track[]): Promise<void> => {
  const { type, inside, from } = box;
  if (type === 'trak') tracks.push({ kind: '', scale: 0, edits: null, tables: {} });
  const track = tracks.at(-1);
  if (track === undefined) return;
  if (type === 'elst') track.edits = await editsOf(bytes, box);
  if (type === 'mdhd') track.scale = await scaleOf(bytes, box);
  // QuickTime has a second one inside `minf`, about where the data lies.
  if (type === 'hdlr' && inside === 'mdia') track.kind = await words(bytes, from + 8);
  if (type === 'stsd' && protectedEntries.includes(await words(bytes, from + 12))) {
    throw unsupported('The video is protected against copying, so it cannot be read.');
  }
  const table = tables.find((name) => name === type);
  if (inside === 'stbl' && table !== undefined) track.tables[table] = box;
};

const MiB = 1_048_576;
/** A film of 12 hours at 120 pictures a second has one of 20 MiB. */
const largestTable = 64 * MiB;
const windowCost = 100;

/** A table of the index: numbers of `width` bytes behind `head` bytes, the last of which count the entries. */
const tableOf = async (bytes: Bytes, box: Box | undefined, budget: Budget): Promise<Buffer> => {
  if (box === undefined) return Buffer.alloc(0);
  const length = box.to - box.from;
  if (length > largestTable) throw bomb('The index of the video is larger than that of any honest video.');
  spend(budget, 1 + windowCost * Math.floor(length / MiB));
  return bytes.read(box.from, length);
};

/** Entries that are there, however many the table says it has. */
const entries = (table: Buffer, head: number, width: number): number =>
  table.length < head ? 0 : Math.min(table.readUInt32BE(head - 4), Math.floor((table.length - head) / width));

/** Seconds for which the samples of a track last. */
const lengthOf = async (bytes: Bytes, track: Track, budget: Budget): Promise<number> => {
  const times = await tableOf(bytes, track.tables.stts, budget);
  let units = 0;
  for (let entry = 0; entry < entries(times, 8, 8); entry += 1) {
    units += times.readUInt32BE(8 + 8 * entry) * Math.max(0, times.readInt32BE(12 + 8 * entry));
  }
  return track.scale === 0 ? 0 : units / track.scale;
};

interface Sizes {
  readonly count: number;
  /** Of all samples; 0: each has its own. */
  readonly fixed: number;
  of(sample: number): number;
}

const sizesOf = async (bytes: Bytes, track: Track, budget: Budget): Promise<Sizes> => {
  const sizes = await tableOf(bytes, track.tables.stsz, budget);
  const fixed = sizes.length < 12 ? 0 : sizes.readUInt32BE(4);
  if (fixed > 0) return { count: sizes.readUInt32BE(8), fixed, of: () => fixed };
  if (sizes.length > 0) return { count: entries(sizes, 12, 4), fixed, of: (at) => sizes.readUInt32BE(12 + 4 * at) };
  const small = await tableOf(bytes, track.tables.stz2, budget);
  const width = (small[7] ?? 0) / 8;
  const of = (at: number): number => {
    if (width === 2) return small.readUInt16BE(12 + 2 * at);
    const byte = small[12 + Math.floor(at * width)] ?? 0;
    return width === 1 ? byte : at % 2 === 0 ? byte >> 4 : byte & 15;
  };
  return { count: [0.5, 1, 2].includes(width) ? entries(small, 12, width) : 0, fixed: 0, of };
};

/** Where the last byte of a track's samples lies. */
const endOf = async (bytes: Bytes, track: Track, budget: Budget): Promise<number> => {
  const sizes = await sizesOf(bytes, track, budget);
  const runs = await tableOf(bytes, track.tables.stsc, budget);
  const long = track.tables.co64 !== undefined;
  const chunks = await tableOf(bytes, track.tables.co64 ?? track.tables.stco, budget);
  const places = entries(chunks, 8, long ? 8 : 4);
  let furthest = 0;
  let sample = 0;
  let run = 0;
  let each = 0;
  for (let chunk = 0; chunk < places && sample < sizes.count; chunk += 1) {
    while (run < entries(runs, 8, 12) && runs.readUInt32BE(8 + 12 * run) <= chunk + 1) {
      each = runs.readUInt32BE(12 + 12 * run);
      run += 1;
    }
    const behind = Math.min(sizes.count, sample + each);
    let end = long ? Number(chunks.readBigUInt64BE(8 + 8 * chunk)) : chunks.readUInt32BE(8 + 4 * chunk);
    if (sizes.fixed > 0) end += sizes.fixed * (behind - sample);
    else for (let at = sample; at < behind; at += 1) end += sizes.of(at);
    sample = behind;
    furthest = Math.max(furthest, end);
  }
  return furthest;
};

/**
 * Whether a player shows other pictures, or at other times, than the samples of the track by themselves.
 * @param scale units a second of the film
 */
const isEdited = async (bytes: Bytes, track: Track, scale: number, budget: Budget): Promise<boolean> => {
  const { edits } = track;
  if (edits === null || edits.changes || edits.length === null) return edits?.changes ?? false;
  if (scale === 0 || track.scale === 0) return false;
  const rounding = 1 / scale + 1 / track.scale;
  return edits.length / scale < (await lengthOf(bytes, track, budget)) - rounding;
};

/** Boxes of the file, of its index and of its tracks that carry descriptions: XMP, C2PA, user data. */
const describing = new Set(['uuid', 'meta', 'udta']);
const describedBytes = 16 * MiB;
/** Parts of a fragmented film. */
const fragments = new Set(['moof', 'mdat']);

/** @throws TranscodeError when the file is not whole or has too many parts */
export const mp4Layout = async (bytes: Bytes, budget: Budget): Promise<Layout> => {
  const tracks: Track[] = [];
  const types: string[] = [];
  const top: Inner[] = [];
  let [scale, located] = [0, false];
  for await (const box of walk(bytes, whole(bytes), budget)) {
    const { type, inside } = box;
    if (inside === 'file' && (fragments.has(type) || type === 'moov' || box.cut)) top.push(box);
    if (box.cut && inside !== 'file') throw unreadable('The index of the video is damaged.');
    if (type === 'mvhd') scale = await scaleOf(bytes, box);
    if (inside !== 'file') await note(bytes, box, tracks);
    if (!describing.has(type)) continue;
    const marks = await marksOf(bytes, budget, box.from, Math.min(box.to, box.from + describedBytes));
    located ||= marks.placed;
    if (marks.sourceType !== null) types.push(marks.sourceType);
  }
  const cut = top.find((box) => box.cut);
  const index = top.findIndex(({ type }) => type === 'moov');
  if (cut?.type === 'moov' || (cut !== undefined && index < 0)) throw cutOff();
  if (index < 0) throw unreadable('The file has no index: it was not written to its end.');
  const fragmented = top.some(({ type }) => type === 'moof');
  if (fragmented && cut !== undefined && fragments.has(cut.type)) throw cutOff();
  let editList = false;
  for (const track of tracks) {
    editList ||= await isEdited(bytes, track, scale, budget);
    const shown = track.kind === 'vide' || track.kind === 'soun';
    if (shown && (await endOf(bytes, track, budget)) > bytes.size) throw cutOff();
  }
  const data = top.findIndex(({ type, from, to }) => type === 'mdat' && to > from);
  return {
    // The index of a fragmented film lies in parts between its data.
    indexFirst: !fragmented && (data < 0 || index < data),
    editList,
    // What a recorder appends that is no box may hold its places.
    located: located || (cut !== undefined && !fragments.has(cut.type)),
    sourceType: heaviest(types),
  };
};

/** Pictures of the longest sequence in a HEIF or AVIF file; 0: it holds none. */
export const sequenceOf = async (bytes: Bytes, budget: Budget): Promise<number> => {
  const tracks: Track[] = [];
  for await (const box of walk(bytes, whole(bytes), budget)) {
    if (box.inside !== 'file' && !box.cut) await note(bytes, box, tracks);
  }
  const counts: number[] = [];
  for (const track of tracks) {
    if (track.kind === 'pict' || track.kind === 'vide') counts.push((await sizesOf(bytes, track, budget)).count);
  }
  return Math.max(0, ...counts);
};
