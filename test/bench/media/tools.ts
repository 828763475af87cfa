/** Shared by the media benches: the ffmpeg, a bare run of it, and sources made with it. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os';
import path from 'node:path';
import { findBinaries } from '#infra/ffmpeg/binaries.ts';
import { processEnv } from '#runtime/process/config.ts';

export const ffmpegPath = processEnv().FFMPEG_PATH ?? null;

export const machine = async (): Promise<readonly string[]> => [
  `cpu: ${cpus()[0]?.model ?? 'unknown'}, ${availableParallelism()} cores; load average ${loadavg()[0]?.toFixed(2)}`,
  `node: ${process.version}; ffmpeg: ${(await findBinaries(ffmpegPath)).version}`,
];

export interface Took {
  /** Seconds by the clock. */
  readonly wall: number;
  /** Seconds of processor that children took; null: a system that does not say. Other work on the machine moves it less. */
  readonly processor: number | null;
}

/** Processor time of children that ended, theirs included, in hundredths of a second. */
const childTicks = (): number | null => {
  try {
    // Behind the name, which stands in brackets and may hold spaces, the 14th and 15th: user and system time of children.
    const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    return Number(fields[13]) + Number(fields[14]);
  } catch {
    return null;
  }
};

export const took = async <T>(work: () => Promise<T>): Promise<Took & { readonly result: T }> => {
  const before = childTicks();
  const begun = performance.now();
  const result = await work();
  const wall = (performance.now() - begun) / 1_000;
  const after = childTicks();
  return { result, wall, processor: before === null || after === null ? null : (after - before) / 100 };
};

/** Seconds of one plain command. @throws with its output */
export const bare = async (args: readonly string[]): Promise<number> => {
  const { ffmpeg } = await findBinaries(ffmpegPath);
  const begun = performance.now();
  const child = spawn(ffmpeg, ['-hide_banner', '-nostdin', '-v', 'error', '-y', ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    said = (said + chunk).slice(-4_000);
  });
  const code = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve));
  if (code !== 0) throw new Error(`ffmpeg ended with ${code}: ${said}`);
  return (performance.now() - begun) / 1_000;
};

export interface Folder extends Disposable {
  readonly path: string;
  file(name: string): string;
}

export const folder = (): Folder => {
  const own = mkdtempSync(path.join(tmpdir(), 'bench-media-'));
  return {
    path: own,
    file: (name) => path.join(own, name),
    [Symbol.dispose]: () => rmSync(own, { recursive: true, force: true }),
  };
};

const photo = path.resolve(import.meta.dirname, '../../fixtures/coffee.jpg');

/** A camera that moves over a photo, with a chord: pictures that differ and detail as a lens gives it. */
export const moving = (seconds: number, size: string): readonly string[] => [
  ...['-loop', '1', '-i', photo, '-f', 'lavfi', '-i', `sine=frequency=262:duration=${seconds}`],
  '-filter_complex',
  [
    '[0:v]transpose=1,scale=2880:-2,crop=2880:1620',
    `zoompan=z='1.3+0.25*sin(on/40)':x='iw/2-iw/zoom/2+300*sin(on/55)':y='ih/2-ih/zoom/2+120*cos(on/35)':d=${seconds * 30}:s=${size}:fps=30`,
    'format=yuv420p[v]',
  ].join(','),
  ...['-map', '[v]', '-map', '1:a', '-t', String(seconds)],
];
