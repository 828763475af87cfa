/**
 * The transcoder over ffmpeg, ffprobe and sharp. Pixels of a file are only read in a child process with limits
 * (child.ts); this process only compares bytes. Heavy modules are loaded with the first file.
 */

import { SetupError } from '#contracts/ports/setup-error.ts';
import type { Transcoder } from '#contracts/ports/transcoder.ts';
import { type Binaries, findBinaries } from './binaries.ts';
import { videosUnavailable } from './failures.ts';
import { describeIsolation } from './isolation.ts';
import type { Tools, TranscoderOptions } from './tools.ts';

export const openTranscoder = (options: TranscoderOptions): Transcoder => {
  let found: Promise<Binaries> | null = null;
  const look = (): Promise<Binaries> => {
    if (found !== null) return found;
    const finding = findBinaries(options.ffmpegPath);
    found = finding;
    finding.then(
      ({ version, current }) => {
        if (current) return;
        const so = options.outdated === 'refuse' ? ', so videos are refused' : '';
        options.warn(`ffmpeg ${version} is outdated${so}: install ffmpeg 5.1 or newer, or set FFMPEG_PATH`);
      },
      // After a failure the next caller searches again: an ffmpeg may have been installed meanwhile.
      () => {
        found = null;
      },
    );
    return finding;
  };
  const binaries = async (): Promise<Binaries> => {
    const usable = await look().catch((error: unknown) => {
      if (error instanceof SetupError) throw error;
      throw videosUnavailable();
    });
    if (!usable.current && options.outdated === 'refuse') throw videosUnavailable();
    return usable;
  };
  const tools: Tools = { ...options, binaries };
  return {
    sniff: async (path) => (await import('./sniff.ts')).sniff(path),
    probe: async (path, sniffed, { signal }) => (await import('./probe.ts')).probe(tools, path, sniffed, signal),
    render: async (source, wanted, render) => (await import('./render.ts')).render(tools, source, wanted, render),
    describe: async () => {
      const { ffmpeg, version, current } = await look();
      const refused = !current && options.outdated === 'refuse' ? ', outdated: videos are refused' : '';
      return `ffmpeg ${version} ${await describeIsolation(options.workDir, ffmpeg)}${refused}`;
    },
  };
};
