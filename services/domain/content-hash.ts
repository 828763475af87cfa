import { hash } from 'node:crypto';
import type { PostBody } from '#schemas/post.ts';
import type { PlannedTarget } from '#schemas/target.ts';
import { canonicalJson } from './canonical.ts';
import { mediaIdsOf } from './post-media.ts';

/**
 * The hash of what an approver sees and what goes out: texts, files, disclosure and accounts, never times. A post that is
 * moved keeps its approval; a post of which one character changes needs another.
 */

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

export const contentHashOf = (
  body: PostBody,
  targets: readonly Pick<PlannedTarget, 'accountId'>[],
  /** SHA-256 of the bytes of each file; of one whose bytes are not known yet the id counts alone. */
  sha256Of: (mediaId: string) => string | null,
): string => hash('sha256', canonicalJson(covered(body, targets, sha256Of)), 'hex');
