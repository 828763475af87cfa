import type { Binaries } from './binaries.ts';

export interface TranscoderOptions {
  /** Null: the one on PATH, else the npm package's. */
  readonly ffmpegPath: string | null;
  /** Folder for intermediate files; each render cleans up after itself. It must exist. */
  readonly workDir: string;
  /**
   * Whether videos are taken or refused when the ffmpeg found no longer gets security fixes: its decoders have
   * published holes. Default: take them and call `warn`.
   */
  readonly outdated?: 'take' | 'refuse';
  /** Called once when the ffmpeg found is outdated. */
  readonly warn: (message: string) => void;
}

/** The tools of every probe and every render. */
export interface Tools extends TranscoderOptions {
  /** @throws TranscodeError where no installed ffmpeg may open a video */
  binaries(): Promise<Binaries>;
}
