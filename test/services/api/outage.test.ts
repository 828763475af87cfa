import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type Answered, startWorld, type World } from '#test/support/http.ts';
import { type TestServer, testServer } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

/** Repeats a call until it is answered with 200; every other answer must be a 503 that says when to come again. */
const untilBack = (ask: () => Promise<Answered>): Promise<Answered> =>
  until(
    'the api is back',
    async () => {
      const answer = await ask();
      if (answer.status === 200) return answer;
      assert.equal(answer.body.code, 'unavailable', answer.text);
      assert.ok(Number(answer.headers.get('retry-after')) >= 1);
      return null;
    },
    { withinMs: 60_000, everyMs: 100 },
  );

suite('an outage of Postgres', { timeoutMs: 180_000 }, (t) => {
  let server: TestServer;
  let world: World;
  t.before(async () => {
    server = await testServer();
    world = await startWorld({ databaseUrl: server.url });
  });
  t.after(async () => {
    await world.close();
    await server.drop();
  });

  for (const [how, end] of [
    ['stopped', () => server.stop()],
    ['killed', () => server.kill9()],
  ] as const) {
    t(`${how}: 503 for reads and writes, then recovery without a lost or repeated write`, async () => {
      const before = await world.owner.post('/clients', { name: `Before ${how}`, type: 'brand' });
      assert.equal(before.status, 200);
      const key = randomUUID();
      const write = () => world.owner.post('/clients', { name: `During ${how}`, type: 'brand' }, { key });
      // Calls in flight while the server goes: each is answered, well or with 503.
      const flying = Array.from({ length: 10 }, (_none, at) =>
        world.owner.post('/clients', { name: `Flying ${how} ${at}`, type: 'brand' }, { key: `${how}-${at}` }),
      );
      await end();
      for (const answer of await Promise.all(flying)) assert.ok([200, 503].includes(answer.status), answer.text);
      const [read, written] = await Promise.all([world.owner.get('/clients'), write()]);
      for (const answer of [read, written]) {
        assert.equal(answer.status, 503, answer.text);
        assert.equal(answer.body.code, 'unavailable');
        assert.ok(answer.headers.get('retry-after'));
        assert.doesNotMatch(answer.text, /ECONN|terminat|pg_/i);
      }
      await server.start();
      const made = await untilBack(write);
      assert.deepEqual((await untilBack(() => world.owner.get(`/clients/${before.data.id}`))).data, before.data);
      assert.equal((await untilBack(() => world.owner.get(`/clients/${made.data.id}`))).data.name, `During ${how}`);
      // Whatever became of the calls in flight, their repeats say it, once each.
      for (let at = 0; at < 10; at += 1) {
        const body = { name: `Flying ${how} ${at}`, type: 'brand' };
        await untilBack(() => world.owner.post('/clients', body, { key: `${how}-${at}` }));
      }
      await world.settled();
      const { rows } = await world.owner.get(`/clients?limit=100&search=Flying%20${how}`);
      assert.equal(rows.length, 10);
    });
  }
});
