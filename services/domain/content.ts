import type { Platform } from '#schemas/common.ts';
import { excerptLength, type PostBody } from '#schemas/post.ts';
import { capabilities, showsNothing } from './platforms/index.ts';

/** The content of a post for one network: the segments of a thread, else the network's variant, else the base. */

export interface ContentSegment {
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
