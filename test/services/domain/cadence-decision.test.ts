import { deepEqual, ok } from 'node:assert/strict';
import type { PostingLimits } from '#domain/cadence.ts';
import { type CadenceDecision, decideCadence, type TakenSlot } from '#domain/cadence-decision.ts';
import { type Random, random, seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

const windowOf = (limit: number, length: number, counts: 'calls' | 'targets' = 'calls') =>
  ({
    name: '',
    seconds: length / second,
    limit,
    counts,
    source: 'workspace',
    isEnforced: true,
    reported: null,
  }) as const;
const hourly: PostingLimits = { minIntervalMinutes: 60, windows: [] };
const slot = (targetId: string, state: TakenSlot['state'], at: number, calls = 1): TakenSlot => ({
  ...{ targetId, state, at, calls },
});
const decision = (
  taken: readonly TakenSlot[],
  more: { now?: number; dueAt?: number } = {},
  limits = hourly,
): CadenceDecision => decideCadence(limits, taken, { targetId: 'me', now: 0, dueAt: 0, calls: 1, ...more });

suite('turns of an account’s targets', (t) => {
  t('what waits behind an attempt that began just now is looked at again, and only then deferred', () => {
    for (const [age, ms] of [
      [0, 1_000],
      [999, 1],
      [1_000, 4_000],
      [5_000, 15_000],
    ] as const) {
      deepEqual(decision([slot('one', 'under_way', -age)]), { kind: 'rest', ms });
    }
    deepEqual(decision([slot('one', 'under_way', -20_000)]), { kind: 'wait', until: hour, holds: true });
    deepEqual(decision([slot('one', 'under_way', hour - 999)], { now: hour }), { kind: 'rest', ms: 1 });
    // The one that began last says when to look.
    deepEqual(decision([slot('one', 'under_way', -10_000), slot('two', 'under_way', -500)]), { kind: 'rest', ms: 500 });
  });

  t('an attempt under way may publish at any time: however long ago it began, nothing else goes out', () => {
    deepEqual(decision([slot('one', 'under_way', -3 * hour)]), { kind: 'wait', until: hour, holds: true });
    deepEqual(decision([slot('one', 'out', -3 * hour)]), { kind: 'go' });
  });

  t('each that waits holds the slot behind the one before it, and no newcomer takes it', () => {
    const taken = [slot('one', 'out', -minute)];
    for (let at = 0; at < 5; at += 1) {
      const next = decision(taken);
      deepEqual(next, { kind: 'wait', until: (at + 1) * hour - minute, holds: true });
      taken.push(slot(`n${at}`, 'waiting', (at + 1) * hour - minute));
    }
    deepEqual(decision([slot('one', 'waiting', 30 * minute)]), { kind: 'wait', until: 90 * minute, holds: true });
  });

  t('who waited goes before a newcomer when its time has come, and rests while it is a little too early', () => {
    const taken = [slot('one', 'out', -hour), slot('other', 'waiting', 0), slot('me', 'waiting', 0)];
    deepEqual(decision(taken.filter(({ targetId }) => targetId !== 'other')), { kind: 'go' });
    deepEqual(decision([slot('one', 'out', -hour), slot('other', 'waiting', -second)]), {
      ...{ kind: 'wait', until: hour, holds: true },
    });
    deepEqual(decision([slot('one', 'out', 400 - hour), slot('me', 'waiting', 0)]), { kind: 'rest', ms: 400 });
    deepEqual(decision([slot('one', 'out', 2 * minute - hour), slot('me', 'waiting', 0)]), {
      ...{ kind: 'rest', ms: 2 * minute },
    });
    deepEqual(decision([slot('one', 'out', 2 * minute + 1 - hour), slot('me', 'waiting', 0)]).kind, 'wait');
    // A person moved it since: the slot is not its own any more.
    deepEqual(decision([slot('one', 'out', 400 - hour), slot('me', 'waiting', 0)], { dueAt: -5 }).kind, 'wait');
  });

  t('of those that wait the earlier slot goes first, and of one time the lower id', () => {
    const beside = (id: string, at: number) => decision([slot(id, 'waiting', at), slot('me', 'waiting', 0)]);
    const behind = { kind: 'wait', until: hour, holds: true };
    deepEqual(beside('z', -second), behind);
    deepEqual(beside('a', 0), behind);
    deepEqual(beside('z', 0), { kind: 'go' });
    deepEqual(beside('a', second), { kind: 'go' });
    // An attempt of its own is no slot that it waits for.
    deepEqual(decision([slot('z', 'waiting', 0), slot('me', 'under_way', 0)]), behind);
  });

  t('behind an attempt that takes long, who waited keeps its slot for two minutes', () => {
    const taken = [slot('one', 'under_way', -hour), slot('me', 'waiting', 0)];
    deepEqual(decision(taken, { now: 2 * minute - 1 }), { kind: 'rest', ms: 5_000 });
    deepEqual(decision(taken, { now: 2 * minute }), { kind: 'wait', until: hour + 2 * minute, holds: true });
  });

  t('who must wait longer than its slot said keeps its order, and else goes behind those who wait', () => {
    const mine = [slot('one', 'out', 10 * minute - hour), slot('me', 'waiting', 0)];
    const c = slot('c', 'waiting', hour);
    deepEqual(decision([...mine, c]), { kind: 'wait', until: 10 * minute, holds: true });
    deepEqual(decision([...mine, slot('c', 'waiting', 10 * minute)]), {
      ...{ kind: 'wait', until: 70 * minute, holds: true },
    });
    const late = [slot('one', 'out', -second), slot('me', 'waiting', 0), slot('c', 'waiting', 30 * minute)];
    deepEqual(decision(late), { kind: 'wait', until: 90 * minute, holds: true });
    deepEqual(decision([slot('one', 'under_way', -hour), slot('me', 'waiting', 0), c]), { kind: 'rest', ms: 5_000 });
  });

  t('a slot whose time came minutes ago and that nobody claimed is free', () => {
    deepEqual(decision([slot('gone', 'waiting', -4 * minute)]).kind, 'wait');
    deepEqual(decision([slot('gone', 'waiting', -5 * minute)]), { kind: 'go' });
  });

  t('a target that fits into no window neither holds a slot nor blocks others, and never goes out', () => {
    const limits: PostingLimits = { minIntervalMinutes: null, windows: [windowOf(5, day)] };
    const wanted = { targetId: 'me', now: 0, dueAt: 0, calls: 6 };
    deepEqual(decideCadence(limits, [], wanted), { kind: 'never' });
    deepEqual(decision([slot('large', 'waiting', hour, 6)], {}, limits), { kind: 'go' });
  });

  t('an account that may not publish at all keeps its targets waiting for a day together', () => {
    const limits: PostingLimits = { minIntervalMinutes: null, windows: [windowOf(0, day, 'targets')] };
    const after = (ms: number | null, windows = limits.windows) =>
      decideCadence({ ...limits, windows }, [], {
        ...{ targetId: 'me', now: day, dueAt: 0, calls: 1 },
        deferredSince: ms === null ? null : day - ms,
      });
    deepEqual(after(null), { kind: 'wait', until: day + hour, holds: false });
    deepEqual(after(day - 1), { kind: 'wait', until: day + hour, holds: false });
    deepEqual(after(day), { kind: 'never' });
    // One pause among several limits is a pause.
    deepEqual(after(null, [...limits.windows, windowOf(5, day)]), { kind: 'wait', until: day + hour, holds: false });
  });

  t('what a network will publish by itself keeps its distance', () => {
    deepEqual(decision([slot('native', 'out', 30 * minute)]), { kind: 'wait', until: 90 * minute, holds: true });
  });

  t('thousands of waiting targets of one account cost no square of work', () => {
    const limits: PostingLimits = { minIntervalMinutes: 5, windows: [windowOf(100, day), windowOf(50, 6 * hour)] };
    /** Processor time in microseconds: others on the machine do not count. */
    const costOf = (count: number): number => {
      const taken = Array.from({ length: count }, (_none, at) => slot(`n${at}`, 'waiting', at * 15 * minute));
      const before = process.cpuUsage();
      for (let round = 0; round < 8; round += 1) ok(decision(taken, {}, limits).kind === 'wait');
      const { user, system } = process.cpuUsage(before);
      return user + system;
    };
    costOf(500);
    const few = costOf(500);
    ok(costOf(16 * 500) < 60 * few);
  });

  /** One account for which targets arrive at random, over the time that they take. */
  const run = (draw: Random, limits: PostingLimits, slowest: number) => {
    const arrivals = Array.from({ length: draw.int(1, 40) }, () => draw.int(0, 8) * draw.pick([0, 20, 47]) * minute);
    const waiting = new Map(arrivals.map((at, index) => [`t${index}`, { dueAt: at, at }]));
    const taken = new Map<string, TakenSlot>();
    const published: number[] = [];
    const deferrals = new Map<string, number>();
    /** What ends an attempt: the rows show it a little later. */
    const ends: { readonly at: number; readonly id: string; readonly out: number | null }[] = [];
    let now = 0;
    while (waiting.size > 0 || ends.length > 0) {
      const [id, mine] = [...waiting].toSorted((a, b) => a[1].at - b[1].at)[0] ?? ['', null];
      const end = ends.toSorted((a, b) => a.at - b.at)[0];
      if (end !== undefined && (mine === null || end.at <= mine.at)) {
        ends.splice(ends.indexOf(end), 1);
        now = Math.max(now, end.at);
        if (end.out === null) taken.delete(end.id);
        else taken.set(end.id, slot(end.id, 'out', end.out));
        continue;
      }
      if (mine === null) break;
      now = Math.max(now, mine.at);
      ok(now < 400 * day, 'a target starves');
      const next = decideCadence(limits, [...taken.values()], { targetId: id, now, dueAt: mine.dueAt, calls: 1 });
      if (next.kind === 'rest') waiting.set(id, { ...mine, at: now + next.ms });
      else if (next.kind === 'wait') {
        deferrals.set(id, (deferrals.get(id) ?? 0) + 1);
        taken.set(id, slot(id, 'waiting', next.until));
        waiting.set(id, { dueAt: next.until, at: next.until + draw.int(0, 50) });
      } else {
        waiting.delete(id);
        taken.set(id, slot(id, 'under_way', now));
        const out = now + draw.int(50, slowest);
        const fails = draw.int(0, 9) === 0;
        if (!fails) published.push(out);
        ends.push({ at: out + draw.int(0, 900), id, out: fails ? null : out });
      }
    }
    return {
      published: published.toSorted((a, b) => a - b),
      deferrals: [...deferrals.values()],
      count: arrivals.length,
    };
  };
  const keeps = ({ minIntervalMinutes, windows }: PostingLimits, published: readonly number[]): void => {
    for (const [index, at] of published.entries()) {
      const before = published[index - 1];
      if (before !== undefined) ok(at - before >= (minIntervalMinutes ?? 0) * minute, `${at - before} ms apart`);
      for (const { seconds, limit } of windows) {
        const within = published.filter((one) => one >= at && one < at + seconds * second);
        ok(within.length <= limit, `${within.length} within ${seconds} s`);
      }
    }
  };
  const total = (numbers: readonly number[]): number => numbers.reduce((sum, one) => sum + one, 0);

  t('whatever arrives: the limits hold, each waits once, and all go out', () => {
    const { seed } = seeded('arrivals');
    const draw = random(seed);
    for (let round = 0; round < 250; round += 1) {
      const limits: PostingLimits = {
        minIntervalMinutes: draw.pick([1, 30, 60]),
        windows: draw.int(0, 1) === 0 ? [] : [windowOf(draw.int(1, 6), day, 'targets')],
      };
      const { published, deferrals, count } = run(draw, limits, 800);
      keeps(limits, published);
      ok(total(deferrals) <= count + 2, `${total(deferrals)} deferrals of ${count} targets, round ${round}`);
    }
  });

  t('attempts that take minutes: the limits hold, and all go out', () => {
    const { seed } = seeded('slow attempts');
    const draw = random(seed);
    for (let round = 0; round < 150; round += 1) {
      const limits: PostingLimits = { minIntervalMinutes: draw.pick([5, 60]), windows: [] };
      const { published, deferrals, count } = run(draw, limits, 10 * minute);
      keeps(limits, published);
      ok(total(deferrals) <= 4 * count, `${total(deferrals)} deferrals of ${count} targets, round ${round}`);
    }
  });
});
