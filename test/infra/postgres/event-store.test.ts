import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { eventStoreSuite } from '#contracts/ports/event-store.suite.ts';
import { streamPages } from '#contracts/ports/event-store.ts';
import { postgresHarness, postgresOffers, runSql } from '#test/support/event-store/postgres.ts';
import { suite } from '#test/support/suite.ts';

suite('postgres event store', (t) => {
  eventStoreSuite(t, postgresHarness, postgresOffers);

  t('a stream whose first events are gone is read page by page, each event once', async () => {
    const harness = await postgresHarness();
    try {
      const store = await harness.open();
      const stream = `post-${randomUUID()}`;
      const bytes = Buffer.from('{}');
      const list = Array.from({ length: 8 }, () => ({ id: randomUUID(), type: 'Any', data: bytes, metadata: bytes }));
      await store.append(
        stream,
        'none',
        list.map((one) => ({ ...one, partitionKey: stream })),
      );
      const revisions = async (limit: number): Promise<readonly (readonly number[])[]> => {
        const pages: (readonly number[])[] = [];
        for await (const page of streamPages(store, stream, limit)) {
          pages.push(page.map(({ revision }) => Number(revision)));
        }
        return pages;
      };
      assert.deepEqual(await revisions(3), [
        [0, 1, 2],
        [3, 4, 5],
        [6, 7],
      ]);
      await runSql(harness.url, 'delete from es.event_rows where stream = $1 and revision < 3', [stream]);
      assert.deepEqual(await revisions(3), [
        [3, 4, 5],
        [6, 7],
      ]);
      assert.deepEqual(await revisions(5), [[3, 4, 5, 6, 7]]);
      await runSql(harness.url, 'delete from es.event_rows where stream = $1', [stream]);
      assert.deepEqual(await revisions(3), []);
    } finally {
      await harness.close();
    }
  });
});
