/** How a video's file is laid out, by its own headers: what ffprobe does not say, and whether the file is whole. */
import type { Bytes } from './bytes.ts';
import { bomb, unreadable } from './failures.ts';
import { placeInXmp, sourceTypesOf } from './marks.ts';

export interface Layout {
  readonly indexFirst: boolean;
  readonly editList: boolean;
  readonly located: boolean;
  readonly sourceTypes: readonly string[];
}

const cutOff = () => unreadable('The file is cut off: it is shorter than it says it is.');

interface Box {
  readonly type: string;
  /** Of what it holds. */
  readonly from: number;
  readonly to: number;
}

/** More than any honest film has; a fragmented one of 12 hours has some 10,000 fragments. */
const mostBoxes = 200_000;

async function* boxes(bytes: Bytes, from: number, to: number): AsyncGenerator<Box> {
  let count = 0;
  for (let at = from; at + 8 <= to; ) {
    count += 1;
    if (count > mostBoxes) throw bomb('The file has more parts than any film has.');
    const head = await bytes.read(at, 16);
    const short = head.readUInt32BE(0);
    const type = head.toString('latin1', 4, 8);
    if (short === 1 && head.length < 16) throw cutOff();
    const size = short === 0 ? to - at : short === 1 ? Number(head.readBigUInt64BE(8)) : short;
    const header = short === 1 ? 16 : 8;
    if (size < header) {
      // Zeros at the end are padding.
      if (short === 0) return;
      throw unreadable('The file holds a part that is shorter than its own header.');
    }
    if (at + size > to) throw cutOff();
    yield { type, from: at + header, to: at + size };
    at += size;
  }
}

const all = async (bytes: Bytes, { from, to }: Omit<Box, 'type'>): Promise<readonly Box[]> => {
  const found: Box[] = [];
  for await (const box of boxes(bytes, from, to)) found.push(box);
  return found;
};

const inside = async (bytes: Bytes, outer: readonly Box[], type: string): Promise<readonly Box[]> => {
  const found: Box[] = [];
  for (const box of outer) found.push(...(await all(bytes, box)).filter((each) => each.type === type));
  return found;
};

/** One entry that begins at 0 changes nothing; anything else cuts or delays. */
const edits = async (bytes: Bytes, { from, to }: Box): Promise<boolean> => {
  const box = await bytes.read(from, Math.min(to - from, 64));
  if (box.length < 8) return false;
  const long = box[0] === 1;
  if (box.readUInt32BE(4) !== 1) return box.readUInt32BE(4) > 1;
  const time = long ? 16 : 12;
  if (box.length < time + (long ? 8 : 4)) return false;
  return long ? box.readBigInt64BE(time) !== 0n : box.readInt32BE(time) !== 0;
};

const describedBytes = 1_048_576;

const mp4 = async (bytes: Bytes): Promise<Layout> => {
  const top = await all(bytes, { from: 0, to: bytes.size });
  const index = top.findIndex(({ type }) => type === 'moov');
  const data = top.findIndex(({ type }) => type === 'mdat');
  const moov = top[index];
  if (moov === undefined) throw unreadable('The file has no index: it was not written to its end.');
  const lists = await inside(bytes, await inside(bytes, await inside(bytes, [moov], 'trak'), 'edts'), 'elst');
  let editList = false;
  for (const list of lists) editList ||= await edits(bytes, list);
  const types: string[] = [];
  let located = false;
  for (const box of top) {
    if (box.type === 'mdat') continue;
    types.push(...(await sourceTypesOf(bytes, box.from, Math.min(box.to, box.from + 16 * describedBytes))));
    if (box.type !== 'uuid' && box.type !== 'meta') continue;
    const text = (await bytes.read(box.from, Math.min(box.to - box.from, describedBytes))).toString('latin1');
    located ||= placeInXmp.test(text);
  }
  return { indexFirst: data < 0 || index < data, editList, located, sourceTypes: types };
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

const none: Layout = { indexFirst: false, editList: false, located: false, sourceTypes: [] };

const matroska = async (bytes: Bytes): Promise<Layout> => {
  const head = await bytes.read(0, 4_096);
  const ebml = vint(head, 4);
  const segment = 4 + ebml.length + (ebml.value ?? 0);
  if (head.length < segment + 5 || head.readUInt32BE(segment) !== 0x18538067) {
    throw unreadable('The file does not hold what a Matroska file holds.');
  }
  const { length, value } = vint(head, segment + 4);
  if (value !== null && segment + 4 + length + value > bytes.size) throw cutOff();
  return { ...none, sourceTypes: await sourceTypesOf(bytes, 0, Math.min(bytes.size, describedBytes)) };
};

const avi = async (bytes: Bytes): Promise<Layout> => {
  const head = await bytes.read(0, 12);
  // A file of more than 4 GiB may say 0 or more than it can.
  if (head.length < 12 || (bytes.size < 2 ** 32 && head.readUInt32LE(4) + 8 > bytes.size + 1)) throw cutOff();
  return none;
};

/** @throws TranscodeError when the file is not whole */
export const layoutOf = (bytes: Bytes, contentType: string): Promise<Layout> => {
  switch (contentType) {
    case 'video/mp4':
    case 'video/quicktime':
      return mp4(bytes);
    case 'video/webm':
    case 'video/x-matroska':
      return matroska(bytes);
    case 'video/x-msvideo':
      return avi(bytes);
    default:
      return Promise.resolve(none);
  }
};
