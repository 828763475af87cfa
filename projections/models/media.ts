import type { Knex } from 'knex';
import type { Pool, PoolClient } from 'pg';
import { kindOfType } from '#domain/media-types.ts';
import type { Platform } from '#schemas/common.ts';
import type { mediaPublic } from '#schemas/http/webhook-events/media.ts';
import type { MediaEvent, MediaFailure, MediaKind, MediaNeed, MediaProbe } from '#schemas/media.ts';
import { change, defineModel, type Row } from '../engine/model.ts';
import type { Publisher } from '../engine/publisher.ts';
import { asRow, type NewestFirst, newestFirst, type Page, type PageOf, substring } from '../engine/rows.ts';
import { view } from '../shapes.ts';

/** Assets of the content library, with the result of each rendition. URLs are signed when a row is rendered. */

/** A file in the blob store. */
interface StoredFile {
  readonly key: string;
  readonly contentType: string;
  readonly bytes: number;
}

interface SizedFile extends StoredFile {
  readonly width: number | null;
  readonly height: number | null;
  readonly durationMs: number | null;
}

/** `wanted`: requested; `planned`: being made; `fits`: the source is published unchanged. */
export type NeedRow = MediaNeed &
  (
    | { readonly status: 'wanted' | 'planned' | 'fits' }
    | { readonly status: 'ready'; readonly file: SizedFile }
    | { readonly status: 'failed'; readonly failure: MediaFailure }
  );

interface Own {
  /** `deleted`: no caller sees the asset any more; `removed`: its files are gone too. */
  readonly status: 'pending' | 'transcoding' | 'transcoded' | 'failed' | 'quarantined' | 'deleted' | 'removed';
  readonly client_id: string | null;
  readonly folder: string | null;
  readonly name: string;
  readonly alt_text: string | null;
  /** As claimed by the caller until the probe of the bytes replaces it; null where the caller claimed nothing. */
  readonly kind: MediaKind | null;
  /** Claimed by the caller, later as found in the bytes. */
  readonly content_type: string | null;
  /** Claimed by the caller, later as found in the bytes. */
  readonly size: { readonly bytes: number } | null;
  /** Where the source file lies, once it is stored where no caller can change it. */
  readonly source: (StoredFile & { readonly sha256: string }) | null;
  readonly probe: MediaProbe | null;
  readonly platforms: readonly Platform[];
  /** Whether the needs of `platforms` were planned. */
  readonly planned: boolean;
  readonly needs: readonly NeedRow[];
  readonly poster: StoredFile | null;
  readonly failure: MediaFailure | null;
  /** Null: an upload slot was offered and the asset is not registered yet; no list shows it. */
  readonly registered_at: string | null;
}
export type MediaRow = Row<Own>;

const unknown = {
  source: null,
  probe: null,
  planned: false,
  needs: [],
  poster: null,
  failure: null,
} as const;

const sameNeed = (a: MediaNeed, b: MediaNeed): boolean => a.platform === b.platform && a.use === b.use;
/** In the order in which the needs first appeared. */
const withNeeds = (row: Own, changed: readonly NeedRow[]): Own => ({
  ...row,
  needs: [
    ...row.needs.map((need) => changed.find((one) => sameNeed(one, need)) ?? need),
    ...changed.filter((one) => !row.needs.some((need) => sameNeed(one, need))),
  ],
});

/** An asset of the content library. The payload never shows where its file lies or where it came from. */

interface Asset {
  readonly clientId: string | null;
  /** As announced for the upload; null for an import, which was not probed yet. */
  readonly contentType: string | null;
  readonly bytes: number | null;
}

