import { Rejection } from '#domain/decider.ts';
import { lacksIntent, type PostState, post } from '#domain/post/post.ts';
import { type TargetState, target } from '#domain/post-target/target.ts';
import { renderTarget } from '#projections/models/targets.ts';
import { leaseKindOfTargets } from '#projections/queries/due-targets.ts';
import { postPlanning } from '#projections/queries/post-queries.ts';
import {
  type DueFirst,
  getTarget,
  listTargets,
  type TargetFilters,
  type TargetWithContent,
} from '#projections/queries/target-queries.ts';
import { type CommandContext, type Loaded, Unavailable } from '#runtime/eventing/domain-store.ts';
import { endRest } from '#runtime/work/leases.ts';
import { AsOfQuery, IdParams } from '#schemas/http/common.ts';
import { PostTarget, PostTargetQuery } from '#schemas/http/post-target.ts';
import { fanOut } from '#services/workflows/fan-out.ts';
import { tendApprovals } from '#services/workflows/posts/approvals.ts';
import { recordOutcomesOf } from '#services/workflows/posts/outcomes.ts';
import { withinLimit } from '../call/access.ts';
import { listPage } from '../call/cursor.ts';
import { type Call, operation } from '../call/operation.ts';
import { notFound } from '../call/refusal.ts';
import { readRow } from '../call/rows.ts';
import { plannedTarget } from './answers.ts';
import { filtersOf } from './body.ts';
import { postTargetsTag, targetExample } from './examples.ts';
import { answerTargetThen, listTargetsThen } from './past.ts';

/** Streams that a path names. A stream of another workspace is unknown, in the same words. */

type Asking = Pick<Call, 'deps' | 'workspaceId' | 'context' | 'positions' | 'behind'>;
type Reading = Pick<Call, 'deps' | 'workspaceId'>;

const isOurs = (call: Asking, loaded: Loaded<unknown>): boolean =>
  loaded.events[0]?.metadata.workspaceId === call.workspaceId;

export type LoadedPost = Loaded<Exclude<PostState, { status: 'none' | 'discarded' }>>;

export const loadPost = async (call: Asking, id: string): Promise<LoadedPost> => {
  const { state, revision, events } = await call.deps.store.load(post, id);
  const isGone = state.status === 'none' || state.status === 'discarded';
  if (isGone || !isOurs(call, { state, revision, events })) throw notFound('post');
  return { state, revision, events };
};

export interface LoadedTarget {
  readonly target: Loaded<Exclude<TargetState, { status: 'none' }>>;
  readonly post: Loaded<PostState>;
}

const load = async (call: Asking, id: string): Promise<LoadedTarget | null> => {
  const { state, revision, events } = await call.deps.store.load(target, id);
  if (state.status === 'none' || !isOurs(call, { state, revision, events })) return null;
  return { target: { state, revision, events }, post: await call.deps.store.load(post, state.common.postId) };
};

/** The target as its post plans it, while the post is behind its plan. A read makes no fan-out. */
const readPlannedTarget = async (
  call: Reading,
  id: string,
): Promise<(TargetWithContent & { readonly planned: true }) | null> => {
  const postId = await postPlanning(call.deps.pool, call.workspaceId, id);
  if (postId === null) return null;
  const { state, events } = await call.deps.store.load(post, postId);
  const found = state.status === 'live' ? plannedTarget(postId, state, events, id) : null;
  return found === null ? null : { ...found, planned: true };
};

/** For an action: ensures the fan-out of its post first, so that a planned target is never 404. @throws not_found */
export const loadTarget = async (call: Asking, id: string): Promise<LoadedTarget> => {
  const found = await load(call, id);
  if (found !== null) {
    const { state } = found.post;
    if (state.status === 'live' && lacksIntent(state, id, found.target.state.common.appliedRevision)) {
      await fanOut(call.deps.store, found.target.state.common.postId, call.context, { positions: call.positions });
      return (await load(call, id)) ?? found;
    }
    return found;
  }
  const isBehind = await call.behind(['posts']);
  const postId = await postPlanning(call.deps.pool, call.workspaceId, id);
  // The plan of a post that the read model lacks may name it.
  if (postId === null && isBehind) throw new Unavailable('The read model of posts is behind.');
  if (postId === null) throw notFound('post target');
  await fanOut(call.deps.store, postId, call.context, { positions: call.positions });
  const written = await load(call, id);
  if (written === null) throw notFound('post target');
  return written;
};

/** The draft of a command that only a draft takes. @throws Rejection `post_not_draft`; Refusal 404 once it is discarded */
export const asDraft = (state: PostState): Extract<PostState, { status: 'draft' }> => {
  if (state.status === 'discarded') throw notFound('post');
  if (state.status !== 'draft') throw new Rejection('post_not_draft', 'The post is not a draft.');
  return state;
};

