/** Files as recorders, phones, cameras and editors make them, tiny: two runs of ffmpeg, and writers of bytes. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { box } from '#test/infra/ffmpeg/boxes.ts';
import { pngChunk } from './pictures.ts';

const run = promisify(execFile);

const quiet = ['-v', 'error', '-nostdin', '-y'];
const lavfi = (source: string): readonly string[] => ['-f', 'lavfi', '-i', source];
const h264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-g', '5'];
const aac = ['-c:a', 'aac', '-ac', '1', '-b:a', '32k'];

/** Inputs: 0 pictures, 1 sound, 2 red pictures, 3 many small ones, 4 ones that last long. */
const sources = [
  ...[
    ...lavfi('testsrc2=s=64x48:r=10:d=4'),
    ...lavfi('sine=sample_rate=48000:d=4'),
    ...lavfi('color=red:128x96:10:d=2'),
  ],
  ...[...lavfi('color=s=16x16:r=60:d=12'), ...lavfi('color=s=16x16:r=1/100:d=44000')],
];
const encoded: Readonly<Record<string, readonly string[]>> = {
  'film.mp4': ['-map', '0:v', '-map', '1:a', '-t', '2', ...h264, ...aac],
  'red.mp4': ['-map', '2:v', '-t', '2', ...h264],
  'vp8.webm': [
    ...['-map', '0:v', '-map', '1:a', '-t', '2', '-c:v', 'libvpx', '-deadline', 'realtime', '-cpu-used', '8'],
    ...['-b:v', '200k', '-c:a', 'libopus', '-b:a', '32k'],
  ],
  'old.avi': ['-map', '0:v', '-map', '1:a', '-t', '2', '-c:v', 'mpeg4', '-q:v', '9', '-c:a', 'pcm_s16le'],
  'odd.mov': ['-map', '0:v', '-t', '1', '-vf', 'scale=65:49', '-c:v', 'png'],
  'jpeg.mov': ['-map', '0:v', '-map', '1:a', '-t', '1', '-c:v', 'mjpeg', '-pix_fmt', 'yuvj420p', '-c:a', 'pcm_s16be'],
  'longer-sound.mp4': ['-map', '0:v', '-map', '1:a', '-t', '4', '-vf', 'trim=end_frame=5', ...h264, ...aac],
  'gap.mp4': ['-map', '3:v', '-vf', "select='not(between(n,200,230))'", '-vsync', 'vfr', ...h264],
  'many.mkv': ['-map', '3:v', '-vf', 'fps=200', '-c:v', 'mpeg4', '-q:v', '31'],
  'day.mp4': ['-map', '4:v', ...h264],
};

const all = ['-map', '0', '-c', 'copy'];
/** Copies of `film.mp4`; the inputs 1 and 2 are `red.mp4` and `vp8.webm`. */
const copied: Readonly<Record<string, readonly string[]>> = {
  'fragmented.mp4': [...all, '-movflags', 'frag_keyframe+empty_moov+default_base_moof'],
  'first-inside.mp4': [...all, '-movflags', 'frag_keyframe'],
  'front.mp4': [...all, '-movflags', 'faststart'],
  'silent.mp4': ['-map', '0:v', '-c', 'copy'],
  'sound.mp4': ['-map', '0:a', '-c', 'copy'],
  'plain.mov': all,
  'timecode.mov': [...all, '-timecode', '01:00:00:00'],
  'plain.mkv': all,
  'live.mkv': [...all, '-live', '1'],
  'mute.mkv': [...all, '-bsf:a', 'noise=dropamount=1'],
  'plain.ts': all,
  'camcorder.m2ts': [...all, '-f', 'mpegts', '-mpegts_m2ts_mode', '1'],
  'preview-first.mp4': ['-map', '0:v', '-map', '1:v', '-map', '0:a', '-c', 'copy'],
  'browser.webm': ['-map', '2', '-c', 'copy', '-live', '1'],
};

