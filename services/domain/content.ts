import type { Platform } from '#schemas/common.ts';
import type { PostBody } from '#schemas/post.ts';
import { capabilities } from './platforms/index.ts';

/** What one network gets of a post: its variant where there is one, else the base; the segments of a thread before both. */

export interface Part {
  readonly content: string;
  readonly mediaIds: readonly string[];
}

export interface PlatformContent {
  /** What is published one after the other: one part, or the segments of a thread, each a reply to the one before. */
  readonly parts: readonly [Part, ...Part[]];
  /** As the caller sent them, unknown keys too. */
  readonly overrides: Readonly<Record<string, unknown>>;
}

/** Members of a body that decide what its targets show. */
export type ContentBody = Pick<PostBody, 'content' | 'mediaIds' | 'variants' | 'thread'>;

export const goesOutAsThread = (body: Pick<ContentBody, 'thread'>, platform: Platform): boolean =>
  body.thread !== null && capabilities(platform).thread;

export const contentFor = (body: ContentBody, platform: Platform): PlatformContent => {
  const variant = body.variants.find((one) => one.platform === platform);
  const whole: Part = {
    // An empty override is a real empty caption; only null means the base.
    content: variant?.contentOverride ?? body.content,
    mediaIds: variant?.mediaIdsOverride ?? body.mediaIds,
  };
  const [head = whole, ...replies] = goesOutAsThread(body, platform) ? (body.thread?.segments ?? []) : [];
  return { parts: [head, ...replies], overrides: variant?.overrides ?? {} };
};
