/**
 * Media files in a bucket of any S3: AWS, or a gateway. One PUT takes at most 5 GiB, the largest file that the platform
 * accepts; nothing is sent in parts.
 */
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import {
  CopyObjectCommand,
  CreateBucketCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  PutBucketCorsCommand,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import {
  BlobError,
  type BlobInfo,
  type BlobRange,
  type BlobStore,
  type PresignedPut,
  type ServedBlobs,
} from '#contracts/ports/blob-store.ts';
import { disposition } from './disposition.ts';
import { checkKey } from './keys.ts';
import { serve } from './served.ts';
import { SignedUrls, type UrlSecrets } from './signed-urls.ts';

export interface S3BlobsOptions {
  readonly endpoint: string;
  /** In presigned URLs: the address by which callers and networks reach the same S3. */
  readonly publicEndpoint: string;
  readonly bucket: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly secrets: UrlSecrets;
  /** The beginning of addresses that our own api serves, without a slash at the end. */
  readonly origin: () => string;
}

export class S3Blobs implements BlobStore {
  readonly served: ServedBlobs;
  readonly #urls: SignedUrls;
  readonly #origin: () => string;
  readonly #client: S3Client;
  readonly #public: S3Client;
  readonly #bucket: string;
  #ready: Promise<void> | null = null;

  constructor({ endpoint, publicEndpoint, bucket, region, accessKeyId, secretAccessKey, ...own }: S3BlobsOptions) {
    const clientOf = (at: string) =>
      new S3Client({
        endpoint: at,
        region,
        credentials: { accessKeyId, secretAccessKey },
        // A gateway has one host name for all buckets.
        forcePathStyle: true,
        // It would write to the console; the errors say what went wrong.
        logger: { trace: quiet, debug: quiet, info: quiet, warn: quiet, error: quiet },
        // Milliseconds to connect, and without a byte: a server that hangs counts as unavailable.
        requestHandler: { connectionTimeout: 5_000, socketTimeout: 60_000 },
        // Newer checksums travel as trailers, which gateways support less well; lengths and etags are checked all the
        // same.
        requestChecksumCalculation: 'WHEN_REQUIRED',
        responseChecksumValidation: 'WHEN_REQUIRED',
      });
    this.#client = clientOf(endpoint);
    this.#public = clientOf(publicEndpoint);
    this.#bucket = bucket;
    this.#urls = new SignedUrls(own.secrets);
    this.#origin = own.origin;
    // Callers upload into S3 itself: no URL of our api writes there.
    this.served = serve(this, null, this.#urls);
  }

  async put(
    key: string,
    body: Readable | Uint8Array,
    {
      contentType,
      bytes,
      signal,
    }: { readonly contentType: string; readonly bytes: number; readonly signal?: AbortSignal },
  ): Promise<BlobInfo> {
    const at = this.#at(key);
    if (!(body instanceof Readable) && body.length !== bytes) throw wrongLength();
    // A body may break before the first read: the read reports it.
    if (body instanceof Readable) body.on('error', () => undefined);
    await this.#bucketIsThere();
    const source = body instanceof Readable ? exactly(body, bytes) : body;
    // NOTE: the client does not watch the stream it sends: when it breaks, the client would wait for ever.
    const broken = new AbortController();
    if (source instanceof Readable) source.on('error', (error) => broken.abort(error));
    const given = signal === undefined ? broken.signal : AbortSignal.any([signal, broken.signal]);
    const command = new PutObjectCommand({ ...at, Body: source, ContentType: contentType, ContentLength: bytes });
    const { ETag = '' } = await asBlobError(
      () => this.#client.send(command, { abortSignal: given }),
      signal,
      broken.signal,
    );
    return { key, bytes, contentType, etag: ETag };
  }

  async head(key: string): Promise<BlobInfo | null> {
    try {
      const command = new HeadObjectCommand(this.#at(key));
      return infoOf(key, await asBlobError(() => this.#client.send(command)));
    } catch (error) {
      if (error instanceof BlobError && error.code === 'not_found') return null;
      throw error;
    }
  }

  async get(
    key: string,
    { range, signal }: { readonly range?: BlobRange; readonly signal?: AbortSignal } = {},
  ): Promise<{ readonly info: BlobInfo; readonly body: Readable }> {
    const part = range === undefined ? {} : { Range: `bytes=${range.start}-${range.end}` };
    const command = new GetObjectCommand({ ...this.#at(key), ...part });
    const found = await asBlobError(() => this.#client.send(command, signal ? { abortSignal: signal } : {}), signal);
    if (!(found.Body instanceof Readable)) throw new BlobError('unavailable', 'the S3 server sent no body');
    const whole = Number(/\/(\d+)$/.exec(found.ContentRange ?? '')?.[1] ?? found.ContentLength ?? 0);
    return { info: infoOf(key, { ...found, ContentLength: whole }), body: found.Body };
  }

  async localFile(key: string, to: string, signal?: AbortSignal): Promise<string> {
    const { info, body } = await this.get(key, signal ? { signal } : {});
    try {
      await pipeline(exactly(body, info.bytes), createWriteStream(to, { mode: 0o644 }), signal ? { signal } : {});
    } catch (error) {
      await rm(to, { force: true });
      signal?.throwIfAborted();
      throw new BlobError('unavailable', 'the file could not be fetched', { cause: error });
    }
    return to;
  }

  async copy(from: string, to: string, etag: string): Promise<BlobInfo> {
    const source = { CopySource: `${this.#bucket}/${checkKey(from)}`, CopySourceIfMatch: etag };
    await asBlobError(() => this.#client.send(new CopyObjectCommand({ ...this.#at(to), ...source })));
    const made = await this.head(to);
    if (made === null) throw new BlobError('unavailable', 'the copied file was not found');
    return made;
  }

  async delete(key: string): Promise<void> {
    await asBlobError(() => this.#client.send(new DeleteObjectCommand(this.#at(key)))).catch((error: unknown) => {
      if (!(error instanceof BlobError && error.code === 'not_found')) throw error;
    });
  }

  async presignPut(
    key: string,
    {
      contentType,
      bytes,
      expiresAt,
    }: { readonly contentType: string; readonly bytes: number; readonly expiresAt: Date },
  ): Promise<PresignedPut> {
    const at = this.#at(key);
    // The bucket must exist before the first caller: a caller may not create it.
    await this.#bucketIsThere();
    const command = new PutObjectCommand({ ...at, ContentType: contentType, ContentLength: bytes });
    const url = await getSignedUrl(this.#public, command, {
      ...until(expiresAt),
      // Signed headers bind: with another type or length the server computes another signature.
      signableHeaders: new Set(['host', 'content-type', 'content-length']),
    });
    return { url, headers: { 'Content-Type': contentType, 'Content-Length': String(bytes) } };
  }

  async presignGet(
    key: string,
    options: { readonly contentType: string; readonly expiresAt: Date; readonly fileName?: string },
  ): Promise<string> {
    const { contentType, expiresAt, fileName = null } = options;
    const command = new GetObjectCommand({
      ...this.#at(key),
      ResponseContentType: contentType,
      ResponseContentDisposition: disposition(contentType, fileName),
    });
    return getSignedUrl(this.#public, command, until(expiresAt));
  }

  async presignOwn(key: string, { expiresAt }: { readonly expiresAt: Date }): Promise<string> {
    const url = this.#urls.sign({ method: 'GET', key: checkKey(key), fileName: null }, expiresAt);
    return `${this.#origin()}${this.served.prefix}${url}`;
  }

  async ping(): Promise<void> {
    await this.#bucketIsThere();
    await asBlobError(() => this.#client.send(new HeadBucketCommand({ Bucket: this.#bucket })));
  }

  async close(): Promise<void> {
    this.#client.destroy();
    this.#public.destroy();
  }

  #at(key: string): { readonly Bucket: string; readonly Key: string } {
    return { Bucket: this.#bucket, Key: checkKey(key) };
  }

  #bucketIsThere(): Promise<void> {
    this.#ready ??= this.#makeBucket().catch((error: unknown) => {
      this.#ready = null;
      throw error;
    });
    return this.#ready;
  }

  /** Two processes may create it at once: the second one finds it. */
  async #makeBucket(): Promise<void> {
    const Bucket = this.#bucket;
    try {
      await asBlobError(() => this.#client.send(new HeadBucketCommand({ Bucket })));
      return;
    } catch (error) {
      if (!(error instanceof BlobError && error.code === 'not_found')) throw error;
    }
    await asBlobError(() => this.#client.send(new CreateBucketCommand({ Bucket }))).catch((error: unknown) => {
      if (!/^BucketAlready/.test(nameOf(error instanceof BlobError ? error.cause : error))) throw error;
    });
    const rule = {
      AllowedOrigins: ['*'],
      AllowedMethods: ['PUT', 'GET', 'HEAD'],
      AllowedHeaders: ['*'],
      ExposeHeaders: ['ETag'],
    };
    const cors = new PutBucketCorsCommand({ Bucket, CORSConfiguration: { CORSRules: [rule] } });
    // Pages may upload straight into it, as into our own folder. A server without CORS still serves all other clients.
    await asBlobError(() => this.#client.send(cors)).catch((error: unknown) => {
      if (!(error instanceof BlobError && error.code === 'refused')) throw error;
    });
  }
}

const infoOf = (
  key: string,
  found: {
    readonly ContentLength?: number | undefined;
    readonly ContentType?: string | undefined;
    readonly ETag?: string | undefined;
  },
): BlobInfo => ({
  key,
  bytes: found.ContentLength ?? 0,
  contentType: found.ContentType ?? 'application/octet-stream',
  etag: found.ETag ?? '',
});

/** Signature version 4 counts whole seconds, from 1 to 7 days, from the moment of signing. */
const until = (expiresAt: Date): { readonly expiresIn: number; readonly signingDate: Date } => {
  const signingDate = new Date(Math.min(Date.now(), expiresAt.getTime() - 1000));
  const seconds = Math.floor((expiresAt.getTime() - signingDate.getTime()) / 1000);
  return { expiresIn: Math.min(7 * 86_400, seconds), signingDate };
};

const wrongLength = (): BlobError => new BlobError('refused', 'the body differs from its declared length');

/**
 * The body, or an error before its last piece when its length is wrong: the server then has too few bytes and stores
 * nothing.
 */
const exactly = (body: Readable, bytes: number): Readable => {
  const counted = async function* (): AsyncGenerator<Uint8Array> {
    let taken = 0;
    let checked: Uint8Array | null = null;
    for await (const chunk of body) {
      taken += chunk.length;
      if (taken > bytes) throw wrongLength();
      if (checked !== null) yield checked;
      checked = chunk;
    }
    if (taken < bytes) throw wrongLength();
    if (checked !== null) yield checked;
  };
  return Readable.from(counted(), { objectMode: false, highWaterMark: 1 << 20 });
};

const quiet = (): void => {};

const nameOf = (error: unknown): string => (error instanceof Error ? error.name : '');

interface FromServer {
  readonly $metadata?: { readonly httpStatusCode?: number };
}

/**
 * Turns an error of the client into one of ours. The client's message stays in the cause: it may name hosts and keys.
 */
const asBlobError = async <T>(work: () => Promise<T>, signal?: AbortSignal, broken?: AbortSignal): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    signal?.throwIfAborted();
    if (broken?.aborted) {
      const { reason } = broken;
      throw reason instanceof BlobError ? reason : new BlobError('refused', 'the body broke off', { cause: reason });
    }
    if (error instanceof BlobError) throw error;
    const status = (error as FromServer).$metadata?.httpStatusCode ?? 0;
    if (status === 404) throw new BlobError('not_found', 'there is no such blob', { cause: error });
    if (status === 412) throw new BlobError('precondition', 'the source has changed', { cause: error });
    if (status >= 400 && status < 500 && status !== 408 && status !== 429) {
      throw new BlobError('refused', `the S3 server refused the request with status ${status}`, { cause: error });
    }
    throw new BlobError('unavailable', 'the S3 server does not answer', { cause: error });
  }
};
