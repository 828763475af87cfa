import { type TargetCommand, target } from '#domain/post-target/target.ts';
import type { TargetRow } from '#projections/models/targets.ts';
import { listTargets, type TargetFilters } from '#projections/queries/target-queries.ts';
import { type CommandContext, Unavailable } from '#runtime/eventing/domain-store.ts';
import { requireRoom } from '#runtime/eventing/stream-room.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { inParallel } from '#runtime/work/in-parallel.ts';
import { maxSelectedTargets, PostTargetBulk, PostTargetBulkResult } from '#schemas/http/post-target-bulk.ts';
import { executeWithPlace } from '#services/workflows/quota/reserve.ts';
import { withinLimit } from '../call/access.ts';
import { isOf, streamUpTo } from '../call/commands.ts';
import { type Call, operation, type Pieces } from '../call/operation.ts';
import { type ItemProblem, itemProblem, problemBody } from '../call/problems.ts';
import { invalid } from '../call/refusal.ts';
import { answerTarget } from './answers.ts';
import { filtersOf } from './body.ts';
import { bulkTargetsExample, postTargetsTag } from './examples.ts';
import { type LoadedTarget, loadTarget, recordOrLeave, wakeOrLeave } from './load.ts';
import { giveBackOrLeave, requireCadence, reservingOf } from './quota.ts';
import { requireWordForRetry } from './restore-word.ts';
import { canceling, rescheduling, retrying, type TargetAction } from './target-actions.ts';

/** One action on many targets. Each target decides for itself; a refusal of one stops no other. */

type Asking = Call<unknown, unknown, PostTargetBulk>;

/** Targets under way at once. */
const width = 8;

/** Absolute values, decided once: a repeat after a crash carries out the same ones. */
type Decision =
  | { readonly targetId: string; readonly decided: unknown }
  | { readonly targetId: string; readonly problem: ItemProblem };

type Outcome =
  | { readonly targetId: string; readonly revision: number }
  | { readonly targetId: string; readonly problem: ItemProblem };

interface Finished {
  /** Of the call that finished: the problems of its targets name it. */
  readonly correlationId: string;
  readonly outcomes: readonly Outcome[];
}

const actionOf = ({ action, ...wanted }: PostTargetBulk): TargetAction<unknown> => {
  const known = { reschedule: () => rescheduling(wanted), retry: () => retrying, cancel: () => canceling };
  return known[action]() as TargetAction<unknown>;
};

const actOnTargets = async (call: Asking): Promise<Pieces> => {
  const action = actionOf(call.body);
  const { targetIds, select } = call.body;
  if ((targetIds === undefined) === (select === undefined)) {
    throw invalid('', 'exclusive', 'exactly one of targetIds and select must be sent');
  }
  const listed = targetIds === undefined ? null : [...new Set(targetIds)];
  if (listed !== null) await call.charge(listed.length - 1);
  const seen = new Map<string, LoadedTarget>();
  const { result, replayed } = await call.once(
    async () => decideAll(call, action, listed ?? (await selected(call, select ?? {})), seen),
    async (decisions, context): Promise<Finished> => ({
      correlationId: call.correlationId,
      outcomes: await carryOutAll(call, action, decisions, context, seen),
    }),
  );
  return { ...rendered(call, result, await shownOf(call, result, seen)), replayed };
};

/** The statuses in which a target is selected. One that was handed over is not moved: its result says so. */
const possible = {
  reschedule: ['pending', 'rate_limited', 'awaiting_approval', 'handed_to_platform'],
  retry: ['failed', 'rate_limited'],
  cancel: ['pending', 'rate_limited', 'awaiting_approval', 'handed_to_platform', 'publishing', 'outcome_unknown'],
} as const;

/** Of the attempts under way, and of those whose outcome is not known, a cancel reaches hand-overs alone. */
const isPossible = ({ status, schedule_mode: mode }: Pick<TargetRow, 'status' | 'schedule_mode'>): boolean =>
  mode === 'native' || (status !== 'publishing' && status !== 'outcome_unknown');

