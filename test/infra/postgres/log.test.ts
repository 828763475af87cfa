import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Pool } from 'pg';
import { logSuite } from '#contracts/ports/log.suite.ts';
import { type ConsumerHandlers, type LaneBatch, LogError } from '#contracts/ports/log.ts';
import type { PostgresEventStore } from '#infra/postgres/event-store.ts';
import { openPostgresLog } from '#infra/postgres/log.ts';
import { testDatabase, testServer } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { postgresHarness } from './log-harness.ts';

suite('log: the Postgres event table', { timeoutMs: 120_000, waits: true }, (t) => {
  let url = '';
  let store: PostgresEventStore;

  logSuite(t, async () => {
    const [server, database] = [await testServer(), await testDatabase()];
    url = server.url;
    const kill9 = async (): Promise<void> => {
      await server.kill9();
      await server.start();
    };
    const harness = await postgresHarness({ url, effectsUrl: database.url, kill9 });
    store = harness.store;
    return harness;
  }, ['kill9']);

  let count = 0;
  const append = async (kind: string): Promise<bigint> => {
    count += 1;
    const bytes = new TextEncoder().encode(`{"n":${count}}`);
    const event = { id: randomUUID(), type: 'Noted', data: bytes, metadata: bytes, partitionKey: 'k' };
    const { position } = await store.append(`${kind}-${randomUUID()}`, 'none', [event]);
    assert.ok(position !== null);
    return position;
  };
  /** A consumer that keeps its batches and positions in memory. */
  const consumer = (nextOffset: bigint | null): ConsumerHandlers & { batches: LaneBatch[]; at: bigint | null } => ({
    batches: [],
    at: nextOffset,
    async assigned() {
      return [{ lane: '*', nextOffset: this.at, position: null }];
    },
    async batch(batch) {
      this.batches.push(batch);
      this.at = batch.nextOffset;
    },
  });
  const subscribed = async (
    handlers: ConsumerHandlers,
    run: (end: AbortController) => Promise<void>,
    group: string = randomUUID(),
    spacingMs?: number,
  ): Promise<void> => {
    const log = await openPostgresLog({ url, store });
    const end = new AbortController();
    const options = { group, topics: ['posts'], handlers, signal: end.signal };
    const { done } = log.subscribe({ ...options, ...(spacingMs === undefined ? {} : { spacingMs }) });
    try {
      await Promise.race([run(end), done]);
    } finally {
      end.abort();
      await log.close();
    }
    await done;
  };

  t('skips other topics and reports the position in a few empty batches', async () => {
    const handlers = consumer(await store.head());
    await subscribed(handlers, async () => {
      for (let i = 0; i < 20; i += 1) await append('media');
      const last = await append('media');
      await until('the event is handed over', () => handlers.at === last);
      assert.ok(handlers.batches.length <= 3, `${handlers.batches.length} batches for 21 events of other topics`);
      assert.ok(handlers.batches.every(({ records, position }) => records.length === 0 && position === null));
      const ours = await append('post');
      await until('the event is handed over', () => handlers.at === ours);
      assert.equal(handlers.batches.at(-1)?.position, ours);
    });
  });

  t('gathers records into batches for consumers that set a spacing', async () => {
    const [patient, hasty] = [consumer(await store.head()), consumer(await store.head())];
    const follow = (handlers: typeof patient, spacingMs: number) =>
      subscribed(
        handlers,
        async () => {
          const first = await append('post');
          await until('the event is handed over', () => handlers.at === first);
          // One by one for him who is handed each at once; for the other they gather meanwhile.
          for (let i = 0; i < 3; i += 1) {
            const next = await append('post');
            if (spacingMs === 0) await until('the event is handed over', () => handlers.at === next);
          }
          await until(
            'all four are handed over',
            () => handlers.batches.flatMap(({ records }) => records).length === 4,
          );
        },
        randomUUID(),
        spacingMs,
      );
    await follow(patient, 1_500);
    assert.deepEqual(
      patient.batches.map(({ records }) => records.length),
      [1, 3],
    );
    hasty.at = await store.head();
    await follow(hasty, 0);
    assert.deepEqual(
      hasty.batches.map(({ records }) => records.length),
      [1, 1, 1, 1],
    );
  });

  t('calls no handler without new events', async () => {
    const handlers = consumer(await store.head());
    await subscribed(handlers, async () => {
      await append('post');
      await until('the event is handed over', () => handlers.batches.length === 1);
      await new Promise((resolve) => setTimeout(resolve, 2500));
      assert.equal(handlers.batches.length, 1);
    });
  });

  t('does not carry streams that have no topic', async () => {
    const handlers = consumer(await store.head());
    await subscribed(handlers, async () => {
      await append('request');
      const ours = await append('post');
      await until('the event is handed over', () => handlers.at === ours);
      assert.deepEqual(
        handlers.batches.flatMap(({ records }) => records.map(({ position }) => position)),
        [ours],
      );
    });
  });

  t('continues at its position after its connections were cut', async () => {
    const admin = new Pool({ connectionString: url, max: 1 });
    try {
      const handlers = consumer(await store.head());
      await subscribed(handlers, async () => {
        const positions: bigint[] = [];
        for (let i = 0; i < 5; i += 1) {
          positions.push(await append('post'));
          await until('the event is handed over', () => handlers.at === positions.at(-1));
          await admin.query(
            `select pg_terminate_backend(pid) from pg_stat_activity
             where application_name in ('log-lease', 'events-listen') or (application_name = 'events-read' and $1)`,
            [i % 2 === 1],
          );
        }
        assert.deepEqual(
          handlers.batches.flatMap(({ records }) => records.map(({ position }) => position)),
          positions,
        );
      });
    } finally {
      await admin.end();
    }
  });

  t('one member of a group reads; when it leaves, the next one continues at once', async () => {
    const group = randomUUID();
    const first = consumer(await store.head());
    const second = consumer(await store.head());
    const third = consumer(await store.head());
    let secondDone = Promise.resolve();
    await subscribed(
      first,
      async () => {
        const begun = await append('post');
        await until('the event is handed over', () => first.at === begun);
        const left = new AbortController();
        const idle = await openPostgresLog({ url, store });
        // A stand-by that gives up leaves no one waiting in its place.
        const gone = idle.subscribe({ group, topics: ['posts'], handlers: third, signal: left.signal });
        left.abort();
        await gone.done;
        await idle.close();
        secondDone = subscribed(
          second,
          async () => {
            await until('the second is given a batch', () => second.batches.length > 0);
          },
          group,
        );
        await append('post');
        await until('the first is given another batch', () => first.batches.length >= 2);
        assert.equal(second.batches.length, 0);
      },
      group,
    );
    await append('post');
    await secondDone;
    assert.equal(third.batches.length, 0);
  });

  t('fails at a position beyond the end of the table', async () => {
    const handlers = consumer(((await store.head()) ?? 0n) + 1_000n);
    await assert.rejects(
      subscribed(handlers, () => new Promise(() => undefined)),
      (error) => error instanceof LogError && error.code === 'fatal' && /rebuild/.test(error.message),
    );
  });

  t('refuses to start with another count of partitions', async () => {
    await assert.rejects(
      openPostgresLog({ url, partitions: 5 }),
      (error) => error instanceof LogError && error.code === 'partition_mismatch',
    );
  });

  t('fails as unavailable when no server answers', async () => {
    await assert.rejects(
      openPostgresLog({ url: 'postgres://nobody@127.0.0.1:1/none' }),
      (error) => error instanceof LogError && error.code === 'unavailable',
    );
  });
});
