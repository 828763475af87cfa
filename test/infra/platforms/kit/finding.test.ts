/** Own posts and figures of the kit, and what its tables say to operators. */
import { deepEqual, equal, ok } from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import type { NetworkAnswer } from '#infra/platforms/kit/errors.ts';
import { gathered, metricsOf, withoutFigures } from '#infra/platforms/kit/figures.ts';
import { findAll, lookFor, type OwnPosts } from '#infra/platforms/kit/own-posts.ts';
import { kitNetworks, loginsOf } from '#infra/platforms/live.ts';
import { suite } from '#test/support/suite.ts';
import { type KitWorld, kitWorld, within } from './world.ts';

const now = () => Date.parse('2026-11-01T12:00:00.000Z');
const okOf = (body: Extract<NetworkAnswer, { kind: 'ok' }>['body']): NetworkAnswer => ({
  ...{ kind: 'ok', status: 200, headers: {}, body },
});

suite('own posts of the kit', (t) => {
  /** Newest first, two a page; the number is the time. */
  const ownOf = (texts: Readonly<Record<number, string>>, over: Partial<OwnPosts> = {}) => {
    const asked: (string | null)[] = [];
    const all = Object.entries(texts)
      .map(([at, text]) => ({ id: `p${at}`, at: Number(at), text }))
      .toSorted((a, b) => b.at - a.at);
    const own: OwnPosts = {
      ...{ list: 'items', since: 100, maxPages: 3 },
      page: async (cursor) => {
        asked.push(cursor);
        const from = Number(cursor ?? 0);
        const next = from + 2 < all.length ? { next: String(from + 2) } : {};
        return okOf({ items: all.slice(from, from + 2), ...next });
      },
      next: ({ next }) => (typeof next === 'string' ? next : null),
      at: ({ at }) => Number(at),
      isIt: ({ text }) => text === 'ours',
      show: ({ id }) => (typeof id === 'string' ? { externalId: id, permalink: null, publishedAt: '' } : null),
      ...over,
    };
    return { own, asked };
  };

  t('of several the first one made is ours, and nothing before the call is', async () => {
    const { own } = ownOf({ 90: 'ours', 110: 'ours', 120: 'other', 130: 'ours' });
    const found = await lookFor(own, now);
    ok(found.kind === 'present' && found.externalId === 'p110');
    const all = await findAll(own, now);
    deepEqual(all.kind === 'listed' && all.posts.map(({ externalId }) => externalId), ['p110', 'p130']);
  });

  t('no page behind the time of the call is asked for', async () => {
    const { own, asked } = ownOf({ 60: 'ours', 70: 'ours', 80: 'other', 95: 'other', 110: 'other', 120: 'other' });
    equal((await lookFor(own, now)).kind, 'absent');
    deepEqual(asked, [null, '2']);
  });

  t('a list that does not end within the pages is no proof', async () => {
    const many = Object.fromEntries(Array.from({ length: 9 }, (_, at) => [200 + at, 'other']));
    const { own, asked } = ownOf(many);
    equal((await lookFor(own, now)).kind, 'undecided');
    equal((await findAll(own, now)).kind, 'undecided');
    equal(asked.length, 6);
    equal((await lookFor(ownOf({}).own, now)).kind, 'absent');
  });

  t('an answer without a list does not say that there is no post', async () => {
    const bodies = [{}, { status: 'ok' }, { items: null }, { errors: [{ detail: 'suspended' }] }, { items: 'p1' }];
    for (const body of bodies) {
      const { own } = ownOf({}, { page: async () => okOf(body) });
      equal((await lookFor(own, now)).kind, 'undecided', JSON.stringify(body));
      equal((await findAll(own, now)).kind, 'undecided', JSON.stringify(body));
    }
    const counted = ownOf({}, { page: async () => okOf({ count: 0 }), isEmpty: ({ count }) => count === 0 });
    equal((await lookFor(counted.own, now)).kind, 'absent');
    // The cut page after one that was whole.
    const cut = ownOf({}, { page: async (cursor) => okOf(cursor === null ? { items: [{ at: 200 }], next: '1' } : {}) });
    equal((await lookFor(cut.own, now)).kind, 'undecided');
  });

  t('a post without an id is not absent', async () => {
    const { own } = ownOf({}, { page: async () => okOf({ items: [{ at: 200, text: 'ours' }] }) });
    equal((await lookFor(own, now)).kind, 'undecided');
  });

  t('a network whose clock is a week off was asked for another time', async () => {
    const at = (ms: number) => new Date(now() + ms).toUTCString();
    for (const [date, kind] of [
      [at(-604_800_000), 'undecided'],
      [at(604_800_000), 'undecided'],
      [at(-59_000), 'absent'],
      ['yesterday', 'absent'],
    ] as const) {
      const page = async (): Promise<NetworkAnswer> => ({ ...okOf({ items: [] }), headers: { date } }) as NetworkAnswer;
      equal((await lookFor(ownOf({}, { page }).own, now)).kind, kind, date);
    }
  });

  t('a network that gives the same page for ever is asked a bounded number of times', async () => {
    const { own } = ownOf({}, { page: async () => okOf({ items: [{ at: 200 }], next: 'same' }) });
    equal((await lookFor(own, now)).kind, 'undecided');
  });

  t('a network that gives no page is asked again later, with the reason', async () => {
    const { own } = ownOf({}, { page: async () => ({ kind: 'silent', reason: 'timeout' }) });
    const found = await lookFor(own, now);
    ok(found.kind === 'undecided' && found.failure?.platformMessage === 'timeout');
    deepEqual(await findAll(own, now), found);
  });
});

