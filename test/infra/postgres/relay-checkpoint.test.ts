import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { openPool } from '#infra/postgres/pool.ts';
import { PostgresRelayCheckpoint } from '#infra/postgres/relay-checkpoint.ts';
import type { LastEvent } from '#runtime/consuming/same-history.ts';
import { type RelayCheckpoint, startRelay } from '#services/relay/loop.ts';
import { fill, keepsTheLaw } from '#test/services/relay/world.ts';
import { MemoryEventStore } from '#test/support/event-store/memory.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { RecordingLogWriter } from '#test/support/recording-log-writer.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

suite('relay checkpoint in Postgres', (t) => {
  let pool: pg.Pool;
  let drop: () => Promise<void>;
  let names = 0;
  const open = async (): Promise<RelayCheckpoint> => {
    return new PostgresRelayCheckpoint({ pool, name: `relay-${names++}` });
  };
  t.before(async () => {
    const database = await preparedDatabase();
    drop = () => database.drop();
    pool = openPool({ url: database.url });
  });
  t.after(async () => {
    await pool.end();
    await drop();
  });

  t('of several processes that make the row at once one holds it', async () => {
    const made = Array.from({ length: 4 }, (_, at) =>
      new PostgresRelayCheckpoint({ pool, name: 'fresh' }).acquire(`relay ${at}`, 60_000),
    );
    const taken = (await Promise.all(made)).filter((found) => found !== null);
    assert.deepEqual(taken, [{ epoch: 1n, last: null }]);
  });

  t('has one holder at a time, each with a new epoch', async () => {
    const checkpoint = await open();
    const taken = await Promise.all([checkpoint.acquire('a', 60_000), checkpoint.acquire('b', 60_000)]);
    const [lease] = taken.filter((found) => found !== null);
    assert.deepEqual(lease, { epoch: 1n, last: null });
    assert.equal(taken.filter((found) => found === null).length, 1);
    assert.equal(await checkpoint.renew(1n, 60_000), true);
    assert.equal(await checkpoint.acquire('b', 60_000), null);
  });

  const event = (position: bigint): LastEvent => ({ position, eventId: randomUUID() });

  t('the next holder gets the saved position, beyond 2^53 too, and the event id', async () => {
    const checkpoint = await open();
    await checkpoint.acquire('a', 60_000);
    const last = event(9_007_199_254_740_993n);
    assert.equal(await checkpoint.save(last, 1n), true);
    await checkpoint.release(1n);
    assert.deepEqual(await checkpoint.acquire('b', 60_000), { epoch: 2n, last });
  });

  t('a former holder can neither renew nor save nor release', async () => {
    const checkpoint = await open();
    await checkpoint.acquire('a', 0);
    assert.deepEqual(await checkpoint.acquire('b', 60_000), { epoch: 2n, last: null });
    const last = event(7n);
    await checkpoint.save(last, 2n);
    assert.equal(await checkpoint.save(event(3n), 1n), false);
    assert.equal(await checkpoint.renew(1n, 60_000), false);
    await checkpoint.release(1n);
    assert.equal(await checkpoint.acquire('c', 60_000), null);
    await checkpoint.release(2n);
    assert.deepEqual(await checkpoint.acquire('c', 60_000), { epoch: 3n, last });
  });

  t('a second relay continues where the first one stopped', async () => {
    const checkpoint = await open();
    const store = new MemoryEventStore();
    const writer = new RecordingLogWriter();
    for (const holder of ['a', 'b']) {
      await fill(store, 10, 5);
      const stopped = new AbortController();
      const relay = startRelay({ store, writer, checkpoint, holder, partitions: 12, signal: stopped.signal });
      const head = store.log.all.at(-1)?.position;
      await until('all events are sent', () => relay.status().position === head);
      stopped.abort();
      await relay.done;
    }
    keepsTheLaw(store.log.all, writer.log.records);
    assert.equal(new Set(writer.log.records.map((record) => record.id)).size, writer.log.records.length);
  });
});
