import type { FileHandle } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { BlobError } from '#contracts/ports/blob-store.ts';

/** Bytes collected while the previous ones are written: at most twice this waits in memory. */
const BATCH_BYTES = 1 << 20;
/** Every so many bytes the file is synced, so that the end of a long file does not sync all of it. */
const SYNC_BYTES = 256 << 20;

export interface WriteOptions {
  readonly bytes: number;
  /**
   * No other code holds the chunks: each is freed when it is written, not at the next garbage collection, 60 MB later.
   */
  readonly owned?: boolean;
  readonly signal?: AbortSignal;
}

/**
 * Writes exactly `bytes` of the body and has them on the disk when it resolves. A faulty body is left open, so that the
 * sender can be answered. The caller closes and deletes the file.
 * @throws BlobError `refused`: the body is longer or shorter, or broke off; the signal's reason
 */
export const writeBody = async (
  handle: FileHandle,
  body: Readable,
  { bytes, owned = false, signal }: WriteOptions,
): Promise<void> => {
  let taken = 0;
  let unsynced = 0;
  let batch: Uint8Array[] = [];
  let batched = 0;
  let writing: Promise<unknown> = Promise.resolve();
  let syncing: Promise<unknown> = Promise.resolve();
  const flush = (): void => {
    const now = batch;
    writing = writing.then(() => writeAll(handle, now)).then(() => (owned ? now.forEach(release) : undefined));
    unsynced += batched;
    if (unsynced >= SYNC_BYTES) {
      unsynced = 0;
      syncing = writing.then(() => handle.datasync());
    }
    // Awaited below; until then a rejection must not count as unhandled.
    for (const one of [writing, syncing]) one.catch(() => undefined);
    batch = [];
    batched = 0;
  };
  try {
    for await (const chunk of chunksOf(body, signal)) {
      taken += chunk.length;
      if (taken > bytes) throw new BlobError('refused', 'the body is longer than its declared length');
      batch.push(chunk);
      batched += chunk.length;
      if (batched < BATCH_BYTES) continue;
      await writing;
      // A disk slower than the sender slows the sender down: at most two batches wait.
      if (unsynced + batched >= SYNC_BYTES) await syncing;
      flush();
    }
    if (taken < bytes) throw new BlobError('refused', 'the body is shorter than its declared length');
    flush();
  } finally {
    // Also after a failure: the caller must not close the file under a write.
    await Promise.allSettled([writing, syncing]);
  }
  await Promise.all([writing, syncing]);
  await handle.datasync();
};

async function* chunksOf(body: Readable, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array> {
  const abort = (): void => void body.destroy();
  signal?.throwIfAborted();
  signal?.addEventListener('abort', abort, { once: true });
  try {
    for await (const chunk of body.iterator({ destroyOnReturn: false })) {
      yield typeof chunk === 'string' ? Buffer.from(chunk) : (chunk as Uint8Array);
    }
  } catch (error) {
    signal?.throwIfAborted();
    throw new BlobError('refused', 'the body broke off', { cause: error });
  } finally {
    signal?.removeEventListener('abort', abort);
  }
  // A stream that is destroyed from outside may end without an error.
  signal?.throwIfAborted();
}

/** A view into shared memory is left alone. */
const release = (chunk: Uint8Array): void => {
  if (chunk.byteLength === chunk.buffer.byteLength) (chunk.buffer as ArrayBuffer).transfer(0);
};

const writeAll = async (handle: FileHandle, buffers: readonly Uint8Array[]): Promise<void> => {
  if (buffers.length === 0) return;
  const total = buffers.reduce((sum, { length }) => sum + length, 0);
  const { bytesWritten } = await handle.writev([...buffers]);
  if (bytesWritten === total) return;
  // A nearly full disk takes a part; the next write gives the reason.
  const rest = Buffer.concat(buffers).subarray(bytesWritten);
  for (let at = 0; at < rest.length; ) at += (await handle.write(rest, at)).bytesWritten;
};
