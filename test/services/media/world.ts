/** A world with media workers: files are uploaded or imported as the api leaves them, workers are started by the test. */
import { randomUUID } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { Registry } from 'prom-client';
import type { BlobStore } from '#contracts/ports/blob-store.ts';
import type { Log } from '#contracts/ports/log.ts';
import { type Asset, type MediaCommand, type MediaState, media, withoutQuery } from '#domain/media.ts';
import { standardMediaQuota } from '#domain/media-types.ts';
import { openTranscoder } from '#infra/ffmpeg/index.ts';
import { download } from '#runtime/egress/download.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { createLogger } from '#runtime/process/telemetry.ts';
import { WorkFolder } from '#runtime/process/work-folder.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import type { MediaNeed } from '#schemas/media.ts';
import type { MediaDeps } from '#services/media/deps.ts';
import { startMedia } from '#services/media/media.ts';
import { usesOf } from '#services/media/uses.ts';
import { ImportUrls } from '#services/workflows/import-urls.ts';
import { MediaUsage } from '#services/workflows/media-usage.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { type openPublishing, PublishingWorld, quick, type Running } from '#test/support/publishing.ts';
import { until } from '#test/support/until.ts';

type Parts = Pick<Awaited<ReturnType<typeof openPublishing>>, 'eventStore' | 'store' | 'codec' | 'pool'>;

export const importUrlsOf = (pool: Parts['pool']): ImportUrls =>
  new ImportUrls(pool, new Secrets(`v1:${Buffer.alloc(32, 7).toString('base64')}`));

/** Slots of a worker, as many for downloads as in production. */
export const mediaConfig = (mediaConcurrency: number): MediaDeps['config'] => ({
  ...{ leaseTtlMs: quick.leaseTtlMs, mediaConcurrency },
  ...{ mediaDownloads: 32, mediaDownloadsPerWorkspace: 4 },
});

/** What a worker is made of, in this process or another; its folder must be closed. */
export const workerOf = async (
  parts: Parts & { readonly blobs: BlobStore },
  log: Log,
  root: string,
  over: Partial<MediaDeps> = {},
): Promise<{ readonly deps: MediaDeps; readonly folder: WorkFolder }> => {
  const folder = await WorkFolder.open(path.join(root, 'media'));
  const logger = createLogger('media', process.env.LOG_LEVEL ?? 'silent');
  const guard = new EgressGuard({ privateTargets: ['*'], ownHosts: () => [] });
  const transcoder = openTranscoder({
    ffmpegPath: process.env.FFMPEG_PATH ?? null,
    workDir: await folder.of('transcoder'),
    warn: () => undefined,
  });
  const { eventStore, store, codec, pool, blobs } = parts;
  const deps: MediaDeps = {
    ...{ log, eventStore, store, codec, pool, blobs, transcoder, folder, logger },
    importUrls: importUrlsOf(parts.pool),
    usage: new MediaUsage(parts.pool, standardMediaQuota),
    uses: usesOf(pool, log, 0),
    fetchFile: (url, options) => download(guard, url, { ...options, maxResumes: 1, resumeDelayMs: 20 }),
    config: mediaConfig(2),
    pollMs: 100,
    backOffMs: 50,
    ...over,
  };
  return { deps, folder };
};

export interface Upload {
  readonly contentType: string;
  readonly platforms?: readonly Platform[];
  readonly workspaceId?: string;
  /** Default: as long as it is. */
  readonly claimedBytes?: number;
}

export class MediaWorld {
  readonly posts: PublishingWorld;

  static async open(): Promise<MediaWorld> {
    const posts = await PublishingWorld.open((await preparedDatabase()).url);
    return new MediaWorld(posts);
  }

  private constructor(posts: PublishingWorld) {
    this.posts = posts;
  }

  close(): Promise<void> {
    return this.posts.close();
  }

  /** One more worker. Their folders differ: they are of one process. */
  async start(over: Partial<MediaDeps> = {}): Promise<Running & { readonly registry: Registry }> {
    const { posts } = this;
    const registry = new Registry();
    const root = path.join(posts.folder, 'work', randomUUID());
    const { deps, folder } = await workerOf(posts, posts.log, root, { registry, ...over });
    const running = posts.run(async (signal) => {
      await startMedia(deps, signal).done;
      await folder.close();
    });
    return { ...running, registry };
  }

