import { setImmediate } from 'node:timers/promises';
import { withRule } from '#domain/cadence.ts';
import type { ShiftSkipReason } from '#domain/post-target/target.ts';
import {
  composeAnew,
  type Foreseen,
  ForeseenPlaces,
  Foresight,
  type PlannedGoing,
  refusalOf,
} from '#domain/what-if.ts';
import { RecycleCopies } from '#domain/what-if-copies.ts';
import { monthAfter, monthBegin, monthOf } from '#domain/zones.ts';
import type { PlannedRow } from '#projections/queries/planned-targets.ts';
import { readPostingRules } from '#projections/queries/posting-rules.ts';
import { usedPlaces } from '#projections/queries/quota-targets.ts';
import type { CadenceRule } from '#schemas/cadence.ts';
import { invalid, tooLate } from '../call/refusal.ts';
import { Reads } from '../posts/checks.ts';
import {
  goingOf,
  type RecycledTwice,
  readAccounts,
  readRecycled,
  readShifted,
  readTargets,
  type Shifted,
  type Simulating,
} from './read.ts';

/** The same plan under the rules as they are, and under the others. */

/** Milliseconds that a simulation may take, and its steps between two turns of the event loop. */
const patienceMs = 8_000;
const stepsForTurn = 50;
/** Months of places that are looked at; a post is scheduled at most 18 months ahead. */
const maxMonths = 24;

type RefusalsByPost = ReadonlyMap<string, { readonly code: string; readonly message: string }>;

/** What becomes of the plan under some rules. */
export interface Foreseeing {
  readonly found: ReadonlyMap<string, Foreseen>;
  readonly counted: ReadonlyMap<string, number>;
  readonly limit: number | null;
  readonly skipped: readonly { readonly targetId: string; readonly reason: ShiftSkipReason }[];
  readonly anew: RefusalsByPost;
}

interface Known {
  readonly call: Simulating;
  readonly until: number;
  readonly timezone: string;
  readonly rows: readonly PlannedRow[];
  readonly accounts: Awaited<ReturnType<typeof readAccounts>>;
  readonly counted: ReadonlyMap<string, number>;
  readonly recycled: readonly RecycledTwice[];
  /** As of `performance.now()`. */
  readonly deadline: number;
}

interface Rules {
  readonly cadence: readonly CadenceRule[];
  readonly limit: number | null;
  readonly shifted: readonly Shifted[];
  readonly at: 'now' | 'then';
}

const inTurns = async <Found>(steps: Generator<void, Found>, deadline: number): Promise<Found> => {
  for (let count = 1; ; count += 1) {
    const { done, value } = steps.next();
    if (done === true) return value;
    if (count % stepsForTurn !== 0) continue;
    await setImmediate();
    if (performance.now() > deadline) tooLate();
  }
};

/** Moves the targets of a campaign as a shift does: what would come too near to others, or finds no place, stays. */
const addShifted = (foresight: Foresight, shifted: readonly Shifted[], now: number) => {
  const together = new Set(shifted.map(({ row }) => row.id));
  const skipped: { readonly targetId: string; readonly reason: ShiftSkipReason }[] = [];
  const planned: PlannedGoing[] = [];
  for (const one of shifted) {
    const before = goingOf(one.row);
    const reason = 'reason' in one ? one.reason : one.moved ? faultOf(foresight, before, one.going, together) : null;
    if (reason !== null) skipped.push({ targetId: one.row.id, reason });
    planned.push(reason !== null || 'reason' in one ? before : one.going);
  }
  for (const one of planned) foresight.add(one, now);
  return { skipped, planned };
};

const faultOf = (
  foresight: Foresight,
  before: PlannedGoing,
  { targetId, postId, accountId, dueAt: at, calls }: PlannedGoing,
  together: ReadonlySet<string>,
): 'cadence_exceeded' | 'quota_exceeded' | null => {
  if (foresight.faultAt(accountId, { at, calls }, (id) => !together.has(id)) !== null) return 'cadence_exceeded';
  const { places } = foresight;
  if (places.monthOf(at) === places.monthOf(before.dueAt)) return null;
  if (refusalOf(() => places.take(postId, [{ targetId, at }])) !== null) return 'quota_exceeded';
  places.giveBack(before.dueAt);
  return null;
};

/** The places that others than the plan hold. */
const without = (known: Known, planned: readonly PlannedGoing[]): ReadonlyMap<string, number> => {
  const left = new Map(known.counted);
  for (const { dueAt } of planned) {
    const month = monthOf(new Date(dueAt).toISOString(), known.timezone);
    left.set(month, Math.max(0, (left.get(month) ?? 0) - 1));
  }
  return left;
};

