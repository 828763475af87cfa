import { cadenceOf, reachOf } from '#domain/cadence.ts';
import { graceMs } from '#domain/cadence-decision.ts';
import { Rejection } from '#domain/decider.ts';
import { type LivePost, post, statusOf } from '#domain/post/post.ts';
import { isOut } from '#domain/post/post-recycle.ts';
import type { Destination } from '#domain/post/scheduling.ts';
import { attemptAt, NotShifted, type ShiftSkipReason, type TargetState, target } from '#domain/post-target/target.ts';
import type { ForeseenAccount, PlannedGoing } from '#domain/what-if.ts';
import type { RecycledPlan } from '#domain/what-if-copies.ts';
import { recycledOfClient } from '#projections/models/post-recycles.ts';
import { type PlannedRow, plannedTargets } from '#projections/queries/planned-targets.ts';
import { takenSlotsOf } from '#projections/queries/posting-rules.ts';
import { Unavailable } from '#runtime/eventing/domain-store.ts';
import { inParallel } from '#runtime/work/in-parallel.ts';
import type { CadenceRule } from '#schemas/cadence.ts';
import type { SimulationCreate } from '#schemas/http/simulation.ts';
import { lacksAuthority } from '#services/workflows/authority.ts';
import { callsFor } from '#services/workflows/cadence/check.ts';
import type { SelectedAccount, SelectedClient } from '#services/workflows/posts/accounts.ts';
import { loadRecycled, nextCopyOf, restoresOf } from '#services/workflows/posts/recycle.ts';
import type { Call } from '../call/operation.ts';
import { invalid } from '../call/refusal.ts';
import type { Reads } from '../posts/checks.ts';
import { timeOf } from '../posts/recycle.ts';

/** What a simulation knows of a client: its targets, its accounts and its recycled posts. It reads, and writes nothing. */

export type Simulating = Call<unknown, unknown, SimulationCreate>;

/** Targets that are not out, and recycled posts, of one simulation. */
const maxTargets = 1_000;
const maxRecycled = 200;
/** Streams that are read at the same time. */
const readAtOnce = 16;
const dayMs = 86_400_000;

/** Targets until the end of the period; of a shift to earlier times also those behind it that it may bring there. */
export const readTargets = async (call: Simulating, to: string): Promise<readonly PlannedRow[]> => {
  const { minutes = 0, days = 0 } = call.body.shift ?? {};
  const earlierMs = Math.max(0, -minutes * 60_000, -days * dayMs + (days < 0 ? dayMs : 0));
  const before = new Date(Date.parse(to) + earlierMs).toISOString();
  const asked = { workspaceId: call.workspaceId, clientId: call.body.clientId, now: call.now, before };
  if (await call.behind(['posts'])) throw new Unavailable('The read model of posts is behind.');
  const rows = await plannedTargets(call.deps.pool, asked, maxTargets + 1);
  if (rows.length > maxTargets) {
    throw invalid('/to', 'too_many', `more than ${maxTargets} targets are planned until then: take a shorter period`);
  }
  return rows;
};

export const goingOf = (row: PlannedRow): PlannedGoing => ({
  ...{ targetId: row.id, postId: row.postId, accountId: row.accountId, platform: row.platform, calls: row.calls },
  dueAt: Date.parse(row.dueAt),
  claimAt: Date.parse(row.retryAt ?? row.dueAt),
  kind: row.status === 'awaiting_approval' ? 'held' : row.isNative ? 'given' : 'claimed',
  deferredSince: row.waits ? Date.parse(row.deferredSince ?? row.dueAt) : null,
  copyOf: null,
});

/** Accounts with what they have published as far as any of these rules looks back. */
export const readAccounts = (
  call: Simulating,
  accounts: readonly SelectedAccount[],
  rules: readonly (readonly CadenceRule[])[],
  planned: ReadonlySet<string>,
): Promise<readonly ForeseenAccount[]> => {
  const now = Date.parse(call.now);
  return Promise.all(
    accounts.map(async ({ id, platform, network, observed }) => {
      const account = { id, platform, network, observed };
      const reach = Math.max(...rules.map((some) => reachOf(cadenceOf(account, some))));
      if (reach === 0) return { ...account, taken: [] };
      const { rows, entries } = await takenSlotsOf(call.deps.pool, {
        ...{ workspaceId: call.workspaceId, accountId: id, waitingFrom: now - graceMs },
        out: { from: now - reach - dayMs, to: now + reach },
      });
      const unshown = new Set(entries.map(({ targetId }) => targetId));
      const taken = [...entries, ...rows.filter(({ targetId }) => !unshown.has(targetId))]
        .filter(({ targetId, state }) => state !== 'waiting' && !planned.has(targetId))
        .map((one) => ({ ...one, state: 'out' as const }));
      return { ...account, taken };
    }),
  );
};

