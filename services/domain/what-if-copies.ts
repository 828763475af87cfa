import type { Platform } from '#schemas/common.ts';
import type { PostBody } from '#schemas/post.ts';
import { recycledPostIdOf } from './ids.ts';
import {
  maxRecycleFailures,
  type Recycle,
  type RecycleRun,
  type RecycleThen,
  recycleLeadMs,
} from './post/post-recycle.ts';
import {
  afterRun,
  afterTooEarly,
  patternOf,
  type RecyclePattern,
  requestedTimes,
  runToPrepare,
  scheduleOfTimes,
} from './post/recycle-times.ts';
import { considerPlan, type Destination } from './post/scheduling.ts';
import { type CopiesMade, type Foresight, type PlannedGoing, refusalOf } from './what-if.ts';

/** The copies of recycled posts, as the worker that makes them would: what it checks at its hour beside their content. */

export interface RecycledPlan {
  readonly postId: string;
  readonly recycle: Recycle;
  readonly body: Pick<PostBody, 'schedule' | 'timezone' | 'scheduleMode' | 'variants'>;
  readonly calls: (platform: Platform) => number;
  /** The connected accounts that its copies go to. */
  readonly destinations: readonly Destination[];
  readonly isHeld: boolean;
  /** Of the newest restore since it was made; null: there was none. */
  readonly restoredAt: string | null;
  /** The days of its copies; null: it is not out. */
  readonly pattern: RecyclePattern | null;
  /** Of one that is not out: its targets, which all have to end first, and their times. */
  readonly open: readonly string[];
  readonly timed: RecyclePattern['targets'];
  /** Targets of its last copies that still wait, oldest copy first. */
  readonly waiting: readonly string[];
}

interface Progress {
  next: RecycleRun | null;
  posted: number;
  lastDay: number;
  failures: number;
  pattern: RecyclePattern | null;
  readonly last: Map<string, string>;
  readonly out: { readonly at: number }[];
  readonly left: Set<string>;
  waiting: string[];
}

const iso = (at: number): string => new Date(at).toISOString();

export class RecycleCopies implements CopiesMade {
  readonly #posts = new Map<string, RecycledPlan>();
  readonly #progress = new Map<string, Progress>();
  /** By target of a post or of a copy: its origin. */
  readonly #origins = new Map<string, string>();
  readonly #until: number;

  /** @param until milliseconds since the epoch: no copy that is due from then on is foreseen */
  constructor(posts: readonly RecycledPlan[], until: number) {
    this.#until = until;
    for (const one of posts) {
      const { postId, recycle, pattern, open, waiting } = one;
      this.#posts.set(postId, one);
      this.#progress.set(postId, {
        ...{
          next: recycle.next,
          posted: recycle.posted,
          lastDay: recycle.lastDay,
          failures: failuresOf(recycle),
          pattern,
        },
        ...{ last: new Map(pattern?.last), out: [], left: new Set(open), waiting: [...waiting] },
      });
      for (const targetId of [...open, ...waiting]) this.#origins.set(targetId, postId);
    }
  }

  /** The first looks at posts that are out. */
  begin(foresight: Foresight, now: number): void {
    for (const [postId, { pattern, next }] of this.#progress) {
      if (pattern === null) continue;
      if (next === null) this.#plan(foresight, postId, now, this.#after(postId));
      else foresight.lookAtCopy(postId, Math.max(now, Date.parse(next.dueAt) - recycleLeadMs));
    }
  }

  went(foresight: Foresight, going: PlannedGoing, at: number | null): void {
    const postId = this.#origins.get(going.targetId);
    const progress = postId === undefined ? undefined : this.#progress.get(postId);
    if (postId === undefined || progress === undefined) return;
    progress.waiting = progress.waiting.filter((id) => id !== going.targetId);
    if (at !== null) noteOut(progress.last, going.accountId, iso(at));
    if (!progress.left.delete(going.targetId)) return;
    if (at !== null) progress.out.push({ at });
    const [first] = progress.out;
    if (progress.left.size > 0 || first === undefined) return;
    const { timed } = this.#posts.get(postId) ?? { timed: [] };
    progress.pattern = patternOf(timed, iso(first.at), progress.last);
    this.#plan(foresight, postId, at ?? first.at, this.#after(postId));
  }

  look(foresight: Foresight, postId: string, now: number): void {
    const post = this.#posts.get(postId);
    const progress = this.#progress.get(postId);
    const settings = post?.recycle.settings ?? null;
    if (post === undefined || settings === null || progress?.next == null || progress.pattern === null) return;
    const pattern = { ...progress.pattern, last: progress.last };
    const run = runToPrepare(pattern, progress.next, settings, iso(now));
    if (run === null) {
      foresight.lookAtCopy(postId, Date.parse(progress.next.dueAt) - recycleLeadMs);
      return;
    }
    if (settings.until !== null && (run.dueAt > settings.until || iso(now) > settings.until)) return;
    const later = afterTooEarly(pattern, run, settings);
    if (later !== null) this.#plan(foresight, postId, now, later);
    else if (post.destinations.length > 0) this.#make(foresight, post, progress, { run, now, pattern });
  }

  #make(
    foresight: Foresight,
    post: RecycledPlan,
    progress: Progress,
    { run, now, pattern }: Omit<Making, 'occurrence'>,
  ): void {
    const occurrence = progress.posted + 1;
    const copies = copiesOf(post, { run, now, pattern, occurrence });
    const [first] = copies;
    const why = first === undefined ? null : refusalOfCopy(foresight, first.postId, copies);
    progress.lastDay = run.day;
    if (why === null) {
      for (const id of progress.waiting) foresight.cancel(id, 'copy_replaced', 'The next copy takes its place.');
      progress.waiting = copies.map(({ targetId }) => targetId);
      progress.posted = occurrence;
      progress.failures = 0;
      for (const one of copies) {
        this.#origins.set(one.targetId, post.postId);
        noteOut(progress.last, one.accountId, iso(one.dueAt));
        foresight.add(one, now);
      }
    } else {
      progress.failures += 1;
      for (const one of copies) foresight.refuse(one, why.code, why.message);
      if (progress.failures >= maxRecycleFailures) return;
    }
    this.#plan(foresight, post.postId, now, this.#after(post.postId));
  }

  #after(postId: string): RecycleThen {
    const post = this.#posts.get(postId);
    const progress = this.#progress.get(postId);
    const settings = post?.recycle.settings ?? null;
    if (post === undefined || settings === null || progress === undefined || progress.pattern === null) {
      return { reason: 'failures' };
    }
    const { lastDay, posted } = progress;
    const pattern = { ...progress.pattern, last: progress.last };
    return afterRun(pattern, settings, { lastDay, posted, after: post.recycle.setAt });
  }

  #plan(foresight: Foresight, postId: string, now: number, then: RecycleThen): void {
    const progress = this.#progress.get(postId);
    if (progress === undefined || 'reason' in then) return;
    progress.next = then;
    const at = Date.parse(then.dueAt);
    if (at < this.#until) foresight.lookAtCopy(postId, Math.max(now, at - recycleLeadMs));
  }
}