type Leaving = Pick<Call, 'deps' | 'positions' | 'correlationId'>;

/** Targets that a person sends out do not wait out the rest of an unknown outcome, unless that cannot be ended here. */
export const wakeOrLeave = async (
  { deps, correlationId }: Pick<Leaving, 'deps' | 'correlationId'>,
  ids: readonly string[],
): Promise<void> => {
  try {
    await endRest(deps.pool, leaseKindOfTargets, ids);
  } catch (error) {
    deps.logger.warn({ err: error, targetIds: ids, correlationId }, 'retried targets may rest before they go out');
  }
};

/** Makes the request for approval that a post asks for. One that cannot be made here is left to the sweeper. */
export const tendOrLeave = async (
  { deps, positions, correlationId }: Leaving,
  postId: string,
  { state }: Pick<Loaded<PostState>, 'state'>,
): Promise<void> => {
  if (state.status !== 'live' || state.approval?.status !== 'pending') return;
  try {
    await tendApprovals(deps.store, postId, { positions });
  } catch (error) {
    deps.logger.warn({ err: error, postId, correlationId }, 'the request for approval is left to the sweeper');
  }
};

/**
 * Records in the post what a command did to its targets, so that the answer and the reads after it show what became of
 * the post. What cannot be recorded here is left to the consumer of outcomes.
 * @returns the post with it; null where it could not be recorded
 */
export const recordOrLeave = async (
  { deps, positions, correlationId, now }: Leaving & Pick<Call, 'now'>,
  postId: string,
  targets: Iterable<Loaded<TargetState>>,
  loaded?: Loaded<PostState>,
): Promise<Loaded<PostState> | null> => {
  try {
    const known = loaded === undefined ? { positions } : { positions, loaded };
    return await recordOutcomesOf(deps.store, postId, targets, () => Date.parse(now), known);
  } catch (error) {
    deps.logger.warn({ err: error, postId, correlationId }, 'the outcomes of targets are left to their consumer');
    return null;
  }
};

/** Fans an accepted post out. A fan-out that fails here refuses nothing: the sweeper carries the plan out. */
export const fanOutOrLeave = async (
  call: Leaving,
  postId: string,
  context: CommandContext,
  loaded?: Loaded<PostState>,
): Promise<void> => {
  const { deps, positions, correlationId } = call;
  try {
    const known = loaded === undefined ? { positions } : { positions, loaded };
    const { post: fanned } = await fanOut(deps.store, postId, context, known);
    await tendOrLeave(call, postId, fanned);
  } catch (error) {
    deps.logger.warn({ err: error, postId, correlationId }, 'fan-out is left to the sweeper');
  }
};

export const getPostTarget = operation({
  id: 'getPostTarget',
  method: 'GET',
  path: '/post-targets/{id}',
  tag: postTargetsTag,
  summary: 'Get a post target',
  description: 'A target that its post has planned and that is not stored yet is answered from the plan, without ETag.',
  scope: 'posts.read',
  limited: 'ids',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  query: AsOfQuery,
  answer: PostTarget,
  codes: ['history_too_long'],
  example: { data: targetExample },
  handle: async (call) => {
    if (call.query.asOf !== undefined) return answerTargetThen(call, call.query.asOf);
    const { deps, workspaceId } = call;
    const planned = (id: string) => readPlannedTarget(call, id);
    const found = await readRow(call, 'target', ['posts'], (id) => getTarget(deps.knex, workspaceId, id), planned);
    const data = renderTarget(found.target, found.body);
    return 'planned' in found ? { data } : { data, revision: data.revision };
  },
});

export const listPostTargets = operation({
  id: 'listPostTargets',
  method: 'GET',
  path: '/post-targets',
  tag: postTargetsTag,
  summary: 'List post targets',
  description:
    'The targets of all posts, sorted by due instant, the earliest first. With `status=outcome_unknown`: those of which a network has not said whether it published them.',
  scope: 'posts.read',
  limited: 'filtered',
  idempotent: 'none',
  cost: 1,
  query: PostTargetQuery,
  answer: PostTarget,
  list: true,
  codes: ['history_too_long'],
  example: { data: targetExample },
  handle: async (call) => {
    if (call.query.asOf !== undefined) return listTargetsThen(call, call.query.asOf);
    await call.behind(['posts']);
    const { limit: _limit, cursor: _cursor, status: statuses, platform: platforms, ...more } = call.query;
    const filters: TargetFilters = { ...filtersOf({ ...more, statuses, platforms }), ...withinLimit(call.principal) };
    return listPage('listPostTargets', call, {
      rows: (page: { after: DueFirst | null; limit: number }, knex) =>
        listTargets(knex, call.workspaceId, filters, page),
      keyOf: ({ target }) => ({ scheduledAt: target.due_at, id: target.id }),
      show: ({ target, body }) => renderTarget(target, body),
    });
  },
});
