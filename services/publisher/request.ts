import type { Json, PublishRequest } from '#contracts/ports/platform.ts';
import type { AccountState } from '#domain/account.ts';
import { effectiveOverrides, replyOverrides } from '#domain/platforms/index.ts';
import type { Segment } from '#schemas/target.ts';
import { noSegmentFiles, type SegmentFiles, type TargetFiles } from './media-readiness.ts';
import type { Content, LiveTarget } from './related-streams.ts';

/** What an adapter is asked to publish: the segment that is next, or the one that a boundary was crossed for. */

/** The segment that goes out next; null: the target is no thread. */
export const nextSegment = (target: LiveTarget, { segments }: Content): Segment | null =>
  segments.length === 1 ? null : { index: target.segments.length, of: segments.length };

/** The files of the segment that goes out next. */
export const filesOf = (target: LiveTarget, files: TargetFiles): SegmentFiles =>
  files[target.segments.length] ?? noSegmentFiles;

export const overridesOf = ({ platform }: LiveTarget, { overrides }: Content, index: number) =>
  index === 0 ? overrides : replyOverrides(platform, overrides);

export const requestOf = (
  target: LiveTarget,
  content: Content,
  account: AccountState,
  files: Pick<PublishRequest, 'media' | 'cover'>,
): PublishRequest => ({
  ...textOf(target, content),
  targetId: target.targetId,
  attempt: target.attempts,
  platform: target.platform,
  account: {
    id: target.accountId,
    externalId: account.status === 'none' ? '' : account.externalId,
    username: account.status === 'none' ? null : account.username,
  },
  // Known keys alone, with defaults and the post's AI disclosure filled in. Stored as JSON and read back from it.
  overrides: effectiveOverrides(
    target.platform,
    overridesOf(target, content, target.segments.length),
    content.aiDisclosure,
  ) as { readonly [key: string]: Json },
  aiDisclosure: content.aiDisclosure,
  media: files.media,
  cover: files.cover,
  coverFrameMs: content.body?.coverFrameMs ?? null,
  checkpoints: target.checkpoints
    .filter(({ segment }) => (segment?.index ?? 0) === target.segments.length)
    .map(({ attempt, step, data, deadline }) => ({ attempt, step, data: data as Json, deadline })),
});

const textOf = (target: LiveTarget, content: Content): Pick<PublishRequest, 'content' | 'thread'> => {
  const segment = nextSegment(target, content);
  const { content: text } = content.segments[segment?.index ?? 0] ?? content.segments[0];
  const parent = target.segments.at(-1);
  const [head] = target.segments;
  const replyTo = head && parent ? { parent: parent.externalId, head: head.externalId } : null;
  return { content: text, thread: segment && { ...segment, replyTo } };
};
