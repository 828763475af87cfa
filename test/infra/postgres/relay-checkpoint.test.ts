import assert from 'node:assert/strict';
import type pg from 'pg';
import { MemoryEventStore } from '#infra/memory/event-store.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { PostgresRelayCheckpoint } from '#infra/postgres/relay-checkpoint.ts';
import type { RelayCheckpoint } from '#services/relay/checkpoint.ts';
import { startRelay } from '#services/relay/loop.ts';
import { fill, keepsTheLaw, until } from '#test/services/relay/world.ts';
import { testDatabase } from '#test/support/postgres.ts';
import { RecordingLogWriter } from '#test/support/recording-log-writer.ts';
import { suite } from '#test/support/suite.ts';

suite('relay checkpoint in Postgres', (t) => {
  let pool: pg.Pool;
  let drop: () => Promise<void>;
  let names = 0;
  const open = async (): Promise<RelayCheckpoint> => {
    const checkpoint = new PostgresRelayCheckpoint({ pool, name: `relay-${names++}` });
    await checkpoint.prepare();
    return checkpoint;
  };
  t.before(async () => {
    const database = await testDatabase();
    drop = () => database.drop();
    pool = openPool({ url: database.url });
  });
  t.after(async () => {
    await pool.end();
    await drop();
  });

  t('is made by several processes at once', async () => {
    const made = Array.from({ length: 4 }, () => new PostgresRelayCheckpoint({ pool, schema: 'fresh' }).prepare());
    await Promise.all(made);
  });

  t('one holder at a time, each with an epoch of its own', async () => {
    const checkpoint = await open();
    const taken = await Promise.all([checkpoint.acquire('a', 60_000), checkpoint.acquire('b', 60_000)]);
    const [lease] = taken.filter((found) => found !== null);
    assert.deepEqual(lease, { epoch: 1n, position: null });
    assert.equal(taken.filter((found) => found === null).length, 1);
    assert.equal(await checkpoint.renew(1n, 60_000), true);
    assert.equal(await checkpoint.acquire('b', 60_000), null);
  });

  t('keeps the position beyond 2^53, and gives it to the next holder', async () => {
    const checkpoint = await open();
    await checkpoint.acquire('a', 60_000);
    assert.equal(await checkpoint.save(9_007_199_254_740_993n, 1n), true);
    await checkpoint.release(1n);
    assert.deepEqual(await checkpoint.acquire('b', 60_000), { epoch: 2n, position: 9_007_199_254_740_993n });
  });

  t('an old epoch renews, saves and frees nothing', async () => {
    const checkpoint = await open();
    await checkpoint.acquire('a', 0);
    assert.deepEqual(await checkpoint.acquire('b', 60_000), { epoch: 2n, position: null });
    await checkpoint.save(7n, 2n);
    assert.equal(await checkpoint.save(3n, 1n), false);
    assert.equal(await checkpoint.renew(1n, 60_000), false);
    await checkpoint.release(1n);
    assert.equal(await checkpoint.acquire('c', 60_000), null);
    await checkpoint.release(2n);
    assert.deepEqual(await checkpoint.acquire('c', 60_000), { epoch: 3n, position: 7n });
  });

  t('carries a relay through a hand-over', async () => {
    const checkpoint = await open();
    const store = new MemoryEventStore();
    const writer = new RecordingLogWriter();
    for (const holder of ['a', 'b']) {
      await fill(store, 10, 5);
      const stopped = new AbortController();
      const relay = startRelay({ store, writer, checkpoint, holder, partitions: 12, signal: stopped.signal });
      const head = store.log.all.at(-1)?.position;
      await until(() => relay.status().position === head);
      stopped.abort();
      await relay.done;
    }
    keepsTheLaw(store.log.all, writer.log.records);
    assert.equal(new Set(writer.log.records.map((record) => record.id)).size, writer.log.records.length);
  });
});
