/**
 * Media files in a folder that every process of the installation shares. Presigned URLs lead to our own api, which
 * serves them with `served.ts`.
 */
import { randomBytes } from 'node:crypto';
import { access, constants, open, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import {
  BlobError,
  type BlobInfo,
  type BlobRange,
  type BlobStore,
  type PresignedPut,
  type ServedBlobs,
} from '#contracts/ports/blob-store.ts';
import { type BlobRecord, DiskFiles, isMissing } from './disk-files.ts';
import { type WriteOptions, writeBody } from './disk-write.ts';
import { checkKey } from './keys.ts';
import { serve } from './served.ts';
import { SignedUrls, type UrlSecrets } from './signed-urls.ts';

export interface DiskBlobsOptions {
  readonly root: string;
  readonly secrets: UrlSecrets;
  /**
   * The beginning of presigned URLs, without a slash at the end; the api that serves them may know it only once it
   * listens.
   */
  readonly origin: () => string;
  /** Milliseconds since the epoch. */
  readonly clock?: () => number;
}

const READ_BYTES = 256 << 10;

export class DiskBlobs implements BlobStore {
  readonly served: ServedBlobs;
  readonly #files: DiskFiles;
  readonly #urls: SignedUrls;
  readonly #root: string;
  readonly #origin: () => string;

  constructor({ root, secrets, origin, clock }: DiskBlobsOptions) {
    this.#root = root;
    this.#files = new DiskFiles(root);
    this.#urls = new SignedUrls(secrets, clock);
    this.#origin = origin;
    this.served = serve(this, (...of) => this.put(...of), this.#urls);
  }

  put(
    key: string,
    body: Readable | Uint8Array,
    { contentType, bytes, ...more }: WriteOptions & { readonly contentType: string },
  ): Promise<BlobInfo> {
    return asBlobError(async () => {
      checkKey(key);
      // A body may break before the first read: the read reports it.
      if (body instanceof Readable) body.on('error', () => undefined);
      const { file, handle } = await this.#files.incoming();
      const record = { version: randomBytes(16).toString('hex'), contentType, bytes };
      try {
        try {
          await writeBody(handle, body instanceof Readable ? body : Readable.from([body]), { bytes, ...more });
        } finally {
          await handle.close();
        }
        await this.#files.commit(key, file, record);
      } catch (error) {
        await rm(file, { force: true });
        throw error;
      }
      return infoOf(key, record);
    });
  }

  head(key: string): Promise<BlobInfo | null> {
    return asBlobError(() => this.#ifThere(key, (info) => Promise.resolve(info)));
  }

  get(
    key: string,
    { range, signal }: { readonly range?: BlobRange; readonly signal?: AbortSignal } = {},
  ): Promise<{ readonly info: BlobInfo; readonly body: Readable }> {
    return asBlobError(async () => {
      const found = await this.#ifThere(key, async (info, file) => {
        const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW);
        const { start = 0, end = info.bytes - 1 } = range ?? {};
        if (range !== undefined && (start > end || start >= info.bytes)) {
          await handle.close();
          throw new BlobError('refused', 'the range is not in the file');
        }
        const bounds = info.bytes === 0 ? {} : { start, end };
        const body = handle.createReadStream({ ...bounds, highWaterMark: READ_BYTES, ...(signal ? { signal } : {}) });
        return { info, body };
      });
      return found ?? missing();
    });
  }

  localFile(key: string, to: string, signal?: AbortSignal): Promise<string> {
    return asBlobError(async () => {
      signal?.throwIfAborted();
      return (await this.#ifThere(key, (_info, file) => this.#files.linkFor(file, to))) ?? missing();
    });
  }

  copy(from: string, to: string, etag: string): Promise<BlobInfo> {
    return asBlobError(async () => {
      const record = await this.#files.record(from);
      if (record === null) return missing();
      if (record.version !== etag) throw new BlobError('precondition', 'the source has changed');
      try {
        await this.#files.share(from, to, record);
      } catch (error) {
        // The bytes disappeared between reading the record and linking: the file was replaced or deleted.
        if (isMissing(error)) throw new BlobError('precondition', 'the source has changed', { cause: error });
        throw error;
      }
      return infoOf(to, record);
    });
  }

  delete(key: string): Promise<void> {
    return asBlobError(() => this.#files.remove(key));
  }

  async presignPut(
    key: string,
    {
      contentType,
      bytes,
      expiresAt,
    }: { readonly contentType: string; readonly bytes: number; readonly expiresAt: Date },
  ): Promise<PresignedPut> {
    const url = this.#urls.sign({ method: 'PUT', key: checkKey(key), contentType, bytes }, expiresAt);
    return {
      url: `${this.#origin()}${this.served.prefix}${url}`,
      headers: { 'Content-Type': contentType, 'Content-Length': String(bytes) },
    };
  }

  async presignGet(
    key: string,
    // The stored Content-Type is served.
    options: { readonly contentType: string; readonly expiresAt: Date; readonly fileName?: string },
  ): Promise<string> {
    const { expiresAt, fileName = null } = options;
    const url = this.#urls.sign({ method: 'GET', key: checkKey(key), fileName }, expiresAt);
    return `${this.#origin()}${this.served.prefix}${url}`;
  }

  presignOwn(key: string, { expiresAt }: { readonly expiresAt: Date }): Promise<string> {
    return this.presignGet(key, { contentType: '', expiresAt });
  }

  ping(): Promise<void> {
    return asBlobError(async () => {
      await this.#files.ready();
      await access(this.#root, constants.R_OK | constants.W_OK);
    });
  }

  async close(): Promise<void> {}

  /** Tries twice: the bytes that a record named may have been replaced before they were opened. */
  async #ifThere<T>(key: string, use: (info: BlobInfo, file: string) => Promise<T>): Promise<T | null> {
    for (let looks = 0; ; looks += 1) {
      const record = await this.#files.record(key);
      if (record === null) return null;
      try {
        const file = this.#files.dataPath(key, record);
        await access(file, constants.R_OK);
        return await use(infoOf(key, record), file);
      } catch (error) {
        if (!isMissing(error)) throw error;
        if (looks > 0) return null;
      }
    }
  }
}

const infoOf = (key: string, { version, contentType, bytes }: BlobRecord): BlobInfo => ({
  key,
  bytes,
  contentType,
  etag: version,
});

const missing = (): never => {
  throw new BlobError('not_found', 'there is no such blob');
};

/** The cause is for the log; the caller learns only that the folder failed. */
const asBlobError = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Error && 'syscall' in error) {
      throw new BlobError('unavailable', 'the folder of the media files cannot be read or written', { cause: error });
    }
    throw error;
  }
};
