import type { Json, PublishRequest } from '#contracts/ports/platform.ts';
import type { AccountState } from '#domain/account.ts';
import {
  coverFollows,
  effectiveOverrides,
  readingOf,
  replyOverrides,
  takesCoverFrame,
} from '#domain/platforms/index.ts';
import type { ScheduledTarget } from '#domain/post-target/target.ts';
import type { Segment } from '#schemas/target.ts';
import { noSegmentFiles, type SegmentFiles, type TargetFiles } from './media-readiness.ts';
import type { Content } from './related-streams.ts';

/** The adapter's request: for the next segment, or for the segment whose boundary was crossed. */

/** The segment that goes out next; null: the target is no thread. */
export const nextSegment = (target: ScheduledTarget, { segments }: Content): Segment | null =>
  segments.length === 1 ? null : { index: target.common.publishedSegments.length, of: segments.length };

/** The files of the segment that goes out next. */
export const filesOf = (target: ScheduledTarget, files: TargetFiles): SegmentFiles =>
  files[target.common.publishedSegments.length] ?? noSegmentFiles;

export const overridesOf = ({ common }: ScheduledTarget, { overrides }: Content, index: number) =>
  index === 0 ? overrides : replyOverrides(common.platform, overrides);

export const requestOf = (
  target: ScheduledTarget,
  content: Content,
  account: AccountState,
  files: Pick<PublishRequest, 'media' | 'cover'>,
  workspaceId: string,
): PublishRequest => ({
  workspaceId,
  ...textOf(target, content),
  targetId: target.common.targetId,
  attempt: target.common.attempts,
  platform: target.common.platform,
  account: accountOf(target, account),
  // Only known keys that apply, with defaults and the post's AI disclosure. The cast holds: the store keeps overrides as JSON.
  overrides: effectiveOverrides(
    target.common.platform,
    overridesOf(target, content, target.common.publishedSegments.length),
    content.aiDisclosure,
    files.media[0]?.use ?? null,
  ) as { readonly [key: string]: Json },
  aiDisclosure: content.aiDisclosure,
  media: files.media,
  cover:
    files.cover !== null && coverFollows(target.common.platform, files.media[0]?.use ?? 'feed') ? null : files.cover,
  coverFrameMs: takesCoverFrame(target.common.platform) ? (content.body?.coverFrameMs ?? null) : null,
  checkpoints: target.common.checkpoints
    .filter(({ segment }) => (segment?.index ?? 0) === target.common.publishedSegments.length)
    .map(({ attempt, step, data, deadline, madeNothing }) => ({
      ...{ attempt, step, data: data as Json, deadline },
      ...(madeNothing === undefined ? {} : { madeNothing }),
    })),
});

export const accountOf = ({ common }: ScheduledTarget, state: AccountState): PublishRequest['account'] => ({
  id: common.accountId,
  externalId: state.status === 'none' ? '' : state.externalId,
  username: state.status === 'none' ? null : state.username,
});

/** Whether the network shows posts of the account to us not at all: then only a person can look. */
export const isUnreadable = (target: ScheduledTarget, state: AccountState): boolean =>
  readingOf(target.common.platform, accountOf(target, state).externalId).readsBack === 'nothing';

const textOf = (target: ScheduledTarget, content: Content): Pick<PublishRequest, 'content' | 'thread'> => {
  const segment = nextSegment(target, content);
  const { content: text } = content.segments[segment?.index ?? 0] ?? content.segments[0];
  const parent = target.common.publishedSegments.at(-1);
  const [head] = target.common.publishedSegments;
  const replyTo = head && parent ? { parent: parent.externalId, head: head.externalId } : null;
  return { content: text, thread: segment && { ...segment, replyTo } };
};
