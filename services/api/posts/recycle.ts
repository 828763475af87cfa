import { type PostState, post } from '#domain/post/post.ts';
import type { RecycleRun } from '#domain/post/post-recycle.ts';
import { renderRecycle } from '#projections/models/post-recycles.ts';
import type { Loaded } from '#runtime/eventing/domain-store.ts';
import type { PostRecycle } from '#schemas/http/post-recycle.ts';
import { nextCopyOf, recordCopy } from '#services/workflows/posts/recycle.ts';
import type { Acted } from '../actions.ts';
import type { Call } from '../operation.ts';
import { invalid, notFound } from '../refusal.ts';
import { ownStream } from '../rows.ts';
import { ownClient } from './destinations.ts';

/** What callers do with the recycling of a post. */

type Recycling<Body = unknown> = Call<{ readonly id: string }, unknown, Body>;

const gone = ({ status }: PostState): boolean => status === 'none' || status === 'discarded';

/** A discarded draft is unknown, like a post of another workspace. */
const ownPost = (call: Recycling) => (loaded: Loaded<PostState>) => {
  if (gone(loaded.state)) throw notFound('post');
  ownStream(call, 'post')(loaded);
};

/** The post, once a copy that a process stored and did not record before it died is recorded. */
const loadRecorded = async (call: Recycling): Promise<Loaded<PostState>> => {
  const { deps, params, workspaceId, positions } = call;
  const loaded = await deps.store.load(post, params.id);
  if (loaded.events[0]?.metadata.workspaceId !== workspaceId) return loaded;
  return recordCopy({ store: deps.store, pool: deps.pool, now: deps.clock }, params.id, loaded, { positions });
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
  const recycling = { store: call.deps.store, now: call.deps.clock };
  return { until, next: enabled ? await nextCopyOf(recycling, state, { everyDays }, call.now) : null };
};

/** Replaces the settings as a whole: a repeat leaves the same ones, and appends nothing. */
export const setRecycle = (call: Recycling<PostRecycle>): Promise<Acted<PostState>> => {
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

export const clearRecycle = (call: Recycling): Promise<Acted<PostState>> =>
  call.stream(post).act({
    guard: ownPost(call),
    load: () => loadRecorded(call),
    command: () => ({ type: 'ClearRecycle' }),
  });

/** The answer to a command, from the stored events of the post. */
export const shownRecycle = (id: string, { state, revision }: Pick<Loaded<PostState>, 'state' | 'revision'>) =>
  renderRecycle({ id, revision, recycle: state.status === 'none' ? null : state.recycle });
