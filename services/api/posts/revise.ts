import { isDeepStrictEqual } from 'node:util';
import { isConflict } from '#contracts/ports/event-store.ts';
import { Rejection } from '#domain/decider.ts';
import { type LivePost, newestBody, type PostState, post } from '#domain/post/post.ts';
import type { Submission } from '#domain/post/post-approval.ts';
import {
  isRevisableAtNetwork,
  neededTimes,
  revisableStatuses,
  type SkipReason,
  skipReasonOf,
  type TargetState,
} from '#domain/post-target/target.ts';
import { monthOf } from '#domain/zones.ts';
import { postingRulesOf } from '#projections/queries/posting-rules.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { type CommandContext, foldEvents, type Loaded } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { requireRoom } from '#runtime/eventing/stream-room.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { IdParams } from '#schemas/http/common.ts';
import { PostRevise, RevisedPost } from '#schemas/http/post-revise.ts';
import type { PostBody } from '#schemas/post.ts';
import type { PlannedTarget, TargetTime } from '#schemas/target.ts';
import { type FannedOut, fanOut } from '#services/workflows/fan-out.ts';
import { selectAccounts } from '#services/workflows/posts/accounts.ts';
import type { Checked } from '#services/workflows/posts/compose.ts';
import type { Placed } from '#services/workflows/quota/reserve.ts';
import { isOf } from '../call/commands.ts';
import { type Call, operation } from '../call/operation.ts';
import { invalid } from '../call/refusal.ts';
import { answerWithTargets, PostWarnings, withLiveCampaign } from './answers.ts';
import { changedMembers, revisedBody } from './body.ts';
import { Overtaken, planForCaller, Reads, requireAuthority } from './checks.ts';
import { repeatWarnings, withDecision } from './decisions.ts';
import { postDataExample, postsTag } from './examples.ts';
import { loadPost, tendOrLeave } from './load.ts';
import { giveBackOrLeave, reserveBehind } from './quota.ts';

/** Revises a scheduled post for the targets that are not out yet. */

type Revising = Call<{ readonly id: string }, unknown, PostRevise>;

interface Skip {
  readonly targetId: string;
  readonly reason: SkipReason | 'account_disconnected';
}

interface Accepted {
  /** Revision of the post at which the targets were seen: the revise is appended there or nowhere. */
  readonly revision: number;
  readonly body: PostBody;
  readonly changed: readonly string[];
  readonly targetIds: readonly string[];
  readonly times: readonly TargetTime[] | null;
  readonly skipped: readonly Skip[];
  /** Absent: neither the post nor its caller needs an approval. */
  readonly submission?: Submission;
  /** The targets that need a place of the quota in a month in which they have none. Absent: none does. */
  readonly places?: readonly Placed[];
}

interface Revised {
  readonly revision: number;
  /** Revisions of all targets, in the order of the plan: the answer to a repeat shows the targets as they were. */
  readonly targets: readonly (readonly [targetId: string, revision: number])[];
  readonly changed: readonly string[];
  readonly skipped: readonly Skip[];
}

interface RevisedStreams extends Revised {
  readonly events: readonly DecodedEvent[];
  readonly targetEvents: readonly { readonly events: readonly DecodedEvent[] }[];
  readonly replayed: boolean;
}

/** Streams of targets that are read at once. */
const readAtOnce = 50;
/** Times that a call begins anew; then it gives up. */
const maxRounds = 10;

/**
 * The call is accepted with absolute values, so that a repeat after a crash carries out the same ones. If we die after
 * the acceptance, nothing was revised, and the repeat goes on where the post is unchanged. If we die after the append,
 * the sweeper, or the repeat, carries the revise out on each target.
 */
const revisePlanned = async (call: Revising, warned: PostWarnings): Promise<RevisedStreams> => {
  for (let round = 1; ; round += 1) {
    try {
      return await attempt(call, warned);
    } catch (error) {
      if (!(error instanceof Overtaken) || round >= maxRounds) throw error;
    }
  }
};

