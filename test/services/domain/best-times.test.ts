import assert from 'node:assert/strict';
import fc from 'fast-check';
import { bestTimes, comparedAgeMs, type ObservedPost, type PostKind, type Slot } from '#domain/best-times.ts';
import { rules } from '#domain/platforms/index.ts';
import { platforms } from '#schemas/common.ts';
import { type Random, random, seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

/** Monday, 00:00 UTC. */
const monday = Date.UTC(2026, 7, 31);
const hourMs = 3_600_000;
const at = (slot: number, week: number, minute = 0): string =>
  new Date(monday + (week * 168 + slot) * hourMs + minute * 60_000).toISOString();

/** Of the feed, and seen so many hours after it went out. */
const seen = (publishedAt: string, age = 160) =>
  ({ kind: 'feed', publishedAt, observedAt: new Date(Date.parse(publishedAt) + age * hourMs).toISOString() }) as const;

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
    const usual = (accountId === 'a' ? 400 : 80) * liftOf(slot) * Math.exp(0.35 * gauss(from));
    return {
      postId: `post ${post}`,
      accountId,
      platform: accountId === 'a' ? 'instagram' : 'bluesky',
      ...seen(at(slot, from.int(0, 11), from.int(0, 59))),
      interactions: Math.round(usual),
    };
  });

const utc = { timezone: 'UTC', platforms: ['instagram', 'bluesky'] } as const;

