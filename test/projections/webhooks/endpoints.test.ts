/** What an event of an endpoint touches in its own transaction does not grow with the endpoint's queue. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { WebhookCommand } from '#domain/webhook.ts';
import { applyEndpointEvents } from '#projections/webhooks/endpoints.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { clientFields } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { WebhookWorld } from '#test/support/webhook-world.ts';

/** Rows of the endpoint; what a transaction reads and writes of queue and deliveries together stays below a page. */
const queued = 20_000;
const page = 1_000;

const touchedSql = `
select sum(seq_tup_read + coalesce(idx_tup_fetch, 0) + n_tup_ins + n_tup_upd + n_tup_del)::int as touched
from pg_stat_xact_user_tables
where schemaname = 'ops' and (relname = 'webhook_queue' or relname like 'webhook_deliveries%')`;

suite('events of an endpoint with a long queue', { timeoutMs: 120_000 }, (t) => {
  let world: WebhookWorld;
  t.before(async () => {
    world = await WebhookWorld.open();
  });
  t.after(() => world.close());

  /** Applies what the endpoint's stream has got; returns the rows of queue and deliveries that this touched. */
  const applied = async (endpointId: string): Promise<number> => {
    const events = await world.store.readStream(`webhook-${endpointId}`);
    return inTransaction(world.world.pool, async (tx) => {
      // The session counts what earlier transactions of it touched and have not reported yet.
      const touched = async () => (await tx.query<{ touched: number }>(touchedSql)).rows[0]?.touched ?? 0;
      const before = await touched();
      const { failure } = await applyEndpointEvents(tx, events, async () => null, null);
      assert.equal(failure, null);
      return { commit: true, result: (await touched()) - before };
    });
  };
  const act = async (endpointId: string, command: WebhookCommand): Promise<number> => {
    await world.act(endpointId, command);
    return applied(endpointId);
  };
  const fill = async (
    endpointId: string,
    count: number,
    { position = 0n, age = '2 hours', lane = 1, replayId = null as string | null } = {},
  ): Promise<void> => {
    await world.world.pool.query(
      `with made as (
         insert into ops.webhook_deliveries (event_time, id, endpoint_id, workspace_id, message_id, type, position,
           replay_id, created_at)
         select now() - $4::interval, gen_random_uuid(), $1, $2, gen_random_uuid(), 'client.created', $5, $6,
           now() - $4::interval
         from generate_series(1, $3) returning *
       )
       insert into ops.webhook_queue (delivery_id, event_time, message_id, endpoint_id, workspace_id, lane, next_at,
         leased, attempt, tries, trigger)
       select id, event_time, message_id, endpoint_id, workspace_id, $7, now() + interval '1 hour', false, 1, 1,
         case when replay_id is null then 'scheduled' else 'replay' end
       from made`,
      [endpointId, world.workspaceId, count, age, position, replayId, lane],
    );
    await world.world.pool.query('analyze ops.webhook_queue, ops.webhook_deliveries');
  };
  const count = async (table: 'queue' | 'deliveries', endpointId: string, where = 'true'): Promise<number> => {
    const sql = `select count(*)::int as n from ops.webhook_${table} where endpoint_id = $1 and ${where}`;
    return (await world.world.pool.query<{ n: number }>(sql, [endpointId])).rows[0]?.n ?? 0;
  };
  /** Far beyond every event of this test, as of a lane that is ahead. */
  const beyond = { position: 1_000_000_000_000n, age: '1 second', lane: 0 };

  t('a narrower filter, the end of a replay, off and on again touch what they change, not the queue', async () => {
    const endpointId = await world.register(['client.*']);
    await applied(endpointId);
    await fill(endpointId, queued);
    await fill(endpointId, 3, beyond);
    const narrower = { type: 'Update', changes: { events: ['post.*'] } } satisfies WebhookCommand;
    const touched: Record<string, number> = { narrower: await act(endpointId, narrower) };
    assert.equal(await count('queue', endpointId), queued);
    assert.equal(await count('deliveries', endpointId, "status = 'canceled'"), 3);
    touched.wider = await act(endpointId, { type: 'Update', changes: { events: ['*'] } });
    assert.equal(await count('queue', endpointId), queued + 3, 'what the wider filter includes is revived');
    // Each had an attempt under way, whose result nobody waits for: the next one has another number.
    assert.equal(await count('queue', endpointId, 'lane = 0 and attempt = 1'), 3);

    const replayId = randomUUID();
    const stretch = { from: new Date(0).toISOString(), to: new Date().toISOString(), types: null };
    await act(endpointId, { type: 'RequestReplay', commandId: randomUUID(), replayId, ...stretch });
    await fill(endpointId, 5, { replayId, lane: 2 });
    await fill(endpointId, 2, { replayId: randomUUID(), lane: 2 });
    touched.replay = await act(endpointId, { type: 'CancelReplay', replayId });
    assert.equal(await count('queue', endpointId), queued + 3 + 2);

    touched.off = await act(endpointId, { type: 'Disable', reason: 'failing', seenRevision: 0 });
    assert.equal(await count('queue', endpointId), queued + 2);
    touched.on = await act(endpointId, { type: 'Update', changes: { active: true } });
    assert.equal(await count('queue', endpointId), queued + 3 + 2);
    for (const [what, rows] of Object.entries(touched)) assert.ok(rows <= page, `${what} touched ${rows} rows`);
  });

  t('a deletion touches no row of the queue, which a job empties page by page', async () => {
    const endpointId = await world.register(['client.*']);
    const other = await world.register(['client.*']);
    await applied(endpointId);
    await fill(endpointId, queued);
    await fill(other, 2);
    const touched = await act(endpointId, { type: 'Delete' });
    assert.ok(touched <= page, `the deletion touched ${touched} rows`);
    assert.equal(await count('queue', endpointId), queued);
    // A death here leaves the job: two processes that start later share its pages.
    const running = [world.dispatch(), world.dispatch()];
    await until('nothing is left', async () => (await count('deliveries', endpointId)) === 0);
    assert.equal(await count('queue', endpointId), 0, 'the queue is empty before the last delivery goes');
    assert.equal(await count('queue', other), 2);
    await Promise.all(running.map((one) => one.stop()));
  });

  t('a replay adds nothing to a full lane of replays, which bounds what its end cancels', async () => {
    const endpointId = await world.register(['client.*']);
    await applied(endpointId);
    await world.append([
      { stream: `client-${randomUUID()}`, type: 'ClientCreated', data: clientFields, at: new Date().toISOString() },
    ]);
    await fill(endpointId, page, { replayId: randomUUID(), lane: 2 });
    const replayId = randomUUID();
    const stretch = { from: new Date(0).toISOString(), to: new Date(Date.now() + 60_000).toISOString(), types: null };
    await act(endpointId, { type: 'RequestReplay', commandId: randomUUID(), replayId, ...stretch });
    const is = (where: string) =>
      until(`the replay: ${where}`, async () => {
        const sql = `select 1 from ops.webhook_jobs where id = $1 and ${where}`;
        return (await world.world.pool.query(sql, [replayId])).rowCount === 1;
      });
    const running = world.dispatch();
    // It rests, as after a step that found no room.
    await is("not_before > updated_at + interval '400 milliseconds'");
    assert.equal(await count('deliveries', endpointId, `replay_id = '${replayId}'`), 0);
    // Those of all endpoints at a host count together.
    await world.world.pool.query(
      `delete from ops.webhook_queue where delivery_id in (
         select delivery_id from ops.webhook_queue where endpoint_id = $1 and lane = 2 limit 10)`,
      [endpointId],
    );
    await is("status = 'completed'");
    assert.ok((await count('deliveries', endpointId, `replay_id = '${replayId}'`)) > 0);
    await running.stop();
  });
});
