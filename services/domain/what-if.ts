import type { Platform } from '#schemas/common.ts';
import {
  type CadenceAccount,
  cadenceFault,
  cadenceOf,
  isLimited,
  type PostingLimits,
  reachOf,
  type Slot,
} from './cadence.ts';
import { type CadenceDecision, decideCadence, type TakenSlot } from './cadence-decision.ts';
import { Rejection } from './decider.ts';
import { cadenceNeverFits, cadenceReached } from './publish-failures.ts';
import { type QuotaState, quota } from './quota.ts';
import { monthAfter, monthBegin, monthOf } from './zones.ts';

/**
 * What becomes of planned targets: each is claimed at its time, by the decision that a publisher takes there, and each
 * copy of a recycled post is composed an hour before it is due, under the checks of its composition. Pure, and no second
 * truth: it asks `decideCadence`, `cadenceFault`, the decider of the quota and the days of recycling. What no rule of
 * ours decides is taken to go well: accounts stay connected, files are ready, networks take every post at once.
 */

/** A target that is not out yet. Times in milliseconds since the epoch. */
export interface PlannedGoing {
  readonly targetId: string;
  readonly postId: string;
  readonly accountId: string;
  readonly platform: Platform;
  readonly calls: number;
  /** When it was planned to go out. */
  readonly dueAt: number;
  /** From when it may be claimed. */
  readonly claimAt: number;
  /** `held` goes out once a person has approved it; what is `given` to its network's own scheduler goes out at its time. */
  readonly kind: 'claimed' | 'held' | 'given';
  /** Since when its account has kept it waiting, so that it holds the slot at `claimAt`; null: it does not wait. */
  readonly deferredSince: number | null;
  /** Of a copy that is not made yet. */
  readonly copyOf: { readonly postId: string; readonly occurrence: number } | null;
}

export type ForeseenState = 'goes_out' | 'held' | 'fails' | 'refused' | 'canceled';

/** What becomes of a target. */
export interface Foreseen extends Omit<PlannedGoing, 'claimAt' | 'kind' | 'deferredSince' | 'calls'> {
  readonly state: ForeseenState;
  /** When: it goes out, fails, would have gone out. Milliseconds since the epoch. */
  readonly at: number;
  /** Why it is later than planned, or does not go out: the code and the words of the decision. */
  readonly code: string | null;
  readonly message: string | null;
}

export interface ForeseenAccount extends CadenceAccount {
  readonly id: string;
  /** What has gone out, is under way, or is with the network. */
  readonly taken: readonly TakenSlot[];
}

/** The places of a workspace by month, as the decider of a month gives them. */
export class ForeseenPlaces {
  readonly #months: Map<string, QuotaState>;
  readonly #limit: number | null;
  readonly #timezone: string;

  /** @param counted by month, `2026-11`: the targets that count in it already */
  constructor(counted: ReadonlyMap<string, number>, limit: number | null, timezone: string) {
    this.#months = new Map([...counted].map(([month, held]) => [month, { held, shelves: {} }]));
    this.#limit = limit;
    this.#timezone = timezone;
  }

