/** Real HEIC pictures, as phones write them: one picture of HEVC in ISO/IEC 23008-12's boxes. */
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findBinaries } from '#infra/ffmpeg/binaries.ts';
import { box } from '#test/infra/ffmpeg/boxes.ts';

const run = promisify(execFile);

export interface Heic {
  readonly width?: number;
  readonly height?: number;
  /** A source of ffmpeg's. */
  readonly picture?: string;
  /** Quarter turns, counter-clockwise. */
  readonly turned?: 0 | 1 | 2 | 3;
  /** TIFF of an EXIF block, which begins with `Exif\0\0`. */
  readonly exif?: Buffer;
  readonly icc?: Buffer;
  /** With a depth picture beside it, as phones add to portraits. */
  readonly depth?: true;
  /** The major brand of the file. */
  readonly brand?: string;
}

const u8 = (...values: readonly number[]): Buffer => Buffer.from(values);
const u16 = (value: number): Buffer => u8(value >> 8, value & 255);
const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};
const text = (value: string): Buffer => Buffer.from(value, 'latin1');
const full = (type: string, version: number, ...parts: readonly Uint8Array[]): Buffer =>
  box(type, u8(version, 0, 0, 0), ...parts);

/** The content of the first box of this type, wherever it lies. */
const contentOf = (film: Buffer, type: string): Buffer => {
  const at = film.indexOf(type, 0, 'latin1') - 4;
  return film.subarray(at + 8, at + film.readUInt32BE(at));
};

const metaOf = (offsets: readonly number[], { hvcC, exif, picture }: Parts, given: Heic): Buffer => {
  const { width = 320, height = 240, turned = 0, icc, depth = false } = given;
  const [first = 0, second = 0] = offsets;
  // The depth picture shares the data of the other.
  const items = [
    { id: 1, type: 'hvc1', offset: first, length: picture.length },
    ...(exif === null ? [] : [{ id: 2, type: 'Exif', offset: second, length: exif.length }]),
    ...(depth ? [{ id: 3, type: 'hvc1', offset: first, length: picture.length }] : []),
  ];
  const properties = [
    box('hvcC', hvcC),
    full('ispe', 0, u32(width), u32(height)),
    ...(icc === undefined ? [] : [box('colr', text('prof'), icc)]),
    ...(turned === 0 ? [] : [box('irot', u8(turned))]),
  ];
  const own = [u16(1), u8(properties.length, ...properties.map((_, index) => 0x80 | (index + 1)))];
  const auxiliary = full('auxC', 0, text('urn:mpeg:hevc:2015:auxid:2\0'));
  const depthOwn = [u16(3), u8(3, 0x81, 0x82, 0x80 | (properties.length + 1))];
  const references = [
    ...(exif === null ? [] : [box('cdsc', u16(2), u16(1), u16(1))]),
    ...(depth ? [box('auxl', u16(3), u16(1), u16(1))] : []),
  ];
  const entry = (id: number, type: string) => full('infe', 2, u16(id), u16(0), text(type), u8(0));
  return full(
    'meta',
    0,
    full('hdlr', 0, u32(0), text('pict'), Buffer.alloc(13)),
    full('pitm', 0, u16(1)),
    full('iinf', 0, u16(items.length), ...items.map(({ id, type }) => entry(id, type))),
    ...(references.length === 0 ? [] : [full('iref', 0, ...references)]),
    box(
      'iprp',
      box('ipco', ...properties, ...(depth ? [auxiliary] : [])),
      full('ipma', 0, u32(depth ? 2 : 1), ...own, ...(depth ? depthOwn : [])),
    ),
    full(
      'iloc',
      0,
      u8(0x44, 0),
      u16(items.length),
      ...items.flatMap(({ id, offset, length }) => [u16(id), u16(0), u16(1), u32(offset), u32(length)]),
    ),
  );
};

interface Parts {
  readonly hvcC: Buffer;
  readonly picture: Buffer;
  readonly exif: Buffer | null;
}

let made = 0;

/** @returns its path */
export const makeHeic = async (folder: string, given: Heic = {}): Promise<string> => {
  const { width = 320, height = 240, picture: shown = 'smptebars', brand = 'heic' } = given;
  const { ffmpeg } = await findBinaries(process.env.FFMPEG_PATH ?? null);
  made += 1;
  const film = join(folder, `heic-${made}.mp4`);
  await run(ffmpeg, [
    ...['-v', 'error', '-nostdin', '-y', '-f', 'lavfi', '-i', `${shown}=s=${width}x${height}`, '-frames:v', '1'],
    ...['-vf', 'scale=out_color_matrix=bt709,format=yuv420p', '-c:v', 'libx265', '-preset', 'ultrafast'],
    ...['-x265-params', 'log-level=none:qp=10:colormatrix=bt709', '-tag:v', 'hvc1', film],
  ]);
  const bytes = await readFile(film);
  const exif = given.exif === undefined ? null : Buffer.concat([u32(6), given.exif]);
  const parts = { hvcC: contentOf(bytes, 'hvcC'), picture: contentOf(bytes, 'mdat'), exif };
  const head = box('ftyp', text(brand), u32(0), text('mif1heic'));
  const before = head.length + metaOf([], parts, given).length + 8;
  const meta = metaOf([before, before + parts.picture.length], parts, given);
  const path = join(folder, `picture-${made}.heic`);
  await writeFile(path, Buffer.concat([head, meta, box('mdat', parts.picture, exif ?? Buffer.alloc(0))]));
  return path;
};
