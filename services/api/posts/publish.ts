import { isConflict } from '#contracts/ports/event-store.ts';
import { Rejection } from '#domain/decider.ts';
import { type PostState, post } from '#domain/post/post.ts';
import type { CommandContext, Loaded } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { type Cleaned, IdParams } from '#schemas/http/common.ts';
import { Post, PostPublish } from '#schemas/http/post.ts';
import type { PostBody } from '#schemas/post.ts';
import { fanOut } from '#services/workflows/fan-out.ts';
import type { Checked, PlannedPost } from '#services/workflows/posts/compose.ts';
import { streamUpTo } from '../call/commands.ts';
import { type Acted, type Call, operation } from '../call/operation.ts';
import { answerPost, PostWarnings, withLiveCampaign } from './answers.ts';
import { scheduleOf } from './body.ts';
import { Overtaken, planForCaller, requireAuthority } from './checks.ts';
import { repeatWarnings, requireChanged, withDecision } from './decisions.ts';
import { postExample, postsTag } from './examples.ts';
import { asDraft, fanOutOrLeave, type LoadedPost, loadPost } from './load.ts';
import { reservePlan } from './quota.ts';
import { requireWordForPlan } from './restore-word.ts';

type Publishing = Call<{ readonly id: string }, unknown, Cleaned<typeof PostPublish>>;

interface Accepted extends PlannedPost {
  /** Revision of the draft that passed the gates: nothing else is published. */
  readonly revision: number;
  readonly schedule: PostBody['schedule'];
}

/**
 * The call is accepted with its plan, so that a repeat after a crash publishes the same plan. If we die between
 * acceptance and the post's append, nothing was published and the repeat publishes it. If we die after the append, the
 * sweeper carries the plan out.
 */
const publishDraft = async (call: Publishing, warned: PostWarnings): Promise<Acted<PostState>> => {
  try {
    return await attempt(call, warned);
  } catch (error) {
    if (!(error instanceof Overtaken)) throw error;
    return attempt(call, warned);
  }
};

const attempt = async (call: Publishing, warned: PostWarnings): Promise<Acted<PostState>> => {
  const { id } = call.params;
  let seen: LoadedPost | undefined;
  let written: Loaded<PostState> | undefined;
  const { result, replayed } = await call.once(
    async (): Promise<Accepted> => {
      const loaded = await loadPost(call, id);
      call.guard(loaded);
      const draft = await settled(call, loaded);
      const accepted = await accept(call, draft, warned);
      seen = draft;
      return accepted;
    },
    async (accepted, context) => {
      // Another call may have accepted a newer draft than the one this call saw.
      const draft = seen?.revision === accepted.revision ? seen : await loadPost(call, id);
      written = await append(call, draft, accepted, context);
      await fanOutOrLeave(call, id, context, written);
      return { revision: planEndOf(written) };
    },
  );
  const left = await streamUpTo(call, post, id, result.revision, written);
  call.deps.store.note(left.events, call.positions);
  return { ...left, replayed };
};

/**
 * The targets of a plan that an approver sent back are canceled before another plan is made: the post then forgets the
 * former plan, and nobody else would cancel them.
 */
const settled = async (call: Publishing, draft: LoadedPost): Promise<LoadedPost> => {
  const { deps, params, context, positions } = call;
  if (draft.state.status !== 'draft' || draft.state.returned === null) return draft;
  await fanOut(deps.store, params.id, context, { positions, loaded: draft });
  return loadPost(call, params.id);
};

/** Plans the draft by the schedule of the call, else by its own. */
const accept = async (
  call: Publishing,
  { state, revision, events }: LoadedPost,
  warned: PostWarnings,
): Promise<Accepted> => {
  const { clientId, body, plans } = asDraft(state);
  const sent = call.body.schedule;
  const schedule = sent === undefined ? body.schedule : scheduleOf(sent);
  const { id } = call.params;
  const planned = await planForCaller(call, {
    ...{ id, clientId, planNumber: plans + 1 },
    body: { ...body, schedule, campaignId: null },
    onChecked: (found: Checked) => warned.begin(id, body, found),
  });
  await requireWordForPlan(call, events, body, planned.plan.targets);
  if (call.body.acknowledgeDecision === false) {
    await requireChanged(call, events, { body, accounts: planned.plan.targets });
  }
  return { revision, schedule, ...planned };
};