/** A target of a campaign as the shift would leave it; where its decider passes over it, why. */
export type Shifted =
  | { readonly row: PlannedRow; readonly going: PlannedGoing; readonly moved: boolean }
  | { readonly row: PlannedRow; readonly reason: ShiftSkipReason };

const goingAfter = (row: PlannedRow, state: TargetState): PlannedGoing => {
  const before = goingOf(row);
  if (state.status === 'none') return before;
  const dueAt = Date.parse(state.common.dueAt);
  if (state.status !== 'pending' && state.status !== 'rate_limited') return { ...before, dueAt, claimAt: dueAt };
  const isNative = state.common.scheduleMode === 'native';
  const claimAt = isNative ? dueAt : Date.parse(attemptAt(state));
  const waits = before.deferredSince !== null && claimAt === before.claimAt;
  return {
    ...{ ...before, dueAt, claimAt, kind: isNative ? 'given' : 'claimed' },
    deferredSince: waits ? before.deferredSince : null,
  };
};

export const readShifted = async (
  call: Simulating,
  rows: readonly PlannedRow[],
  shift: NonNullable<SimulationCreate['shift']>,
): Promise<readonly Shifted[]> => {
  const { minutes = null, days = null } = shift;
  const { commandId } = call.context;
  const command = { type: 'Shift', commandId, now: call.now, minutes, days } as const;
  const found = new Map<string, Shifted>();
  const own = rows.filter(({ campaignId }) => campaignId === shift.campaignId);
  await inParallel(own, readAtOnce, async (row) => {
    const { state, revision } = await call.deps.store.load(target, row.id);
    try {
      const events = target.decide(command, state);
      const fact = { eventId: '', revision: revision + 1, commandId, occurredAt: call.now };
      const after = events.reduce((one, event) => target.evolve(one, event, fact), state);
      found.set(row.id, { row, going: goingAfter(row, after), moved: events.length > 0 });
    } catch (error) {
      if (!(error instanceof NotShifted)) throw error;
      found.set(row.id, { row, reason: error.reason });
    }
  });
  return own.flatMap(({ id }) => found.get(id) ?? []);
};

type Change = NonNullable<SimulationCreate['recycling']>[number];

/** As PUT /posts/{id}/recycle would set it. @throws Rejection its refusal, with the paths of this body */
const changed = async (call: Simulating, state: LivePost, revision: number, change: Change, index: number) => {
  const { enabled, everyDays, times = null } = change;
  const until = change.until === undefined ? null : new Date(change.until).toISOString();
  const at = `/recycling/${index}`;
  if (until !== null && until <= call.now) throw invalid(`${at}/until`, 'out_of_range', 'must lie in the future');
  const recycling = { store: call.deps.store, ...timeOf(call) };
  const next = enabled ? await nextCopyOf(recycling, state, { everyDays }, call.now) : null;
  const { actor: setBy, role } = call.principal;
  const set = { enabled, everyDays, times, until, setBy, needsApproval: role === 'creator', next };
  try {
    const fact = { eventId: '', revision: revision + 1, commandId: '', occurredAt: call.now };
    const events = post.decide({ type: 'SetRecycle', ...set }, state);
    const after = events.reduce((one, event) => post.evolve(one, event, fact), state as ReturnType<typeof post.evolve>);
    return after.status === 'live' ? after : state;
  } catch (error) {
    if (!(error instanceof Rejection)) throw error;
    const errors = error.errors.map((one) => ({ ...one, path: `${at}${one.path}` }));
    throw new Rejection(error.code, error.message, { errors });
  }
};

/** A post as it is recycled, and as it would be; null: it is not. */
export interface RecycledTwice {
  readonly now: RecycledPlan | null;
  readonly then: RecycledPlan | null;
}

