import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Temporal } from 'temporal-polyfill';
import { changedBy, spanOf, startOf, type Zones } from '#projections/analytics/calendar.ts';
import { countDays } from '#projections/analytics/recount.ts';
import { columnOf, createStatements } from '#projections/analytics/tables.ts';
import { zonesFrom } from '#projections/analytics/zones.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { counters, type PostFigures } from '#schemas/insights.ts';
import { type TestClickHouse, testClickHouse } from '#test/support/clickhouse.ts';
import { randomOf } from '#test/support/observations.ts';
import { stored, TestKeys } from '#test/support/projecting.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

/** The days of a workspace on which the gains of its posts show. */

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const inZone = (timezone: string): Zones => [{ since: Number.NEGATIVE_INFINITY, timezone }];
const ten = [
  ...['Pacific/Kiritimati', 'Pacific/Auckland', 'Asia/Tokyo', 'Asia/Kolkata', 'Europe/Berlin'],
  ...['Africa/Casablanca', 'America/Sao_Paulo', 'America/New_York', 'America/Los_Angeles', 'Pacific/Pago_Pago'],
] as const;

interface Look {
  /** Milliseconds. */
  readonly at: number;
  readonly figures: PostFigures;
}
interface Post {
  readonly publishedAt: number;
  readonly looks: readonly Look[];
}

const dayIn = (at: number, zone: string): string =>
  Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(zone).toPlainDate().toString();
const sql = (at: number): string => new Date(at).toISOString().slice(0, 23).replace('T', ' ');

