import { type PostState, post } from '#domain/post/post.ts';
import type { RecycleRun } from '#domain/post/post-recycle.ts';
import { getRecycled, renderRecycle } from '#projections/models/post-recycles.ts';
import type { Loaded } from '#runtime/eventing/domain-store.ts';
import { IdParams } from '#schemas/http/common.ts';
import { PostRecycle, Recycle } from '#schemas/http/post-recycle.ts';
import { nextCopyOf, recordCopy } from '#services/workflows/posts/recycle.ts';
import { type Acted, type Call, operation } from '../call/operation.ts';
import { invalid, notFound } from '../call/refusal.ts';
import { ownStream, readRow } from '../call/rows.ts';
import { ownClient } from './checks.ts';
import { clearedRecycleExample, postsTag, recycleExample } from './examples.ts';

/** What callers do with the recycling of a post. */

type Recycling<Body = unknown> = Call<{ readonly id: string }, unknown, Body>;

const gone = ({ status }: PostState): boolean => status === 'none' || status === 'discarded';

/** A discarded draft is unknown, like a post of another workspace. */
const ownPost = (call: Recycling) => (loaded: Loaded<PostState>) => {
  if (gone(loaded.state)) throw notFound('post');
  ownStream(call, 'post')(loaded);
};

/** The time of the call, as the copies of a post are planned by it. */
export const timeOf = ({ now, context: { aheadMs = 0 } }: Pick<Call, 'now' | 'context'>) => ({
  now: (): number => Date.parse(now),
  aheadMs,
});

/** The post, once a copy that a process stored and did not record before it died is recorded. */
const loadRecorded = async (call: Recycling): Promise<Loaded<PostState>> => {
  const { deps, params, workspaceId, positions } = call;
  const loaded = await deps.store.load(post, params.id);
  if (loaded.events[0]?.metadata.workspaceId !== workspaceId) return loaded;
  return recordCopy({ store: deps.store, pool: deps.pool, ...timeOf(call) }, params.id, loaded, { positions });
};

interface Accepted {
  readonly until: string | null;
  /** Null: the post is not out, or no copies are to be made. */
  readonly next: RecycleRun | null;
}

const accept = async (call: Recycling<PostRecycle>, { state }: Loaded<PostState>): Promise<Accepted> => {
  const { enabled, everyDays } = call.body;
  const until = call.body.until === undefined ? null : new Date(call.body.until).toISOString();
  if (until !== null && until <= call.now) throw invalid('/until', 'out_of_range', 'must lie in the future');
  if (state.status !== 'live') return { until, next: null };
  await call.behind(['workspace']);
  await ownClient(call, state.clientId);
  const recycling = { store: call.deps.store, ...timeOf(call) };
  return { until, next: enabled ? await nextCopyOf(recycling, state, { everyDays }, call.now) : null };
};

/** Replaces the settings as a whole: a repeat leaves the same ones, and appends nothing. */
const setRecycle = (call: Recycling<PostRecycle>): Promise<Acted<PostState>> => {
  const { enabled, everyDays, times = null } = call.body;
  const { actor: setBy, role } = call.principal;
  return call.stream(post).act({
    guard: ownPost(call),
    load: () => loadRecorded(call),
    accept: (loaded) => accept(call, loaded),
    command: ({ until, next }: Accepted) => ({
      ...{ type: 'SetRecycle', enabled, everyDays, times, until, setBy, needsApproval: role === 'creator', next },
    }),
    optional: true,
  });
};

const clearRecycle = (call: Recycling): Promise<Acted<PostState>> =>
  call.stream(post).act({
    guard: ownPost(call),
    load: () => loadRecorded(call),
    command: () => ({ type: 'ClearRecycle' }),
  });

/** The answer to a command, from the stored events of the post. */
const shownRecycle = (id: string, { state, revision }: Pick<Loaded<PostState>, 'state' | 'revision'>) =>
  renderRecycle({ id, revision, recycle: state.status === 'none' ? null : state.recycle });

export const setPostRecycle = operation({
  id: 'setPostRecycle',
  method: 'PUT',
  path: '/posts/{id}/recycle',
  tag: postsTag,
  summary: 'Set recycle settings',
  description: [
    'Once the post is published, a copy of it goes out every `everyDays` days, as a new post that names it in `recycledFrom`. The days count from the publication of the post; each target is due at the wall-clock time that it had, in its own zone, also where the clocks change in between. On each account at least `everyDays` days less 12 hours lie between two publications: after a copy that went out late, the next one moves by whole days. A copy has the content of the post and goes to the same accounts, without the canceled targets and the disconnected accounts. It passes every check of POST /posts at its time, as if the caller of this operation posted it, and is held where an approval is required: by its clients then, by the role of the caller now, where the caller, or the owner of the key, has been removed or is a creator by then, and where a revise was approved for some of its accounts alone and another would get a new content by it. That a key has ended holds nothing.',
    'A copy is made an hour before it is due: from then on it is a post like any other, which can be revised, moved or deleted, and which stays when the recycling ends. Copies that were missed collapse into one, which goes out at once. A copy that still waits when the next one is made, because nobody has approved it or it was moved, is canceled with the reason `copy_replaced`, and its approval is withdrawn. Days that had passed before the call are not missed.',
    'The service makes no more copies once `times` or `until` is reached, the client is archived, no account is connected, or three copies in a row were refused or failed; `stoppedReason` says which. Setting it again starts anew. A draft, a canceled post and a copy are not recycled.',
  ].join('\n\n'),
  scope: 'posts.compose',
  limited: 'ids',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  body: PostRecycle,
  answer: Recycle,
  codes: ['validation_failed', 'post_not_scheduled', 'client_archived', 'stream_full'],
  example: { body: { everyDays: 30, times: 3 }, data: recycleExample },
  handle: async (call) => {
    const acted = await setRecycle(call);
    return { data: shownRecycle(call.params.id, acted), revision: acted.revision };
  },
});

export const getPostRecycle = operation({
  id: 'getPostRecycle',
  method: 'GET',
  path: '/posts/{id}/recycle',
  tag: postsTag,
  summary: 'Get recycle settings',
  description: 'Of a post that nobody recycles, `enabled` is false and `everyDays` is null.',
  scope: 'posts.read',
  limited: 'ids',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  answer: Recycle,
  codes: [],
  example: { data: recycleExample },
  handle: async (call) => {
    const { deps, workspaceId } = call;
    const row = await readRow(call, 'post', ['posts'], (id) => getRecycled(deps.knex, workspaceId, id));
    if (row.status === 'discarded') throw notFound('post');
    return { data: renderRecycle(row), revision: row.revision };
  },
});

export const clearPostRecycle = operation({
  id: 'clearPostRecycle',
  method: 'DELETE',
  path: '/posts/{id}/recycle',
  tag: postsTag,
  summary: 'Clear recycle settings',
  description:
    'No more copies are made; those that exist stay, also one that is not due yet. The answer shows the cleared settings; clearing them again answers the same.',
  scope: 'posts.compose',
  limited: 'ids',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  answer: Recycle,
  codes: [],
  example: { data: clearedRecycleExample },
  handle: async (call) => {
    const acted = await clearRecycle(call);
    return { data: shownRecycle(call.params.id, acted), revision: acted.revision };
  },
});
