import type { LivePost, PostState } from '#domain/post.ts';
import { rowOf } from '#projections/model.ts';
import { posts, renderPost, withTargets } from '#projections/posts.ts';
import type { TargetWithContent } from '#projections/target-queries.ts';
import { postTargets, renderTarget, type TargetRow } from '#projections/targets.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { PlannedTarget } from '#schemas/target.ts';

/** Answers to commands, rendered from stored events by the read models' own folds: a later GET says the same. */

const fault = (what: string): Error => new Error(`the events make no ${what}`);

/** The row of a target right after the fan-out: its first event is the plan's entry, stored when the plan was. */
const plannedRow = (
  { planRevision }: LivePost,
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
  const row = rowOf(postTargets, [first]);
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
  return { target: plannedRow(live, postId, scheduled, planned), body: live.body };
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

export const answerTarget = (events: readonly DecodedEvent[], post: PostState) => {
  const row = rowOf(postTargets, events);
  if (row === null || post.status === 'none') throw fault('target');
  return renderTarget(row, post.body);
};
