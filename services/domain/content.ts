import type { Platform } from '#schemas/common.ts';
import type { PostBody } from '#schemas/post.ts';

/** What one network gets of a post: its variant where there is one, else the base. */

export interface PlatformContent {
  readonly content: string;
  readonly mediaIds: readonly string[];
  /** As the caller sent them, unknown keys too. */
  readonly overrides: Readonly<Record<string, unknown>>;
}

export const contentFor = (body: PostBody, platform: Platform): PlatformContent => {
  const variant = body.variants.find((one) => one.platform === platform);
  return {
    // An empty override is a real empty caption; only null means the base.
    content: variant?.contentOverride ?? body.content,
    mediaIds: variant?.mediaIdsOverride ?? body.mediaIds,
    overrides: variant?.overrides ?? {},
  };
};
