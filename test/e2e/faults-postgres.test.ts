import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { check, untilQuiet } from '#test/faults/check.ts';
import { FaultWorld } from '#test/faults/world.ts';
import { testClickHouse } from '#test/support/clickhouse.ts';
import { assertContract } from '#test/support/contract.ts';
import { patience } from '#test/support/patience.ts';
import { type TestServer, testServer } from '#test/support/postgres.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

/** The only part our processes share goes away under load, in order and by kill -9, and comes back. */
suite('faults of Postgres', { drawn: true, costs: 22, timeoutMs: 240_000 }, (t) => {
  const names = ['api', 'projections', 'outcomes', 'publisher-1', 'media', 'insights', 'reports'] as const;
  let server: TestServer;
  let world: FaultWorld;

  t.before(async () => {
    server = await testServer();
    const { url: analyticsUrl } = await testClickHouse();
    const random = seeded('faults of Postgres');
    world = await FaultWorld.open({ databaseUrl: server.url, analyticsUrl, random });
    await world.begin(names);
  });
  t.after(async () => {
    await world?.close();
    await server?.drop();
  });

  interface Ready {
    readonly status: string;
    readonly checks: readonly { readonly name: string; readonly ok: boolean; readonly detail?: string }[];
  }
  const readiness = async (name: string): Promise<{ readonly status: number; readonly body: Ready }> => {
    const answer = await fetch(world.role(name).up?.opsUrl('/readyz') ?? '');
    return { status: answer.status, body: (await answer.json()) as Ready };
  };
  const ask = (method: string, path: string, body?: unknown): Promise<Response> =>
    fetch(`${world.origin()}/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${world.token}`,
        'content-type': 'application/json',
        'idempotency-key': crypto.randomUUID(),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });

  /** What the api's log says of an answer that should not be. */
  const whyOf = async (what: string, answer: Response): Promise<string> => {
    const text = await answer.text();
    const lines = world.role('api').up?.log() ?? [];
    const { correlationId } = JSON.parse(text) as { correlationId?: string };
    return [
      what,
      text,
      ...lines.filter((one) => one.correlationId === correlationId).map((one) => JSON.stringify(one)),
    ].join('\n');
  };

  const away = async (): Promise<void> => {
    for (const [method, path, body] of [
      ['GET', '/posts', undefined],
      ['GET', '/agency', undefined],
      ['POST', '/clients', { name: 'not now', type: 'brand' }],
    ] as const) {
      const answer = await ask(method, path, body);
      assert.equal(answer.status, 503, await whyOf(`${method} ${path}`, answer.clone()));
      assert.match(answer.headers.get('content-type') ?? '', /application\/problem\+json/);
      assert.ok(Number(answer.headers.get('retry-after')) > 0);
      const problem = (await answer.json()) as { code: string; correlationId: string };
      assertContract({ method, path, status: 503, headers: Object.fromEntries(answer.headers), body: problem });
      assert.equal(problem.code, 'unavailable');
      assert.ok(problem.correlationId.length > 0);
    }
    for (const name of names) {
      const { status, body } = await readiness(name);
      assert.equal(status, 503, `${name}: ${JSON.stringify(body)}`);
      const ill = body.checks.filter((one) => !one.ok);
      assert.ok(
        ill.some((one) => ['store', 'database', 'log'].includes(one.name)),
        `${name} names no part: ${JSON.stringify(body)}`,
      );
      assert.equal((await fetch(world.role(name).up?.opsUrl('/livez') ?? '')).status, 200);
    }
    // Postgres stays away for a while: repeats and back-offs of all processes run into the outage.
    await delay(2_000);
  };

  for (const way of ['stop', 'kill9'] as const) {
    t(`${way}: calls fail as unavailable during the outage, and every process continues after it`, async () => {
      const stop = new AbortController();
      const { posts } = world.load;
      const before = posts.length;
      const going = world.load.keepGoing(3, stop.signal);
      await until('the load is under way', async () => posts.length >= before + 3);
      await server[way]();
      await away().finally(() => server.start());
      for (const name of names) {
        await until(`${name} is well again`, async () => (await readiness(name)).status === 200, { withinMs: 30_000 });
      }
      stop.abort();
      await going;
      assert.ok(world.load.unavailable > 0, 'the load never met the outage');
      assert.equal(world.kills, 0, 'a process had to be started again');
      assert.deepEqual(world.violations, []);
    });
  }

  t('no accepted post is lost or published twice', async () => {
    const { checked } = world;
    assert.deepEqual(await untilQuiet(checked, 90_000 * patience), []);
    await world.load.repeat(500);
    const { violations } = await check(checked);
    assert.deepEqual([...world.violations, ...violations], []);
  });
});
