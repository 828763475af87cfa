/**
 * Finds ffmpeg and ffprobe: the operator's (FFMPEG_PATH), the machine's (PATH), else those of npm packages: a current
 * one from ffmpeg-static where the operator installed it, one of 2018 from @ffmpeg-installer. ffmpeg-static is not a
 * dependency: its script downloads, and an install would wait minutes for a silent host.
 */
import { execFile } from 'node:child_process';
import { access, chmod, constants } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { SetupError } from '#contracts/ports/setup-error.ts';

const run = promisify(execFile);

export interface Binaries {
  readonly ffmpeg: string;
  readonly ffprobe: string;
  /** As ffmpeg prints it, e.g. `5.1.6-0+deb12u1`. */
  readonly version: string;
  /** Whether both are of versions that still get security fixes. */
  readonly current: boolean;
}

/**
 * libavcodec of ffmpeg 5.1, the oldest version that its makers and distributions (Debian 12) still fix. Older ones have
 * decoders with published holes.
 */
const oldest = { major: 59, minor: 37 };

/**
 * From the output of `-version` of ffmpeg and of ffprobe: development builds have no number, but their libraries do.
 */
const isCurrent = (said: string): boolean => {
  const [, major = '0', minor = '0'] = /libavcodec\s+(\d+)\.\s*(\d+)\./.exec(said) ?? [];
  return Number(major) > oldest.major || (Number(major) === oldest.major && Number(minor) >= oldest.minor);
};

const runs = async (file: string): Promise<boolean> =>
  access(file, constants.X_OK).then(
    () => true,
    () => false,
  );

/** Null: it is not on PATH. */
const onPath = async (name: string): Promise<string | null> => {
  try {
    const { stdout } = await run('sh', ['-c', 'command -v "$1"', 'sh', name]);
    return stdout.trim() || null;
  } catch {
    return null;
  }
};

/** Null: the package is not installed, or not for this machine, or its download is missing. */
const packaged = async (name: string): Promise<string | null> => {
  let file: string;
  try {
    const found: string | { readonly path: string } = createRequire(import.meta.url)(name);
    file = typeof found === 'string' ? found : found.path;
  } catch {
    return null;
  }
  // The package's own install script does this as the owner; where scripts are off it never ran.
  await chmod(file, 0o755).catch(() => {});
  return (await runs(file)) ? file : null;
};

/** FFMPEG_PATH may name a program that never ends. Milliseconds. */
const versionMs = 10_000;

const version = async (file: string): Promise<string> =>
  (await run(file, ['-hide_banner', '-version'], { timeout: versionMs })).stdout;

/** The ffprobe beside an ffmpeg, else any. Null: there is none. */
const ffprobeOf = async (ffmpeg: string): Promise<string | null> => {
  const beside = join(dirname(ffmpeg), 'ffprobe');
  if (await runs(beside)) return beside;
  return (await onPath('ffprobe')) ?? (await packaged('@ffprobe-installer/ffprobe'));
};

/** Null: there is no ffprobe for it, or one of them does not run: half a download, or built for another machine. */
const pairOf = async (ffmpeg: string): Promise<Binaries | null> => {
  const ffprobe = await ffprobeOf(ffmpeg);
  if (ffprobe === null) return null;
  const said = await version(ffmpeg).catch(() => null);
  const beside = await version(ffprobe).catch(() => null);
  if (said === null || beside === null) return null;
  const name = /^ffmpeg version (\S+)/.exec(said)?.[1] ?? 'unknown';
  return { ffmpeg, ffprobe, version: name, current: isCurrent(said) && isCurrent(beside) };
};

/** @throws SetupError where FFMPEG_PATH is not an ffmpeg */
const namedBinaries = async (ffmpegPath: string): Promise<Binaries | null> => {
  const noProgram = (why: string): SetupError =>
    new SetupError(`FFMPEG_PATH: ${ffmpegPath} ${why}: name the program ffmpeg, or leave the setting out`);
  const file = await onPath(ffmpegPath);
  const said = file === null ? null : await version(file).catch(() => null);
  if (file === null || said === null) throw noProgram('is not a program that can be run');
  if (!said.startsWith('ffmpeg version')) throw noProgram('is not ffmpeg');
  return pairOf(file);
};

/** @throws Error that says what to install, SetupError where FFMPEG_PATH is not an ffmpeg */
export const findBinaries = async (ffmpegPath: string | null): Promise<Binaries> => {
  let old: Binaries | null = null;
  if (ffmpegPath === null) {
    const places = [
      () => onPath('ffmpeg'),
      () => packaged('ffmpeg-static'),
      () => packaged('@ffmpeg-installer/ffmpeg'),
    ];
    for (const place of places) {
      const ffmpeg = await place();
      const pair = ffmpeg === null ? null : await pairOf(ffmpeg);
      if (pair?.current) return pair;
      old ??= pair;
    }
  } else old = await namedBinaries(ffmpegPath);
  if (old === null) throw new Error('there is no ffmpeg with its ffprobe: install it, or set FFMPEG_PATH');
  return old;
};