  monthOf(at: number): string {
    return monthOf(new Date(at).toISOString(), this.#timezone);
  }

  /** By month: the targets that count in it. */
  counted(): ReadonlyMap<string, number> {
    return new Map([...this.#months].map(([month, { held }]) => [month, held]));
  }

  /** Takes a place for each of these times, or none. @throws Rejection `quota_exceeded` */
  take(postId: string, targets: readonly { readonly targetId: string; readonly at: number }[]): void {
    const byMonth = Map.groupBy(targets, ({ at }) => this.monthOf(at));
    const next = [...byMonth].toSorted().map(([month, some]) => {
      const state = this.#months.get(month) ?? quota.initial;
      const targetIds = some.map(({ targetId }) => targetId);
      const resetsAt = monthBegin(monthAfter(month, 1), this.#timezone);
      const events = quota.decide(
        { type: 'Reserve', month, postId, targetIds, awaits: null, limit: this.#limit, resetsAt },
        state,
      );
      const fact = { eventId: '', revision: 0, commandId: '', occurredAt: resetsAt };
      return [month, events.reduce((one, event) => quota.evolve(one, event, fact), state)] as const;
    });
    for (const [month, state] of next) this.#months.set(month, state);
  }

  /** Gives back the place of a target that counted from the beginning. */
  giveBack(at: number): void {
    const month = this.monthOf(at);
    const state = this.#months.get(month);
    if (state !== undefined) this.#months.set(month, { ...state, held: Math.max(0, state.held - 1) });
  }
}

interface Line {
  readonly cadence: PostingLimits;
  readonly reach: number;
  readonly out: TakenSlot[];
  /** Those that wait for a slot, by target. */
  readonly waiting: Map<string, TakenSlot>;
}

type Step = { readonly at: number; readonly order: string } & (
  | { readonly kind: 'claim'; readonly going: PlannedGoing; readonly since: number | null; readonly wasAt: number }
  | { readonly kind: 'copy'; readonly postId: string }
);

/** What makes copies of the posts that are recycled, as their posts go out. */
export interface CopiesMade {
  /** A copy of the post may be due for its composition. */
  readonly look: (foresight: Foresight, postId: string, now: number) => void;
  /** @param at when it went out; null: it failed */
  readonly went: (foresight: Foresight, going: PlannedGoing, at: number | null) => void;
}

/** Steps of one target or copy at most: an account that may publish nothing is looked at once an hour for a day. */
const maxSteps = 200;

/** The targets of a client's accounts from now on, step by step. */
export class Foresight {
  readonly #lines = new Map<string, Line>();
  readonly #queue: Step[] = [];
  readonly #open = new Map<string, PlannedGoing>();
  readonly #steps = new Map<string, number>();
  readonly places: ForeseenPlaces;
  readonly found = new Map<string, Foreseen>();

  constructor(accounts: readonly ForeseenAccount[], rules: Parameters<typeof cadenceOf>[1], places: ForeseenPlaces) {
    for (const account of accounts) {
      const cadence = cadenceOf(account, rules);
      this.#lines.set(account.id, { cadence, reach: reachOf(cadence), out: [...account.taken], waiting: new Map() });
    }
    this.places = places;
  }

  /** @param now milliseconds since the epoch: what is late is claimed then */
  add(going: PlannedGoing, now: number): void {
    this.#open.set(going.targetId, going);
    const { targetId, accountId, kind, claimAt, calls, deferredSince } = going;
    const line = this.#lines.get(accountId);
    if (kind === 'given') line?.out.push({ targetId, at: going.dueAt, calls, state: 'out' });
    if (kind !== 'claimed') {
      this.#end(going, kind === 'held' ? 'held' : 'goes_out', going.dueAt);
      return;
    }
    if (deferredSince !== null) line?.waiting.set(targetId, { targetId, at: claimAt, calls, state: 'waiting' });
    const at = Math.max(claimAt, now);
    this.#push({ kind: 'claim', going, since: deferredSince, wasAt: claimAt, at, order: targetId });
  }

  /** The limit that a target would break at this time, in words, beside all that is planned; null: none. */
  faultAt(accountId: string, wanted: Pick<Slot, 'at' | 'calls'>, counts: (targetId: string) => boolean): string | null {
    const line = this.#lines.get(accountId);
    if (line === undefined || !isLimited(line.cadence)) return null;
    const isNear = ({ at }: Slot): boolean => Math.abs(at - wanted.at) < line.reach;
    const slots = [...line.out, ...this.#planned(accountId)].filter((one) => isNear(one) && counts(one.targetId));
    return cadenceFault(line.cadence, slots, wanted);
  }

  /** Those that a composition counts beside what is out: also what is held. */
  *#planned(accountId: string): Generator<Slot> {
    const line = this.#lines.get(accountId);
    for (const { targetId, accountId: of, kind, calls, claimAt, dueAt } of this.#open.values()) {
      if (of !== accountId || kind === 'given') continue;
      const at = line?.waiting.get(targetId)?.at ?? (kind === 'held' ? dueAt : claimAt);
      yield { targetId, at, calls };
    }
  }

  isOpen(targetId: string): boolean {
    return this.#open.has(targetId);
  }

  /** A copy that still waits is replaced by the next one. */
  cancel(targetId: string, code: string, message: string): void {
    const going = this.#open.get(targetId);
    if (going === undefined) return;
    this.#lines.get(going.accountId)?.waiting.delete(targetId);
    this.#open.delete(targetId);
    this.places.giveBack(going.dueAt);
    this.#end(going, 'canceled', going.dueAt, { code, message });
  }

  refuse(going: PlannedGoing, code: string, message: string): void {
    this.#end(going, 'refused', going.dueAt, { code, message });
  }

  /** The next copy of the post is looked at then. */
  lookAtCopy(postId: string, at: number): void {
    this.#push({ kind: 'copy', postId, at, order: postId });
  }

  /** Takes every step, and yields after each, so that its caller can give others a turn. */
  *steps(copies: CopiesMade): Generator<void> {
    for (let step = this.#queue.shift(); step !== undefined; step = this.#queue.shift()) {
      if (step.kind === 'copy') copies.look(this, step.postId, step.at);
      else if (this.#open.has(step.going.targetId)) this.#claim(step, copies);
      yield;
    }
  }

  #push(step: Step): void {
    const count = (this.#steps.get(step.order) ?? 0) + 1;
    this.#steps.set(step.order, count);
    if (count > maxSteps) {
      this.#giveUp(step);
      return;
    }
    let [low, high] = [0, this.#queue.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = this.#queue[middle];
      if (other !== undefined && (other.at < step.at || (other.at === step.at && other.order <= step.order)))
        low = middle + 1;
      else high = middle;
    }
    this.#queue.splice(low, 0, step);
  }

  /** Its time is the last one that was found. */
  #giveUp(step: Step): void {
    if (step.kind === 'claim') this.#end(step.going, 'goes_out', step.at, cadenceReached);
  }

  #claim(step: Extract<Step, { kind: 'claim' }>, copies: CopiesMade): void {
    const { going, at: now, since } = step;
    const { targetId, accountId, calls } = going;
    const line = this.#lines.get(accountId);
    const decision = this.#decide(step);
    if (line === undefined || decision.kind === 'go' || decision.kind === 'never') {
      line?.waiting.delete(targetId);
      this.#open.delete(targetId);
      const isOut = decision.kind === 'go';
      if (isOut) line?.out.push({ targetId, at: now, calls, state: 'out' });
      else this.places.giveBack(going.dueAt);
      const waited = since === null ? undefined : cadenceReached;
      this.#end(going, isOut ? 'goes_out' : 'fails', now, isOut ? waited : cadenceNeverFits);
      copies.went(this, going, isOut ? now : null);
    } else if (decision.kind === 'rest') {
      this.#push({ ...step, at: now + decision.ms });
    } else {
      if (decision.holds) line.waiting.set(targetId, { targetId, at: decision.until, calls, state: 'waiting' });
      this.#push({ ...step, at: decision.until, wasAt: decision.until, since: since ?? Math.max(now, going.dueAt) });
    }
  }

  #decide({ going, at: now, since, wasAt }: Extract<Step, { kind: 'claim' }>): CadenceDecision {
    const line = this.#lines.get(going.accountId);
    if (line === undefined || !isLimited(line.cadence)) return { kind: 'go' };
    const taken = [
      ...line.out.filter(({ at }) => at > now - line.reach - 1 && at < now + line.reach),
      ...line.waiting.values(),
    ];
    const { targetId, calls } = going;
    return decideCadence(line.cadence, taken, { targetId, now, calls, dueAt: wasAt, deferredSince: since });
  }

  #end(
    { claimAt: _from, kind: _kind, deferredSince: _since, calls: _calls, ...going }: PlannedGoing,
    state: ForeseenState,
    at: number,
    why?: { readonly code: string; readonly message: string },
  ): void {
    const { code = null, message = null } = why ?? {};
    this.found.set(going.targetId, { ...going, state, at, code, message });
  }
}

/** The refusal of a rule, without its stack. */
export const refusalOf = (work: () => void): Pick<Rejection, 'code' | 'message'> | null => {
  try {
    work();
    return null;
  } catch (error) {
    if (error instanceof Rejection) return error;
    throw error;
  }
};

/** A post as it would be composed anew. */
export interface Composed {
  readonly postId: string;
  /** When it was composed. Milliseconds since the epoch. */
  readonly bornAt: number;
  readonly targets: readonly PlannedGoing[];
}

/**
 * What POST /posts would answer were the plan composed anew under these rules, post by post in the order in which it was:
 * the code and words of a refusal, by post.
 */
export function* composeAnew(
  foresight: Foresight,
  posts: readonly Composed[],
  now: number,
): Generator<void, ReadonlyMap<string, { readonly code: string; readonly message: string }>> {
  const refused = new Map<string, { readonly code: string; readonly message: string }>();
  const all = posts.toSorted((a, b) => a.bornAt - b.bornAt || (a.postId < b.postId ? -1 : 1));
  for (const { postId, targets } of all) {
    const own = new Set(targets.map(({ targetId }) => targetId));
    const fault = targets
      .map(({ accountId, dueAt, calls }) => foresight.faultAt(accountId, { at: dueAt, calls }, (id) => !own.has(id)))
      .find((one) => one !== null);
    const places = targets.map(({ targetId, dueAt }) => ({ targetId, at: dueAt }));
    const refusal =
      fault === undefined || fault === null
        ? refusalOf(() => foresight.places.take(postId, places))
        : { code: 'cadence_exceeded', message: fault };
    if (refusal === null) for (const one of targets) foresight.add({ ...one, claimAt: one.dueAt }, now);
    else refused.set(postId, { code: refusal.code, message: refusal.message });
    yield;
  }
  return refused;
}
