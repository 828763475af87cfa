import type { LivePost, PostState } from '#domain/post.ts';
import { rowOf } from '#projections/model.ts';
import { posts, renderPost, withTargets } from '#projections/posts.ts';
import { postTargets, renderTarget, type TargetRow } from '#projections/targets.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';

/** Answers to commands, rendered from stored events by the read models' own folds: a later GET says the same. */

const fault = (what: string): Error => new Error(`the events make no ${what}`);

/**
 * The targets that the plan's event makes, whether or not they are written yet: their first event is the plan's entry.
 */
const plannedTargets = (live: LivePost, postId: string, scheduled: DecodedEvent): readonly TargetRow[] =>
  live.plan.targets.map((planned) => {
    const first: DecodedEvent = {
      ...scheduled,
      stream: `target-${planned.targetId}`,
      type: 'TargetScheduled',
      data: { ...planned, postId, postRevision: live.planRevision },
      revision: 0,
    };
    const row = rowOf(postTargets, [first]);
    if (row === null) throw fault('target');
    return row;
  });

/** The post as these events of its stream leave it, with its targets as planned. */
export const answerPost = (postId: string, state: PostState, events: readonly DecodedEvent[]) => {
  const row = rowOf(posts, events);
  if (row === null) throw fault('post');
  const scheduled = state.status === 'live' ? events.find((one) => one.revision === state.planRevision) : undefined;
  const targets = state.status === 'live' && scheduled !== undefined ? plannedTargets(state, postId, scheduled) : [];
  return renderPost(withTargets(row, targets), targets);
};

export const answerTarget = (events: readonly DecodedEvent[], post: PostState) => {
  const row = rowOf(postTargets, events);
  if (row === null || post.status === 'none') throw fault('target');
  return renderTarget(row, post.body);
};
