import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { BlobStore } from '#contracts/ports/blob-store.ts';
import { type Asset, type MediaCommand, type MediaFile, type MediaState, media } from '#domain/media.ts';
import type { CommandContext, DomainStore, Loaded } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { causedByNewest, serviceContext } from '#runtime/eventing/service-context.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import { type Lease, LeaseLost } from '#runtime/work/leases.ts';
import type { MediaJobs } from './jobs.ts';
import { blobKey } from './names.ts';

/** A file on this machine that will be stored. */
export interface LocalFile {
  readonly path: string;
  readonly contentType: string;
  readonly bytes: number;
  readonly sha256: string;
}

interface LeasedAssetOptions {
  readonly store: DomainStore;
  readonly blobs: BlobStore;
  readonly jobs: MediaJobs;
  readonly lease: Lease;
  readonly loaded: Loaded<MediaState>;
  /** A folder for this lease alone. */
  readonly folder: string;
  /** Aborts when the lease is lost or the process drains. */
  readonly signal: AbortSignal;
  readonly now: () => number;
}

/** An asset whose lease this worker holds: no other worker writes its outcomes and its blobs. */
export class LeasedAsset {
  readonly id: string;
  readonly workspaceId: string;
  readonly folder: string;
  readonly signal: AbortSignal;
  readonly blobs: BlobStore;
  /** Noted keys: their blobs are written, or may be. */
  readonly written: string[];
  readonly #options: LeasedAssetOptions;
  readonly #local = new Map<string, Promise<string>>();
  #loaded: Loaded<MediaState>;

  constructor(id: string, written: readonly string[], options: LeasedAssetOptions) {
    this.id = id;
    this.#options = options;
    this.#loaded = options.loaded;
    this.workspaceId = options.loaded.events[0]?.metadata.workspaceId ?? '';
    this.folder = options.folder;
    this.signal = options.signal;
    this.blobs = options.blobs;
    this.written = [...written];
  }

  get state(): MediaState {
    return this.#loaded.state;
  }

  get revision(): number {
    return this.#loaded.revision;
  }

  /** @throws when the asset's state allows no work */
  get asset(): Asset {
    const { state } = this;
    if (state.status === 'none' || state.status === 'offered' || state.status === 'deleted')
      throw new BrokenInvariant(`asset ${this.id} is ${state.status}`);
    return state;
  }

  /**
   * A caller may request renditions meanwhile, so after a conflict the command is decided again on the newer state; a
   * repeated command yields no event. A worker that lost the lease appends nothing.
   */
  async record(command: MediaCommand): Promise<void> {
    const { store, lease } = this.#options;
    this.#loaded = await execute(store, media, this.id, command, this.#context(), {
      loaded: this.#loaded,
      guard: () => {
        if (!lease.isHeld()) throw new LeaseLost(this.id);
      },
    });
  }

  /**
   * Notes the key before it writes the blob. If the process dies before the stream names the blob, the worker that
   * finishes the asset deletes every noted key that the stream does not name.
   */
  async put(name: string, file: LocalFile): Promise<MediaFile> {
    const { path: from, contentType, bytes, sha256 } = file;
    const key = blobKey(this.workspaceId, this.id, name, sha256, contentType);
    await this.note(key);
    await this.blobs.put(key, createReadStream(from), { contentType, bytes, signal: this.signal });
    return { key, contentType, bytes, sha256 };
  }

  async note(key: string): Promise<void> {
    const { jobs, lease } = this.#options;
    this.signal.throwIfAborted();
    if (!(await jobs.note(this.id, [key])) || !lease.isHeld()) throw new LeaseLost(this.id);
    this.written.push(key);
  }

  /** The blob as a read-only file on this machine; fetched once. */
  local(key: string): Promise<string> {
    const known = this.#local.get(key);
    if (known !== undefined) return known;
    const to = path.join(this.folder, path.posix.basename(key));
    const fetched = this.blobs.localFile(key, to, this.signal);
    fetched.catch(() => this.#local.delete(key));
    this.#local.set(key, fetched);
    return fetched;
  }

  #context(): CommandContext {
    const cause = causedByNewest(this.#loaded.events, this.workspaceId, this.id);
    return serviceContext('media', cause, this.#options.now());
  }
}

export const sha256Of = async (file: string, signal: AbortSignal): Promise<string> => {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash, { signal });
  return hash.digest('hex');
};