suite('days of a workspace', { timeoutMs: 120_000 }, (t) => {
  let house: TestClickHouse;
  let drawn = 1;
  t.before(async () => {
    house = await testClickHouse();
    for (const query of createStatements(1)) await house.client.command({ query });
  });

  interface Case {
    readonly workspaceId: string;
    readonly zones: Zones;
    readonly posts: readonly Post[];
  }
  const rowsOf = ({ workspaceId, zones, posts }: Case) => {
    const zoneAt = (at: number): string => zones.findLast(({ since }) => since <= at)?.timezone ?? 'UTC';
    const [clientId, accountId] = [randomUUID(), randomUUID()];
    return posts.flatMap(({ publishedAt, looks }) => {
      const [postId, targetId] = [randomUUID(), randomUUID()];
      return looks.map(({ at, figures }) => {
        const reported = counters.filter((one) => figures[one] !== undefined);
        return {
          ...{ workspace_id: workspaceId, day: dayIn(at, zoneAt(at)), target_id: targetId, observed_at: sql(at) },
          ...{ event_id: randomUUID(), position: 1, post_id: postId, client_id: clientId, account_id: accountId },
          ...{ platform: 'x', published_at: sql(publishedAt), more: '{}', raw: '{}', source: 'test/1' },
          fetched: reported.reduce((bits, one) => bits + 2 ** counters.indexOf(one), 0),
          ...Object.fromEntries(reported.map((one) => [columnOf(one), figures[one]])),
        };
      });
    });
  };

  /** Writes looks as the ingester does and counts, all at once, every day on which there was one. Each case's days. */
  const countedAll = async (cases: readonly Case[]): Promise<readonly ReadonlyMap<string, Row>[]> => {
    const values = cases.flatMap(rowsOf);
    await house.client.insert({ table: 'observations_v1', values, format: 'JSONEachRow' });
    const pairs = new Set(values.map((row) => `${row.workspace_id} ${row.day}`));
    const marks = [...pairs].map((pair) => {
      const [workspaceId = '', day = ''] = pair.split(' ');
      return { workspaceId, kind: 'post' as const, day };
    });
    drawn += 1;
    const zones = new Map(cases.map((one) => [one.workspaceId, one.zones]));
    await countDays(house.client, 1, marks, String(drawn), zones);
    return Promise.all(cases.map(({ workspaceId }) => shown(workspaceId)));
  };
  const counted = async (workspaceId: string, zones: Zones, posts: readonly Post[]) => {
    const [days = new Map<string, Row>()] = await countedAll([{ workspaceId, zones, posts }]);
    return days;
  };

  type Row = Record<string, number | null> & { readonly open: number };
  const shown = async (workspaceId: string): Promise<ReadonlyMap<string, Row>> => {
    const cells = ['likes', 'comments', 'impressions', 'rated_interactions', 'rated_impressions'];
    const query = `select day, toUnixTimestamp64Milli(open_until) as open, ${cells.join(', ')} from (
      select * from workspace_days_v1 where workspace_id = '${workspaceId}' order by day, version desc limit 1 by day, platform)
      where targets > 0 order by day`;
    const answer = await house.client.query({ query, format: 'JSONEachRow' });
    return new Map(
      (await answer.json<Record<string, string | null>>()).map(({ day, ...row }) => [
        String(day),
        Object.fromEntries(
          Object.entries(row).map(([name, cell]) => [name, cell === null ? null : Number(cell)]),
        ) as Row,
      ]),
    );
  };
  const likesOf = (days: ReadonlyMap<string, Row>) =>
    Object.fromEntries([...days].map(([day, { likes }]) => [day, likes]));

  /** Nightly, at the account's minute of the two hours around midnight, from the day after the publication. */
  const nights = (zone: string, publishedAt: number, count: number, offsetMs: number): number[] => {
    const first = Temporal.PlainDate.from(dayIn(publishedAt, zone));
    return Array.from({ length: count }, (_, n) => {
      const midnight = first.add({ days: n + 1 }).toZonedDateTime(zone).epochMilliseconds;
      return midnight + offsetMs;
    });
  };

  t('constant growth gives exact gains in ten zones, also across changes of the clock', async () => {
    const perHour = 60;
    // Both changes of 2026 in the zones that have them.
    const cases = ['2026-03-06T09:30:00Z', '2026-10-22T13:10:00Z'].flatMap((instant) =>
      ten.map((zone) => {
        const from = Date.parse(instant);
        const looks = nights(zone, from, 12, 40 * 60_000).map((at) => ({
          at,
          figures: { likes: Math.round(((at - from) / hourMs) * perHour) },
        }));
        return {
          zone,
          from,
          looks,
          workspaceId: randomUUID(),
          zones: inZone(zone),
          posts: [{ publishedAt: from, looks }],
        };
      }),
    );
    const all = await countedAll(cases);
    for (const [at, { zone, zones, from, looks }] of cases.entries()) {
      const [firstDay, ...rest] = [...(all[at] ?? [])];
      const last = rest.pop();
      assert.equal(firstDay?.[0], dayIn(from, zone), zone);
      assert.equal(rest.length, 11);
      for (const [day, { likes, open }] of rest) {
        const { start, end } = spanOf(zones, day);
        assert.equal(likes, ((end - start) / hourMs) * perHour, `${zone} ${day}`);
        assert.equal(open, 0);
      }
      // The look at 00:40 opens the last day.
      assert.equal(last?.[1].likes, 40);
      assert.equal(last?.[1].open, (looks.at(-1)?.at ?? 0) + 36 * hourMs);
      const sum = [...(all[at]?.values() ?? [])].reduce((likes, row) => likes + (row.likes ?? 0), 0);
      assert.equal(sum, looks.at(-1)?.figures.likes, zone);
    }
  });

  t('95 % of a daily curve with its peak at 18:00 falls on the right day, in ten zones', async () => {
    const { seed } = seeded('days');
    const random = randomOf(seed);
    const cases = ten.map((zone) => {
      const from = Date.parse('2026-03-06T09:30:00Z');
      // Likes an hour over the local day, 2 at its peak and none at 6 h, on days that are not alike.
      const strengths = new Map<string, number>();
      const speed = (at: number): number => {
        const local = Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(zone);
        const day = local.toPlainDate().toString();
        const strength = strengths.get(day) ?? 200 + random() * 800;
        strengths.set(day, strength);
        return strength * (1 + Math.cos(((local.hour + local.minute / 60 - 18) * Math.PI) / 12));
      };
      const stepMs = 600_000;
      const life = [0];
      for (let at = from; at < from + 16 * dayMs; at += stepMs) life.push((life.at(-1) ?? 0) + speed(at) / 6);
      const until = (at: number): number => life[Math.floor((at - from) / stepMs)] ?? 0;
      const offset = Math.floor(random() * 12) * stepMs;
      const looks = nights(zone, from, 14, offset).map((at) => ({ at, figures: { likes: Math.round(until(at)) } }));
      return {
        zone,
        from,
        until,
        workspaceId: randomUUID(),
        zones: inZone(zone),
        posts: [{ publishedAt: from, looks }],
      };
    });
    const found = await countedAll(cases);
    for (const [at, { zone, from, until }] of cases.entries()) {
      let [wrong, all] = [0, 0];
      for (const [day, { likes }] of [...(found[at] ?? [])].slice(0, -1)) {
        const { start, end } = spanOf(inZone(zone), day);
        const really = until(end) - until(Math.max(start, from));
        all += really;
        wrong += Math.abs((likes ?? 0) - really) / 2;
      }
      assert.ok(wrong / all <= 0.05, `${zone}: ${((wrong / all) * 100).toFixed(1)} % on a wrong day, SEED=${seed}`);
    }
  });

  t('gains add up to the last value despite corrections, missing figures and gaps of two days', async () => {
    const { seed } = seeded('days-sum');
    const random = randomOf(seed);
    const zones: Zones = [
      { since: Number.NEGATIVE_INFINITY, timezone: 'America/New_York' },
      { since: Date.parse('2026-03-08T03:30:00Z'), timezone: 'Pacific/Auckland' },
      { since: Date.parse('2026-03-11T22:00:00Z'), timezone: 'America/Los_Angeles' },
      { since: Date.parse('2026-03-12T01:00:00Z'), timezone: 'Asia/Kolkata' },
    ];
    const posts = Array.from({ length: 40 }, (): Post => {
      const publishedAt = Date.parse('2026-03-04T00:00:00Z') + Math.floor(random() * 4 * dayMs);
      const looks: Look[] = [];
      for (let at = publishedAt; at < publishedAt + 9 * dayMs; ) {
        at += Math.floor(random() * (random() < 0.1 ? 70 : 26) * hourMs) + 1;
        const figures: { likes?: number | null; comments?: number } = {};
        if (random() < 0.8) figures.likes = random() < 0.2 ? null : Math.floor(random() * 1e6);
        if (random() < 0.5) figures.comments = Math.floor(random() * 1e3);
        looks.push({ at, figures });
      }
      return { publishedAt, looks };
    });
    const days = await counted(randomUUID(), zones, posts);
    for (const name of ['likes', 'comments'] as const) {
      const last = posts.map(({ looks }) => looks.findLast(({ figures }) => (figures[name] ?? null) !== null));
      const wanted = last.reduce((sum, look) => sum + (look?.figures[name] ?? 0), 0);
      const sum = [...days.values()].reduce((all, row) => all + (row[name] ?? 0), 0);
      assert.equal(sum, wanted, `${name} with SEED=${seed}`);
    }
  });

  t('after 36 h without a look the days between are null; each counter has its own looks', async () => {
    const publishedAt = Date.parse('2026-05-01T12:00:00Z');
    const at = (hours: number): number => publishedAt + hours * hourMs;
    const post = (...looks: readonly (readonly [number, PostFigures])[]): Post => ({
      publishedAt,
      looks: looks.map(([hours, figures]) => ({ at: at(hours), figures })),
    });
    const [silent, atOnce, late, own] = await countedAll(
      [
        post([12.5, { likes: 10 }], [84.5, { likes: 40 }]),
        post([1, { likes: 0 }], [37, { likes: 72 }]),
        post([1, { likes: 0 }], [37.001, { likes: 72 }]),
        post([0.5, { likes: 0, comments: 0 }], [12, { likes: 23 }], [24.5, { likes: 48, comments: 48 }]),
      ].map((one) => ({ workspaceId: randomUUID(), zones: inZone('UTC'), posts: [one] })),
    );
    assert.deepEqual(likesOf(silent ?? new Map()), { '2026-05-01': 10, '2026-05-02': 0, '2026-05-05': 30 });
    assert.deepEqual(likesOf(atOnce ?? new Map()), { '2026-05-01': 22, '2026-05-02': 48, '2026-05-03': 2 });
    assert.deepEqual(likesOf(late ?? new Map()), { '2026-05-01': 0, '2026-05-03': 72 });
    assert.deepEqual(
      [...(own ?? [])].map(([day, { likes, comments }]) => [day, likes, comments]),
      [
        ['2026-05-01', 23, 23],
        ['2026-05-02', 25, 25],
      ],
    );
  });

  t('a network that stops reporting its total loses no interactions; a rate needs both of its figures', async () => {
    const publishedAt = Date.parse('2026-05-01T12:00:00Z');
    const looks = Array.from({ length: 40 }, (_, n) => ({
      at: publishedAt + (12.5 + n * 24) * hourMs,
      figures: {
        ...{ impressions: 1_000 + n * 100, likes: 50 + n, comments: 5 },
        // X counts clicks and more in it, and for 30 days alone.
        totalInteractions: n < 30 ? 1_500 + n * 10 : null,
      },
    }));
    const days = await counted(randomUUID(), inZone('UTC'), [{ publishedAt, looks }]);
    const rows = [...days.values()];
    for (const { likes, comments, rated_interactions, impressions, rated_impressions } of rows) {
      assert.equal(rated_interactions, (likes ?? 0) + (comments ?? 0));
      assert.equal(rated_impressions, impressions);
      assert.ok((rated_interactions ?? 0) >= 0);
    }
    // Impressions that are told days later: their day has the whole pair.
    const late = await counted(randomUUID(), inZone('UTC'), [
      {
        publishedAt,
        looks: [12.5, 36.5, 60.5].map((hours, n) => ({
          at: publishedAt + hours * hourMs,
          figures: { likes: 10 * (n + 1), ...(n < 2 ? {} : { impressions: 600 }) },
        })),
      },
    ]);
    const rated = [...late.values()].map((row) => [row.rated_interactions, row.rated_impressions]);
    assert.deepEqual(rated.slice(0, 2), [
      [null, null],
      [null, null],
    ]);
    assert.deepEqual(rated.at(-1), [30, 600]);
  });

  t('the last look at a post or a story leaves no day open', async () => {
    const publishedAt = Date.parse('2026-05-01T12:00:00Z');
    const opens = [
      // Any other post is looked at in its 24th hour, after which its day waits for the next night.
      [20, 20 + 36],
      [23, 26],
      [24, 24 + 36],
      [88.5 * 24, 88.5 * 24 + 36],
      [89.5 * 24, 90 * 24],
    ] as const;
    const all = await countedAll(
      opens.map(([age]) => ({
        ...{ workspaceId: randomUUID(), zones: inZone('UTC') },
        posts: [{ publishedAt, looks: [{ at: publishedAt + age * hourMs, figures: { likes: 1 } }] }],
      })),
    );
    assert.deepEqual(
      all.map((days) => ([...days.values()].at(-1)?.open ?? 0) - publishedAt),
      opens.map(([_age, until]) => until * hourMs),
    );
  });

  t('a day that a change of zone removed becomes empty', async () => {
    const workspaceId = randomUUID();
    const publishedAt = Date.parse('2026-05-01T12:00:00Z');
    await house.client.insert({
      table: 'workspace_days_v1',
      values: [{ workspace_id: workspaceId, day: '2026-05-01', platform: 'x', targets: 1, likes: 7, version: 1 }],
      format: 'JSONEachRow',
    });
    const looks = [{ at: Date.parse('2026-05-02T12:30:00Z'), figures: { likes: 7 } }];
    const zones = inZone('Pacific/Kiritimati');
    assert.deepEqual(likesOf(await counted(workspaceId, zones, [{ publishedAt, looks }])), {
      '2026-05-02': 6,
      '2026-05-03': 1,
    });
  });

  t('zones come from the workspace’s stream, and their days neither overlap nor leave gaps', async () => {
    const codec = new EventCodec(new TestKeys());
    const workspaceId = randomUUID();
    const stream = `workspace-${workspaceId}`;
    const profile = (timezone: string) => ({ stream, type: 'WorkspaceProfileChanged', data: { name: 'A', timezone } });
    const events = [
      await stored(codec, profile('Asia/Tokyo'), { revision: 0, position: 1n, workspaceId }),
      await stored(codec, profile('Asia/Tokyo'), { revision: 1, position: 2n, workspaceId }),
      await stored(codec, profile('America/New_York'), { revision: 2, position: 3n, workspaceId }),
    ];
    const reads: bigint[] = [];
    const zonesOf = zonesFrom(
      {
        read: async (name, { from = 0n } = {}) => {
          reads.push(from);
          return name === stream
            ? events.filter(({ revision }) => revision >= from).map((event) => ({ ...event, created: new Date(0) }))
            : [];
        },
      },
      codec,
    );
    assert.deepEqual(
      (await zonesOf(workspaceId)).map(({ timezone }) => timezone),
      ['Asia/Tokyo', 'America/New_York'],
    );
    assert.equal((await zonesOf(workspaceId)).length, 2);
    assert.deepEqual(reads, [0n, 3n]);
    assert.deepEqual(await zonesOf(randomUUID()), inZone('UTC'));
    // A day that Apia never had.
    const skipped = spanOf(inZone('Pacific/Apia'), '2011-12-30');
    assert.equal(skipped.end - skipped.start, 0);
    const moved: Zones = [
      { since: Number.NEGATIVE_INFINITY, timezone: 'Pacific/Kiritimati' },
      { since: Date.parse('2026-05-03T05:00:00Z'), timezone: 'America/Los_Angeles' },
      { since: Date.parse('2026-05-06T20:00:00Z'), timezone: 'Pacific/Kiritimati' },
    ];
    for (
      let at = Date.parse('2026-04-28'), before = startOf(moved, '2026-04-27');
      at < Date.parse('2026-05-12');
      at += dayMs
    ) {
      const start = startOf(moved, new Date(at).toISOString().slice(0, 10));
      assert.ok(start >= before);
      before = start;
    }
    const days = changedBy(moved, '2026-05-04');
    assert.deepEqual(
      days.slice(1).map(({ start }) => start),
      days.slice(0, -1).map(({ end }) => end),
    );
    assert.deepEqual(
      changedBy(inZone('Europe/Berlin'), '2026-05-04').map(({ day }) => day),
      ['2026-05-02', '2026-05-03', '2026-05-04'],
    );
  });
});