const attempt = async (call: Revising, warned: PostWarnings): Promise<RevisedStreams> => {
  const { id } = call.params;
  const { store } = call.deps;
  let own: Revised | undefined;
  let fanned: FannedOut | undefined;
  const { result, replayed } = await call.once(
    () => accept(call, warned),
    async (accepted, context) => {
      const written = await append(call, accepted, context);
      faultPoint('revise:after-append');
      fanned = await fanOut(store, id, context, { positions: call.positions, loaded: written });
      await tendOrLeave(call, id, fanned.post);
      await giveBackOrLeave(call, id, accepted.targetIds);
      own = outcomeOf(accepted, fanned, written.events.find(isOf(context))?.revision ?? -1);
      return own;
    },
  );
  // A concurrent call under the same key may have completed first: its result is the answer of both.
  const shown = isDeepStrictEqual(own, result) ? fanned : undefined;
  const events = shown?.post.events ?? (await store.readStream(`post-${id}`, result.revision));
  const targetEvents = shown === undefined ? await readTargets(call, result.targets) : eventsOf(shown, result.targets);
  for (const stream of [{ events }, ...targetEvents]) store.note(stream.events, call.positions);
  return { ...result, events, targetEvents, replayed };
};

/** Every earlier plan and intent is carried out first: the targets are then as the post wants them. */
const accept = async (call: Revising, warned: PostWarnings): Promise<Accepted> => {
  const { id } = call.params;
  const before = await loadPost(call, id);
  call.guard(before);
  const fanned = await fanOut(call.deps.store, id, call.context, { positions: call.positions });
  call.guard(fanned.post);
  const { state, revision, events } = fanned.post;
  if (state.status !== 'live') throw new Rejection('post_not_scheduled', 'A draft is replaced, not revised.');
  requireRoom(events);
  const reads = new Reads(call);
  // What the post asks for is revised further; what was rejected is gone.
  const base = newestBody(state);
  const body = revisedBody(base, call.body);
  const isTimed = changesTimes(call.body, body);
  const planned = async (isHeld: boolean) => {
    const { open, skipped, choose } = await reach(call, reads, state, fanned.targets, isHeld);
    const targetIds = open.map(({ targetId }) => targetId);
    if (targetIds.length === 0) {
      throw new Rejection('target_not_pending', 'No target of the post can be changed any more.');
    }
    const composed = {
      id,
      clientId: state.clientId,
      // Targets that keep their times are checked without them: the schedule of the post may be long past.
      body: { ...body, campaignId: null, ...(isTimed ? {} : { schedule: atOnce }) },
      planNumber: state.plan.number,
      choose,
      revised: state,
      keepsTimes: !isTimed,
      onChecked: (found: Checked) => warned.begin(id, body, isTimed ? found : withTimes(found, fanned)),
    };
    return { ...(await planForCaller(call, composed, reads)), targetIds, skipped };
  };
  const first = await planned(false);
  const atNetwork = first.targetIds.some((one) => fanned.targets.get(one)?.state.status === 'handed_to_platform');
  const isAgain = first.submission !== undefined && atNetwork;
  const { plan, targetIds, skipped, ...submitted } = isAgain ? await planned(true) : first;
  const times = isTimed ? targetIds.flatMap((targetId) => timesOf(plan.targets, targetId)) : null;
  const places = await placesOf(call, fanned, targetIds, times);
  const accepted = { revision, body, changed: changedMembers(base, body), targetIds, times, skipped };
  return { ...accepted, ...submitted, ...(places.length === 0 ? {} : { places }) };
};

/** Whether the revise gives its targets new times. */
const changesTimes = ({ schedule, timezone }: PostRevise, body: PostBody): boolean =>
  schedule !== undefined || (timezone !== undefined && body.schedule.scheduledLocal !== null);

/** With the times that the targets keep. */
const withTimes = (found: Checked, { targets }: FannedOut): Checked => {
  const kept = found.plan.targets.map((one) => {
    const state = targets.get(one.targetId)?.state;
    return state === undefined || state.status === 'none' ? one : { ...one, dueAt: state.common.dueAt };
  });
  return { ...found, plan: { ...found.plan, targets: kept } };
};

