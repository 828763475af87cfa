import { deepEqual, equal, ok, throws } from 'node:assert/strict';
import { cadenceFault, cadenceOf } from '#domain/cadence.ts';
import { Rejection } from '#domain/decider.ts';
import { type CopiesMade, composeAnew, ForeseenPlaces, Foresight, type PlannedGoing } from '#domain/what-if.ts';
import type { CadenceRule } from '#schemas/cadence.ts';
import { type Random, seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

const minute = 60_000;
const hour = 60 * minute;
const begin = Date.parse('2026-03-01T08:00:00.000Z');
const account = { id: 'a', platform: 'x', network: 'sandbox', observed: [], taken: [] } as const;
const rule = (more: Partial<CadenceRule>): CadenceRule => ({
  platform: null,
  minIntervalMinutes: null,
  perDay: null,
  ...more,
});
const noCopies: CopiesMade = { look: () => undefined, went: () => undefined };

const going = (targetId: string, dueAt: number, more: Partial<PlannedGoing> = {}): PlannedGoing => ({
  ...{ targetId, postId: `post of ${targetId}`, accountId: 'a', platform: 'x', calls: 1, dueAt, claimAt: dueAt },
  ...{ kind: 'claimed', deferredSince: null, copyOf: null, ...more },
});

const unlimited = () => new ForeseenPlaces(new Map(), null, 'UTC');

const foreseen = (rules: readonly CadenceRule[], all: readonly PlannedGoing[], places = unlimited()) => {
  const foresight = new Foresight([account], rules, places);
  for (const one of all) foresight.add(one, begin);
  for (const _step of foresight.steps(noCopies));
  return foresight.found;
};

const drawn = (random: Random): readonly PlannedGoing[] =>
  Array.from({ length: random.int(2, 12) }, (_, n) => going(`t${n}`, begin + random.int(0, 600) * minute));

suite('what would become of a plan', (t) => {
  t(
    'whatever the plan and the rule, what goes out breaks no limit, is never early, and each target has one end',
    () => {
      const random = seeded('what-if');
      for (let run = 0; run < 200; run += 1) {
        const rules = [rule({ minIntervalMinutes: random.int(1, 200), perDay: random.int(1, 5) })];
        const all = drawn(random);
        const found = foreseen(rules, all);
        equal(found.size, all.length);
        const out = [...found.values()].map(({ targetId, at }) => ({ targetId, at, calls: 1 }));
        for (const one of out) {
          const others = out.filter(({ targetId }) => targetId !== one.targetId);
          equal(cadenceFault(cadenceOf(account, rules), others, one), null);
        }
        for (const { at, dueAt, code, state } of found.values()) {
          ok(state === 'goes_out' && at >= dueAt);
          equal(code, at === dueAt ? null : 'cadence_reached');
        }
      }
    },
  );

  t('without a rule everything goes out when it is due; what is late, now', () => {
    const found = foreseen([], [going('late', begin - hour), going('due', begin + hour)]);
    deepEqual(
      [...found.values()].map(({ at }) => at),
      [begin, begin + hour],
    );
  });

  t('what is held stays held, and what its network has goes out at its time and stands in the way', () => {
    const all = [
      going('held', begin, { kind: 'held' }),
      going('given', begin + hour, { kind: 'given' }),
      going('own', begin + hour),
    ];
    const found = foreseen([rule({ minIntervalMinutes: 30 })], all);
    deepEqual(
      all.map(({ targetId }) => [found.get(targetId)?.state, found.get(targetId)?.at]),
      [
        ['held', begin],
        ['goes_out', begin + hour],
        ['goes_out', begin + hour + 30 * minute],
      ],
    );
  });

  t('who waits first has the next free time first', () => {
    const all = [going('m', begin), going('z', begin + 10 * minute), going('a', begin + 55 * minute)];
    const found = foreseen([rule({ minIntervalMinutes: 60 })], all);
    deepEqual(
      all.map(({ targetId }) => found.get(targetId)?.at),
      [begin, begin + hour, begin + 2 * hour],
    );
  });

  t('an account that may publish nothing fails its targets after a day, and gives their places back', () => {
    const places = new ForeseenPlaces(new Map([['2026-03', 4]]), 4, 'UTC');
    const one = foreseen([rule({ perDay: 0 })], [going('t', begin)], places).get('t');
    deepEqual([one?.state, one?.code, one?.at], ['fails', 'cadence_never_fits', begin + 24 * hour]);
    equal(places.counted().get('2026-03'), 3);
  });

  t('a month without room takes none of several places, and names its quota', () => {
    const places = new ForeseenPlaces(new Map([['2026-03', 1]]), 2, 'UTC');
    const both = [
      { targetId: 'a', at: begin },
      { targetId: 'b', at: begin + hour },
    ];
    throws(
      () => places.take('p', both),
      (error) => error instanceof Rejection && error.code === 'quota_exceeded',
    );
    equal(places.counted().get('2026-03'), 1);
    places.take('p', both.slice(1));
    equal(places.counted().get('2026-03'), 2);
  });

  t('composed anew, the first post has the place and a post is refused as a whole', () => {
    const posts = [
      { postId: 'second', bornAt: 2, targets: [going('b', begin + 10 * minute), going('c', begin + 5 * hour)] },
      { postId: 'first', bornAt: 1, targets: [going('a', begin)] },
      { postId: 'third', bornAt: 3, targets: [going('d', begin + 5 * hour)] },
    ];
    const steps = composeAnew(new Foresight([account], [rule({ minIntervalMinutes: 60 })], unlimited()), posts, begin);
    let step = steps.next();
    while (step.done !== true) step = steps.next();
    deepEqual(
      [...step.value].map(([postId, { code }]) => [postId, code]),
      [['second', 'cadence_exceeded']],
    );
  });
});
