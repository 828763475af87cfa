/**
 * Probes media files and makes renditions of them. Files may be hostile: their effect on a decoder is bounded in time,
 * processor, memory and output, and reaches only the given files.
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
  /** Path of the output file. */
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
  /** This output cannot be made from this source, however often it is tried. */
  | { readonly id: string; readonly kind: 'failed'; readonly failure: MediaFailure };

/**
 * `unreadable`: damaged, or not media. `hostile`: no honest file is like this (a bomb, one that reaches out, a polyglot).
 * `unsupported`: honest, but of a kind that is not accepted. `interrupted`: not the file's fault; a retry may help. Any
 * other error (a tool that ran out of time, or was killed from outside) may be the file's fault or not: it is retried a
 * few times.
 */
export type TranscodeErrorKind = 'unreadable' | 'hostile' | 'unsupported' | 'interrupted';

export class TranscodeError extends Error {
  readonly kind: TranscodeErrorKind;
  /** For the asset; null for `interrupted`. */
  readonly failure: MediaFailure | null;
  constructor(kind: TranscodeErrorKind, failure: MediaFailure | null, options?: { readonly cause?: unknown }) {
    super(failure?.message ?? 'the work on a media file was interrupted', options);
    this.name = 'TranscodeError';
    this.kind = kind;
    this.failure = failure;
  }
}

/** The type by the first bytes; null when it is not accepted. */
export interface SniffedType {
  readonly kind: MediaProbe['kind'];
  readonly contentType: string;
}

export interface RenderOptions {
  /** Threads for the whole render. */
  readonly threads: number;
  readonly signal: AbortSignal;
  /** 0–1 of the whole, at most twice a second. */
  readonly onProgress?: (done: number) => void;
}

export interface Transcoder {
  /** @throws TranscodeError for an evidently hostile file (markup, playlists, archives, two types at once) */
  sniff(path: string): Promise<SniffedType | null>;
  /** @throws TranscodeError */
  probe(path: string, sniffed: SniffedType, options: { readonly signal: AbortSignal }): Promise<MediaProbe>;
  /**
   * Makes all of them, decoding the source once; results in the order of the requests. A failed one does not affect the
   * others.
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
