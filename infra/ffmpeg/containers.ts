/**
 * Reads the layout of a video's file from its own headers: facts that ffprobe does not report, and whether the file is
 * whole.
 */
import { type Budget, budgetOf } from './budget.ts';
import type { Bytes } from './bytes.ts';
import { unreadable } from './failures.ts';
import { heaviest, type Marks, marksOf } from './marks.ts';
import { cutOff, type Layout, mp4Layout } from './mp4.ts';

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

const endBytes = 1_048_576;

/** Mentions at both ends of the file: that is where programs put their descriptions. */
const marksAtEnds = async (bytes: Bytes, budget: Budget): Promise<Marks> => {
  const head = await marksOf(bytes, budget, 0, Math.min(bytes.size, endBytes));
  const tail = await marksOf(bytes, budget, Math.max(0, bytes.size - endBytes));
  const types = [head.sourceType, tail.sourceType].filter((type) => type !== null);
  return { sourceType: heaviest(types), placed: head.placed || tail.placed };
};

/** Editors of tags leave a hole behind the header, which is an element of its own. */
const behindVoid = (head: Buffer, at: number): number => {
  if (head[at] !== 0xec) return at;
  const { length, value } = vint(head, at + 1);
  return at + 1 + length + (value ?? 0);
};

const matroska = async (bytes: Bytes, budget: Budget): Promise<Layout> => {
  const head = await bytes.read(0, 4_096);
  const ebml = vint(head, 4);
  const segment = behindVoid(head, 4 + ebml.length + (ebml.value ?? 0));
  if (head.length < segment + 5 || head.readUInt32BE(segment) !== 0x18538067) {
    throw unreadable('The file does not hold what a Matroska file holds.');
  }
  const { length, value } = vint(head, segment + 4);
  if (value !== null && segment + 4 + length + value > bytes.size) throw cutOff();
  const { sourceType, placed } = await marksAtEnds(bytes, budget);
  return { ...none, located: placed, sourceType };
};

const avi = async (bytes: Bytes, budget: Budget): Promise<Layout> => {
  const head = await bytes.read(0, 12);
  // A file of more than 4 GiB may state a size of 0 or a size that is too large.
  if (head.length < 12 || (bytes.size < 2 ** 32 && head.readUInt32LE(4) + 8 > bytes.size + 1)) throw cutOff();
  const { sourceType, placed } = await marksAtEnds(bytes, budget);
  return { ...none, located: placed, sourceType };
};

/** @throws TranscodeError when the file is not whole or has too many parts, or `interrupted` */
export const layoutOf = async (bytes: Bytes, contentType: string, signal: AbortSignal): Promise<Layout> => {
  const budget = budgetOf(signal);
  switch (contentType) {
    case 'video/mp4':
    case 'video/quicktime':
      return mp4Layout(bytes, budget);
    case 'video/webm':
    case 'video/x-matroska':
      return matroska(bytes, budget);
    case 'video/x-msvideo':
      return avi(bytes, budget);
    default:
      return none;
  }
};
