import type { BlobStore } from '#contracts/ports/blob-store.ts';
import { birthOf } from '#domain/decider.ts';
import { isDeleted, media } from '#domain/media.ts';
import { rowOf } from '#projections/engine/model.ts';
import type { NewestFirst } from '#projections/engine/rows.ts';
import {
  type MediaRow,
  media as mediaModel,
  type NeedRow,
  getMedia as queryMedia,
  listMedia as queryMediaList,
} from '#projections/models/media.ts';
import { openPostsWith } from '#projections/models/post-bodies.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { Unavailable } from '#runtime/eventing/domain-store.ts';
import { progressOf } from '#runtime/work/progress.ts';
import type { Platform } from '#schemas/common.ts';
import { IdParams } from '#schemas/http/common.ts';
import { Media, MediaDeletion, MediaQuery } from '#schemas/http/media.ts';
import { withinLimit } from '../call/access.ts';
import { listPage, newestFirst } from '../call/cursor.ts';
import { type Call, operation } from '../call/operation.ts';
import { notFound, Refusal } from '../call/refusal.ts';
import { ownStreamToDelete, readRow, writtenRow } from '../call/rows.ts';
import { unavailable } from './checks.ts';
import { deletedExample, exampleMedia, mediaTag } from './examples.ts';

/** An asset as its owner sees it. Addresses are presigned when it is shown, one for each file. */

const readableMs = 15 * 60_000;

type Asking = Pick<Call, 'deps' | 'now'>;
type Variant = 'preparing' | 'ready' | 'failed' | 'not_needed';

interface File {
  readonly key: string;
  readonly contentType: string;
}

const addresses = (blobs: BlobStore, row: MediaRow, now: string) => {
  const options = { expiresAt: new Date(Date.parse(now) + readableMs), fileName: row.name };
  const made = new Map<string, Promise<string>>();
  return ({ key, contentType }: File): Promise<string> => {
    const known = made.get(key) ?? unavailable(() => blobs.presignGet(key, { ...options, contentType }));
    made.set(key, known);
    return known;
  };
};

const statusOf = (row: MediaRow, need: NeedRow): Variant => {
  if (need.status === 'failed' || isRefused(row)) return 'failed';
  if (need.status === 'ready') return 'ready';
  return need.status === 'fits' ? 'not_needed' : 'preparing';
};

/** Neither the file nor its renditions are shown. */
const isRefused = ({ status }: MediaRow): boolean => status === 'failed' || status === 'quarantined';

/**
 * The readiness of each platform over all of its uses; `preparing` for a platform that was requested and is not planned
 * yet, `not_needed` for one that was requested and takes no files of this kind.
 */
const readinessOf = (row: MediaRow): Partial<Record<Platform, Variant>> => {
  const all = [...new Set([...row.platforms, ...row.needs.map(({ platform }) => platform)])];
  const order: readonly Variant[] = ['preparing', 'ready', 'not_needed'];
  return Object.fromEntries(
    all.map((platform) => {
      const has = new Set(row.needs.filter((need) => need.platform === platform).map((need) => statusOf(row, need)));
      if (!row.planned && row.platforms.includes(platform)) has.add('preparing');
      if (has.size === 0) has.add('not_needed');
      return [platform, isRefused(row) ? 'failed' : (order.find((status) => has.has(status)) ?? 'failed')];
    }),
  );
};

const nothing = { contentType: null, width: null, height: null, durationMs: null, bytes: null, url: null };

const figures = async (row: MediaRow, need: NeedRow, address: (file: File) => Promise<string>) => {
  if (isRefused(row)) return nothing;
  if (need.status === 'ready') {
    const { contentType, bytes, width, height, durationMs } = need.file;
    return { contentType, width, height, durationMs, bytes, url: await address(need.file) };
  }
  if (need.status !== 'fits' || row.source === null) return nothing;
  const { contentType, bytes } = row.source;
  const { width, height, durationMs } = row.probe ?? nothing;
  return { contentType, width, height, durationMs, bytes, url: await address(row.source) };
};

/** Progress of the assets that a worker is preparing. */
const progressOfRows = ({ deps }: Pick<Call, 'deps'>, rows: readonly MediaRow[]) =>
  progressOf(
    deps.pool,
    rows.filter((row) => Object.values(readinessOf(row)).includes('preparing')).map(({ id }) => id),
  );

/**
 * @param progress 0–1 of the rendition in work; null when no worker has reported any
 * @throws Unavailable while the blob store does not answer
 */
const showMedia = async ({ deps, now }: Asking, row: MediaRow, progress: number | null = null) => {
  const address = addresses(deps.blobs, row, now);
  const shown = async (file: File | null): Promise<string | null> =>
    file === null || isRefused(row) ? null : address(file);
  return {
    id: row.id,
    object: 'media' as const,
    status: row.status,
    publishable: row.status === 'transcoded',
    kind: row.kind,
    clientId: row.client_id,
    folder: row.folder,
    name: row.name,
    contentType: row.content_type,
    bytes: row.size?.bytes ?? null,
    sha256: row.source?.sha256 ?? null,
    width: row.probe?.width ?? null,
    height: row.probe?.height ?? null,
    durationMs: row.probe?.durationMs ?? null,
    altText: row.alt_text,
    url: await shown(row.source),
    posterUrl: await shown(row.poster),
    failure: row.failure,
    readiness: readinessOf(row),
    progress,
    variants: await Promise.all(
      row.needs.map(async (need) => ({
        platform: need.platform,
        use: need.use,
        status: statusOf(row, need),
        ...(await figures(row, need, address)),
        failure: need.status === 'failed' ? need.failure : isRefused(row) ? row.failure : null,
      })),
    ),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    revision: row.revision,
  };
};

