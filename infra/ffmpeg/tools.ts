import type { Binaries } from './binaries.ts';

export interface TranscoderOptions {
  /** Null: the one on PATH, else the npm package's. */
  readonly ffmpegPath: string | null;
  /** Folder for what lies between source and rendition; each render cleans up after itself. It must exist. */
  readonly workDir: string;
  /**
   * What becomes of videos where the ffmpeg found is older than what is still mended: its decoders have published holes.
   * Default: they are taken, and `warn` is told.
   */
  readonly outdated?: 'take' | 'refuse';
  /** Told once when the ffmpeg found is an old one. */
  readonly warn: (message: string) => void;
}

/** What every probe and every render needs. */
export interface Tools extends TranscoderOptions {
  /** @throws TranscodeError where there are none that may open a video */
  binaries(): Promise<Binaries>;
}