/** A failed target needs a place again, and so does one that moves into another month. */
const placesOf = async (
  call: Revising,
  { targets }: FannedOut,
  targetIds: readonly string[],
  times: readonly TargetTime[] | null,
): Promise<readonly Placed[]> => {
  const { quota, timezone } = await postingRulesOf(call.deps.pool, call.workspaceId);
  if (quota === null) return [];
  return targetIds.flatMap((targetId, index) => {
    const state = targets.get(targetId)?.state;
    if (state === undefined || state.status === 'none') return [];
    const dueAt = times?.[index]?.dueAt ?? state.common.dueAt;
    const month = monthOf(dueAt, timezone);
    return neededTimes(state).some((one) => monthOf(one, timezone) === month) ? [] : [{ targetId, dueAt }];
  });
};

const atOnce: PostBody['schedule'] = {
  type: 'now',
  scheduledAt: null,
  scheduledLocal: null,
  from: null,
  to: null,
  spreadMinutes: null,
};

const timesOf = (planned: readonly PlannedTarget[], targetId: string): readonly TargetTime[] =>
  planned
    .filter((one) => one.targetId === targetId)
    .map(({ dueAt, scheduledLocal, timezone, jitterSeconds, scheduleMode, scheduleModeReason }) => ({
      dueAt,
      scheduledLocal,
      timezone,
      jitterSeconds,
      scheduleMode,
      scheduleModeReason,
    }));

/** The targets that a revise may change, and why it passes over the others. @param isHeld the new content needs an approval */
const reach = async (
  { context }: Revising,
  reads: Reads,
  { plan }: LivePost,
  targets: ReadonlyMap<string, Loaded<TargetState>>,
  isHeld: boolean,
) => {
  const skipped: Skip[] = [];
  const reasonOf = (state: TargetState | undefined): SkipReason | null => {
    if (state === undefined || state.status === 'none') return null;
    return !isHeld && isRevisableAtNetwork(state, context.now) ? null : skipReasonOf(state, revisableStatuses);
  };
  const open = plan.targets.filter(({ targetId }) => {
    const reason = reasonOf(targets.get(targetId)?.state);
    if (reason !== null) skipped.push({ targetId, reason });
    return reason === null;
  });
  const accounts = await reads.accounts(open.map(({ accountId }) => accountId));
  const connected = open.flatMap((planned, index) => {
    const account = accounts[index] ?? null;
    if (account !== null && account.status !== 'disconnected') return [{ planned, account }];
    skipped.push({ targetId: planned.targetId, reason: 'account_disconnected' });
    return [];
  });
  return {
    open: connected.map(({ planned }) => planned),
    skipped,
    choose: selectAccounts(connected.map(({ account }) => account)),
  };
};

/**
 * Appends the accepted revise, unless this call or an earlier one under its key has. @throws Overtaken where the post has
 * changed since, so that its targets may be others, or the caller lost their authority
 */
const append = async (
  call: Revising,
  { revision, body, changed, targetIds, times, submission, places }: Accepted,
  context: CommandContext,
): Promise<Loaded<PostState>> => {
  const { deps, params, positions } = call;
  const load = async (): Promise<Loaded<PostState>> => {
    const loaded = await deps.store.load(post, params.id);
    if (loaded.revision !== revision && !loaded.events.some(isOf(context))) throw new Overtaken();
    return loaded;
  };
  const loaded = await load();
  if (loaded.revision !== revision) return loaded;
  requireAuthority(call, submission === undefined ? {} : { submission });
  const { commandId } = context;
  const asked = submission === undefined ? {} : { submission };
  if (places !== undefined) await reserveBehind(call, params.id, revision, places);
  const command = { type: 'Revise', commandId, body, changed, targetIds, times, ...asked } as const;
  try {
    return await execute(deps.store, post, params.id, command, context, { positions, loaded, redecide: false });
  } catch (error) {
    // The other writer may be a call under the same key.
    if (isConflict(error)) return load();
    throw error;
  }
};

const outcomeOf = (
  { targetIds, skipped }: Accepted,
  { post: { state, revision, events }, targets }: FannedOut,
  intentRevision: number,
): Revised => {
  const late = events
    .filter(({ type, data }) => type === 'PostTargetsSkipped' && data.intentRevision === intentRevision)
    .flatMap(({ data }) => {
      const { targetIds: ids, reason } = data as { readonly targetIds: readonly string[]; readonly reason: SkipReason };
      return ids.map((targetId): Skip => ({ targetId, reason }));
    });
  const planned = state.status === 'live' ? state.plan.targets : [];
  return {
    revision,
    targets: planned.map(({ targetId }) => [targetId, targets.get(targetId)?.revision ?? -1]),
    changed: targetIds.filter((id) => !late.some(({ targetId }) => targetId === id)),
    skipped: [...skipped, ...late],
  };
};