/** The revision of the last event that made the plan: what happens to the post later is not in the answer. */
const planEndOf = ({ state, revision }: Loaded<PostState>): number =>
  state.status === 'live' ? state.planRevision + (state.planHeld ? 1 : 0) : revision;

/** Times that other writers may change the draft, or give its places back, before the call gives up. */
const maxRounds = 20;

/**
 * Appends the accepted plan at the revision for which it took places of the quota. A draft whose places were given back
 * meanwhile takes them again. @throws Rejection `revision_mismatch` when the draft is not the accepted one,
 * `quota_exceeded`
 */
const append = async (
  call: Publishing,
  draft: LoadedPost,
  { revision, schedule, ...planned }: Accepted,
  context: CommandContext,
): Promise<Loaded<PostState>> => {
  const { deps, params, positions } = call;
  let loaded = draft;
  for (let round = 1; ; round += 1) {
    const { clientId, createdBy, body } = loaded.state;
    const { commandId } = context;
    const command = {
      ...({ type: 'Schedule', commandId, clientId, createdBy } as const),
      ...{ body: { ...body, schedule }, ...planned },
    };
    if (loaded.state.status === 'draft') {
      if (isReplaced(loaded, revision)) throw new Rejection('revision_mismatch', 'The draft was replaced meanwhile.');
      requireAuthority(call, planned);
      await reservePlan(call, params.id, command, loaded.revision);
    }
    try {
      return await execute(deps.store, post, params.id, command, context, { positions, loaded, redecide: false });
    } catch (error) {
      if (!isConflict(error) || round >= maxRounds) throw error;
      loaded = await loadPost(call, params.id);
    }
  }
};

/** Given-back places change nothing of the draft. */
const isReplaced = ({ events }: LoadedPost, revision: number): boolean =>
  events.some((event) => event.revision > revision && event.type !== 'PostAbandoned') ||
  !events.some((event) => event.revision === revision);

export const publishPost = operation({
  id: 'publishPost',
  method: 'POST',
  path: '/posts/{id}/publish',
  tag: postsTag,
  summary: 'Publish or schedule a draft',
  description:
    'Runs every check that a draft skips, then schedules the draft as POST /posts does. A `schedule` in the body replaces the schedule of the draft.',
  scope: 'posts.compose',
  limited: 'ids',
  idempotent: 'accepted',
  cost: 1,
  ifMatch: true,
  bodyOptional: true,
  params: IdParams,
  body: PostPublish,
  answer: Post,
  codes: [
    'validation_failed',
    'idempotency_key_reused',
    'post_not_draft',
    'restore_unconfirmed',
    'changes_requested',
    'schedule_in_past',
    'schedule_too_far',
    'cadence_exceeded',
    'client_archived',
    'account_not_in_client',
    'account_disconnected',
    'no_targets',
    'media_not_publishable',
    'media_not_in_client',
    'thread_not_supported',
    'quota_exceeded',
  ],
  example: { body: { schedule: { type: 'now' } }, data: postExample.data },
  handle: async (call) => {
    const warned = new PostWarnings(call);
    const { state, events, revision, replayed } = await publishDraft(call, warned);
    const { id } = call.params;
    const answer = await withLiveCampaign(call, answerPost(id, state, events));
    const data = await withDecision(call, answer, { state, events });
    const warnings = await warned.of({ id, state, notes: call.notes, replayed });
    return { data, revision, replayed, warnings: [...(await repeatWarnings(call, id, events)), ...warnings] };
  },
});
