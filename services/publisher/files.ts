import { randomUUID } from 'node:crypto';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import type { BlobStore } from '#contracts/ports/blob-store.ts';
import type { PublishMedia } from '#contracts/ports/platform.ts';
import { wellFormedInstant, wellFormedText } from '#runtime/eventing/well-formed.ts';
import { WorkFolder } from '#runtime/process/work-folder.ts';
import type { Failure } from '#schemas/target.ts';
import type { Outgoing, SegmentFiles } from './media-readiness.ts';

export interface Lent {
  readonly media: readonly PublishMedia[];
  readonly cover: PublishMedia | null;
  /** Bytes fetched so far, including those of incomplete files. Never rejects. */
  bytes(): Promise<number>;
  /** Removes the files fetched for this call. Never rejects. */
  close(): Promise<void>;
}

/** Lends files to an adapter for one call. A file is fetched to this machine only when the adapter asks for it. */
export class Files {
  readonly #blobs: BlobStore;
  readonly #root: string;
  #folder: Promise<WorkFolder> | null = null;

  constructor(blobs: BlobStore, root: string) {
    this.#blobs = blobs;
    this.#root = root;
  }

  lend({ media, cover }: SegmentFiles, signal: AbortSignal): Lent {
    const call = randomUUID();
    const paths: string[] = [];
    let used: WorkFolder | null = null;
    const folder = async (): Promise<string> => {
      used = await this.#opened();
      return used.of(call);
    };
    const lent = (one: Outgoing): PublishMedia => {
      let here: Promise<string> | null = null;
      // Media id and use make the path unique, because two keys may have the same base name.
      const name = `${one.mediaId}-${one.use}-${path.posix.basename(one.key)}`;
      const fetched = async (): Promise<string> => {
        const to = path.join(await folder(), name);
        paths.push(to);
        return this.#blobs.localFile(one.key, to, signal);
      };
      const { mediaId, kind, use, contentType, bytes, sha256, width, height, durationMs, altText } = one;
      return {
        ...{ mediaId, kind, use, contentType, bytes, sha256, width, height, durationMs, altText },
        file: () => {
          here ??= fetched();
          return here;
        },
        url: (expiresInMs, host) => {
          const expiresAt = new Date(Date.now() + expiresInMs);
          return host === 'own'
            ? this.#blobs.presignOwn(one.key, { expiresAt })
            : this.#blobs.presignGet(one.key, { contentType, expiresAt });
        },
      };
    };
    return {
      media: media.map(lent),
      cover: cover === null ? null : lent(cover),
      bytes: async () => {
        const sizes = await Promise.all(paths.map(sizeOf));
        return sizes.reduce((sum, size) => sum + size, 0);
      },
      close: async () => used?.clear(call).catch(() => undefined),
    };
  }

  async close(): Promise<void> {
    await (await this.#folder?.catch(() => null))?.close();
  }

  /** After a failure the next call tries to open the folder again, because a full disk may have room by then. */
  #opened(): Promise<WorkFolder> {
    if (this.#folder !== null) return this.#folder;
    const opening = WorkFolder.open(this.#root);
    this.#folder = opening;
    opening.catch(() => {
      this.#folder = null;
    });
    return opening;
  }
}

/** Bytes of a file; 0 if it does not exist. */
const sizeOf = (file: string): Promise<number> =>
  stat(file).then(
    ({ size }) => size,
    () => 0,
  );

const orNull = (text: string | null, most: number): string | null =>
  text === null ? null : wellFormedText(text, most);

/** Cuts a network's answer to the lengths of the event schema, and makes its text well-formed. */
export const cleanFailure = (failure: Failure): Failure => ({
  category: failure.category,
  code: wellFormedText(failure.code, 100) || 'unknown',
  message: wellFormedText(failure.message, 2000),
  platformCode: orNull(failure.platformCode, 200),
  platformMessage: orNull(failure.platformMessage, 2000),
  retryable: failure.retryable,
  actor: failure.actor,
  mediaId: failure.mediaId,
});

/** Whether a reply can use this text as the id of its parent post. */
export const isId = (text: string): boolean => text !== '' && wellFormedText(text, 500) === text;

export const cleanPresent = (
  said: { readonly externalId: string; readonly permalink: string | null; readonly publishedAt: string },
  now: string,
) => ({
  externalId: wellFormedText(said.externalId, 500) || 'unknown',
  permalink: orNull(said.permalink, 2000),
  publishedAt: wellFormedInstant(said.publishedAt) ?? now,
});