/** @returns the files by name */
export const recordings = async (folder: string, ffmpeg: string): Promise<(name: string) => Buffer> => {
  const to = (files: Readonly<Record<string, readonly string[]>>): readonly string[] =>
    Object.entries(files).flatMap(([name, options]) => [...options, join(folder, name)]);
  await run(ffmpeg, [...quiet, ...sources, ...to(encoded)]);
  const inputs = ['film.mp4', 'red.mp4', 'vp8.webm'].flatMap((name) => ['-i', join(folder, name)]);
  await run(ffmpeg, [...quiet, ...inputs, ...to(copied)]);
  const names = [...Object.keys(encoded), ...Object.keys(copied)];
  const files = new Map(
    await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name))] as const)),
  );
  return (name) => Buffer.from(files.get(name) ?? []);
};

/** A copy in which `write` changes what lies behind the `nth` mention of a box. @param write gets where its content is */
export const patched = (film: Buffer, type: string, write: (bytes: Buffer, at: number) => void, nth = 0): Buffer => {
  const bytes = Buffer.from(film);
  let at = bytes.indexOf(type, 0, 'latin1');
  for (let passed = 0; passed < nth; passed += 1) at = bytes.indexOf(type, at + 4, 'latin1');
  if (at < 0) throw new Error(`there is no ${type}`);
  write(bytes, at + 4);
  return bytes;
};

/** Where the box begins. */
export const placeOf = (film: Buffer, type: string): number => film.indexOf(type, 0, 'latin1') - 4;

/** A PNG that says it has so many pictures, behind a chunk of `before` bytes. */
export const animatedPng = (png: Buffer, frames: number, before = 0): Buffer => {
  const control = Buffer.alloc(8);
  control.writeUInt32BE(frames);
  const notes = before === 0 ? [] : [pngChunk('noTe', Buffer.alloc(before))];
  return Buffer.concat([png.subarray(0, 33), ...notes, pngChunk('acTL', control), png.subarray(33)]);
};

/** An AVIF that says it is a sequence, of so many pictures. */
export const sequence = (avif: Buffer, frames: number): Buffer => {
  const bytes = Buffer.from(avif);
  bytes.write('avis', 8, 'latin1');
  const sizes = Buffer.alloc(12 + 4 * frames);
  sizes.writeUInt32BE(frames, 8);
  const handler = box('hdlr', Buffer.alloc(8), Buffer.from('pict'), Buffer.alloc(13));
  const index = box('moov', box('trak', box('mdia', handler, box('minf', box('stbl', box('stsz', sizes))))));
  return Buffer.concat([bytes, index]);
};

/** A grey TIFF of these pages, of 2 by 2 pixels. `subfile`: 0 a page, 1 a smaller one of another. */
export const tiffOf = (subfiles: readonly number[]): Buffer => {
  const entries = 10;
  const length = 2 + 12 * entries + 4 + 4;
  const head = Buffer.from('II*\0\x08\0\0\0', 'latin1');
  const pages = subfiles.map((subfile, index) => {
    const page = Buffer.alloc(length);
    const begin = head.length + index * length;
    const pixels = length - 4;
    page.writeUInt16LE(entries);
    const tags = [
      ...[
        [254, subfile],
        [256, 2],
        [257, 2],
        [258, 8],
        [259, 1],
      ],
      ...[
        [262, 1],
        [273, begin + pixels],
        [277, 1],
        [278, 2],
        [279, 4],
      ],
    ];
    for (const [at, [tag = 0, value = 0]] of tags.entries()) {
      page.writeUInt16LE(tag, 2 + 12 * at);
      page.writeUInt16LE(4, 4 + 12 * at);
      page.writeUInt32LE(1, 6 + 12 * at);
      page.writeUInt32LE(value, 10 + 12 * at);
    }
    page.writeUInt32LE(index + 1 < subfiles.length ? begin + length : 0, 2 + 12 * entries);
    page.fill(0x80, pixels);
    return page;
  });
  return Buffer.concat([head, ...pages]);
};
