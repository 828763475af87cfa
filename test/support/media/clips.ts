/** Real clips, made by ffmpeg: a moving source with a running clock, and a tone. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findBinaries } from '#infra/ffmpeg/binaries.ts';

const run = promisify(execFile);

export interface Clip {
  readonly seconds?: number;
  readonly width?: number;
  readonly height?: number;
  readonly fps?: number | string;
  readonly codec?: 'h264' | 'hevc' | 'vp9' | 'prores' | 'mpeg4';
  /** File extension, which selects the container. */
  readonly container?: 'mp4' | 'mov' | 'webm' | 'mkv' | 'avi' | 'ts';
  readonly sound?: boolean;
  /** Every second picture of the second half is dropped. */
  readonly variable?: boolean;
  readonly interlaced?: boolean;
  readonly hdr?: 'pq' | 'hlg';
  /** More for x265, where it is HDR: `max-cll=1000,400`. */
  readonly x265?: string;
  readonly audioKbps?: number;
  /** Clockwise degrees that a player turns it by. */
  readonly rotate?: 90 | 180 | 270;
  readonly picture?: 'testsrc2' | 'smptebars' | 'mandelbrot';
  /** Index before the data, no edit list, no reordered pictures: what most networks want. */
  readonly streamable?: boolean;
  /** Pictures between two key frames, some of them out of order, as encoders make them by default. */
  readonly group?: number;
  readonly kbps?: number;
  readonly metadata?: Readonly<Record<string, string>>;
}

const encoders: Readonly<Record<NonNullable<Clip['codec']>, readonly string[]>> = {
  h264: ['libx264', '-preset', 'ultrafast'],
  hevc: ['libx265', '-preset', 'ultrafast', '-tag:v', 'hvc1'],
  vp9: ['libvpx-vp9', '-deadline', 'realtime', '-cpu-used', '8', '-b:v', '1M'],
  prores: ['prores_ks', '-profile:v', '0'],
  mpeg4: ['mpeg4', '-q:v', '4'],
};

const transfers = { pq: 'smpte2084', hlg: 'arib-std-b67' } as const;

const videoOptions = ({ codec = 'h264', group, hdr, interlaced, kbps, streamable, x265 }: Clip): readonly string[] => {
  if (hdr !== undefined) {
    const colours = `log-level=none:colorprim=bt2020:transfer=${transfers[hdr]}:colormatrix=bt2020nc${x265 === undefined ? '' : `:${x265}`}`;
    return ['-c:v', ...encoders.hevc, '-pix_fmt', 'yuv420p10le', '-x265-params', colours];
  }
  return [
    ...['-c:v', ...encoders[codec], '-pix_fmt', codec === 'prores' ? 'yuv422p10le' : 'yuv420p'],
    ...(codec === 'hevc' ? ['-x265-params', 'log-level=none'] : []),
    ...(interlaced ? ['-flags', '+ildct+ilme', '-x264opts', 'tff=1'] : []),
    ...(group === undefined ? [] : ['-preset', 'veryfast', '-bf', '3', '-g', String(group)]),
    ...(kbps === undefined ? [] : ['-b:v', `${kbps}k`, '-maxrate', `${kbps}k`, '-bufsize', `${kbps}k`]),
    ...(streamable
      ? ['-bf', '0', '-profile:v', 'main', '-preset', 'veryfast', '-movflags', '+faststart', '-use_editlist', '0']
      : []),
  ];
};

const filters = ({ variable, interlaced, seconds = 1, fps = 30 }: Clip): string =>
  [
    ...(variable ? [`select='lt(n,${Math.floor((seconds * Number(fps)) / 2)})+mod(n,2)'`] : []),
    ...(interlaced ? ['tinterlace=interleave_top', 'fieldorder=tff'] : []),
    'setsar=1',
  ].join(',');

/** The display matrix of an MP4: a, b, c, d. Written by hand, because builds of ffmpeg take it in different ways. */
const turns: Readonly<Record<number, readonly number[]>> = {
  90: [0, 1, -1, 0],
  180: [-1, 0, 0, -1],
  270: [0, -1, 1, 0],
};

const turn = async (path: string, degrees: number): Promise<void> => {
  const { readFile, writeFile } = await import('node:fs/promises');
  const bytes = await readFile(path);
  // The first track is the picture's; its matrix lies 40 bytes into the header's body (version 0).
  const header = bytes.indexOf('tkhd', 0, 'latin1');
  const [a = 1, b = 0, c = 0, d = 1] = turns[degrees] ?? [];
  const matrix = header + 4 + 40;
  for (const [index, value] of [a, b, 0, c, d].entries()) bytes.writeInt32BE(value * 65_536, matrix + 4 * index);
  await writeFile(path, bytes);
};

let made = 0;

/** @returns its path */
export const makeClip = async (folder: string, clip: Clip = {}): Promise<string> => {
  const { ffmpeg } = await findBinaries(process.env.FFMPEG_PATH ?? null);
  const { seconds = 1, width = 320, height = 180, fps = 30, container = 'mp4', sound = true } = clip;
  const { picture = 'testsrc2', rotate, metadata = {} } = clip;
  const soundRate = clip.audioKbps === undefined ? [] : ['-b:a', `${clip.audioKbps}k`];
  // A tone takes hardly any bits, whatever the rate.
  const tone = clip.audioKbps === undefined ? 'sine=frequency=440:sample_rate=48000' : 'anoisesrc=sample_rate=48000';
  made += 1;
  const path = join(folder, `clip-${made}.${container}`);
  const rate = clip.interlaced ? Number(fps) * 2 : fps;
  const video =
    picture === 'mandelbrot'
      ? `mandelbrot=s=${width}x${height}:r=${rate}`
      : `${picture}=s=${width}x${height}:r=${rate}`;
  await run(ffmpeg, [
    ...['-v', 'error', '-nostdin', '-y', '-f', 'lavfi', '-i', video],
    ...(sound ? ['-f', 'lavfi', '-i', tone] : []),
    ...['-t', String(seconds), '-vf', filters(clip), ...(clip.variable ? ['-vsync', 'vfr'] : [])],
    ...videoOptions(clip),
    ...(sound ? (container === 'webm' ? ['-c:a', 'libopus'] : ['-c:a', 'aac', '-ac', '2', ...soundRate]) : []),
    ...Object.entries(metadata).flatMap(([name, value]) => ['-metadata', `${name}=${value}`]),
    ...(container === 'mov' || container === 'mp4' ? [] : ['-shortest']),
    path,
  ]);
  if (rotate !== undefined) await turn(path, rotate);
  return path;
};

/** A GIF of `frames` pictures, each shown for `hundredths`. */
export const makeGif = async (folder: string, frames: number, width = 160, height = 120, fps = 10): Promise<string> => {
  const { ffmpeg } = await findBinaries(process.env.FFMPEG_PATH ?? null);
  made += 1;
  const path = join(folder, `moving-${made}.gif`);
  const source = `testsrc2=s=${width}x${height}:r=${fps}`;
  await run(ffmpeg, ['-v', 'error', '-nostdin', '-y', '-f', 'lavfi', '-i', source, '-frames:v', String(frames), path]);
  return path;
};
