import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { within } from '#contracts/base/pause.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { countConsumers } from '#runtime/consuming/lane-health.ts';
import { createRegistry, Readiness } from '#runtime/process/telemetry.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { silentServer } from '#test/support/silent-server.ts';
import { suite } from '#test/support/suite.ts';

suite('lane health of a process', (t) => {
  let pool: Pool;
  t.before(async () => {
    pool = openPool({ url: (await preparedDatabase()).url, max: 2 });
  });
  t.after(() => pool?.end());

  t('the first scrape after an event was parked shows its stream and its age', async () => {
    const [registry, readiness] = [createRegistry('test'), new Readiness()];
    const consumer = { group: 'readers', done: Promise.resolve(), status: () => new Map() };
    countConsumers({ registry, readiness, pool }, 'test', () => [consumer]);
    const figures = async () => {
      const shown = await registry.metrics();
      return ['parked_streams', 'parked_oldest_seconds'].map((name) =>
        Number(new RegExp(`^${name}\\{group="readers",thread="test"\\} (.+)$`, 'm').exec(shown)?.[1]),
      );
    };
    assert.deepEqual(await figures(), [0, 0]);
    for (const revision of [4, 5]) {
      await pool.query(
        `insert into ops.parked_events (consumer_group, stream, revision, event_id, type, position, reason, parked_at)
         values ('readers', 'post-1', $1, $2, 'PostDeleted', $1, 'asked for', now() - interval '90 seconds')`,
        [revision, randomUUID()],
      );
    }
    const [streams = 0, oldest = 0] = await figures();
    assert.equal(streams, 1);
    assert.ok(oldest >= 90 && oldest < 200, `${oldest} s`);
    const [reported] = await readiness.ask();
    assert.ok(reported?.ok);
    assert.match(reported.detail ?? '', /^streams parked: readers 1, the oldest for 2 min/);
    await pool.query('delete from ops.parked_events');
    assert.deepEqual(await figures(), [0, 0]);
  });

  t('without an answer of the database all other figures are still served', async () => {
    const silent = await silentServer();
    const away = openPool({ url: `postgres://postline@127.0.0.1:${silent.port}/postline`, connectTimeoutMs: 20_000 });
    try {
      const registry = createRegistry('test');
      const consumer = { group: 'readers', done: Promise.resolve(), status: () => new Map() };
      countConsumers({ registry, readiness: new Readiness(), pool: away }, 'test', () => [consumer]);
      const shown = await within(10_000, registry.metrics(), () => 'no answer within 10 s');
      assert.match(shown, /^consumer_lanes\{group="readers",state="running",thread="test"\} 0$/m);
      assert.match(shown, /^parked_streams\{group="readers",thread="test"\} nan$/im);
    } finally {
      await silent.close();
      await away.end();
    }
  });
});
