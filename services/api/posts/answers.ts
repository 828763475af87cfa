import type { LivePost, PostState } from '#domain/post/post.ts';
import type { TargetState } from '#domain/post-target/target.ts';
import { rowOf } from '#projections/engine/model.ts';
import { posts, renderPost, withTargets } from '#projections/models/posts.ts';
import { postTargets, renderTarget, type TargetRow } from '#projections/models/targets.ts';
import type { TargetWithContent } from '#projections/queries/target-queries.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { Loaded } from '#runtime/eventing/domain-store.ts';
import type { PostBody } from '#schemas/post.ts';
import type { PlannedTarget } from '#schemas/target.ts';

/** Answers to commands, rendered from stored events by the read models' own folds: a later GET says the same. */

const fault = (what: string): Error => new Error(`the events make no ${what}`);

/** The row of a target right after the fan-out: its first events are the plan's entry, stored when the plan was. */
const plannedRow = (
  { planRevision, planHeld }: LivePost,
  postId: string,
  scheduled: DecodedEvent,
  planned: PlannedTarget,
): TargetRow => {
  const first: DecodedEvent = {
    ...scheduled,
    stream: `target-${planned.targetId}`,
    type: 'TargetScheduled',
    data: { ...planned, postId, postRevision: planRevision },
    revision: 0,
  };
  const held: DecodedEvent = { ...first, type: 'TargetHeld', data: { postRevision: planRevision }, revision: 1 };
  const row = rowOf(postTargets, planHeld ? [first, held] : [first]);
  if (row === null) throw fault('target');
  return row;
};

const planEvent = ({ planRevision }: LivePost, events: readonly DecodedEvent[]): DecodedEvent | undefined =>
  events.find(({ revision }) => revision === planRevision);

/** A target of the post's plan, whether or not the fan-out has come to it; null where the plan does not hold it. */
export const plannedTarget = (
  postId: string,
  live: LivePost,
  events: readonly DecodedEvent[],
  targetId: string,
): TargetWithContent | null => {
  const scheduled = planEvent(live, events);
  const planned = live.plan.targets.find((one) => one.targetId === targetId);
  if (scheduled === undefined || planned === undefined) return null;
  // The post may have been revised since.
  const { body } = scheduled.data as { readonly body: PostBody };
  return { target: plannedRow(live, postId, scheduled, planned), body };
};

/** The post as these events of its stream leave it, with its targets as planned. */
export const answerPost = (postId: string, state: PostState, events: readonly DecodedEvent[]) => {
  const row = rowOf(posts, events);
  if (row === null) throw fault('post');
  const live = state.status === 'live' ? state : null;
  const scheduled = live === null ? undefined : planEvent(live, events);
  const targets =
    live === null || scheduled === undefined
      ? []
      : live.plan.targets.map((planned) => plannedRow(live, postId, scheduled, planned));
  return renderPost(withTargets(row, targets), targets);
};

/** The post and its targets as these events of their streams leave them. */
export const answerWithTargets = (
  events: readonly DecodedEvent[],
  targets: Iterable<Pick<Loaded<TargetState>, 'events'>>,
) => {
  const row = rowOf(posts, events);
  if (row === null) throw fault('post');
  const rows = Array.from(targets, (one) => rowOf(postTargets, one.events) ?? missing());
  return renderPost(withTargets(row, rows), rows);
};

const missing = (): never => {
  throw fault('target');
};

export const answerTarget = (events: readonly DecodedEvent[], postEvents: readonly DecodedEvent[]) => {
  const row = rowOf(postTargets, events) ?? missing();
  // Only the events up to the target's own revision: a later row drops the bodies that no target shows any more, and a
  // repeat of a call shows the target as it was.
  const post = rowOf(
    posts,
    postEvents.filter(({ revision }) => revision <= row.post_revision),
  );
  if (post === null) throw fault('target');
  return renderTarget(row, post.body);
};