/**
 * The targets of a selection. The call is accepted with them, so that a repeat neither moves one of them twice nor takes
 * another that came into the time range meanwhile.
 */
const selected = async (call: Asking, select: NonNullable<PostTargetBulk['select']>): Promise<readonly string[]> => {
  const { deps, workspaceId, principal, body } = call;
  const { postId, from, to } = select;
  if (postId === undefined && (from === undefined || to === undefined)) {
    throw invalid('/select', 'required', 'needs postId, or from and to');
  }
  if (await call.behind(['posts'])) throw new Unavailable('The read model of the targets is behind.');
  const filters: TargetFilters = {
    ...filtersOf({ ...select, statuses: possible[body.action] }),
    ...withinLimit(principal),
  };
  const page = { after: null, limit: maxSelectedTargets };
  const { rows, hasMore } = await deps.lists.run(workspaceId, filters, (knex) =>
    listTargets(knex, workspaceId, filters, page),
  );
  if (hasMore) {
    throw invalid('/select', 'too_many', `selects more than ${maxSelectedTargets} targets: narrow it`);
  }
  const ids = rows.flatMap(({ target: row }) => (isPossible(row) ? [row.id] : []));
  await call.charge(Math.max(0, ids.length - 1));
  return ids;
};

const decideAll = async (
  call: Asking,
  action: TargetAction<unknown>,
  ids: readonly string[],
  seen: Map<string, LoadedTarget>,
): Promise<readonly Decision[]> => {
  const decisions = new Map<string, Decision>();
  await inParallel(ids, width, async (targetId) => {
    try {
      const loaded = await loadTarget(call, targetId);
      const isNotOut = action.sendsOut === true && (await requireWordForRetry(call, loaded));
      const decided = action.accept(loaded, call.now, isNotOut);
      const events = target.decide(action.command(decided, call.context.commandId), loaded.target.state);
      if (action.optional && events.length > 0) requireRoom(loaded.target.events);
      seen.set(targetId, loaded);
      decisions.set(targetId, { targetId, decided });
    } catch (error) {
      decisions.set(targetId, { targetId, problem: itemProblem(error) });
    }
  });
  return ids.flatMap((id) => decisions.get(id) ?? []);
};

/**
 * If we die between two targets, those before are changed and the rest are not. The caller's repeat finds the command
 * in the streams of the former, and appends the decided values to the rest.
 */
const carryOutAll = async (
  call: Asking,
  action: TargetAction<unknown>,
  decisions: readonly Decision[],
  context: CommandContext,
  seen: Map<string, LoadedTarget>,
): Promise<readonly Outcome[]> => {
  const outcomes = new Map<string, Outcome>();
  await inParallel(decisions, width, async (decision) => {
    const { targetId } = decision;
    if ('problem' in decision) {
      outcomes.set(targetId, decision);
      return;
    }
    try {
      const command = action.command(decision.decided, context.commandId);
      const loaded = await carryOut(
        call,
        seen.get(targetId) ?? (await loadTarget(call, targetId)),
        command,
        action,
        context,
      );
      seen.set(targetId, loaded);
      const { events, revision } = loaded.target;
      outcomes.set(targetId, { targetId, revision: events.findLast(isOf(context))?.revision ?? revision });
    } catch (error) {
      outcomes.set(targetId, { targetId, problem: itemProblem(error) });
    }
    faultPoint('bulk:between-targets');
  });
  await recordAll(call, outcomes.values(), seen);
  if (action.sendsOut === true) await wakeOrLeave(call, [...outcomes.keys()]);
  return decisions.flatMap(({ targetId }) => outcomes.get(targetId) ?? []);
};

