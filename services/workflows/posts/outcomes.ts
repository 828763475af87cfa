import { isConflict } from '#contracts/ports/event-store.ts';
import type { Decider, Fact } from '#domain/decider.ts';
import { type PostCommand, type PostState, post } from '#domain/post.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { derivedFrom, serviceContext } from '#runtime/eventing/service-context.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { PostEvent } from '#schemas/post.ts';
import type { TargetEvent } from '#schemas/target.ts';

/**
 * Records the outcomes of targets in their posts. Nothing else settles or reopens targets in a post's stream, so the
 * facts about the whole post are recorded once. The post's fold keeps the highest revision it has seen of each target:
 * an outcome that arrives twice, late, or from a process that slept yields no event.
 */

interface Outcome {
  readonly cause: DecodedEvent;
  readonly command: PostCommand;
}

/** Types of target events that a post records. */
export const outcomeTypes: readonly TargetEvent['type'][] = [
  'TargetPublished',
  'TargetFailed',
  'TargetApprovalLapsed',
  'TargetCanceled',
  'TargetOutcomeSettled',
  'TargetRequeued',
  'TargetHeld',
];

export const outcomeOf = (event: DecodedEvent): Outcome | null => {
  const { type, data } = { type: event.type, data: event.data } as unknown as TargetEvent;
  const about = { targetId: event.stream.slice('target-'.length), targetRevision: event.revision };
  const settled = (outcome: 'published' | 'failed' | 'canceled', publishedAt: string | null): Outcome => ({
    cause: event,
    command: { type: 'RecordTargetOutcome', ...about, outcome, publishedAt },
  });
  switch (type) {
    case 'TargetPublished':
      return settled('published', data.publishedAt);
    case 'TargetFailed':
    case 'TargetApprovalLapsed':
      return settled('failed', null);
    case 'TargetCanceled':
      return settled('canceled', null);
    case 'TargetOutcomeSettled':
      if (data.outcome === 'published') return settled('published', data.publishedAt ?? event.metadata.occurredAt);
      if (data.outcome === 'failed') return settled('failed', null);
      return { cause: event, command: { type: 'ReopenTarget', ...about } };
    case 'TargetRequeued':
      // The schedule requeues only targets that were not settled.
      return data.by === 'schedule' ? null : { cause: event, command: { type: 'ReopenTarget', ...about } };
    case 'TargetHeld':
      // A target that failed before the revise reached it is held, not requeued.
      return { cause: event, command: { type: 'ReopenTarget', ...about } };
    default:
      return null;
  }
};

/** The post's fold of these events does not depend on where they are stored. */
const nowhere: Fact = { eventId: '', revision: -1, commandId: '', occurredAt: '' };

/** Decides several outcomes one after the other, for one append. */
const inOrder: Decider<PostState, readonly PostCommand[], PostEvent> = {
  ...post,
  decide: (commands, from) => {
    const decided: PostEvent[] = [];
    let state = from;
    for (const command of commands) {
      for (const event of post.decide(command, state)) {
        decided.push(event);
        state = post.evolve(state, event, nowhere);
      }
    }
    return decided;
  },
};

/**
 * Records outcomes in one post. Conflicts are retried without limit: no other process would record them. The event ids
 * follow from the first cause that the post has not recorded, so a repeated append has the same ids, and no two
 * different appends share one.
 */
const recordInPost = async (
  store: DomainStore,
  postId: string,
  all: readonly Outcome[],
  now: () => number,
): Promise<void> => {
  for (;;) {
    const loaded = await store.load(post, postId);
    const unrecorded = all.findIndex(({ command }) => post.decide(command, loaded.state).length > 0);
    const first = all[unrecorded];
    if (first === undefined) return;
    try {
      await execute(
        store,
        inOrder,
        postId,
        all.slice(unrecorded).map(({ command }) => command),
        serviceContext('outcomes', derivedFrom(first.cause), now()),
        { loaded, redecide: false },
      );
      faultPoint('outcomes:after-append');
      return;
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  }
};

/** Posts that are written concurrently. */
const postsAtOnce = 32;

/** Records the outcomes among these events in their posts; those of one post in one append. */
export const recordOutcomes = async (
  store: DomainStore,
  events: readonly DecodedEvent[],
  now: () => number = Date.now,
): Promise<void> => {
  const byPost = new Map<string, Outcome[]>();
  for (const event of events) {
    const outcome = event.stream.startsWith('target-') ? outcomeOf(event) : null;
    if (outcome === null) continue;
    // A target's partition key is its post's id.
    const postId = event.metadata.partitionKey;
    byPost.set(postId, [...(byPost.get(postId) ?? []), outcome]);
  }
  const posts = [...byPost];
  for (let at = 0; at < posts.length; at += postsAtOnce) {
    await Promise.all(
      posts.slice(at, at + postsAtOnce).map(([postId, outcomes]) => recordInPost(store, postId, outcomes, now)),
    );
  }
};
