/**
 * The transcoder over ffmpeg, ffprobe and sharp. Every look into a file's pixels happens in a process of its own, with
 * limits (child.ts); here only bytes are compared. What is heavy is loaded with the first file.
 */
import type { Transcoder } from '#contracts/ports/transcoder.ts';
import { type Binaries, findBinaries, oldestCurrent } from './binaries.ts';
import { describeIsolation } from './isolation.ts';

export interface TranscoderOptions {
  /** Null: the one on PATH, else the npm package's. */
  readonly ffmpegPath: string | null;
  /** Folder for what lies between source and rendition; each render cleans up after itself. It must exist. */
  readonly workDir: string;
  /** Told once when the ffmpeg found is an old one. */
  readonly warn: (message: string) => void;
}

/** What the parts of the adapter share. */
export interface Tools extends TranscoderOptions {
  binaries(): Promise<Binaries>;
}

export const openTranscoder = (options: TranscoderOptions): Transcoder => {
  let found: Promise<Binaries> | null = null;
  const binaries = (): Promise<Binaries> => {
    if (found !== null) return found;
    const finding = findBinaries(options.ffmpegPath);
    found = finding;
    finding.then(
      ({ version, libavcodec, packaged }) => {
        if (!packaged && libavcodec >= oldestCurrent) return;
        options.warn(`ffmpeg ${version} is old: install ffmpeg 5 or newer, or set FFMPEG_PATH`);
      },
      // Whoever asks next looks again: it may have been installed meanwhile.
      () => {
        found = null;
      },
    );
    return finding;
  };
  const tools: Tools = { ...options, binaries };
  return {
    sniff: async (path) => (await import('./sniff.ts')).sniff(path),
    probe: async (path, sniffed, { signal }) => (await import('./probe.ts')).probe(tools, path, sniffed, signal),
    render: async (source, wanted, render) => (await import('./render.ts')).render(tools, source, wanted, render),
    describe: async () => {
      const { ffmpeg, version } = await binaries();
      return `ffmpeg ${version} ${await describeIsolation(options.workDir, ffmpeg)}`;
    },
  };
};