/** The same by brute force: for every slot, over all posts, level by level. */
const reference = (posts: readonly ObservedPost[], { platforms: asked }: typeof utc): Slot[] => {
  const ageOf = (one: ObservedPost) => (Date.parse(one.observedAt) - Date.parse(one.publishedAt)) / hourMs;
  const known = posts.filter((one) => one.interactions !== null && ageOf(one) >= (one.kind === 'story' ? 20 : 48));
  const hourOf = (one: ObservedPost) => new Date(one.publishedAt).getUTCHours();
  const dayOf = (one: ObservedPost) => (new Date(one.publishedAt).getUTCDay() + 6) % 7;
  const priorOf = (platform: ObservedPost['platform'], day: number, hour: number) =>
    Math.log((rules[platform].priorTimes.hours[hour] ?? 0) * (rules[platform].priorTimes.weekdays[day] ?? 0));
  const logOf = (one: ObservedPost) =>
    Math.log((one.interactions ?? 0) + 3) - priorOf(one.platform, dayOf(one), hourOf(one));
  const beyond = (one: ObservedPost) => {
    const logs = known.filter((peer) => peer.accountId === one.accountId && peer.kind === one.kind).map(logOf);
    logs.sort((a, b) => a - b);
    const usual = ((logs[Math.floor((logs.length - 1) / 2)] ?? 0) + (logs[Math.ceil((logs.length - 1) / 2)] ?? 0)) / 2;
    return Math.min(Math.log(4), Math.max(-Math.log(4), logOf(one) - usual));
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
  t('posts are compared at an age of seven days', () => assert.equal(comparedAgeMs, 604_800_000));

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

  t('gives the result of brute force over all posts', () => {
    const from = seeded('reference');
    const young = (publishedAt: string, kind: PostKind) => ({ ...seen(publishedAt, from.int(10, 60)), kind });
    for (let one = 0; one < 20; one += 1) {
      const posts = madeOf(from, from.int(0, 120), (slot) => 1 + (slot % 5) / 5);
      const silent = posts
        // Some went out on several accounts, or on one at several times.
        .map((post) => (from.next() < 0.2 ? { ...post, postId: `fan ${from.int(0, 2)}` } : post))
        .map((post) => (from.next() < 0.1 ? { ...post, interactions: null } : post))
        .map((post) => ({ ...post, kind: from.pick<PostKind>(['feed', 'reel', 'story']) }))
        .map((post) => (from.next() < 0.2 ? { ...post, ...young(post.publishedAt, post.kind) } : post));
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

  t('three lucky posts rank neither before a proven hour nor before the prior', () => {
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
          ...seen(at(24 + hour, week)),
          interactions: 9_000,
        }));
      assert.equal(bestTimes([...ordinary, ...luck(lucky)], utc)[0]?.hour, proven, `seed ${seed + one}`);
      // Nothing stands out but three posts in the early morning.
      const flat = madeOf(from, 60, () => 1);
      const [top] = bestTimes([...flat, ...luck(5)], utc);
      assert.notEqual(top?.hour, 5, `seed ${seed + one}`);
    }
  });

  t('a post on fifty accounts at once counts as one post', () => {
    const from = seeded('fan-out');
    const accounts = Array.from({ length: 50 }, (_, place) => `account ${place}`);
    const on = (accountId: string, postId: string, publishedAt: string, interactions: number): ObservedPost => ({
      ...{ postId, accountId, platform: 'instagram', ...seen(publishedAt), interactions },
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

  t('a slot of the week with enough posts ranks by its own figures', () => {
    const from = seeded('slot');
    const tuesdayNoon = 36;
    const posts = madeOf(from, 1_200, (slot) => (slot === tuesdayNoon ? 3 : 1));
    const [top] = bestTimes(posts, utc);
    assert.deepEqual([top?.weekday, top?.hour, top?.basis], [2, 12, 'observed']);
  });

  const weeks = Array.from({ length: 12 }, (_, week) => week);
  const [tuesday18, tuesday3] = [24 + 18, 24 + 3];
  const on = (slot: number, week: number, interactions: number, more: Partial<ObservedPost> = {}): ObservedPost => ({
    ...{ postId: `${slot} ${week} ${JSON.stringify(more)}`, accountId: 'a', platform: 'instagram' },
    ...{ ...seen(at(slot, week)), interactions, ...more },
  });
  const instagram = { timezone: 'UTC', platforms: ['instagram'] } as const;
  const placeOf = (slots: readonly Slot[], slot: number) =>
    slots.findIndex(({ weekday, hour }) => (weekday - 1) * 24 + hour === slot);
  const liftOf = (slots: readonly Slot[], slot: number) => slots[placeOf(slots, slot)]?.lift ?? 0;
  const prior = bestTimes([], instagram);

  t('a slot with 300 of 10,000 ranks before one with 25 of 500', () => {
    const posts = weeks.flatMap((week) => [on(tuesday18, week, 300), on(tuesday3, week, 25)]);
    // How many saw a post is no part of it, whatever a caller hands over.
    const rated = posts.map((one) => ({ ...one, impressions: one.interactions === 300 ? 10_000 : 500 }));
    const slots = bestTimes(rated, instagram);
    assert.equal(placeOf(slots, tuesday18), 0);
    assert.ok(placeOf(slots, tuesday3) > 84);
  });

  t('stories, reels and posts of the feed are each held against their own kind', () => {
    const { seed } = seeded('kinds');
    const scale = { feed: 200, reel: 5_000, story: 12 } as const;
    for (let one = 0; one < 50; one += 1) {
      const from = random((seed + one) >>> 0);
      // Each kind has its hour and no hour is better than another: that reels get more must not lift their hour.
      const hours = from.shuffle(usualHours);
      const posts = (['feed', 'reel', 'story'] as const).flatMap((kind, place) =>
        weeks.flatMap((week) =>
          [0, 1, 2].map((day) => {
            const slot = day * 24 + (hours[place] ?? 0);
            return on(slot, week, Math.round(scale[kind] * Math.exp(0.1 * gauss(from))), { kind });
          }),
        ),
      );
      const slots = bestTimes(posts, instagram);
      for (const hour of hours.slice(0, 3)) {
        const change = Math.log(liftOf(slots, hour) / liftOf(prior, hour));
        assert.ok(Math.abs(change) < 0.1, `seed ${seed + one}: hour ${hour} moved by ${change}`);
      }
    }
  });

  t('the size of an account does not count: multiplying its figures by a thousand moves no slot', () => {
    const { seed } = seeded('size');
    for (let one = 0; one < 50; one += 1) {
      const from = random((seed + one) >>> 0);
      const posts = madeOf(from, 80, (slot) => (slot % 24 === 18 ? 2 : 1));
      const larger = posts.map((post) =>
        // What is added to each count is a thousand times as well.
        post.accountId === 'b' ? { ...post, interactions: ((post.interactions ?? 0) + 3) * 1_000 - 3 } : post,
      );
      const [before, after] = [bestTimes(posts, utc), bestTimes(larger, utc)];
      for (let slot = 0; slot < 168; slot += 1) {
        assert.ok(Math.abs(liftOf(before, slot) - liftOf(after, slot)) < 0.001, `seed ${seed + one}, slot ${slot}`);
      }
    }
  });

  t('an account that posts at one time only leaves the order of its prior', () => {
    const slots = bestTimes(
      weeks.map((week) => on(tuesday18, week, 300)),
      instagram,
    );
    assert.deepEqual(
      slots.map(({ lift }) => lift),
      prior.map(({ lift }) => lift),
    );
    assert.equal(slots[placeOf(slots, tuesday18)]?.basis, 'observed');
  });

  t('one like counts as chance where an account usually gets none', () => {
    const times = weeks.flatMap((week) => usualHours.map((hour) => on(hour, week, 0)));
    const liked = [0, 1, 2, 3, 4, 5].map((week) => on(24 + 3, week, 1));
    const slots = bestTimes([...times, ...liked], instagram);
    assert.ok(placeOf(slots, 24 + 3) > 84);
    assert.ok(slots.every(({ lift }) => lift > 0.3 && lift < 1.6));
  });

  t(
    'an observation of a post before the end of its second day does not count; of a story, before its twentieth hour',
    () => {
      const looked = (kind: PostKind, age: number) => on(tuesday18, 0, 9, { ...seen(at(tuesday18, 0), age), kind });
      const reported = (kind: PostKind, age: number) =>
        bestTimes([looked(kind, age)], instagram)[placeOf(prior, tuesday18)]?.sampleSize;
      for (const kind of ['feed', 'reel'] as const) assert.deepEqual([reported(kind, 47), reported(kind, 48)], [0, 1]);
      assert.deepEqual([reported('story', 19), reported('story', 20)], [0, 1]);
    },
  );

  t('without data the slots are the prior of the network, and the basis names it', () => {
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
      assert.equal(rules[platform].priorTimes.hours.length, 24);
      assert.equal(rules[platform].priorTimes.weekdays.length, 7);
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
      ...seen(publishedAt),
      interactions: 5,
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
        kind: fc.constantFrom<PostKind>('feed', 'reel', 'story'),
        publishedAt: fc.integer({ min: 0, max: 10_000 }).map((hours) => at(hours, 0)),
        observedAt: fc.integer({ min: 0, max: 10_200 }).map((hours) => at(hours, 0)),
        interactions: fc.option(fc.constantFrom(0, 1, 7, Number.MAX_SAFE_INTEGER)),
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
