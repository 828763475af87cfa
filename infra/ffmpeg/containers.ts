/**
 * Reads the layout of a video's file from its own headers: facts that ffprobe does not report, and whether the file is
 * whole.
 */
import { type Budget, budgetOf, spend } from './budget.ts';
import type { Bytes } from './bytes.ts';
import { unreadable } from './failures.ts';
import { heaviest, marksOf } from './marks.ts';

export interface Layout {
  readonly indexFirst: boolean;
  readonly editList: boolean;
  readonly located: boolean;
  readonly sourceType: string | null;
}

const cutOff = () => unreadable('The file is cut off: it is shorter than it says it is.');

interface Box {
  readonly type: string;
  /** Start of the box's content. */
  readonly from: number;
  readonly to: number;
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
    if (short === 1 && head.length < 16) throw cutOff();
    const size = short === 0 ? to - at : short === 1 ? Number(head.readBigUInt64BE(8)) : short;
    const header = short === 1 ? 16 : 8;
    if (size < header) throw unreadable('The file holds a part that is shorter than its own header.');
    if (at + size > to) throw cutOff();
    yield { type, from: at + header, to: at + size };
    at += size;
  }
}

/** The path to the boxes that are read; no other box is opened, so a file's depth costs nothing. */
const opened: Readonly<Record<string, string>> = { file: 'moov', moov: 'trak', trak: 'edts' };

/** The boxes of a file and, along that path, those inside them. */
async function* walk(bytes: Bytes, outer: Box, budget: Budget): AsyncGenerator<Box> {
  for await (const box of boxes(bytes, outer, budget)) {
    yield box;
    if (box.type === opened[outer.type]) yield* walk(bytes, box, budget);
  }
}

/** One entry that begins at 0 changes nothing; any other edit list cuts or delays. */
const edits = async (bytes: Bytes, { from, to }: Box): Promise<boolean> => {
  const box = await bytes.read(from, Math.min(to - from, 64));
  if (box.length < 8) return false;
  const long = box[0] === 1;
  if (box.readUInt32BE(4) !== 1) return box.readUInt32BE(4) > 1;
  const time = long ? 16 : 12;
  if (box.length < time + (long ? 8 : 4)) return false;
  return long ? box.readBigInt64BE(time) !== 0n : box.readInt32BE(time) !== 0;
};

/** Boxes of the file, of its index and of its tracks that carry descriptions: XMP, C2PA, user data. */
const describing = new Set(['uuid', 'meta', 'udta']);
const describedBytes = 16 * 1_048_576;

const mp4 = async (bytes: Bytes, budget: Budget): Promise<Layout> => {
  let indexed = false;
  let indexFirst = true;
  let editList = false;
  let located = false;
  const types: string[] = [];
  for await (const box of walk(bytes, { type: 'file', from: 0, to: bytes.size }, budget)) {
    if (box.type === 'moov') indexed = true;
    if (box.type === 'mdat' && !indexed) indexFirst = false;
    if (box.type === 'elst') editList ||= await edits(bytes, box);
    if (!describing.has(box.type)) continue;
    const marks = await marksOf(bytes, budget, box.from, Math.min(box.to, box.from + describedBytes));
    located ||= marks.placed;
    if (marks.sourceType !== null) types.push(marks.sourceType);
  }
  if (!indexed) throw unreadable('The file has no index: it was not written to its end.');
  return { indexFirst, editList, located, sourceType: heaviest(types) };
};

/** Length and value of an EBML number at `at`; a value of all ones means "not known". */
const vint = (buffer: Buffer, at: number): { readonly length: number; readonly value: number | null } => {
  const first = buffer[at] ?? 0;
  const length = Math.clz32(first) - 23;
  if (first === 0 || at + length > buffer.length) return { length: 0, value: null };
  const rest = [...buffer.subarray(at + 1, at + length)];
  const ones = (first | ((0xff00 >> length) & 0xff)) === 0xff && rest.every((byte) => byte === 0xff);
  const value = rest.reduce((sum, byte) => sum * 256 + byte, first & (0xff >> length));
  return { length, value: ones ? null : value };
};

const none: Layout = { indexFirst: false, editList: false, located: false, sourceType: null };

const headBytes = 1_048_576;

const matroska = async (bytes: Bytes, budget: Budget): Promise<Layout> => {
  const head = await bytes.read(0, 4_096);
  const ebml = vint(head, 4);
  const segment = 4 + ebml.length + (ebml.value ?? 0);
  if (head.length < segment + 5 || head.readUInt32BE(segment) !== 0x18538067) {
    throw unreadable('The file does not hold what a Matroska file holds.');
  }
  const { length, value } = vint(head, segment + 4);
  if (value !== null && segment + 4 + length + value > bytes.size) throw cutOff();
  const { sourceType, placed } = await marksOf(bytes, budget, 0, Math.min(bytes.size, headBytes));
  return { ...none, located: placed, sourceType };
};

const avi = async (bytes: Bytes): Promise<Layout> => {
  const head = await bytes.read(0, 12);
  // A file of more than 4 GiB may state a size of 0 or a size that is too large.
  if (head.length < 12 || (bytes.size < 2 ** 32 && head.readUInt32LE(4) + 8 > bytes.size + 1)) throw cutOff();
  return none;
};

/** @throws TranscodeError when the file is not whole or has too many parts, or `interrupted` */
export const layoutOf = async (bytes: Bytes, contentType: string, signal: AbortSignal): Promise<Layout> => {
  const budget = budgetOf(signal);
  switch (contentType) {
    case 'video/mp4':
    case 'video/quicktime':
      return mp4(bytes, budget);
    case 'video/webm':
    case 'video/x-matroska':
      return matroska(bytes, budget);
    case 'video/x-msvideo':
      return avi(bytes);
    default:
      return none;
  }
};
