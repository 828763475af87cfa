import { hash } from 'node:crypto';
import type { Platform } from '#schemas/common.ts';
import type { MediaKind, MediaNeed } from '#schemas/media.ts';
import { excerptLength, type PostBody } from '#schemas/post.ts';
import type { PlannedTarget, StepName } from '#schemas/target.ts';
import { canonicalJson } from '../canonical.ts';
import { capabilities, coverFollows, showsNothing, takesCover, useOf } from '../platforms/index.ts';

/** The content of a post for one network: the segments of a thread, else the network's variant, else the base. */

interface ContentSegment {
  readonly content: string;
  readonly mediaIds: readonly string[];
}

export interface PlatformContent {
  /** A post that stands alone has one segment. In a thread each segment is a reply to the one before it. */
  readonly segments: readonly [ContentSegment, ...ContentSegment[]];
  /** As the caller sent them, unknown keys included. */
  readonly overrides: Readonly<Record<string, unknown>>;
}

/** Members of a body that decide what its targets show. */
export type ContentBody = Pick<PostBody, 'content' | 'mediaIds' | 'variants' | 'thread'>;

export const goesOutAsThread = (body: Pick<ContentBody, 'thread'>, platform: Platform): boolean =>
  body.thread !== null && capabilities(platform).thread;

export const contentFor = (body: ContentBody, platform: Platform): PlatformContent => {
  const variant = body.variants.find((one) => one.platform === platform);
  const whole: ContentSegment = {
    // An empty override is a caption that the caller wants empty; only null means the base.
    content: variant?.contentOverride ?? body.content,
    mediaIds: variant?.mediaIdsOverride ?? body.mediaIds,
  };
  const [head = whole, ...replies] = goesOutAsThread(body, platform) ? (body.thread?.segments ?? []) : [];
  return { segments: [head, ...replies], overrides: variant?.overrides ?? {} };
};

/** The beginning of a text, short enough to name its post. A surrogate pair is not cut in half. */
export const excerptOf = (text: string): string => {
  const last = text.charCodeAt(excerptLength - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? excerptLength - 1 : excerptLength);
};

/** The comment that follows the post; null: none is wanted, or the network takes none and the key is ignored. */
export const firstCommentOf = (platform: Platform, { firstComment }: PlatformContent['overrides']): string | null =>
  capabilities(platform).firstComment && typeof firstComment === 'string' && !showsNothing(firstComment)
    ? firstComment
    : null;

/** What follows the post, beside a comment. */
const afterStepsOf = (
  platform: Platform,
  overrides: PlatformContent['overrides'],
  body: Pick<PostBody, 'coverMediaId'> | null,
): readonly StepName[] => {
  // A poster frame is what the network shows anyway. Where a cover follows, no use depends on the kind of the file.
  return typeof body?.coverMediaId === 'string' && coverFollows(platform, useOf(platform, overrides, []))
    ? ['cover']
    : [];
};

/** What follows the post, due at the instant at which it is published. */
export const wantedAfter = (
  platform: Platform,
  overrides: PlatformContent['overrides'],
  body: Pick<PostBody, 'coverMediaId'> | null,
  now: string,
) => ({
  commentDueAt: firstCommentOf(platform, overrides) === null ? null : now,
  afterSteps: afterStepsOf(platform, overrides, body).map((step) => ({ step, dueAt: now })),
});

/** Every file a body names, each once. */
export const mediaIdsOf = (
  body: Pick<PostBody, 'mediaIds' | 'variants' | 'thread' | 'coverMediaId'>,
): readonly string[] => [
  ...new Set([
    ...body.mediaIds,
    ...body.variants.flatMap(({ mediaIdsOverride }) => mediaIdsOverride ?? []),
    ...(body.thread?.segments ?? []).flatMap(({ mediaIds }) => mediaIds),
    ...(body.coverMediaId === null ? [] : [body.coverMediaId]),
  ]),
];

interface TargetNeed {
  readonly mediaId: string;
  readonly need: MediaNeed;
}

/**
 * The renditions that one network needs before the post goes out, from this segment on, and the cover where the network
 * takes one.
 */
export const needsOfTarget = (
  body: PostBody,
  platform: Platform,
  kindOf: (id: string) => MediaKind,
  from = 0,
): readonly TargetNeed[] => {
  const { segments, overrides } = contentFor(body, platform);
  const needs = new Map<string, TargetNeed>();
  const add = (mediaId: string, need: MediaNeed): void => {
    needs.set(`${mediaId}/${need.use}`, { mediaId, need });
  };
  for (const { mediaIds } of segments.slice(from)) {
    const kinds = mediaIds.map(kindOf);
    const use = useOf(platform, overrides, kinds);
    for (const mediaId of mediaIds) add(mediaId, { platform, use });
    if (body.coverMediaId !== null && takesCover(platform, use, kinds)) {
      add(body.coverMediaId, { platform, use: 'cover' });
    }
  }
  return [...needs.values()];
};

/** The members that the hash covers of a body: `shownContent` shows each, and tsc reports one that it does not show. */
export const coveredBody = (body: PostBody) => {
  const { content, mediaIds, variants, thread, mediaAltTexts, coverMediaId, coverFrameMs, aiDisclosure } = body;
  return { content, mediaIds, variants, thread, mediaAltTexts, coverMediaId, coverFrameMs, aiDisclosure };
};

export type CoveredBody = ReturnType<typeof coveredBody>;

const covered = (
  body: PostBody,
  targets: readonly Pick<PlannedTarget, 'accountId'>[],
  sha256Of: (mediaId: string) => string | null,
) => ({
  ...coveredBody(body),
  files: [...new Set(mediaIdsOf(body))].sort().map((id) => [id, sha256Of(id)]),
  accounts: targets.map(({ accountId }) => accountId).sort(),
});

/** A member of what is hashed. */
export type CoveredMember = keyof ReturnType<typeof covered>;

/**
 * The hash of what an approver sees and what goes out: texts, files, disclosure and accounts, never times. A post that is
 * moved keeps its approval; a post of which one character changes needs another.
 */
export const contentHashOf = (
  body: PostBody,
  targets: readonly Pick<PlannedTarget, 'accountId'>[],
  /** SHA-256 of the bytes of each file; of one whose bytes are not known yet the id counts alone. */
  sha256Of: (mediaId: string) => string | null,
): string => hash('sha256', canonicalJson(covered(body, targets, sha256Of)), 'hex');
