import { randomUUID } from 'node:crypto';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import type { BlobStore } from '#contracts/ports/blob-store.ts';
import type { PublishMedia } from '#contracts/ports/platform.ts';
import { WorkFolder } from '#runtime/process/work-folder.ts';
import type { Outgoing, SegmentFiles } from './media-readiness.ts';

export interface Lent {
  readonly media: readonly PublishMedia[];
  readonly cover: PublishMedia | null;
  /** How many bytes have been fetched so far, those of files that are not whole yet too. Never rejects. */
  bytes(): Promise<number>;
  /** Removes what was fetched for it. Never rejects. */
  close(): Promise<void>;
}

/** Files lent to an adapter for one call: on this machine only when it asks for them. */
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
      // Each has a path of its own: the keys of two files may end alike.
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
        url: (expiresInMs) =>
          this.#blobs.presignGet(one.key, { contentType, expiresAt: new Date(Date.now() + expiresInMs) }),
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

  /** One that could not be opened is tried again: a full disk gets room. */
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

/** Bytes of a file; 0 where there is none. */
const sizeOf = (file: string): Promise<number> =>
  stat(file).then(
    ({ size }) => size,
    () => 0,
  );
