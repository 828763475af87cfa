/** Jobs over a store whose positions are byte offsets: it refuses a position at which no event starts. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import {
  type EventStore,
  EventStoreError,
  type ReadStart,
  type RecordedEvent,
  workspaceOf,
} from '#contracts/ports/event-store.ts';
import { webhooksGroup } from '#projections/webhooks/dispatcher.ts';
import { claimWorkspace, nextStepMs, releaseWorkspace } from '#projections/webhooks/job-schedule.ts';
import { nextJob } from '#projections/webhooks/jobs.ts';
import { MemoryEventStore } from '#test/support/event-store/memory.ts';
import { HandLog } from '#test/support/hand-log.ts';
import type { Given } from '#test/support/projecting.ts';
import { clientFields } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { WebhookWorld } from '#test/support/webhook-world.ts';

const clientCreated = (at = new Date().toISOString()): Given => ({
  stream: `client-${randomUUID()}`,
  type: 'ClientCreated',
  data: clientFields,
  at,
});
const hoursAgo = (hours: number): string => new Date(Date.now() - hours * 3_600_000).toISOString();

suite('webhook jobs over byte offsets', { timeoutMs: 120_000, waits: true }, (t) => {
  const memory = new MemoryEventStore();
  /** Reads that begin here meet an unavailable store. */
  const away = new Set<bigint>();
  /** Pages that were read, and what jobs got of them. */
  let pages = 0;
  const handed: RecordedEvent[] = [];
  const reading = ({ from, after }: ReadStart): void => {
    pages += 1;
    const begin = from ?? after ?? null;
    if (begin !== null && (away.has(begin) || away.has(begin + 1n)))
      throw new EventStoreError('unavailable', 'away (asked for)');
  };
  const events: EventStore = {
    append: memory.append.bind(memory),
    read: memory.read.bind(memory),
    head: memory.head.bind(memory),
    subscribe: memory.subscribe.bind(memory),
    ping: memory.ping.bind(memory),
    close: memory.close.bind(memory),
    readAll: async (options) => {
      reading(options);
      return memory.readAll(options);
    },
    readWorkspace: async (workspaceId, options) => {
      reading(options);
      const page = await memory.readWorkspace(workspaceId, options);
      handed.push(...page.events);
      return page;
    },
  };
  let world: WebhookWorld;

  t.before(async () => {
    world = await WebhookWorld.open(events);
  });
  t.after(() => world.close());

  /**
   * A dispatcher that gets the stored events: the lane of endpoints comes last, so that no endpoint gets the others
   * live.
   */
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

  /** A dispatcher on a log of one lane: it takes the lane when the test says so, and owns it until another one does. */
  const onOneLane = () => {
    const hand = Object.assign(new HandLog(), { laneOf: () => '*' });
    const running = world.dispatch({ log: hand });
    return {
      stop: () => running.stop(),
      take: () => hand.handlers.assigned(['*']),
      async give(after: bigint): Promise<bigint> {
        const records = (await world.records()).filter(({ position }) => position > after);
        const position = records.at(-1)?.position ?? after;
        await hand.handlers.batch({ lane: '*', records, nextOffset: position, position });
        return position;
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

  t('events missed while the endpoint was off are caught up, from the event that turned it off', async () => {
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

  t('off for longer than a catch-up covers: it reads from behind the recorded mark of time and position', async () => {
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

  t('a job that the store does not answer moves to the end of the queue and continues later', async () => {
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
  });

  t('a new endpoint needs no catch-up, unless its lane changed its owner meanwhile', async () => {
    const workspaceId = randomUUID();
    const [owner, other] = [onOneLane(), onOneLane()];
    await owner.take();
    let given = await owner.give(-1n);
    // Jobs that earlier tests left.
    await world.world.pool.query("delete from ops.webhook_jobs where status = 'running'");
    const received = await world.register(['client.created'], workspaceId);
    const before = pages;
    given = await owner.give(given);
    const [first] = await world.append([clientCreated()], workspaceId);
    given = await owner.give(given);
    const completed = (endpointId: string) =>
      until('the catch-up over', async () => (await jobsOf(endpointId)).every(({ status }) => status === 'completed'));
    await completed(received);
    // The two that gave the dispatcher its records.
    assert.equal(pages - before, 2);
    assert.deepEqual(
      (await world.deliveries(received)).map(({ position }) => position),
      [first?.position],
    );
    // The next owner has just looked which endpoints there are, and takes what comes without another look.
    await other.take();
    await other.give(given);
    await owner.take();
    const missing = await world.register(['client.created'], workspaceId);
    given = await owner.give(given);
    await other.take();
    const [missed] = await world.append([clientCreated()], workspaceId);
    await other.give(given);
    await completed(missing);
    assert.deepEqual(
      (await world.deliveries(missing)).map(({ position }) => position),
      [missed?.position],
    );
    // One that was off has missed what came meanwhile, though its lane has had one owner all along.
    await owner.take();
    const off = await world.register(['client.created'], workspaceId);
    await world.act(off, { type: 'Disable', reason: 'failing', seenRevision: 0 }, { workspaceId });
    const [unreported] = await world.append([clientCreated()], workspaceId);
    given = await owner.give(given);
    assert.deepEqual(await world.deliveries(off), []);
    await world.act(off, { type: 'Update', changes: { active: true } }, { workspaceId });
    await owner.give(given);
    await completed(off);
    assert.deepEqual(
      (await world.deliveries(off)).map(({ position }) => position),
      [unreported?.position],
    );
    await owner.stop();
    await other.stop();
  });

  t('an endpoint whose registration was parked catches up the events of the meantime', async () => {
    const { pool } = world.world;
    const workspaceId = randomUUID();
    const owner = onOneLane();
    await pool.query("delete from ops.webhook_jobs where status = 'running'");
    const endpointId = await world.register(['client.created'], workspaceId);
    const stream = `webhook-${endpointId}`;
    const registered = (await world.records()).find((one) => one.stream === stream);
    const parked = [webhooksGroup, stream, registered?.id, registered?.type, registered?.position, workspaceId];
    await pool.query(
      `insert into ops.parked_events (consumer_group, stream, revision, event_id, type, position, reason, workspace_id)
       values ($1, $2, 0, $3, $4, $5, 'a statement took too long', $6)`,
      parked,
    );
    await owner.take();
    const [missed] = await world.append([clientCreated()], workspaceId);
    await owner.give(-1n);
    assert.deepEqual(await world.deliveries(endpointId), []);
    await pool.query('update ops.parked_events set retry_at = now() where stream = $1', [stream]);
    await until('the catch-up over', async () => {
      const jobs = await jobsOf(endpointId);
      return jobs.length > 0 && jobs.every(({ status }) => status === 'completed');
    });
    assert.deepEqual(
      (await world.deliveries(endpointId)).map(({ position }) => position),
      [missed?.position],
    );
    await owner.stop();
  });

  t('a replay and a catch-up read the events of their own workspace alone', async () => {
    const [workspaceId, others] = [randomUUID(), randomUUID()];
    await world.world.pool.query("delete from ops.webhook_jobs where status = 'running'");
    const dispatcher = await dispatching();
    const { endpointId, missed } = await offAndOn(workspaceId, hoursAgo(2), hoursAgo(1));
    for (let n = 0; n < 40; n += 1) {
      const stream = `client-${randomUUID()}`;
      const { type, data } = clientCreated();
      const hundred = Array.from({ length: 100 }, () => ({ type, data }));
      await world.store.append(stream, -1, hundred, world.context(others), stream);
    }
    const [from, to] = [hoursAgo(2), hoursAgo(0)];
    const asked = {
      type: 'RequestReplay',
      commandId: randomUUID(),
      replayId: randomUUID(),
      from,
      to,
      types: null,
    } as const;
    await world.act(endpointId, asked, { workspaceId });
    const before = pages;
    handed.length = 0;
    await dispatcher.give();
    await until('all jobs', async () => (await jobsOf(endpointId)).every(({ status }) => status === 'completed'));
    // The dispatcher got its records in one page; a page of everything would hold 500 of 4,000.
    assert.ok(pages - before < 10, `${pages - before} pages`);
    assert.ok(handed.length > 0 && handed.every(({ metadata }) => workspaceOf(metadata) === workspaceId));
    assert.deepEqual(
      (await world.deliveries(endpointId)).map(({ position, replayId }) => [position, replayId]),
      [
        [missed, null],
        [missed, asked.replayId],
      ],
    );
    await dispatcher.stop();
  });

  t('replays to one host share its queue limit and rate, however many endpoints name it', async () => {
    const { pool } = world.world;
    const workspaceId = randomUUID();
    await pool.query("delete from ops.webhook_jobs where status = 'running'");
    const [full, one, two] = await Promise.all([0, 1, 2].map(() => world.register(['client.created'], workspaceId)));
    const elsewhere = randomUUID();
    const registration = { events: ['client.created'], description: null, clientIds: null, keyVersion: 'v1' };
    const url = 'https://elsewhere.example/hook';
    await world.act(elsewhere, { type: 'Register', url, ...registration }, { workspaceId });
    for (let n = 0; n < 6; n += 1) {
      const stream = `client-${randomUUID()}`;
      const { type, data } = clientCreated();
      const hundred = Array.from({ length: 100 }, () => ({ type, data }));
      await world.store.append(stream, -1, hundred, world.context(workspaceId, hoursAgo(1)), stream);
    }
    const knowing = await dispatching();
    await knowing.give();
    await knowing.stop();
    await pool.query("delete from ops.webhook_jobs where status = 'running'");
    await pool.query(
      `insert into ops.webhook_queue (delivery_id, event_time, message_id, endpoint_id, workspace_id, lane, next_at,
         leased, attempt, tries, trigger, forced)
       select gen_random_uuid(), now(), gen_random_uuid(), $1, $2, 2, now(), false, 0, 0, 'replay', false
       from generate_series(1, 1000)`,
      [full, workspaceId],
    );
    const ids = new Map([one, two, elsewhere].map((endpointId) => [endpointId, randomUUID()]));
    for (const [endpointId, id] of ids) {
      await pool.query(
        `insert into ops.webhook_jobs (id, kind, endpoint_id, workspace_id, from_time, to_time)
         values ($1, 'replay', $2, $3, $4, $5)`,
        [id, endpointId, workspaceId, hoursAgo(2), hoursAgo(0)],
      );
    }
    /** Milliseconds between its steps for each delivery, once it has minted a page. */
    const restOf = async (endpointId: string | undefined): Promise<number | null> => {
      const { rows } = await pool.query<{ ms: number }>(
        `select extract(epoch from not_before - updated_at)::float8 * 1000 / minted as ms from ops.webhook_jobs
         where endpoint_id = $1 and kind = 'replay' and minted > 0`,
        [endpointId],
      );
      return rows[0]?.ms ?? null;
    };
    const rests = async (endpointId: string | undefined): Promise<number> => {
      await until('a page', async () => (await restOf(endpointId)) !== null);
      return (await restOf(endpointId)) ?? 0;
    };
    const running = await dispatching();
    // 200 a second.
    assert.ok(Math.abs((await rests(elsewhere)) - 5) < 0.1);
    assert.deepEqual([await restOf(one), await restOf(two)], [null, null]);
    await pool.query('delete from ops.webhook_queue where endpoint_id = $1', [full]);
    assert.ok(Math.abs((await rests(one)) - 10) < 0.1);
    await running.stop();
    await pool.query('delete from ops.webhook_queue where workspace_id = $1', [workspaceId]);
    await pool.query("delete from ops.webhook_jobs where status = 'running'");
  });

  t('workspaces take turns: one with 10,000 jobs does not delay the replay of another', async () => {
    const { pool } = world.world;
    const workspaceId = randomUUID();
    const created = await world.append(
      Array.from({ length: 3 }, () => clientCreated(hoursAgo(1))),
      workspaceId,
    );
    const endpointId = await world.register(['client.created'], workspaceId);
    const first = await dispatching();
    await first.give();
    await first.stop();
    const busy = randomUUID();
    await pool.query(
      `insert into ops.webhook_jobs (id, kind, endpoint_id, workspace_id, cursor, not_before)
       select gen_random_uuid(), 'catch_up', gen_random_uuid(), $1, $2, now() - interval '1 minute'
       from generate_series(1, 10000)`,
      [busy, created.at(-1)?.position],
    );
    const replayId = randomUUID();
    await pool.query(
      `insert into ops.webhook_jobs (id, kind, endpoint_id, workspace_id, from_time, to_time, types)
       values ($1, 'replay', $2, $3, $4, $5, null)`,
      [replayId, endpointId, workspaceId, hoursAgo(2), hoursAgo(0)],
    );
    const running = await dispatching();
    await until('the replay over', async () => {
      const { rowCount } = await pool.query("select 1 from ops.webhook_jobs where id = $1 and status = 'completed'", [
        replayId,
      ]);
      return rowCount === 1;
    });
    const { rows } = await pool.query(
      'select count(*)::int as begun from ops.webhook_jobs where workspace_id = $1 and settle_at is not null',
      [busy],
    );
    await running.stop();
    assert.ok(rows[0].begun < 500, `${rows[0].begun} jobs of the other one went first`);
    const replayed = (await world.deliveries(endpointId)).filter((one) => one.replayId === replayId);
    assert.equal(replayed.length, 3);
    await pool.query('delete from ops.webhook_jobs where workspace_id = $1', [busy]);
  });

  t('a job that arrives during its workspace’s step is found after the step', async () => {
    const { pool } = world.world;
    const workspaceId = randomUUID();
    const make = (notBefore: string, db: Pick<typeof pool, 'query'> = pool) =>
      db.query(
        `insert into ops.webhook_jobs (id, kind, endpoint_id, workspace_id, not_before)
         values (gen_random_uuid(), 'purge', gen_random_uuid(), $1, now() + $2::interval)`,
        [workspaceId, notBefore],
      );
    const scheduleOf = async () => {
      const { rows } = await pool.query<{ due: boolean; late: boolean }>(
        `select next_at <= now() as due, next_at > now() + interval '30 seconds' as late
         from ops.webhook_job_schedule where workspace_id = $1`,
        [workspaceId],
      );
      return rows[0] ?? null;
    };
    await pool.query("delete from ops.webhook_jobs where status = 'running'");
    await pool.query('delete from ops.webhook_job_schedule');
    await make('0');
    const claimed = await claimWorkspace(pool);
    assert.equal(claimed?.workspaceId, workspaceId);
    assert.equal(await claimWorkspace(pool), null);
    await pool.query('delete from ops.webhook_jobs where workspace_id = $1', [workspaceId]);
    await make('0');
    await releaseWorkspace(pool, claimed, 60_000);
    assert.deepEqual(await scheduleOf(), { due: true, late: false });
    // With nothing that came meanwhile it ends when the next job is due, and goes with the last one.
    const again = await claimWorkspace(pool);
    assert.ok(again !== null);
    await pool.query("update ops.webhook_jobs set not_before = now() + interval '1 hour' where workspace_id = $1", [
      workspaceId,
    ]);
    await releaseWorkspace(pool, again, 0);
    assert.deepEqual(await scheduleOf(), { due: false, late: true });
    await pool.query('update ops.webhook_jobs set not_before = now() where workspace_id = $1', [workspaceId]);
    assert.deepEqual(await scheduleOf(), { due: true, late: false });
    const last = await claimWorkspace(pool);
    assert.ok(last !== null);
    await pool.query("update ops.webhook_jobs set status = 'completed' where workspace_id = $1", [workspaceId]);
    await releaseWorkspace(pool, last, 0);
    assert.equal(await scheduleOf(), null);
    // One that is being written while the workspace is released, and is not seen yet.
    await make('0');
    const ending = await claimWorkspace(pool);
    assert.ok(ending !== null);
    await pool.query("update ops.webhook_jobs set status = 'completed' where workspace_id = $1", [workspaceId]);
    const writer = await pool.connect();
    try {
      await writer.query('begin');
      await make('0', writer);
      const ended = releaseWorkspace(pool, ending, 0);
      await until('the end waits for the writer', async () => {
        const { rowCount } = await pool.query(
          `select from pg_stat_activity
           where datname = current_database() and wait_event_type = 'Lock' and query like '%delete from ops.webhook_job_schedule%'`,
        );
        return rowCount === 1;
      });
      await writer.query('commit');
      await ended;
    } finally {
      writer.release();
    }
    assert.notEqual(await scheduleOf(), null, 'the workspace is scheduled');
    await pool.query('truncate ops.webhook_jobs, ops.webhook_job_schedule');
  });

  t('choosing the next workspace costs the same with 100,000 workspaces or 100,000 jobs of one', async () => {
    const { pool } = world.world;
    const busy = randomUUID();
    // Without statistics, as after a burst.
    await pool.query('alter table ops.webhook_jobs disable trigger user');
    for (const table of ['jobs', 'job_schedule']) {
      await pool.query(`alter table ops.webhook_${table} set (autovacuum_enabled = false)`);
    }
    await pool.query(
      `insert into ops.webhook_jobs (id, kind, endpoint_id, workspace_id, not_before)
       select gen_random_uuid(), 'catch_up', gen_random_uuid(), $1::uuid, now() - i * interval '1 second'
       from generate_series(1, 100000) i
       union all
       select gen_random_uuid(), 'replay', gen_random_uuid(), gen_random_uuid(), now() + i * interval '1 second'
       from generate_series(1, 100000) i`,
      [busy],
    );
    await pool.query(
      `insert into ops.webhook_job_schedule (workspace_id, next_at)
       select workspace_id, min(not_before) from ops.webhook_jobs where status = 'running' group by workspace_id`,
    );
    await pool.query('alter table ops.webhook_jobs enable trigger user');
    const session = await pool.connect();
    const pagesRead = async (work: (db: Pick<typeof session, 'query'>) => Promise<unknown>): Promise<number> => {
      let read = 0;
      const explained = async (text: string, values: readonly unknown[] = []) => {
        const { rows } = await session.query(`explain (analyze, buffers, format json) ${text}`, [...values]);
        const { Plan: plan } = rows[0]['QUERY PLAN'][0];
        read += plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
        return { rows: [], rowCount: 0 };
      };
      await work({ query: explained } as unknown as typeof session);
      return read;
    };
    try {
      for (const statistics of [false, true]) {
        if (statistics) await session.query('analyze ops.webhook_jobs, ops.webhook_job_schedule');
        const claimed = { workspaceId: busy, version: '0' };
        await session.query('begin; set local enable_seqscan = off');
        for (const [what, pages] of Object.entries({
          look: await pagesRead(nextStepMs),
          take: await pagesRead(claimWorkspace),
          next: await pagesRead((db) => nextJob(db, busy)),
          end: await pagesRead((db) => releaseWorkspace(db, claimed, 0)),
        })) {
          assert.ok(pages > 0 && pages < 100, `${what} read ${pages} pages`);
        }
        await session.query('rollback');
      }
    } finally {
      session.release();
    }
    await pool.query('truncate ops.webhook_jobs, ops.webhook_job_schedule');
  });
});