const foresee = async (known: Known, { cadence, limit, shifted, at }: Rules): Promise<Foreseeing> => {
  const { call, rows, accounts, counted, timezone, until, deadline } = known;
  const now = Date.parse(call.now);
  const places = new ForeseenPlaces(counted, limit, timezone);
  const foresight = new Foresight(accounts, cadence, places);
  const moving = new Set(shifted.map(({ row }) => row.id));
  const others = rows.filter(({ id }) => !moving.has(id)).map(goingOf);
  for (const one of others) foresight.add(one, now);
  const { skipped, planned } = addShifted(foresight, shifted, now);
  const copies = new RecycleCopies(
    known.recycled.flatMap((one) => one[at] ?? []),
    until,
  );
  copies.begin(foresight, now);
  await inTurns(foresight.steps(copies), deadline);
  const all = [...others, ...planned];
  const born = new Map(rows.map(({ postId, createdAt }) => [postId, Date.parse(createdAt)]));
  const posts = [...Map.groupBy(all, ({ postId }) => postId)].map(([postId, targets]) => ({
    ...{ postId, targets, bornAt: born.get(postId) ?? 0 },
  }));
  const own = new ForeseenPlaces(without(known, rows.map(goingOf)), limit, timezone);
  const anew = await inTurns(composeAnew(new Foresight(accounts, cadence, own), posts, now), deadline);
  return { found: foresight.found, counted: places.counted(), limit, skipped, anew };
};

/** By month, from this one on: the targets of the workspace that count in it. */
const countedIn = async (
  { deps, workspaceId, now }: Simulating,
  timezone: string,
  last: string,
): Promise<ReadonlyMap<string, number>> => {
  const found = new Map<string, number>();
  const end = monthOf(last, timezone);
  for (let month = monthOf(now, timezone); month <= end && found.size < maxMonths; month = monthAfter(month, 1)) {
    const period = { from: monthBegin(month, timezone), to: monthBegin(monthAfter(month, 1), timezone) };
    const some = await usedPlaces(deps.pool, workspaceId, period);
    found.set(
      month,
      some.reduce((sum, { used, scheduled }) => sum + used + scheduled, 0),
    );
  }
  return found;
};

/** The rules that an operator would leave by setting these. */
const withRules = (rules: readonly CadenceRule[], body: Simulating['body']): readonly CadenceRule[] =>
  (body.cadence ?? []).reduce(
    (all, { platform = null, minIntervalMinutes = null, perDay = null }) =>
      withRule(all, { platform, minIntervalMinutes, perDay }),
    rules,
  );

export const foreseeTwice = async (call: Simulating, to: string) => {
  const { body } = call;
  const deadline = performance.now() + patienceMs;
  const reads = new Reads(call);
  const client = await reads.client(body.clientId);
  if (client === null) throw invalid('/clientId', 'unknown_id', 'is not known');
  const { shift } = body;
  if (shift !== undefined && (await reads.campaign(shift.campaignId)) === null) {
    throw invalid('/shift/campaignId', 'unknown_id', 'is not known');
  }
  const { timezone, quota, cadence } = await readPostingRules(call.deps.pool, call.workspaceId);
  const group = await reads.group(client.id);
  const ids = new Set(group.map(({ id }) => id));
  // What is planned for a disconnected account does not go out, whatever the rules are.
  const rows = (await readTargets(call, to)).filter(({ accountId }) => ids.has(accountId));
  const rules = cadence ?? [];
  const others = withRules(rules, body);
  const planned = new Set(rows.map(({ id }) => id));
  const accounts = await readAccounts(call, group, [rules, others], planned);
  const shifted = shift === undefined ? [] : await readShifted(call, rows, shift);
  const times = shifted.flatMap((one) => ('going' in one ? [one.going.dueAt] : []));
  const last = new Date(
    Math.max(Date.parse(to), ...times, ...rows.map(({ dueAt }) => Date.parse(dueAt))),
  ).toISOString();
  const counted = await countedIn(call, timezone, last);
  const recycled = await readRecycled(call, reads, client, rows);
  const known: Known = { call, until: Date.parse(to), timezone, rows, accounts, counted, recycled, deadline };
  const now = await foresee(known, { cadence: rules, limit: quota, shifted: [], at: 'now' });
  const limit = body.quota === undefined ? quota : (body.quota.limit ?? null);
  const then = await foresee(known, { cadence: others, limit, shifted, at: 'then' });
  return { timezone, rows, now, then };
};