const eventsOf = (fanned: FannedOut, targets: Revised['targets']): RevisedStreams['targetEvents'] =>
  targets.map(([targetId]) => ({ events: fanned.targets.get(targetId)?.events ?? [] }));

const readTargets = async (
  { deps }: Revising,
  targets: Revised['targets'],
): Promise<RevisedStreams['targetEvents']> => {
  const read: { readonly events: readonly DecodedEvent[] }[] = [];
  for (let at = 0; at < targets.length; at += readAtOnce) {
    const some = targets.slice(at, at + readAtOnce);
    const streams = some.map(([id, revision]) => deps.store.readStream(`target-${id}`, revision));
    read.push(...(await Promise.all(streams)).map((events) => ({ events })));
  }
  return read;
};

export const revisePost = operation({
  id: 'revisePost',
  method: 'POST',
  path: '/posts/{id}/revise',
  tag: postsTag,
  summary: 'Revise a scheduled post',
  description: [
    'Changes a post for its targets that are pending, held, failed or with a network’s own scheduler; a failed one is tried again with the new content, at its time or at once where that has passed. Every check of POST /posts runs on the revised post, for exactly these targets, and the call is refused as a whole if one of them cannot go out.',
    'A member that is sent replaces that of the post; one that is absent stays. With a `schedule`, the targets get new times; without one, each keeps its own. A target that is published, canceled, on its way, rate-limited or with an unknown outcome keeps the content and the time that it had, and shows them although the post shows the new ones; `revise.skipped` says why.',
    'One that the network’s own scheduler has (`handed_to_platform`) says `undo: pending` until the network publishes it with the new content, or has deleted it, where only another post can have that content: this service hands that over anew. It shows the content and the time that the network has; `undo: failed` says that the network published it so. It is passed over less than a minute before its time, where its cancel is under way, and where the new content needs an approval.',
    'If the publisher takes a target at the same moment, it goes out with either the former or the new content as a whole: `revise` says which. Of two revises at the same time the later one begins from the result of the other.',
  ].join('\n\n'),
  scope: 'posts.compose',
  limited: 'ids',
  idempotent: 'accepted',
  cost: 1,
  ifMatch: true,
  merge: true,
  params: IdParams,
  body: PostRevise,
  answer: RevisedPost,
  codes: [
    'validation_failed',
    'idempotency_key_reused',
    'post_not_scheduled',
    'target_not_pending',
    'schedule_in_past',
    'schedule_too_far',
    'cadence_exceeded',
    'client_archived',
    'media_not_publishable',
    'media_not_in_client',
    'thread_not_supported',
    'stream_full',
    'quota_exceeded',
  ],
  example: {
    body: { content: postDataExample.content },
    data: {
      ...postDataExample,
      revision: 1,
      revise: { changed: postDataExample.targets.map(({ id }) => id), skipped: [] },
    },
  },
  handle: async (call) => {
    if (Object.keys(call.body).length === 0) throw invalid('', 'required', 'at least one member must be sent');
    const { id } = call.params;
    const warned = new PostWarnings(call);
    const { events, targetEvents, revision, replayed, changed, skipped } = await revisePlanned(call, warned);
    const state = foldEvents(post, events);
    const answer = await withLiveCampaign(call, answerWithTargets(events, targetEvents));
    const shown = await withDecision(call, answer, { state, events });
    const isTimed = state.status !== 'none' && changesTimes(call.body, newestBody(state));
    const targets = shown.targets.filter((one) => changed.includes(one.id));
    const about = { id, state, targets, sent: call.body, notes: call.notes, isTimed, replayed };
    const warnings = [...(await repeatWarnings(call, id, events)), ...(await warned.of(about))];
    return { data: { ...shown, revise: { changed, skipped } }, revision, replayed, warnings };
  },
});
