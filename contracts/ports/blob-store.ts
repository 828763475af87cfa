/**
 * Storage of media files. Keys are `<workspace>/<asset>/…`, segments of `[A-Za-z0-9._-]` joined by `/`. A key never
 * shows half a write; a write that breaks off leaves nothing.
 */
import type { Readable } from 'node:stream';

export interface BlobInfo {
  readonly key: string;
  readonly bytes: number;
  /** As given at the write. */
  readonly contentType: string;
  /** Changes with the content. */
  readonly etag: string;
}

/** Bytes `start` to `end`, both included. */
export interface BlobRange {
  readonly start: number;
  readonly end: number;
}

/** `not_found`; `precondition` (copy: the source no longer has `etag`); `unavailable` (a retry may help); `refused`. */
export type BlobErrorCode = 'not_found' | 'precondition' | 'unavailable' | 'refused';

export class BlobError extends Error {
  readonly code: BlobErrorCode;
  constructor(code: BlobErrorCode, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.name = 'BlobError';
    this.code = code;
  }
}

export interface PresignedPut {
  readonly url: string;
  /** Headers that the PUT must carry; another type or length is refused. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface BlobStore {
  /** Overwrites. @throws BlobError */
  put(
    key: string,
    body: Readable | Uint8Array,
    options: { readonly contentType: string; readonly bytes: number; readonly signal?: AbortSignal },
  ): Promise<BlobInfo>;
  /** Null: there is none. */
  head(key: string): Promise<BlobInfo | null>;
  /** @throws BlobError `not_found` */
  get(
    key: string,
    options?: { readonly range?: BlobRange; readonly signal?: AbortSignal },
  ): Promise<{ readonly info: BlobInfo; readonly body: Readable }>;
  /**
   * The whole file on this machine, read-only: the blob itself where it lies on a local disk, else a copy at `to`.
   * Other users who may enter its folder can read it: tools that decode it run as another user.
   */
  localFile(key: string, to: string, signal?: AbortSignal): Promise<string>;
  /** Only while the source still has this etag; later writes to it do not reach the copy. @throws BlobError */
  copy(from: string, to: string, etag: string): Promise<BlobInfo>;
  /** Does nothing when there is none. */
  delete(key: string): Promise<void>;
  /** The holder of the URL may write this key, of this type and length only, until it expires. */
  presignPut(
    key: string,
    options: { readonly contentType: string; readonly bytes: number; readonly expiresAt: Date },
  ): Promise<PresignedPut>;
  /**
   * The holder of the URL may read this key until it expires. `contentType`: as given at the write, so that the store
   * need not look it up. `fileName`: the name for saving (Content-Disposition). Only pictures, video and PDF are shown
   * inline; every other type is sent as a download.
   */
  presignGet(
    key: string,
    options: { readonly contentType: string; readonly expiresAt: Date; readonly fileName?: string },
  ): Promise<string>;
  /**
   * As `presignGet`, and always under the origin and prefix of `served`, from where the file itself comes: for networks
   * that take a file from a proven host alone, and follow no redirect.
   */
  presignOwn(key: string, options: { readonly expiresAt: Date }): Promise<string>;
  /** Rejects while the store does not answer. */
  ping(): Promise<void>;
  close(): Promise<void>;
  /** The handler of the presigned URLs that lead to our own api: all of the disk adapter, of S3 those of `presignOwn`. */
  readonly served: ServedBlobs;
}

export interface ServedAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readable | string | null;
}

/**
 * `url_invalid`: not signed by us for this use, altered, or expired; `mismatch`: of another type or length than the URL
 * permits, or broken off; `type`: the Content-Type is longer than any real one; `method`: neither PUT nor GET nor HEAD;
 * `not_found`: there is no file.
 */
export type ServedRefusalCode = 'url_invalid' | 'mismatch' | 'type' | 'method' | 'not_found';

/** A refused request; the message is for the caller. */
export class ServedRefusal extends Error {
  readonly code: ServedRefusalCode;
  constructor(code: ServedRefusalCode, message: string) {
    super(message);
    this.name = 'ServedRefusal';
    this.code = code;
  }
}

/** Presigned URLs that our own api serves. Each call checks the signature first; its body is streamed. */
export interface ServedBlobs {
  /** Path under the origin that presigned URLs begin with, e.g. `/blobs/`. */
  readonly prefix: string;
  /** @throws ServedRefusal, BlobError */
  handle(request: {
    readonly method: string;
    /** Path and query as they arrived. */
    readonly url: string;
    readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
    readonly body: Readable;
  }): Promise<ServedAnswer>;
}