const idsOfClient = async (call: Simulating): Promise<readonly string[]> => {
  const ids: string[] = [];
  for (let after = '00000000-0000-0000-0000-000000000000'; ; ) {
    const some = await recycledOfClient(call.deps.pool, call.body.clientId, after);
    ids.push(...some);
    if (ids.length > maxRecycled) {
      throw invalid('/clientId', 'too_many', `has more than ${maxRecycled} posts that are recycled`);
    }
    const last = some.at(-1);
    if (last === undefined) return ids;
    after = last;
  }
};

export const readRecycled = async (
  call: Simulating,
  reads: Reads,
  client: SelectedClient,
  rows: readonly PlannedRow[],
): Promise<readonly RecycledTwice[]> => {
  const changes = new Map((call.body.recycling ?? []).map((one, index) => [one.postId, { one, index }]));
  const ids = [...new Set([...(await idsOfClient(call)), ...changes.keys()])];
  const found: RecycledTwice[] = [];
  await inParallel(ids, readAtOnce, async (id) => {
    const loaded = await call.deps.store.load(post, id);
    const { state, revision, events } = loaded;
    const change = changes.get(id);
    if (change !== undefined && (events[0]?.metadata.workspaceId !== call.workspaceId || !('clientId' in state))) {
      throw invalid(`/recycling/${change.index}/postId`, 'unknown_id', 'is not known');
    }
    if (change !== undefined && 'clientId' in state && state.clientId !== client.id) {
      throw invalid(`/recycling/${change.index}/postId`, 'mismatch', 'belongs to another client');
    }
    if (state.status !== 'live') {
      if (change === undefined) return;
      throw new Rejection('post_not_scheduled', 'Only a post that is scheduled, or out, is recycled.');
    }
    const about = await aboutPost(call, reads, client, rows, { id, state });
    const [restoredAt = null] = await restoresOf({ pool: call.deps.pool }, loaded);
    const after = change === undefined ? state : await changed(call, state, revision, change.one, change.index);
    found.push({
      now: await ofState(call, state, about, restoredAt, client),
      then: await ofState(call, after, about, restoredAt, client),
    });
  });
  return found.toSorted((a, b) => ((a.then ?? a.now)?.postId ?? '').localeCompare((b.then ?? b.now)?.postId ?? ''));
};

type About = Pick<
  RecycledPlan,
  'postId' | 'body' | 'calls' | 'destinations' | 'pattern' | 'open' | 'timed' | 'waiting'
>;

const aboutPost = async (
  call: Simulating,
  reads: Reads,
  client: SelectedClient,
  rows: readonly PlannedRow[],
  { id, state }: { readonly id: string; readonly state: LivePost },
): Promise<About> => {
  const isEnded = isOut(statusOf(state));
  const recycled = isEnded ? await loadRecycled({ store: call.deps.store, ...timeOf(call) }, state) : null;
  const kept = state.plan.targets.filter(({ targetId }) => state.targets[targetId]?.outcome !== 'canceled');
  const own = new Map(rows.filter(({ postId }) => postId === id).map((row) => [row.id, row]));
  const outcome = (targetId: string) => state.targets[targetId]?.outcome ?? null;
  const accounts = await reads.accounts(kept.map(({ accountId }) => accountId));
  return {
    ...{ postId: id, body: state.body, calls: callsFor(state.body) },
    destinations: accounts
      .filter((one) => one !== null)
      .filter(({ status, clientId }) => status !== 'disconnected' && clientId === client.id)
      .map(
        (one): Destination => ({
          ...{ accountId: one.id, clientId: one.clientId, platform: one.platform, scopes: one.scopes },
          ...{ accountTimezone: one.timezone, clientTimezone: client.timezone },
        }),
      ),
    pattern: recycled?.pattern ?? null,
    open: isEnded ? [] : kept.map(({ targetId }) => targetId).filter((one) => outcome(one) === null),
    timed: kept.map((one) => own.get(one.targetId) ?? one),
    waiting: (recycled?.waiting ?? []).toReversed().flatMap(({ targetIds }) => targetIds),
  };
};

const ofState = async (
  call: Simulating,
  { recycle }: LivePost,
  about: About,
  restoredAt: string | null,
  { approvalRequired }: SelectedClient,
): Promise<RecycledPlan | null> => {
  if (recycle === null || !recycle.enabled || recycle.settings === null) return null;
  const isHeld =
    approvalRequired ||
    recycle.needsApproval ||
    (await lacksAuthority(call.deps.store, call.workspaceId, recycle.setBy));
  return { ...about, recycle, isHeld, restoredAt };
};
