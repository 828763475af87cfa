import { isConflict } from '#contracts/ports/event-store.ts';
import type { Decider, Fact } from '#domain/decider.ts';
import { type PostCommand, type PostState, post, type TargetProgress } from '#domain/post/post.ts';
import { type TargetState, target } from '#domain/post-target/target.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { DomainStore, Loaded, Positions } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { derivedFrom, serviceContext } from '#runtime/eventing/service-context.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { instantOf } from '#schemas/common.ts';
import type { PostEvent } from '#schemas/post.ts';
import type { TargetEvent } from '#schemas/target.ts';
import { inGroups } from '../fan-out.ts';

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
      if (data.outcome === 'published') return settled('published', data.publishedAt ?? instantOf(event.metadata));
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

/** What the post has not recorded, as a given fold of it knows. */
type Unrecorded = (loaded: Loaded<PostState>) => readonly Outcome[] | Promise<readonly Outcome[]>;

interface Given {
  readonly positions?: Positions;
  /** As the caller knows the post. */
  readonly loaded?: Loaded<PostState>;
}

/**
 * Records outcomes in one post. Conflicts are retried without limit: no other process would record them. The event ids
 * follow from the first cause that the post has not recorded, so a repeated append has the same ids, and no two
 * different appends share one.
 * @returns the post with them
 */
const recordInPost = async (
  store: DomainStore,
  postId: string,
  outcomesOf: Unrecorded,
  now: () => number,
  { positions, loaded: known }: Given = {},
): Promise<Loaded<PostState>> => {
  for (let loaded = known ?? (await store.load(post, postId)); ; loaded = await store.load(post, postId)) {
    const all = await outcomesOf(loaded);
    const unrecorded = all.findIndex(({ command }) => post.decide(command, loaded.state).length > 0);
    const first = all[unrecorded];
    if (first === undefined) return loaded;
    try {
      const commands = all.slice(unrecorded).map(({ command }) => command);
      const context = serviceContext('outcomes', derivedFrom(first.cause), now());
      const given = positions === undefined ? {} : { positions };
      const recorded = await execute(store, inOrder, postId, commands, context, { loaded, redecide: false, ...given });
      faultPoint('outcomes:after-append');
      return recorded;
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  }
};

/** Targets that are read at once. */
const targetsAtOnce = 50;

/** A target that is settled for good. What failed may have been tried again since it was read. */
const isFinal = ({ state }: Loaded<TargetState>): boolean =>
  state.status === 'canceled' || state.status === 'published';

/**
 * Records what a command did to these targets of one post before it answers, as the consumer of outcomes does later: the
 * later one yields no event. If we die before, the consumer alone does it. A target that the post knows as failed may
 * have been tried again, which the post has not recorded; so those are read first, or a post would be said to have failed
 * of which a target is open.
 * @param targets as they are after the command
 * @returns the post with their outcomes
 */
export const recordOutcomesOf = (
  store: DomainStore,
  postId: string,
  targets: Iterable<Loaded<TargetState>>,
  now: () => number,
  given: Given = {},
): Promise<Loaded<PostState>> => {
  const known = new Map(
    Array.from(targets).flatMap((one): [string, Loaded<TargetState>][] =>
      one.state.status === 'none' ? [] : [[one.state.common.targetId, one]],
    ),
  );
  const read = async (targetId: string): Promise<void> => {
    known.set(targetId, await store.load(target, targetId));
  };
  const unrecorded: Unrecorded = async ({ state }) => {
    if (state.status !== 'live') return [];
    const unrecordedOf = (targetId: string) => newOutcomes(known.get(targetId)?.events ?? [], state.targets[targetId]);
    if ([...known.keys()].every((targetId) => unrecordedOf(targetId).length === 0)) return [];
    const failed = Object.keys(state.targets).filter((targetId) => {
      const one = known.get(targetId);
      const isSaidFailed = state.targets[targetId]?.outcome === 'failed' || one?.state.status === 'failed';
      return isSaidFailed && !(one !== undefined && isFinal(one));
    });
    await inGroups(failed, read, targetsAtOnce);
    // What is open again comes before what ended: the post is settled after the last of them, or not at all.
    const outcomes = [...known.keys()].flatMap(unrecordedOf);
    const isReopened = ({ command }: Outcome): boolean => command.type === 'ReopenTarget';
    return [...outcomes.filter(isReopened), ...outcomes.filter((one) => !isReopened(one))];
  };
  return recordInPost(store, postId, unrecorded, now, given);
};

/** The last outcome among a target's events that its post has not recorded, behind the last of those that reopened it. */
const newOutcomes = (events: readonly DecodedEvent[], known: TargetProgress | undefined): readonly Outcome[] => {
  const unrecorded = events
    .filter(({ revision }) => revision > (known?.revision ?? -1))
    .flatMap((one) => outcomeOf(one) ?? []);
  const reopened = unrecorded.findLast(({ command }) => command.type === 'ReopenTarget');
  const last = unrecorded.at(-1);
  return [reopened, last === reopened ? undefined : last].flatMap((one) => one ?? []);
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
      posts.slice(at, at + postsAtOnce).map(([postId, outcomes]) => recordInPost(store, postId, () => outcomes, now)),
    );
  }
};