  async command(id: string, command: MediaCommand, workspaceId: string = this.posts.workspaceId): Promise<void> {
    await execute(this.posts.store, media, id, command, { ...this.posts.context(), workspaceId });
  }

  async offer(body: Uint8Array, { contentType, workspaceId = this.posts.workspaceId, claimedBytes }: Upload) {
    const id = randomUUID();
    const key = `${workspaceId}/${id}/upload`;
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    const bytes = claimedBytes ?? body.length;
    const about = { fileName: 'file', clientId: null, folder: null };
    await this.command(id, { type: 'Offer', ...about, contentType, bytes, key, expiresAt }, workspaceId);
    await this.posts.blobs.put(key, body, { contentType, bytes: body.length });
    return { id, key };
  }

  /** Uploaded and registered. */
  async upload(body: Uint8Array, upload: Upload): Promise<string> {
    const { id } = await this.offer(body, upload);
    const own = upload.platforms ?? platforms;
    await this.command(id, { type: 'Register', ...described, platforms: [...own] }, upload.workspaceId);
    return id;
  }

  async import(url: string, own: readonly Platform[] = platforms, workspaceId?: string): Promise<string> {
    const id = randomUUID();
    const source = randomUUID();
    const more = url.includes('?') ? { source } : {};
    if (url.includes('?')) await importUrlsOf(this.posts.pool).keep(source, id, url);
    const about = { ...described, platforms: [...own], ...more };
    await this.command(id, { type: 'RequestImport', url: withoutQuery(url), ...about }, workspaceId);
    return id;
  }

  async need(id: string, ...needs: readonly MediaNeed[]): Promise<void> {
    await this.command(id, { type: 'RequestRenditions', needs: [...needs], for: { kind: 'post', id: randomUUID() } });
  }

  async state(id: string): Promise<MediaState> {
    return (await this.posts.store.load(media, id)).state;
  }

  story(id: string): Promise<readonly string[]> {
    return this.posts.story(`media-${id}`);
  }

  /** Waits for the status, and until nothing is left to do for it. */
  async settled(id: string, status: MediaState['status'], ms = 60_000): Promise<Asset> {
    let state = await this.state(id);
    const there = async () => {
      state = await this.state(id);
      const refused = state.status === 'failed' || state.status === 'quarantined';
      if (refused && state.status !== status) throw new Error(`it is ${state.status}`);
      return state.status === status && (await this.job(id)) === null;
    };
    await until(`${id} is ${status}`, there, { withinMs: ms }).catch(async () => {
      throw new Error(
        `${id} never was ${status}: ${(await this.story(id)).join(' ')} ${JSON.stringify(await this.job(id))}`,
      );
    });
    if (state.status === 'none' || state.status === 'offered' || state.status === 'deleted')
      throw new Error(`it is ${state.status}`);
    return state;
  }

  async job(id: string): Promise<{ attempts: number; failures: number; fetches: number } | null> {
    const sql = 'select attempts, failures, fetches from ops.media_jobs where asset_id = $1';
    return (await this.posts.pool.query(sql, [id])).rows[0] ?? null;
  }

  /** Keys of the blobs of an asset. */
  async keys(id: string, workspaceId: string = this.posts.workspaceId): Promise<readonly string[]> {
    const names = await readdir(path.join(this.posts.folder, 'blobs', workspaceId, id)).catch(() => []);
    return names
      .filter((name) => !name.includes('~'))
      .map((name) => `${workspaceId}/${id}/${name}`)
      .sort();
  }

  /** Keys that its stream names: what must be there, and nothing else. */
  async named(id: string): Promise<readonly string[]> {
    const state = await this.state(id);
    if (state.status !== 'transcoding' && state.status !== 'transcoded') return [];
    const ready = [...state.needs.values()].flatMap((need) => (need.status === 'ready' ? [need.file.key] : []));
    const others = [state.stored?.key, state.poster?.key].filter((key) => key !== undefined);
    return [...new Set([...ready, ...others])].sort();
  }
}

const described = { name: 'file', clientId: null, folder: null, altText: null };
