import { EventStoreError } from '#contracts/ports/event-store.ts';
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
 * What became of targets, told to their posts. This alone settles and reopens targets in a post's stream, so the facts
 * about the whole are said once. The post's fold knows the highest revision it heard of each target: news that comes
 * twice, late, or from a process that slept yields nothing.
 */

interface News {
  readonly cause: DecodedEvent;
  readonly command: PostCommand;
}

/** Types of target events that can be news to a post. */
export const outcomeTypes: readonly TargetEvent['type'][] = [
  'TargetPublished',
  'TargetFailed',
  'TargetCanceled',
  'TargetOutcomeSettled',
  'TargetRequeued',
];

const outcomeOf = (event: DecodedEvent): News | null => {
  const { type, data } = { type: event.type, data: event.data } as unknown as TargetEvent;
  const about = { targetId: event.stream.slice('target-'.length), targetRevision: event.revision };
  const settled = (outcome: 'published' | 'failed' | 'canceled', publishedAt: string | null): News => ({
    cause: event,
    command: { type: 'RecordTargetOutcome', ...about, outcome, publishedAt },
  });
  switch (type) {
    case 'TargetPublished':
      return settled('published', data.publishedAt);
    case 'TargetFailed':
      return settled('failed', null);
    case 'TargetCanceled':
      return settled('canceled', null);
    case 'TargetOutcomeSettled':
      if (data.outcome === 'published') return settled('published', data.publishedAt ?? event.metadata.occurredAt);
      if (data.outcome === 'failed') return settled('failed', null);
      return { cause: event, command: { type: 'ReopenTarget', ...about } };
    case 'TargetRequeued':
      // The schedule requeues only what was not settled.
      return data.by === 'schedule' ? null : { cause: event, command: { type: 'ReopenTarget', ...about } };
    default:
      return null;
  }
};

/** Settling and reopening look at nothing of where they are stored. */
const nowhere: Fact = { eventId: '', revision: -1, commandId: '', occurredAt: '' };

/** Several pieces of news decided one after the other, appended at once. */
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
 * Tells one post. Conflicts are retried without limit: nobody else would say it. The ids of the events follow from the
 * first cause that is news to the post, so the same append has the same ids whoever makes it, and no two appends share one.
 */
const tell = async (store: DomainStore, postId: string, all: readonly News[], now: () => number): Promise<void> => {
  for (;;) {
    const loaded = await store.load(post, postId);
    const known = all.findIndex(({ command }) => post.decide(command, loaded.state).length > 0);
    const first = all[known];
    if (first === undefined) return;
    try {
      await execute(
        store,
        inOrder,
        postId,
        all.slice(known).map(({ command }) => command),
        serviceContext('outcomes', derivedFrom(first.cause), now()),
        { loaded, redecide: false },
      );
      faultPoint('outcomes:after-append');
      return;
    } catch (error) {
      if (!(error instanceof EventStoreError) || error.code !== 'wrong_expected_revision') throw error;
    }
  }
};

/** Posts told at once. */
const width = 32;

/** Tells every post of these events what became of its targets; several of one post become one append. */
export const recordOutcomes = async (
  store: DomainStore,
  events: readonly DecodedEvent[],
  now: () => number = Date.now,
): Promise<void> => {
  const byPost = new Map<string, News[]>();
  for (const event of events) {
    const outcomes = event.stream.startsWith('target-') ? outcomeOf(event) : null;
    if (outcomes === null) continue;
    // A target's key of order is its post.
    const postId = event.metadata.partitionKey;
    byPost.set(postId, [...(byPost.get(postId) ?? []), outcomes]);
  }
  const posts = [...byPost];
  for (let at = 0; at < posts.length; at += width) {
    await Promise.all(posts.slice(at, at + width).map(([postId, news]) => tell(store, postId, news, now)));
  }
};
