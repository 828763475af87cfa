/**
 * Which ffmpeg and ffprobe: the operator's (FFMPEG_PATH), the machine's (PATH), else those that npm packages bring, which
 * are years old.
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
  /** As ffmpeg says it, e.g. `5.1.6-0+deb12u1`. */
  readonly version: string;
  /** Major version of libavcodec: 58 is ffmpeg 4, 59 is 5, 60 is 6, 61 is 7, 62 is 8. */
  readonly libavcodec: number;
  /** Whether it is the npm package's. */
  readonly packaged: boolean;
}

/** From ffmpeg 5 on. */
export const oldestCurrent = 59;

const runs = async (file: string): Promise<boolean> =>
  access(file, constants.X_OK).then(
    () => true,
    () => false,
  );

/** Null: PATH has none. */
const onPath = async (name: string): Promise<string | null> => {
  try {
    const { stdout } = await run('sh', ['-c', 'command -v "$1"', 'sh', name]);
    return stdout.trim() || null;
  } catch {
    return null;
  }
};

/** Null: the package is not installed, or not for this machine. */
const packaged = async (name: 'ffmpeg' | 'ffprobe'): Promise<string | null> => {
  let file: string;
  try {
    file = createRequire(import.meta.url)(`@${name}-installer/${name}`).path;
  } catch {
    return null;
  }
  // The package's own install script does this for its owner; where scripts are off nobody has.
  await chmod(file, 0o755).catch(() => {});
  return (await runs(file)) ? file : null;
};

/** FFMPEG_PATH may name a program that never ends. Milliseconds. */
const versionMs = 10_000;

/** @throws Error that says what to install, SetupError where FFMPEG_PATH names no ffmpeg */
export const findBinaries = async (ffmpegPath: string | null): Promise<Binaries> => {
  const given = ffmpegPath === null ? null : await onPath(ffmpegPath);
  const noProgram = (why: string): SetupError =>
    new SetupError(`FFMPEG_PATH: ${ffmpegPath} ${why}: name the program ffmpeg, or leave the setting out`);
  if (ffmpegPath !== null && given === null) throw noProgram('is not a program that can be run');
  const own = given ?? (await onPath('ffmpeg'));
  const ffmpeg = own ?? (await packaged('ffmpeg'));
  if (ffmpeg === null) throw new Error('there is no ffmpeg: install it, or set FFMPEG_PATH');
  const beside = join(dirname(ffmpeg), 'ffprobe');
  const ffprobe =
    own !== null && (await runs(beside)) ? beside : ((await onPath('ffprobe')) ?? (await packaged('ffprobe')));
  if (ffprobe === null) throw new Error('there is no ffprobe beside ffmpeg: install it');
  const { stdout } = await run(ffmpeg, ['-hide_banner', '-version'], { timeout: versionMs }).catch((error: unknown) => {
    throw given === null ? error : noProgram('is not a program that can be run');
  });
  if (given !== null && !stdout.startsWith('ffmpeg version')) throw noProgram('is not ffmpeg');
  return {
    ffmpeg,
    ffprobe,
    version: /^ffmpeg version (\S+)/.exec(stdout)?.[1] ?? 'unknown',
    libavcodec: Number(/libavcodec\s+(\d+)\./.exec(stdout)?.[1] ?? 0),
    packaged: own === null,
  };
};
