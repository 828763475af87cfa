import type { BlobStore } from '#contracts/ports/blob-store.ts';
import type { MediaRow, NeedRow } from '#projections/models/media.ts';
import { progressOf } from '#runtime/work/progress.ts';
import type { Platform } from '#schemas/common.ts';
import type { Call } from '../operation.ts';
import { unavailable } from './blobs.ts';

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
export const progressOfRows = ({ deps }: Pick<Call, 'deps'>, rows: readonly MediaRow[]) =>
  progressOf(
    deps.pool,
    rows.filter((row) => Object.values(readinessOf(row)).includes('preparing')).map(({ id }) => id),
  );

/**
 * @param progress 0–1 of the rendition in work; null when no worker has reported any
 * @throws Unavailable while the blob store does not answer
 */
export const showMedia = async ({ deps, now }: Asking, row: MediaRow, progress: number | null = null) => {
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