export const getMedia = operation({
  id: 'getMedia',
  method: 'GET',
  path: '/media/{id}',
  tag: mediaTag,
  summary: 'Get an asset, also one that is not uploaded yet',
  description:
    'Wait for `publishable` before you publish. You need not wait for a platform among the variants: a rendition that a post lacks is made before the post is due.',
  scope: 'media.read',
  limited: 'ids',
  idempotent: 'none',
  cost: 1,
  etag: true,
  params: IdParams,
  answer: Media,
  codes: [],
  example: { data: exampleMedia },
  handle: async (call) => {
    const { deps, workspaceId } = call;
    const row = await readRow(call, 'media', ['media'], (id) => queryMedia(deps.knex, workspaceId, id));
    // A deleted asset can no longer be read.
    if (row.status === 'deleted' || row.status === 'removed') throw notFound('media');
    const progress = await progressOfRows(call, [row]);
    return { data: await showMedia(call, row, progress.get(row.id) ?? null), revision: row.revision };
  },
});

export const listMedia = operation({
  id: 'listMedia',
  method: 'GET',
  path: '/media',
  tag: mediaTag,
  summary: 'List assets, newest first',
  description: 'An upload is listed from its registration on.',
  scope: 'media.read',
  limited: 'filtered',
  idempotent: 'none',
  cost: 1,
  query: MediaQuery,
  answer: Media,
  list: true,
  codes: [],
  example: { data: exampleMedia },
  handle: async (call) => {
    await call.behind(['media']);
    const { kind, folder, clientId, search } = call.query;
    const filters = {
      ...withinLimit(call.principal),
      ...(kind === undefined ? {} : { kind }),
      ...(folder === undefined ? {} : { folder }),
      ...(clientId === undefined ? {} : { clientId }),
      ...(search === undefined ? {} : { search }),
    };
    return listPage('listMedia', call, {
      rows: (page: { readonly after: NewestFirst | null; readonly limit: number }, knex) =>
        queryMediaList(knex, call.workspaceId, filters, page),
      keyOf: newestFirst,
      beside: async (rows) => {
        const progress = await progressOfRows(call, rows);
        const shown = rows.map(
          async (row) => [row.id, await showMedia(call, row, progress.get(row.id) ?? null)] as const,
        );
        return new Map(await Promise.all(shown));
      },
      show: ({ id }, media) => media.get(id),
    });
  },
});

/** Posts that an answer names. */
const maxNamed = 10;

/**
 * The append is the deletion: if we die before it, nothing has happened; after it, the media worker removes the files.
 * A post that takes the asset at the same time, which this call cannot see, keeps the files until it is published.
 */
export const deleteMedia = operation({
  id: 'deleteMedia',
  method: 'DELETE',
  path: '/media/{id}',
  tag: mediaTag,
  summary: 'Delete an asset that no post needs',
  description:
    'The call is refused while a draft, or a post that is not published yet, needs the asset; `postIds` names such posts. After the deletion every other operation answers 404, and deleting the asset again answers the same. The service removes its files, and gives their bytes back, within some minutes. A failed target that needs the asset fails again when it is retried.',
  scope: 'media.manage',
  limited: 'owned',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  answer: MediaDeletion,
  codes: ['media_in_use'],
  example: { data: deletedExample },
  handle: async (call) => {
    const { id } = call.params;
    const { events, ...left } = await call.stream(media).act({
      guard: ownStreamToDelete(call, 'media', isDeleted),
      accept: async ({ state }) => {
        if (!isDeleted(state)) await requireUnused(call, id);
      },
      command: () => ({ type: 'Delete' }),
    });
    const deletion = events.find(({ type }) => type === 'MediaDeleted');
    const deletedAt = deletion?.metadata.occurredAt ?? call.now;
    const createdAt = birthOf(media, events)?.metadata.occurredAt ?? deletedAt;
    const revision = deletion?.revision ?? left.revision;
    return {
      data: { id, object: 'media_deletion', deletedAt, createdAt, updatedAt: deletedAt, revision },
      revision,
    };
  },
});

/** @throws Refusal 409 that names posts which need the asset */
const requireUnused = async (
  { deps, workspaceId, behind, principal }: Pick<Call, 'deps' | 'workspaceId' | 'behind' | 'principal'>,
  id: string,
): Promise<void> => {
  if (await behind(['posts'])) throw new Unavailable('The read model of posts is behind.');
  const posts = await openPostsWith(deps.pool, workspaceId, id, maxNamed);
  if (posts.length > 0) {
    const { clientIds } = principal;
    const postIds = posts.flatMap((one) => (clientIds?.includes(one.clientId) === false ? [] : [one.id]));
    throw new Refusal('media_in_use', 'Posts that are not out yet need it.', { extra: { postIds } });
  }
};

/** The asset as these events leave it, rendered by the read model's own fold, and what to wait for. */
export const acceptedMedia = async (call: Pick<Call, 'deps' | 'now'>, events: readonly DecodedEvent[]) => {
  const row = writtenRow(rowOf(mediaModel, events));
  return { ...(await showMedia(call, row)), readyEvent: 'media.ready' as const };
};
