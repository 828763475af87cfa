/**
 * Looks into media files and makes renditions of them. Files may be hostile: whatever they make a decoder do is bounded
 * in time, processor, memory and output, and reaches nothing but the files it was given.
 */
import type { MediaFailure, MediaProbe, RenditionSpec } from '#schemas/media.ts';

export interface SourceFile {
  /** Path on this machine, read only. */
  readonly path: string;
  readonly probe: MediaProbe;
}

export interface WantedRendition {
  readonly id: string;
  readonly spec: RenditionSpec;
  /** Path of the file to be made. */
  readonly to: string;
}

export type MadeRendition =
  | {
      readonly id: string;
      readonly kind: 'made';
      readonly path: string;
      readonly contentType: string;
      readonly bytes: number;
      readonly sha256: string;
      readonly width: number | null;
      readonly height: number | null;
      readonly durationMs: number | null;
    }
  /** This one cannot be made of this source, however often it is tried. */
  | { readonly id: string; readonly kind: 'failed'; readonly failure: MediaFailure };

/**
 * `unreadable`: damaged, or no media. `hostile`: does what no honest file does (a bomb, reaching out, a polyglot).
 * `unsupported`: honest, but of a kind that is not taken. `interrupted`: nothing of the file's; again may help. What is
 * no TranscodeError (a tool that ran out of time, or was killed from outside) may be the file's doing or not: it is tried
 * again, but not for ever.
 */
export type TranscodeErrorKind = 'unreadable' | 'hostile' | 'unsupported' | 'interrupted';

export class TranscodeError extends Error {
  readonly kind: TranscodeErrorKind;
  /** For the asset; absent where `interrupted`. */
  readonly failure: MediaFailure | null;
  constructor(kind: TranscodeErrorKind, failure: MediaFailure | null, options?: { readonly cause?: unknown }) {
    super(failure?.message ?? 'the work on a media file was interrupted', options);
    this.name = 'TranscodeError';
    this.kind = kind;
    this.failure = failure;
  }
}

/** What the first bytes say; null when nothing that is taken. */
export interface SniffedType {
  readonly kind: MediaProbe['kind'];
  readonly contentType: string;
}

export interface RenderOptions {
  /** Threads that all of it together may keep busy. */
  readonly threads: number;
  readonly signal: AbortSignal;
  /** 0–1 of the whole, at most twice a second. */
  readonly onProgress?: (done: number) => void;
}

export interface Transcoder {
  /** @throws TranscodeError for what is hostile on its face (markup, playlists, archives, two types at once). */
  sniff(path: string): Promise<SniffedType | null>;
  /** @throws TranscodeError */
  probe(path: string, sniffed: SniffedType, options: { readonly signal: AbortSignal }): Promise<MediaProbe>;
  /**
   * Makes them all, decoding the source once; in the order asked. One that fails harms no other.
   * @throws TranscodeError when the source as a whole is at fault, or `interrupted`
   */
  render(
    source: SourceFile,
    wanted: readonly WantedRendition[],
    options: RenderOptions,
  ): Promise<readonly MadeRendition[]>;
  /** Versions of the tools, for logs and readiness. @throws when they cannot be started */
  describe(): Promise<string>;
}