const mediaPublisher: Publisher<typeof mediaPublic, MediaEvent, Asset> = {
  rules: {
    MediaUploadOffered: 'the caller has the answer; an asset begins when it is registered',
    MediaRegistered: [
      {
        type: 'media.registered',
        ofStream: ({ id, occurredAt }, { clientId, contentType, bytes }) => ({
          assetId: id,
          clientId,
          status: 'pending',
          contentType,
          bytes,
          registeredAt: occurredAt,
        }),
      },
    ],
    MediaImportRequested: [
      {
        type: 'media.registered',
        ofEvent: ({ id, data, occurredAt }) => ({
          assetId: id,
          clientId: data.clientId,
          status: 'pending',
          contentType: null,
          bytes: null,
          registeredAt: occurredAt,
        }),
      },
    ],
    MediaStored: 'an intermediate step; media.ready or media.failed reports the result',
    MediaProbed: 'an intermediate step; media.ready or media.failed reports the result',
    MediaRenditionsRequested: 'an intermediate step; each rendition is published when it is ready',
    MediaRenditionsPlanned: 'a source that fits needs no rendition; each rendition is published when it is ready',
    MediaRenditionReady: [
      {
        type: 'media.variant.ready',
        ofStream: ({ id, data }, { clientId }) => ({
          assetId: id,
          clientId,
          platform: data.platform,
          use: data.use,
          contentType: data.contentType,
          bytes: data.bytes,
          width: data.width,
          height: data.height,
          durationMs: data.durationMs,
        }),
      },
    ],
    MediaRenditionFailed: [
      {
        type: 'media.variant.failed',
        ofStream: ({ id, data: { platform, use, failure } }, { clientId }) => ({
          assetId: id,
          clientId,
          platform,
          use,
          failure,
        }),
      },
    ],
    // Of the stream, which names the client: an endpoint that is limited to clients gets those of their assets.
    MediaTranscoded: [{ type: 'media.ready', ofStream: ({ id }) => ({ assetId: id, status: 'transcoded' }) }],
    MediaFailed: [
      {
        type: 'media.failed',
        ofStream: ({ id, data }, { clientId }) => ({ assetId: id, clientId, status: 'failed', failure: data.failure }),
      },
    ],
    MediaDeleted: [
      {
        type: 'media.deleted',
        ofStream: ({ id, occurredAt }, { clientId }) => ({ assetId: id, clientId, deletedAt: occurredAt }),
      },
    ],
    MediaFilesRemoved: 'media.deleted has reported the deletion',
    MediaQuarantined: [
      {
        type: 'media.quarantined',
        ofStream: ({ id, data }, { clientId }) => ({
          assetId: id,
          clientId,
          status: 'quarantined',
          failure: data.failure,
        }),
      },
    ],
  },
  evolve: (subject, event) => {
    switch (event.type) {
      case 'MediaUploadOffered': {
        const { clientId, contentType, bytes } = event.data;
        return { clientId, contentType, bytes };
      }
      case 'MediaRegistered':
        return subject === null ? null : { ...subject, clientId: event.data.clientId };
      case 'MediaImportRequested':
        return { clientId: event.data.clientId, contentType: null, bytes: null };
      default:
        return subject;
    }
  },
};

export const media = defineModel<Own, MediaEvent>({
  name: 'media',
  kind: 'media',
  publisher: mediaPublisher,
  columns: {
    status: 'text',
    client_id: 'uuid',
    folder: 'text',
    name: 'text',
    alt_text: 'text',
    kind: 'text',
    content_type: 'text',
    size: 'jsonb',
    source: 'jsonb',
    probe: 'jsonb',
    platforms: 'text[]',
    planned: 'bool',
    needs: 'jsonb',
    poster: 'jsonb',
    failure: 'jsonb',
    registered_at: 'timestamptz',
  },
  indexes: [
    { on: '(workspace_id, created_at, id) where registered_at is not null' },
    { on: '(client_id, created_at, id) where registered_at is not null' },
    { on: '(workspace_id, kind, created_at, id) where registered_at is not null' },
    { on: '(workspace_id, folder, created_at, id) where registered_at is not null and folder is not null' },
    // Upload slots that were never used, the oldest first.
    { on: '(created_at, id) where registered_at is null' },
    // Deleted assets whose files must still be removed.
    { on: `(updated_at, id) where status = 'deleted'` },
  ],
  on: {
    MediaUploadOffered: (_row, { fileName, clientId, folder, contentType, bytes }) => ({
      status: 'pending',
      client_id: clientId,
      folder,
      name: fileName,
      alt_text: null,
      kind: kindOfType(contentType),
      content_type: contentType,
      size: { bytes },
      platforms: [],
      registered_at: null,
      ...unknown,
    }),
    MediaRegistered: change((row, { name, clientId, folder, altText, platforms }, { metadata }) => ({
      ...row,
      status: 'transcoding',
      client_id: clientId,
      folder,
      name,
      alt_text: altText,
      platforms,
      registered_at: metadata.occurredAt,
    })),
    MediaImportRequested: (_row, { name, clientId, folder, altText, platforms }, { metadata }) => ({
      status: 'transcoding',
      client_id: clientId,
      folder,
      name,
      alt_text: altText,
      kind: null,
      content_type: null,
      size: null,
      platforms,
      registered_at: metadata.occurredAt,
      ...unknown,
    }),
    MediaStored: change((row, { kind, key, contentType, bytes, sha256 }) => ({
      ...row,
      kind,
      content_type: contentType,
      size: { bytes },
      source: { key, contentType, bytes, sha256 },
    })),
    MediaProbed: change((row, { probe }) => ({ ...row, probe })),
    MediaRenditionsRequested: change((row, { needs }) =>
      withNeeds(
        row,
        needs.flatMap(({ platform, use }) =>
          row.needs.some((known) => sameNeed(known, { platform, use })) ? [] : [{ platform, use, status: 'wanted' }],
        ),
      ),
    ),
    MediaRenditionsPlanned: change((row, { initial, needs }) => ({
      ...withNeeds(
        row,
        needs.map(({ platform, use, rendition }) => ({
          platform,
          use,
          status: rendition === null ? 'fits' : 'planned',
        })),
      ),
      planned: row.planned || initial,
    })),
    MediaRenditionReady: change((row, { platform, use, key, contentType, bytes, width, height, durationMs }) =>
      withNeeds(row, [
        { platform, use, status: 'ready', file: { key, contentType, bytes, width, height, durationMs } },
      ]),
    ),
    MediaRenditionFailed: change((row, { platform, use, failure }) =>
      withNeeds(row, [{ platform, use, status: 'failed', failure }]),
    ),
    MediaTranscoded: change((row, { poster }) => ({
      ...row,
      status: 'transcoded',
      poster: poster === null ? null : { key: poster.key, contentType: poster.contentType, bytes: poster.bytes },
    })),
    MediaFailed: change((row, { failure }) => ({ ...row, status: 'failed', failure })),
    MediaQuarantined: change((row, { failure }) => ({ ...row, status: 'quarantined', failure })),
    // No list shows it, as with an asset that was never registered.
    MediaDeleted: change((row) => ({ ...row, status: 'deleted', registered_at: null })),
    MediaFilesRemoved: change((row) => ({ ...row, status: 'removed' })),
  },
});

