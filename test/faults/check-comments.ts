import { contentFor, firstCommentOf } from '#domain/post/content.ts';
import { post } from '#domain/post/post.ts';
import { type ScheduledTarget, target } from '#domain/post-target/target.ts';
import type { CommentRow, SandboxNetwork } from '#infra/platforms/sandbox/index.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { foldEvents } from '#runtime/eventing/domain-store.ts';
import { idOf, kindOf } from '#schemas/topics.ts';

/** Invariants of first comments at rest: each wanted one has one outcome, and the network has what the outcome says. */

type Streams = ReadonlyMap<string, readonly DecodedEvent[]>;

export const checkComments = async (streams: Streams, sandbox: SandboxNetwork): Promise<readonly string[]> => {
  const violations: string[] = [];
  for (const { targetId, comments } of await sandbox.duplicateComments()) {
    violations.push(`target ${targetId} has ${comments.length} comments: ${comments}`);
  }
  for (const [stream, events] of streams) {
    if (kindOf(stream) !== 'target') continue;
    const state = foldEvents(target, events);
    if (state.status === 'none') continue;
    const wanted = state.status === 'published' ? textOf(state, streams) : null;
    const calls = events.some(({ type }) => type === 'TargetFirstCommentStarted')
      ? await sandbox.comments([idOf(stream)])
      : [];
    const wrong = wanted === null ? ofNone(events) : ofComment(wanted, events, calls);
    violations.push(...wrong.map((what) => `${stream} ${what}: ${events.map(({ type }) => type).join(' ')}`));
  }
  return violations;
};

const textOf = ({ common }: ScheduledTarget, streams: Streams): string | null => {
  const written = (streams.get(`post-${common.postId}`) ?? []).filter((one) => one.revision <= common.postRevision);
  const state = foldEvents(post, written);
  if (state.status !== 'live') return null;
  return firstCommentOf(common.platform, contentFor(state.body, common.platform).overrides);
};

const ofNone = (events: readonly DecodedEvent[]): readonly string[] =>
  events.some(({ type }) => type.startsWith('TargetFirstComment')) ? ['wants no comment and has one'] : [];

const ofComment = (
  wanted: string,
  events: readonly DecodedEvent[],
  calls: readonly CommentRow[],
): readonly string[] => {
  const ends = events.filter(({ type }) => /^TargetFirstComment(Posted|Failed)$/.test(type));
  const [end] = ends;
  if (end === undefined || ends.length > 1) return [`has ${ends.length} outcomes of its comment`];
  const made = calls.filter(({ outcome }) => outcome === 'created');
  const wrong = calls.some(({ content }) => content !== wanted) ? ['has another comment than was wanted'] : [];
  const begun = events.filter(({ type }) => type === 'TargetFirstCommentStarted').length;
  if (calls.length > begun) wrong.push(`called ${calls.length} times in ${begun} tries`);
  if (end.type === 'TargetFirstCommentPosted') {
    if (made[0]?.commentId !== end.data.externalId) wrong.push(`has the comment ${made[0]?.commentId} on its network`);
  } else if (made.length > 0 && end.data.code !== 'first_comment_unknown') {
    wrong.push(`has no comment for ${end.data.code}, and the network has one`);
  }
  return wrong;
};
