import type { ShownItem } from '#domain/shown-content.ts';
import { type TargetNow, targetsNow } from '#projections/models/approvals.ts';
import type { MediaRow } from '#projections/models/media.ts';
import type { Platform } from '#schemas/common.ts';
import type { Deps } from '../call/deps.ts';
import type { Call } from '../call/operation.ts';
import { unavailable } from '../media/checks.ts';
import { contentOf, namesNow } from './content.ts';
import { snapshotOf } from './show.ts';

export interface ShownFile {
  readonly kind: string;
  /** Null: the file cannot be shown here. */
  readonly url: string | null;
  /** False: no browser can be relied on to show the file, so the page links to it. */
  readonly isShowable: boolean;
  /** The size keeps the place of the picture free until it is loaded. */
  readonly size: { readonly width: number; readonly height: number } | null;
  /** Of a video: the frame that stands for it. */
  readonly posterUrl: string | null;
}

export interface CoveredTarget {
  readonly platform: Platform;
  readonly account: string;
  readonly scheduledAt: string;
  readonly timezone: string;
  readonly isPast: boolean;
}

export interface ShownContent {
  /** Everything that the decision covers. */
  readonly items: readonly ShownItem[];
  /** By id. */
  readonly files: ReadonlyMap<string, ShownFile>;
  readonly targets: readonly CoveredTarget[];
}

interface About {
  readonly approvalId: string;
  readonly workspaceId: string;
  readonly state: { readonly about: { readonly postId: string; readonly postRevision: number } };
}

/** How long a file can be looked at after the page was opened. */
const readableMs = 60 * 60_000;
/** Files whose addresses one page makes; of the others it shows name, size and hash. */
const maxFiles = 200;

/** What a guest sees of a post: everything that the decision covers, its files, and its times as they are now. */
export const shownPostOf = async (
  deps: Deps,
  { approvalId, workspaceId, state: { about } }: About,
  { now, realNow }: Pick<Call, 'now' | 'realNow'>,
): Promise<{ readonly post: ShownContent; readonly origins: readonly string[] }> => {
  const events = await deps.store.readStream(`post-${about.postId}`, about.postRevision);
  const { post: body, others } = snapshotOf({ id: approvalId }, events);
  const present = await targetsNow(
    deps.knex,
    workspaceId,
    body.targets.map(({ targetId }) => targetId),
  );
  const { left, canceled } = asTheyAre(body.targets, present);
  const asked = { body, targets: left, others: [...others, ...canceled] };
  const { items, files: rows } = await contentOf(namesNow(deps.knex, workspaceId), asked);
  const names = new Map(items.flatMap(({ kind, id, value }) => (kind === 'account' ? [[id, value]] : [])));
  const ids = [...new Set(items.flatMap(({ kind, id }) => (kind === 'file' || kind === 'cover' ? [id ?? ''] : [])))];
  const shown = ids.slice(0, maxFiles).map(async (id) => [id, await fileOf(deps, rows.get(id), realNow)] as const);
  const files = new Map(await Promise.all(shown));
  const targets = left.map(({ platform, accountId, scheduledAt, timezone }) => ({
    ...{ platform, account: names.get(accountId) ?? '', scheduledAt, timezone, isPast: scheduledAt <= now },
  }));
  const addresses = [...files.values()].flatMap(({ url }) => (url === null ? [] : [new URL(url).origin]));
  return { post: { items, files, targets }, origins: [...new Set(addresses)] };
};

/** With their present times, and without those that were canceled since, unless all were: then the post is over. */
const asTheyAre = <Target extends { readonly targetId: string; readonly scheduledAt: string }>(
  asked: readonly Target[],
  present: ReadonlyMap<string, TargetNow>,
): { readonly left: readonly Target[]; readonly canceled: readonly Target[] } => {
  const timed = asked.map((one) => ({ ...one, scheduledAt: present.get(one.targetId)?.dueAt ?? one.scheduledAt }));
  const isCanceled = ({ targetId }: Target): boolean => present.get(targetId)?.status === 'canceled';
  const left = timed.filter((one) => !isCanceled(one));
  return left.length === 0 ? { left: asked, canceled: [] } : { left, canceled: timed.filter(isCanceled) };
};

/** What every browser of today shows by itself. Phones make pictures and videos in other formats too, such as HEIC. */
const showable: readonly string[] = [
  ...['image/jpeg', 'image/png', 'image/gif', 'image/webp', 'image/avif'],
  ...['video/mp4', 'video/webm'],
];

interface Viewed {
  readonly key: string;
  readonly contentType: string;
  readonly size: ShownFile['size'];
}

const sizeOf = (width: number | null | undefined, height: number | null | undefined): ShownFile['size'] =>
  width && height ? { width, height } : null;

/** The file as it was uploaded; where a browser does not show it, what a network gets of it. */
const viewed = ({ source, probe, needs }: MediaRow): Viewed | null => {
  if (source === null) return null;
  const original = { ...source, size: sizeOf(probe?.width, probe?.height) };
  if (showable.includes(source.contentType)) return original;
  const made = needs.flatMap((need) => (need.status === 'ready' ? [need.file] : []));
  // The cover of a video is a picture.
  const [medium] = source.contentType.split('/');
  const other = made.find(({ contentType: type }) => showable.includes(type) && type.startsWith(`${medium}/`));
  return other === undefined ? original : { ...other, size: sizeOf(other.width, other.height) };
};

/** Harmful, or without files. */
const unshown: readonly MediaRow['status'][] = ['quarantined', 'deleted', 'removed'];

const fileOf = async ({ blobs }: Deps, row: MediaRow | undefined, now: string): Promise<ShownFile> => {
  const kind = row?.kind ?? 'document';
  const file = row === undefined || unshown.includes(row.status) ? null : viewed(row);
  if (row === undefined || file === null) return { kind, url: null, isShowable: false, size: null, posterUrl: null };
  const expiresAt = new Date(Date.parse(now) + readableMs);
  const addressOf = ({ key, contentType }: Pick<Viewed, 'key' | 'contentType'>) =>
    unavailable(() => blobs.presignGet(key, { expiresAt, fileName: row.name, contentType }));
  return {
    ...{ kind, url: await addressOf(file), isShowable: showable.includes(file.contentType), size: file.size },
    posterUrl: row.poster === null ? null : await addressOf(row.poster),
  };
};