/** Whether the asset is hidden from every list and every call of the library. */
export const isMediaHidden = async (pool: Pool, id: string): Promise<boolean> => {
  const { rows } = await pool.query(
    `select status in ('deleted', 'removed') as hidden from ${view('media')} as media where id = $1`,
    [id],
  );
  return rows[0]?.hidden === true;
};

/** Returns an upload slot without a registered asset too. */
export const getMedia = async (knex: Knex, workspaceId: string, id: string): Promise<MediaRow | null> => {
  const row = await knex(`${view('media')} as media`)
    .where({ id, workspace_id: workspaceId })
    .first();
  return row === undefined ? null : asRow(media, row);
};

/** The workspace's assets among these ids, by id. */
export const mediaByIds = async (
  knex: Knex,
  workspaceId: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, MediaRow>> => {
  const rows: Record<string, unknown>[] = await knex(`${view('media')} as media`)
    .where({ workspace_id: workspaceId })
    .whereRaw('id = any(?::uuid[])', [[...ids]]);
  return new Map(rows.map((row) => [String(row.id), asRow(media, row)]));
};

interface MediaFilters {
  /** Only assets of these clients, and those of the whole workspace. */
  readonly clientIds?: readonly string[];
  readonly kind?: MediaKind;
  readonly folder?: string;
  readonly clientId?: string;
  /** Part of the name, case-insensitive. */
  readonly search?: string;
}

/** Newest first. */
export const listMedia = async (
  knex: Knex,
  workspaceId: string,
  filters: MediaFilters,
  page: PageOf<NewestFirst>,
): Promise<Page<MediaRow>> => {
  const query = knex(`${view('media')} as media`)
    .where({ workspace_id: workspaceId })
    .whereNotNull('registered_at');
  if (filters.kind !== undefined) query.where({ kind: filters.kind });
  if (filters.folder !== undefined) query.where({ folder: filters.folder });
  if (filters.clientId !== undefined) query.where({ client_id: filters.clientId });
  if (filters.clientIds !== undefined)
    query.whereRaw('(client_id is null or client_id = any(?::uuid[]))', [[...filters.clientIds]]);
  if (filters.search !== undefined) query.whereILike('name', substring(filters.search));
  return newestFirst(query, media, page);
};

export interface MediaSize {
  readonly id: string;
  readonly workspaceId: string;
  /** Bytes of all files of the asset, each file once; 0 for an asset that was refused. */
  readonly bytes: number;
}

/**
 * Assets of all workspaces whose file was probed, in the order of their ids.
 * @param after null: from the first asset
 */
export const mediaSizes = async (
  db: Pool | PoolClient,
  after: string | null,
  limit: number,
): Promise<readonly MediaSize[]> => {
  const { rows } = await db.query<{ id: string; workspaceId: string; bytes: string }>(
    `select m.id::text, m.workspace_id::text as "workspaceId", files.bytes
     from ${view('media')} m cross join lateral (
       select coalesce(sum((file ->> 'bytes')::int8), 0) as bytes from (
         select distinct on (file ->> 'key') file from (
           select m.source as file
           union all select m.poster
           union all select need -> 'file' from jsonb_array_elements(m.needs) need
         ) named where file ->> 'key' is not null and m.status = 'transcoded'
       ) once
     ) files
     where ($1::uuid is null or m.id > $1) and m.status in ('transcoded', 'failed', 'quarantined')
     order by m.id limit $2`,
    [after, limit],
  );
  return rows.map((row) => ({ ...row, bytes: Number(row.bytes) }));
};

/** The revisions of the rows of these files, by id; without those that have no row yet. */
export const revisionsOfMedia = async (pool: Pool, ids: readonly string[]): Promise<ReadonlyMap<string, number>> => {
  const { rows } = await pool.query<{ id: string; revision: number }>({
    name: 'media-revisions',
    text: `select id::text as id, revision::int as revision from ${view('media')} as media where id = any($1::uuid[])`,
    values: [[...ids]],
  });
  return new Map(rows.map(({ id, revision }) => [id, revision]));
};