suite('figures of the kit', (t) => {
  let world: KitWorld;
  t.before.each(async () => {
    world = await kitWorld({
      errors: [
        { status: 403, means: 'forbidden' },
        { status: 426, means: 'sunset' },
      ],
    });
  });
  t.after.each(() => world.close());
  t('of several calls those are left out that the network refuses, and the first refusal is that of all', async () => {
    const calls = (...statuses: readonly number[]) =>
      Object.fromEntries(
        statuses.map((status, at) => {
          world.on(`GET /api/${at}`, { status, body: { at } });
          const ask = { method: 'GET', path: `/${at}` } as const;
          return [`call ${at}`, async () => world.client.call(await world.account(), ask, within())];
        }),
      );
    const some = await gathered(calls(200, 403, 400, 200));
    ok(!('kind' in some));
    deepEqual(
      [...some].map(([name, { body }]) => [name, body.at]),
      [
        ['call 0', 0],
        ['call 3', 3],
      ],
    );
    const none = await gathered(calls(403, 400));
    ok('kind' in none && none.kind === 'refused' && none.status === 403);
    const asked = world.received.length;
    const down = await gathered(calls(200, 503, 200));
    ok('kind' in down && down.kind === 'refused' && down.status === 503);
    equal(world.received.length, asked + 2, 'a network that is down is asked no further');
    const closed = await gathered(calls(426, 200));
    ok('kind' in closed && closed.kind === 'refused' && closed.status === 426, 'an app that rests is asked no further');
    equal((await gathered({})) instanceof Map, true);
  });

  const refusal = { status: 400, body: { message: '(#100) The value must be a valid insights metric' } };

  const asks = (answers: Readonly<Record<string, { status: number; body: object }>>) => {
    const asked: string[] = [];
    const ask = async (some: readonly string[]) => {
      const names = some.join(',');
      asked.push(names);
      world.on('GET /api/insights', answers[names] ?? refusal);
      return world.client.call(
        await world.account(),
        { method: 'GET', path: '/insights', query: { metric: names } },
        within(),
      );
    };
    return { ask, asked };
  };
  const value = (name: string) => ({ status: 200, body: { data: [{ name, values: [{ value: 1 }] }] } });

  t('13: one retired metric costs no other its figure', async () => {
    const { ask, asked } = asks({ views: value('views'), reach: value('reach') });
    const read = await metricsOf(['views', 'impressions', 'reach'], ask);
    ok(read.kind === 'asked');
    deepEqual([...read.bodies.keys()], ['views', 'reach']);
    deepEqual(read.refused, ['impressions']);
    deepEqual(asked, ['views,impressions,reach', 'views', 'impressions', 'reach']);
  });

  t('metrics that the network takes together are one call', async () => {
    const { ask, asked } = asks({ 'views,reach': value('views') });
    const read = await metricsOf(['views', 'reach'], ask);
    ok(read.kind === 'asked' && read.bodies.get('reach') === read.bodies.get('views'));
    equal(asked.length, 1);
  });

  t('a refusal that is not about a metric is the answer to all', async () => {
    const limited = { status: 429, body: { message: 'Later' } };
    const { ask, asked } = asks({ 'views,reach': limited });
    const read = await metricsOf(['views', 'reach'], ask);
    ok(read.kind === 'refused' && withoutFigures(read, world.bound.clock()).kind === 'rate_limited');
    equal(asked.length, 1);
    const within2 = asks({ views: value('views'), reach: limited });
    equal((await metricsOf(['views', 'reach'], within2.ask)).kind, 'refused');
    equal((await metricsOf(['views', 'reach'], asks({}).ask)).kind, 'refused', 'none is left');
  });
});

suite('tables of the networks of the kit', (t) => {
  t('OPERATORS.md of each has the scopes that are asked for, with their reasons', () => {
    ok(Object.keys(kitNetworks).includes('x'));
    for (const [platform, parts] of Object.entries(kitNetworks)) {
      const { tables } = parts;
      const paper = readFileSync(`infra/platforms/${platform}/OPERATORS.md`, 'utf8');
      const [, section = ''] = paper.split('\n## Scopes, and why\n');
      const rows = [...(section.split('\n## ')[0] ?? '').matchAll(/^\| `([^`]+)` \| (.+) \|$/gm)];
      deepEqual(
        rows.map(([, scope, why]) => [scope, why]),
        Object.entries(tables.oauth.scopes).map(([scope, { why }]) => [scope, why]),
        platform,
      );
      for (const { tables: other } of loginsOf(parts).slice(1)) {
        for (const [scope, { why }] of Object.entries(other.oauth.scopes)) {
          ok(paper.includes(`\n| \`${scope}\` | ${why} |\n`), `${platform}: ${scope}`);
        }
      }
    }
  });

  t('each is of at most 8 files and 900 lines', () => {
    for (const platform of Object.keys(kitNetworks)) {
      const folder = `infra/platforms/${platform}`;
      const files = readdirSync(folder).filter((file) => file.endsWith('.ts'));
      const lines = files.reduce(
        (sum, file) => sum + readFileSync(`${folder}/${file}`, 'utf8').split('\n').length - 1,
        0,
      );
      ok(files.length <= 8 && lines <= 900, `${platform}: ${files.length} files, ${lines} lines`);
    }
  });
});