const noteOut = (last: Map<string, string>, accountId: string, at: string): void => {
  if (at > (last.get(accountId) ?? '')) last.set(accountId, at);
};

/** Attempts in a row that were refused: a copy that failed on its network is not known here. */
const failuresOf = ({ attempts }: Recycle): number => {
  const last = attempts.findLastIndex((id) => id !== null);
  return attempts.length - 1 - last;
};

interface Making {
  readonly run: RecycleRun;
  readonly now: number;
  readonly pattern: RecyclePattern;
  readonly occurrence: number;
}

/** The targets of a copy, at the times and with the ids that it would have. */
const copiesOf = (
  { postId, body, calls, destinations, isHeld, restoredAt }: RecycledPlan,
  { run, now, pattern, occurrence }: Making,
): readonly PlannedGoing[] => {
  const kept = new Set(destinations.map(({ accountId }) => accountId));
  const times = new Map([...requestedTimes(pattern, run.day, iso(now))].filter(([accountId]) => kept.has(accountId)));
  const id = recycledPostIdOf(postId, occurrence, restoredAt);
  const schedule = scheduleOfTimes(times.values(), body.schedule.spreadMinutes);
  const { timezone, scheduleMode, variants } = body;
  const { plan } = considerPlan({
    ...{ postId: id, number: 1, destinations, schedule, timezone, times, scheduleMode, variants, now: iso(now) },
  });
  return plan.targets.map((one) => ({
    ...{ targetId: one.targetId, postId: id, accountId: one.accountId, platform: one.platform },
    ...{
      calls: calls(one.platform),
      dueAt: Date.parse(one.dueAt),
      claimAt: Date.parse(one.dueAt),
      deferredSince: null,
    },
    kind: isHeld ? 'held' : one.scheduleMode === 'native' ? 'given' : 'claimed',
    copyOf: { postId, occurrence },
  }));
};

/** As POST /posts refuses: how often its accounts publish comes before the places. */
const refusalOfCopy = (
  foresight: Foresight,
  postId: string,
  copies: readonly PlannedGoing[],
): { readonly code: string; readonly message: string } | null => {
  const own = new Set(copies.map(({ targetId }) => targetId));
  for (const { accountId, dueAt, calls } of copies) {
    const message = foresight.faultAt(accountId, { at: dueAt, calls }, (id) => !own.has(id));
    if (message !== null) return { code: 'cadence_exceeded', message };
  }
  return refusalOf(() =>
    foresight.places.take(
      postId,
      copies.map(({ targetId, dueAt }) => ({ targetId, at: dueAt })),
    ),
  );
};
