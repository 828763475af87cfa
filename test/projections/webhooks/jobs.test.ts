/** Stretches read once more, from a store whose positions are byte offsets: it refuses one that starts no event. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type EventStore, EventStoreError, type ReadStart } from '#contracts/ports/event-store.ts';
import { MemoryEventStore } from '#infra/memory/event-store.ts';
import { migrate } from '#projections/webhooks/tables.ts';
import { HandLog } from '#test/support/hand-log.ts';
import type { Given } from '#test/support/projecting.ts';
import { until } from '#test/support/projection-world.ts';
import { clientFields } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';
import { WebhookWorld } from '#test/support/webhook-world.ts';

const clientCreated = (at = new Date().toISOString()): Given => ({
  stream: `client-${randomUUID()}`,
  type: 'ClientCreated',
  data: clientFields,
  at,
});
const hoursAgo = (hours: number): string => new Date(Date.now() - hours * 3_600_000).toISOString();

suite('webhook jobs over byte offsets', { timeoutMs: 120_000 }, (t) => {
  const memory = new MemoryEventStore();
  /** Reads that begin here meet a store that is away. */
  const away = new Set<bigint>();
  const events: EventStore = {
    append: memory.append.bind(memory),
    read: memory.read.bind(memory),
    head: memory.head.bind(memory),
    subscribe: memory.subscribe.bind(memory),
    ping: memory.ping.bind(memory),
    close: memory.close.bind(memory),
    readAll: async (options: ReadStart & { readonly limit: number }) => {
      const begin = options.from ?? options.after;
      if (begin !== null && (away.has(begin) || away.has(begin + 1n)))
        throw new EventStoreError('unavailable', 'away (asked for)');
      return memory.readAll(options);
    },
  };
  let world: WebhookWorld;

  t.before(async () => {
    world = await WebhookWorld.open(events);
  });
  t.after(() => world.close());

  /** A dispatcher that is given what is stored: the lane of endpoints comes last, so that nobody hears the others. */
  const dispatching = async () => {
    const hand = new HandLog();
    const running = world.dispatch({ log: hand });
    const lanes = [`others-${randomUUID()}`, `webhooks-${randomUUID()}`] as const;
    await hand.handlers.assigned(lanes);
    let given = 0;
    return {
      stop: () => running.stop(),
      async give(): Promise<void> {
        const stored = (await world.records()).slice(given);
        given += stored.length;
        for (const lane of lanes) {
          const records = stored.filter(({ topic }) => (topic === 'webhooks') === lane.startsWith('webhooks'));
          const position = records.at(-1)?.position ?? null;
          await hand.handlers.batch({ lane, records, nextOffset: BigInt(given), position });
        }
      },
    };
  };

  const jobsOf = async (endpointId: string) => {
    const { rows } = await world.world.pool.query<{
      id: string;
      status: string;
      settled: boolean;
      failure: string | null;
    }>(`select id, status, settle_at is not null as settled, failure from ops.webhook_jobs where endpoint_id = $1`, [
      endpointId,
    ]);
    return rows;
  };
  const isRead = (endpointId: string) =>
    until('the catch-up', async () => {
      const jobs = await jobsOf(endpointId);
      return jobs.length > 0 && jobs.every(({ settled }) => settled);
    });

  /** On, off by us at one instant and on again at a later one, with an event in between. */
  const offAndOn = async (workspaceId: string, off: string, missed: string) => {
    const endpointId = await world.register(['client.created'], workspaceId);
    await world.act(endpointId, { type: 'Disable', reason: 'failing', seenRevision: 0 }, { workspaceId, now: off });
    const [event] = await world.append([clientCreated(missed)], workspaceId);
    await world.act(endpointId, { type: 'Update', changes: { active: true } }, { workspaceId });
    assert.ok(event !== undefined);
    return { endpointId, missed: event.position };
  };

  t('what came while it was off is caught up, from the event that turned it off', async () => {
    const dispatcher = await dispatching();
    const { endpointId, missed } = await offAndOn(randomUUID(), hoursAgo(2), hoursAgo(1));
    await dispatcher.give();
    await until('the delivery', async () => (await world.deliveries(endpointId)).length > 0);
    assert.deepEqual(
      (await world.deliveries(endpointId)).map(({ position }) => position),
      [missed],
    );
    await isRead(endpointId);
    assert.deepEqual(
      (await jobsOf(endpointId)).map(({ failure }) => failure),
      [null, null],
    );
    await dispatcher.stop();
  });

  t('off for longer than is caught up: read from behind the mark, which is the position of an event', async () => {
    const workspaceId = randomUUID();
    const dispatcher = await dispatching();
    const endpointId = await world.register(['client.created'], workspaceId);
    await world.act(
      endpointId,
      { type: 'Disable', reason: 'failing', seenRevision: 0 },
      { workspaceId, now: hoursAgo(200) },
    );
    const [old] = await world.append([clientCreated(hoursAgo(190))], workspaceId);
    const [mark] = await world.append([clientCreated(hoursAgo(100))], workspaceId);
    const [young] = await world.append([clientCreated(hoursAgo(1))], workspaceId);
    await world.world.pool.query('insert into ops.webhook_marks (position, at) values ($1, $2)', [
      mark?.position,
      hoursAgo(100),
    ]);
    await world.act(endpointId, { type: 'Update', changes: { active: true } }, { workspaceId });
    await dispatcher.give();
    await isRead(endpointId);
    const found = (await world.deliveries(endpointId)).map(({ position }) => position);
    assert.deepEqual(found, [young?.position]);
    assert.ok((old?.position ?? 0n) < (mark?.position ?? 0n));
    await world.world.pool.query('delete from ops.webhook_marks');
    await dispatcher.stop();
  });

  t(
    'a job that the store does not answer moves back: the others pass, and it goes on when the store answers',
    async () => {
      const dispatcher = await dispatching();
      const stuck = await offAndOn(randomUUID(), hoursAgo(2), hoursAgo(1));
      for (const { position } of await world.store.readStream(`webhook-${stuck.endpointId}`)) away.add(position);
      const passing = await offAndOn(randomUUID(), hoursAgo(2), hoursAgo(1));
      await dispatcher.give();
      await until('the other delivery', async () => (await world.deliveries(passing.endpointId)).length > 0);
      assert.equal((await world.deliveries(stuck.endpointId)).length, 0);
      assert.ok((await jobsOf(stuck.endpointId)).some(({ status }) => status === 'running'));
      away.clear();
      await until('its own', async () => (await world.deliveries(stuck.endpointId)).length > 0);
      await dispatcher.stop();
    },
  );

  t('catch-ups of a release that counted back from the event are begun at the event, also beside it', async () => {
    const { pool } = world.world;
    // What such a process leaves: no such column at first; rows that it writes after the column came.
    const asBefore = 'update ops.webhook_jobs set not_before = now(), from_inclusive = null';
    for (const beside of [false, true]) {
      const writing = await dispatching();
      const { endpointId, missed } = await offAndOn(randomUUID(), hoursAgo(2), hoursAgo(1));
      await pool.query(`alter table ops.webhook_jobs alter column not_before set default now() + interval '1 day'`);
      await writing.give();
      await writing.stop();
      await pool.query('alter table ops.webhook_jobs alter column not_before set default now()');
      if (beside) await pool.query(`${asBefore} where settle_at is null`);
      else {
        await pool.query('alter table ops.webhook_jobs drop column from_inclusive');
        await pool.query(`update ops.webhook_jobs set not_before = now() where settle_at is null`);
        await migrate(pool);
      }
      const { rows } = await pool.query(
        'select from_inclusive is null as old from ops.webhook_jobs where endpoint_id = $1',
        [endpointId],
      );
      assert.deepEqual(
        rows.map(({ old }) => old),
        [beside, beside],
      );
      const reading = await dispatching();
      await until('the delivery', async () => (await world.deliveries(endpointId)).length > 0);
      assert.deepEqual(
        (await world.deliveries(endpointId)).map(({ position }) => position),
        [missed],
      );
      await reading.stop();
    }
  });
});