/** Once for each post, whatever the number of its targets. */
const recordAll = async (
  call: Asking,
  outcomes: Iterable<Outcome>,
  seen: ReadonlyMap<string, LoadedTarget>,
): Promise<void> => {
  const done = Array.from(outcomes).flatMap((one) => ('problem' in one ? [] : (seen.get(one.targetId) ?? [])));
  const byPost = Map.groupBy(done, ({ target: { state } }) => state.common.postId);
  await inParallel([...byPost], width, async ([postId, all]) => {
    await recordOrLeave(
      call,
      postId,
      all.map((one) => one.target),
      all[0]?.post,
    );
  });
};

const carryOut = async (
  call: Asking,
  loaded: LoadedTarget,
  command: TargetCommand,
  { optional }: TargetAction<unknown>,
  context: CommandContext,
): Promise<LoadedTarget> => {
  const { state } = loaded.target;
  // This command's own event must not refuse its repeat.
  if (loaded.target.events.some(isOf(context))) return loaded;
  await requireCadence(call, state, command);
  const { postId, targetId } = state.common;
  const options = { positions: call.positions, optional, loaded: loaded.target, partitionKey: postId };
  const after = await executeWithPlace(await reservingOf(call, context), targetId, command, options);
  await giveBackOrLeave(call, postId, [targetId]);
  return after.state.status === 'none' ? loaded : { ...loaded, target: { ...after, state: after.state } };
};

/** Each target as this call, or the one that finished before, left it. */
const shownOf = async (
  call: Asking,
  { outcomes }: Finished,
  seen: ReadonlyMap<string, LoadedTarget>,
): Promise<ReadonlyMap<string, unknown>> => {
  const { store } = call.deps;
  const shown = new Map<string, unknown>();
  await inParallel(outcomes, width, async (outcome) => {
    if ('problem' in outcome) return;
    const { targetId, revision } = outcome;
    const known = seen.get(targetId);
    const { state, events } = await streamUpTo(call, target, targetId, revision, known?.target);
    const postId = state.status === 'none' ? '' : state.common.postId;
    const postEvents = known?.post.events ?? (await store.readStream(`post-${postId}`));
    store.note(events, call.positions);
    shown.set(targetId, answerTarget(events, postEvents));
  });
  return shown;
};

const rendered = (
  { deps, asSent }: Asking,
  { correlationId, outcomes }: Finished,
  shown: ReadonlyMap<string, unknown>,
): Pick<Pieces, 'head' | 'items' | 'tail'> => ({
  head: '{"object":"post_target_bulk_result","results":[',
  items: function* () {
    for (const outcome of outcomes) {
      const { targetId } = outcome;
      const what =
        'problem' in outcome
          ? { ok: false, error: problemBody(deps, correlationId, outcome.problem) }
          : { ok: true, target: shown.get(targetId) };
      yield { targetId: asSent(targetId), ...what };
    }
  },
  tail: ']}',
});

export const bulkPostTargets = operation({
  id: 'bulkPostTargets',
  method: 'POST',
  path: '/post-targets/bulk',
  tag: postTargetsTag,
  summary: 'Move, retry or cancel many targets',
  description: [
    'Each target is treated as by the operation of the same name, and one that is refused stops no other: the call answers 200 with a result for each. An id that is unknown, or of another workspace, is refused with `not_found`.',
    '`select` takes the targets of a post, or of a time range, for which the action is possible, as the lists show them with all that the caller wrote before. They are chosen once, with their new times: a repeat under the same key moves no target twice, and none that came into the range meanwhile.',
    'The new times are decided once. With an Idempotency-Key, a repeat of the call answers the same results; if the call was cut off, or answered 503, the repeat under the same key moves the rest of the targets to the times that were decided first.',
    'Counts as one request for each target, taken as debt.',
  ].join('\n\n'),
  scope: 'posts.compose',
  limited: 'ids',
  idempotent: 'accepted',
  cost: 1,
  body: PostTargetBulk,
  answer: PostTargetBulkResult,
  codes: ['validation_failed'],
  example: bulkTargetsExample,
  handle: (call) => actOnTargets(call),
});
