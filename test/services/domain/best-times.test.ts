import assert from 'node:assert/strict';
import fc from 'fast-check';
import { bestTimes, type ObservedPost, type Slot } from '#domain/best-times.ts';
import { priorTimes } from '#domain/platforms/prior-times.ts';
import { platforms } from '#schemas/common.ts';
import { type Random, random, seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

/** Monday, 00:00 UTC. */
const monday = Date.UTC(2026, 7, 31);
const hourMs = 3_600_000;
const at = (slot: number, week: number, minute = 0): string =>
  new Date(monday + (week * 168 + slot) * hourMs + minute * 60_000).toISOString();

/** Standard normal. */
const gauss = (from: Random): number => Math.sqrt(-2 * Math.log(1 - from.next())) * Math.cos(2 * Math.PI * from.next());

/** Hours at which agencies post. */
const usualHours = [8, 9, 11, 12, 14, 16, 18, 20];

const madeOf = (
  from: Random,
  posts: number,
  liftOf: (slot: number) => number,
  hours: readonly number[] = usualHours,
): ObservedPost[] =>
  Array.from({ length: posts }, (_, post) => {
    const slot = from.int(0, 6) * 24 + from.pick(hours);
    const accountId = from.pick(['a', 'b']);
    const impressions = from.int(2_000, 20_000);
    const rate = (accountId === 'a' ? 0.03 : 0.008) * liftOf(slot) * Math.exp(0.35 * gauss(from));
    // Some networks tell no impressions.
    const told = accountId === 'a';
    return {
      postId: `post ${post}`,
      accountId,
      platform: told ? 'instagram' : 'bluesky',
      publishedAt: at(slot, from.int(0, 11), from.int(0, 59)),
      interactions: Math.round((told ? impressions : 10_000) * rate),
      impressions: told ? impressions : null,
    };
  });

const utc = { timezone: 'UTC', platforms: ['instagram', 'bluesky'] } as const;

/** The same by brute force: for every slot, over all posts, level by level. */
const reference = (posts: readonly ObservedPost[], { platforms: asked }: typeof utc): Slot[] => {
  const known = posts.filter(({ interactions }) => interactions !== null);
  const isRate = (one: ObservedPost) => one.impressions !== null && one.impressions > 0;
  const logOf = (one: ObservedPost) =>
    isRate(one)
      ? Math.log(((one.interactions ?? 0) + 1) / ((one.impressions ?? 0) + 20))
      : Math.log((one.interactions ?? 0) + 1);
  const hourOf = (one: ObservedPost) => new Date(one.publishedAt).getUTCHours();
  const dayOf = (one: ObservedPost) => (new Date(one.publishedAt).getUTCDay() + 6) % 7;
  const priorOf = (platform: ObservedPost['platform'], day: number, hour: number) =>
    Math.log((priorTimes[platform].hours[hour] ?? 0) * (priorTimes[platform].weekdays[day] ?? 0));
  const beyond = (one: ObservedPost) => {
    const logs = known.filter((peer) => peer.accountId === one.accountId && isRate(peer) === isRate(one)).map(logOf);
    logs.sort((a, b) => a - b);
    const usual = ((logs[Math.floor((logs.length - 1) / 2)] ?? 0) + (logs[Math.ceil((logs.length - 1) / 2)] ?? 0)) / 2;
    return (
      Math.min(Math.log(4), Math.max(-Math.log(4), logOf(one) - usual)) - priorOf(one.platform, dayOf(one), hourOf(one))
    );
  };
  const values: { postId: string; day: number; hour: number; beyond: number }[] = [];
  for (const { postId, ...when } of known.map((one) => ({ postId: one.postId, day: dayOf(one), hour: hourOf(one) }))) {
    const same = known.filter((one) => one.postId === postId && dayOf(one) === when.day && hourOf(one) === when.hour);
    if (values.some((one) => one.postId === postId && one.day === when.day && one.hour === when.hour)) continue;
    values.push({ postId, ...when, beyond: same.reduce((sum, one) => sum + beyond(one), 0) / same.length });
  }
  type Value = (typeof values)[number];
  const believed = (some: readonly number[], halfAt: number) =>
    some.length === 0
      ? 0
      : (some.reduce((a, b) => a + b, 0) / some.length) * (some.length ** 2 / (some.length ** 2 + halfAt ** 2));
  const ofHour = (hour: number) =>
    believed(
      values.filter((one) => one.hour === hour).map((one) => one.beyond),
      8,
    );
  const hours = Array.from({ length: 24 }, (_, hour) => ofHour(hour));
  const afterHour = (one: Value) => one.beyond - (hours[one.hour] ?? 0);
  const days = Array.from({ length: 7 }, (_, day) =>
    believed(values.filter((one) => one.day === day).map(afterHour), 20),
  );
  const slots = Array.from({ length: 168 }, (_, slot) => {
    const [day, hour] = [Math.floor(slot / 24), slot % 24];
    const here = values.filter((one) => one.day === day && one.hour === hour);
    const own = believed(
      here.map((one) => afterHour(one) - (days[day] ?? 0)),
      16,
    );
    const prior = asked.reduce((sum, platform) => sum + priorOf(platform, day, hour), 0) / asked.length;
    const lift = Math.exp(prior + (hours[hour] ?? 0) + (days[day] ?? 0) + own);
    return { weekday: day + 1, hour, lift, sampleSize: here.length };
  });
  return slots.map((one) => ({
    ...one,
    score: one.lift / (1 + one.lift),
    basis: one.sampleSize > 0 ? 'observed' : 'prior',
  }));
};

suite('best times', (t) => {
  t('a planted best hour is found at 60 posts in at least 95 % of 200 histories', () => {
    const { seed } = seeded('histories');
    let found = 0;
    for (let one = 0; one < 200; one += 1) {
      const from = random((seed + one) >>> 0);
      const best = from.pick(usualHours);
      const posts = madeOf(from, 60, (slot) => (slot % 24 === best ? 2.5 : 1));
      if (bestTimes(posts, utc)[0]?.hour === best) found += 1;
    }
    assert.ok(found >= 190, `found ${found} of 200`);
  });

  t('it says what brute force over all posts says', () => {
    const from = seeded('reference');
    for (let one = 0; one < 20; one += 1) {
      const posts = madeOf(from, from.int(0, 120), (slot) => 1 + (slot % 5) / 5);
      const silent = posts
        // Some went out on several accounts, or on one at several times.
        .map((post) => (from.next() < 0.2 ? { ...post, postId: `fan ${from.int(0, 2)}` } : post))
        .map((post) => (from.next() < 0.1 ? { ...post, interactions: null } : post));
      const found = bestTimes(silent, utc);
      assert.equal(found.length, 168);
      const byPlace = new Map(found.map((slot) => [`${slot.weekday} ${slot.hour}`, slot]));
      for (const wanted of reference(silent, utc)) {
        const slot = byPlace.get(`${wanted.weekday} ${wanted.hour}`);
        assert.ok(slot !== undefined && Math.abs(slot.lift - wanted.lift) <= 0.0001, JSON.stringify([slot, wanted]));
        assert.ok(Math.abs(slot.score - wanted.score) <= 0.0001);
        assert.equal(slot.sampleSize, wanted.sampleSize);
        assert.equal(slot.basis, wanted.basis);
      }
    }
  });

  t('three lucky posts do not win: not over an hour that has proven itself, not over the prior', () => {
    const { seed } = seeded('lucky');
    for (let one = 0; one < 200; one += 1) {
      const from = random((seed + one) >>> 0);
      const [proven = 9, lucky = 14] = from.shuffle(usualHours);
      const others = usualHours.filter((hour) => hour !== proven && hour !== lucky);
      const ordinary = [...madeOf(from, 80, () => 1, others), ...madeOf(from, 20, () => 2.5, [proven])];
      const luck = (hour: number): ObservedPost[] =>
        [0, 1, 2].map((week) => ({
          postId: `lucky ${week}`,
          accountId: 'a',
          platform: 'instagram',
          publishedAt: at(24 + hour, week),
          interactions: 9_000,
          impressions: 10_000,
        }));
      assert.equal(bestTimes([...ordinary, ...luck(lucky)], utc)[0]?.hour, proven, `seed ${seed + one}`);
      // Nothing stands out but three posts in the early morning.
      const flat = madeOf(from, 60, () => 1);
      const [top] = bestTimes([...flat, ...luck(5)], utc);
      assert.notEqual(top?.hour, 5, `seed ${seed + one}`);
    }
  });

  t('a post that went out on fifty accounts at once is one post, however lucky', () => {
    const from = seeded('fan-out');
    const accounts = Array.from({ length: 50 }, (_, place) => `account ${place}`);
    const on = (accountId: string, postId: string, publishedAt: string, interactions: number): ObservedPost => ({
      ...{ postId, accountId, platform: 'instagram', publishedAt, interactions, impressions: 10_000 },
    });
    const ordinary = accounts.flatMap((account) =>
      Array.from({ length: 20 }, (_, post) =>
        on(
          account,
          `${account} ${post}`,
          at(from.int(0, 6) * 24 + from.pick(usualHours), post % 12),
          from.int(80, 120),
        ),
      ),
    );
    const lucky = accounts.map((account) => on(account, 'lucky', at(3, 0), 900));
    const slots = bestTimes([...ordinary, ...lucky], { timezone: 'UTC', platforms: ['instagram'] });
    const place = slots.findIndex(({ weekday, hour }) => weekday === 1 && hour === 3);
    assert.ok(place > 84, `place ${place}`);
    assert.equal(slots[place]?.sampleSize, 1);
    assert.equal(
      slots.reduce((sum, { sampleSize }) => sum + sampleSize, 0),
      1_001,
    );
    // Its targets at two times are a sample of each.
    const later = accounts.slice(25).map((account) => on(account, 'lucky', at(4, 0), 900));
    const twice = bestTimes([...lucky.slice(0, 25), ...later], { timezone: 'UTC', platforms: ['instagram'] });
    assert.deepEqual(twice.flatMap(({ hour, sampleSize }) => (sampleSize === 0 ? [] : [[hour, sampleSize]])).sort(), [
      [3, 1],
      [4, 1],
    ]);
  });

  t('a slot of the week that has many posts stands out by itself', () => {
    const from = seeded('slot');
    const tuesdayNoon = 36;
    const posts = madeOf(from, 1_200, (slot) => (slot === tuesdayNoon ? 3 : 1));
    const [top] = bestTimes(posts, utc);
    assert.deepEqual([top?.weekday, top?.hour, top?.basis], [2, 12, 'observed']);
  });

  t('without any data: the prior of the network, and it says so', () => {
    for (const platform of platforms) {
      const slots = bestTimes([], { timezone: 'UTC', platforms: [platform] });
      assert.equal(slots.length, 168);
      assert.ok(
        slots.every(({ basis, sampleSize, score }) => basis === 'prior' && sampleSize === 0 && score > 0 && score < 1),
      );
      assert.ok(
        slots.slice(0, 20).every(({ hour }) => hour >= 7 && hour <= 22),
        platform,
      );
      assert.equal(priorTimes[platform].hours.length, 24);
      assert.equal(priorTimes[platform].weekdays.length, 7);
    }
    assert.deepEqual(bestTimes([], { timezone: 'UTC', platforms: [] }), bestTimes([], { timezone: 'UTC', platforms }));
    assert.deepEqual(
      [
        ...new Set(
          bestTimes([], { timezone: 'UTC', platforms: ['linkedin'] })
            .slice(0, 10)
            .map(({ weekday }) => weekday > 5),
        ),
      ],
      [false],
    );
  });

  t('hours are those of the zone, also across a change of the clocks', () => {
    // Berlin puts its clocks back on 25 October 2026: 06:30 UTC is 08:30 before and 07:30 after.
    const post = (publishedAt: string): ObservedPost => ({
      postId: publishedAt,
      accountId: 'a',
      platform: 'x',
      publishedAt,
      interactions: 5,
      impressions: 100,
    });
    const slots = bestTimes([post('2026-10-24T06:30:00.000Z'), post('2026-10-26T06:30:00.000Z')], {
      timezone: 'Europe/Berlin',
      platforms: ['x'],
    });
    const observed = slots.filter(({ basis }) => basis === 'observed').map(({ weekday, hour }) => [weekday, hour]);
    assert.deepEqual(observed.sort(), [
      [1, 7],
      [6, 8],
    ]);
    const half = bestTimes([post('2026-10-24T18:40:00.000Z')], { timezone: 'Asia/Kolkata', platforms: ['x'] });
    assert.deepEqual(
      half.filter(({ basis }) => basis === 'observed').map(({ weekday, hour }) => [weekday, hour]),
      [[7, 0]],
    );
  });

  t('any history gives all slots in order, with finite numbers', () => {
    const history = fc.array(
      fc.record({
        postId: fc.constantFrom('p', 'q', 'r'),
        accountId: fc.constantFrom('a', 'b'),
        platform: fc.constantFrom(...platforms),
        publishedAt: fc.integer({ min: 0, max: 10_000 }).map((hours) => at(hours, 0)),
        interactions: fc.option(fc.constantFrom(0, 1, 7, Number.MAX_SAFE_INTEGER)),
        impressions: fc.option(fc.constantFrom(0, 1, 900, Number.MAX_SAFE_INTEGER)),
      }),
      { maxLength: 40 },
    );
    fc.assert(
      fc.property(history, (posts) => {
        const slots = bestTimes(posts, { timezone: 'America/New_York', platforms: [] });
        assert.equal(new Set(slots.map(({ weekday, hour }) => weekday * 100 + hour)).size, 168);
        for (const [place, { score, lift }] of slots.entries()) {
          assert.ok(score >= 0 && score <= 1 && Number.isFinite(lift) && lift <= (slots[place - 1]?.lift ?? Infinity));
        }
      }),
      { numRuns: 200 },
    );
  });
});
