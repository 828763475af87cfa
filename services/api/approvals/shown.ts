import { contentFor, firstCommentOf } from '#domain/content.ts';
import { rulesOf, sentText, titleFor } from '#domain/platforms/index.ts';
import { accountsByIds } from '#projections/accounts.ts';
import { type TargetNow, targetsNow } from '#projections/approvals.ts';
import { type MediaRow, mediaByIds } from '#projections/media.ts';
import type { Platform } from '#schemas/common.ts';
import type { ShownFile, ShownNetwork } from '../approval-html.ts';
import type { Deps } from '../deps.ts';
import { unavailable } from '../media/blobs.ts';
import { snapshotOf } from './show.ts';

/** What a guest sees of a post: its text, files and times on each network. */

interface About {
  readonly approvalId: string;
  readonly workspaceId: string;
  readonly state: { readonly about: { readonly postId: string; readonly postRevision: number } };
}

/** How long a file can be looked at after the page was opened. */
const readableMs = 60 * 60_000;
/** Files whose addresses one page makes. */
const maxFiles = 200;

export const networksOf = async (
  deps: Deps,
  { approvalId, workspaceId, state: { about } }: About,
  now: string,
): Promise<{ readonly networks: readonly ShownNetwork[]; readonly origins: readonly string[] }> => {
  const events = await deps.store.readStream(`post-${about.postId}`, about.postRevision);
  const post = snapshotOf({ id: approvalId }, events);
  const present = await targetsNow(
    deps.knex,
    workspaceId,
    post.targets.map(({ targetId }) => targetId),
  );
  const byPlatform = Map.groupBy(asTheyAre(post.targets, present), ({ platform }) => platform);
  const contents = [...byPlatform.keys()].map((platform) => ({ platform, ...contentFor(post, platform) }));
  const ids = [...new Set(contents.flatMap(({ segments }) => segments.flatMap(({ mediaIds }) => mediaIds)))];
  const rows = await mediaByIds(deps.knex, workspaceId, ids.slice(0, maxFiles));
  const accounts = await accountsByIds(
    deps.knex,
    workspaceId,
    post.targets.map(({ accountId }) => accountId),
  );
  const names = new Map(accounts.map((one) => [one.id, one.username ?? one.display_name ?? '']));
  const files = new Map(
    await Promise.all(
      ids.map(async (id) => [id, await fileOf(deps, rows.get(id), post.mediaAltTexts?.[id], now)] as const),
    ),
  );
  const networks = contents.map(({ platform, segments, overrides }): ShownNetwork => {
    const [head] = segments;
    return {
      platform,
      title: titleFor(platform, head.content, overrides),
      segments: segments.map(({ content, mediaIds }, at) => ({
        text: at === 0 ? sentText(rulesOf(platform).text, content, overrides).text : content,
        files: mediaIds.flatMap((id) => files.get(id) ?? []),
      })),
      firstComment: firstCommentOf(platform, overrides),
      isMadeWithAi: overrides.aiGenerated === true || (overrides.aiGenerated === undefined && post.aiDisclosure),
      targets: targetsOf(byPlatform, platform).map(({ accountId, scheduledAt, timezone }) => ({
        ...{ account: names.get(accountId) ?? '', scheduledAt, timezone, isPast: scheduledAt <= now },
      })),
    };
  });
  const addresses = [...files.values()].flatMap(({ url }) => (url === null ? [] : [new URL(url).origin]));
  return { networks, origins: [...new Set(addresses)] };
};

/** With their present times, and without those that were canceled since, unless all were: then the post is over. */
const asTheyAre = <Target extends { readonly targetId: string; readonly scheduledAt: string }>(
  asked: readonly Target[],
  present: ReadonlyMap<string, TargetNow>,
): readonly Target[] => {
  const timed = asked.map((one) => ({ ...one, scheduledAt: present.get(one.targetId)?.dueAt ?? one.scheduledAt }));
  const left = timed.filter(({ targetId }) => present.get(targetId)?.status !== 'canceled');
  return left.length === 0 ? asked : left;
};

const targetsOf = <Target>(byPlatform: ReadonlyMap<Platform, readonly Target[]>, platform: Platform) =>
  byPlatform.get(platform) ?? [];

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

const fileOf = async (
  { blobs }: Deps,
  row: MediaRow | undefined,
  altText: string | undefined,
  now: string,
): Promise<ShownFile> => {
  const own = {
    ...{ kind: row?.kind ?? 'document', altText: altText ?? row?.alt_text ?? null },
    name: row?.name ?? 'a file that was deleted',
  };
  const file = row === undefined || unshown.includes(row.status) ? null : viewed(row);
  if (row === undefined || file === null) return { ...own, url: null, isShowable: false, size: null, posterUrl: null };
  const expiresAt = new Date(Date.parse(now) + readableMs);
  const addressOf = ({ key, contentType }: Pick<Viewed, 'key' | 'contentType'>) =>
    unavailable(() => blobs.presignGet(key, { expiresAt, fileName: row.name, contentType }));
  return {
    ...{ ...own, url: await addressOf(file), isShowable: showable.includes(file.contentType), size: file.size },
    posterUrl: row.poster === null ? null : await addressOf(row.poster),
  };
};
