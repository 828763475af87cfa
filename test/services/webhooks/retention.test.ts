import assert from 'node:assert/strict';
import { partitionsOf } from '#projections/webhooks/tables.ts';
import { keptMs, retain } from '#services/webhooks/retention.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { receiver, SenderWorld } from './world.ts';

const day = 86_400_000;
const week = 7 * day;
/** Within a week of its own, long ago. */
const old = '2026-01-07T12:00:00.000Z';

suite('webhook retention', (t) => {
  let world: SenderWorld;
  let endpoint: string;
  const deps = (now: number) => ({ pool: world.pool, logger: world.webhooks.world.logger, now: () => now });
  /** The partitions of the old week that a round at this instant drops; those of other weeks are no matter here. */
  const drops = async (now: number): Promise<readonly string[]> =>
    (await retain(deps(now))).filter((name) => name.endsWith(`_w${Math.floor(Date.parse(old) / week)}`));
  const has = async (id: string): Promise<boolean> =>
    (await world.pool.query('select 1 from ops.webhook_deliveries where id = $1', [id])).rowCount === 1;
  const ends = async (): Promise<readonly number[]> =>
    (await partitionsOf(world.pool, 'webhook_deliveries')).map(({ end }) => end);
  /** A delivery of an old event that is over, made at the given instant. */
  const over = async (createdAt: number): Promise<string> => {
    const [id = ''] = await world.queue(endpoint, { eventTime: old });
    await world.pool.query('delete from ops.webhook_queue where delivery_id = $1', [id]);
    const made = new Date(createdAt);
    await world.pool.query("update ops.webhook_deliveries set status = 'delivered', created_at = $2 where id = $1", [
      id,
      made,
    ]);
    return id;
  };

  t.before(async () => {
    world = await SenderWorld.open();
    endpoint = await world.endpoint('http://127.0.0.1:9/');
  });
  t.after(() => world.close());

  t('keeps 30 days after the end of the week, and then drops messages and deliveries together', async () => {
    const id = await over(Date.parse(old));
    const end = (Math.floor(Date.parse(old) / week) + 1) * week;
    assert.ok((await ends()).includes(end));
    assert.deepEqual(await drops(end + keptMs - 1), []);
    assert.ok(await has(id));
    const dropped = await drops(end + keptMs);
    assert.deepEqual(dropped.map((name) => name.replace(/_w\d+$/, '')).sort(), [
      'webhook_deliveries',
      'webhook_messages',
    ]);
    assert.ok(!(await has(id)) && !(await ends()).includes(end));
    // A replay of that time finds room again.
    assert.ok(await has(await over(Date.parse(old))));
  });

  t('fails what waited 30 days for an endpoint that is off, so that a forgotten one keeps nobody’s week', async () => {
    const off = await world.endpoint('http://127.0.0.1:9/');
    const [waits = '', asked = ''] = await world.queue(off, { eventTime: old, count: 2 });
    const [young = '', sent = ''] = await world.queue(off, { count: 2 });
    const queued = 'select delivery_id as id from ops.webhook_queue where endpoint_id = $1 order by 1';
    const left = async () => (await world.pool.query<{ id: string }>(queued, [off])).rows.map(({ id }) => id);
    const set = (member: string, id: string) =>
      world.pool.query(`update ops.webhook_queue set ${member} where delivery_id = $1`, [id]);
    await set('forced = true', asked);
    await world.webhooks.act(off, { type: 'Disable', reason: 'failing', seenRevision: 0 });
    await world.applied(off, 'not active');
    const made = new Date(Date.now() - keptMs + 60_000);
    const age = 'update ops.webhook_deliveries set created_at = $2 where endpoint_id = $1';
    await world.pool.query(age, [off, made]);
    await retain(deps(Date.now()));
    assert.equal((await left()).length, 4, 'all wait for less than 30 days');
    // A person’s resend is under way, and an attempt that began while the endpoint was on.
    await world.pool.query(age, [off, new Date(Date.now() - keptMs)]);
    await world.pool.query('update ops.webhook_deliveries set created_at = now() where id = $1', [young]);
    await set("leased = true, next_at = now() + interval '1 minute'", sent);
    await retain(deps(Date.now()));
    assert.deepEqual(await left(), [asked, young, sent].toSorted());
    assert.equal((await world.delivery(waits)).status, 'failed');
    await world.pool.query('delete from ops.webhook_queue where endpoint_id = $1', [off]);
    const dropped = await drops(Date.now());
    assert.equal(dropped.length, 2);
  });

  t('sends nothing of what a deleted endpoint leaves in the queue', async () => {
    const [gone, on] = [await receiver(), await receiver()];
    const [deleted, other] = [await world.endpoint(gone.url), await world.endpoint(on.url)];
    const [waits = '', asked = ''] = await world.queue(deleted, { count: 2 });
    await world.pool.query('update ops.webhook_queue set forced = true where delivery_id = $1', [asked]);
    // The job that deletes what it leaves is over.
    const job = `insert into ops.webhook_jobs (id, kind, endpoint_id, workspace_id, status)
      values ($1, 'purge', $1, $2, 'completed')`;
    await world.pool.query(job, [deleted, world.webhooks.workspaceId]);
    await world.webhooks.act(deleted, { type: 'Delete' });
    await world.applied(deleted, "state ->> 'status' = 'deleted'");
    const left = async () => {
      const sql = 'select delivery_id as id, attempt from ops.webhook_queue where endpoint_id = $1 order by 1';
      return (await world.pool.query<{ id: string; attempt: number }>(sql, [deleted])).rows;
    };
    const running = world.start();
    const [sent = ''] = await world.queue(other);
    await world.settled(sent);
    await running.stop();
    const untouched = [waits, asked].toSorted().map((id) => ({ id, attempt: 0 }));
    assert.deepEqual([gone.got.length, await left()], [0, untouched]);
  });

  t('keeps messages with unsent deliveries for an endpoint that is on, however old', async () => {
    const [id = ''] = await world.queue(endpoint, { eventTime: old });
    assert.deepEqual(await drops(Date.now()), []);
    await world.pool.query('delete from ops.webhook_queue where delivery_id = $1', [id]);
    await world.pool.query('update ops.webhook_deliveries set created_at = $2 where id = $1', [id, new Date(old)]);
    assert.equal((await drops(Date.now())).length, 2);
  });

  t('keeps the deliveries of a replay of old events as long as others', async () => {
    const now = Date.now();
    const id = await over(now - keptMs + 1_000);
    assert.deepEqual(await drops(now), []);
    assert.ok(await has(id));
    assert.equal((await drops(now + 2_000)).length, 2);
  });

  t('creates partitions ahead', async () => {
    const later = Date.now() + 60 * day;
    await retain(deps(later));
    for (const at of [later, later + week]) assert.ok((await ends()).includes((Math.floor(at / week) + 1) * week));
  });

  t('does not wait for a long read, and tries again later', async () => {
    await over(Date.parse(old));
    const reader = await world.pool.connect();
    try {
      await reader.query('begin');
      await reader.query('select count(*) from ops.webhook_deliveries');
      assert.deepEqual(await drops(Date.now()), []);
    } finally {
      await reader.query('rollback');
      reader.release();
    }
    assert.equal((await drops(Date.now())).length, 2);
  });

  t('keeps a delivery that is queued again while it waits for its lock', async () => {
    const id = await over(Date.parse(old));
    const writer = await world.pool.connect();
    let round: Promise<readonly string[]>;
    try {
      await writer.query('begin');
      // As a resend does it: the delivery, then its place in the queue.
      await writer.query("update ops.webhook_deliveries set status = 'pending' where id = $1", [id]);
      round = drops(Date.now());
      await until('it to wait for the tables', async () => {
        const sql = "select 1 from pg_locks where not granted and relation = 'ops.webhook_deliveries'::regclass";
        return (await world.pool.query(sql)).rowCount === 1;
      });
      await writer.query(
        `insert into ops.webhook_queue (delivery_id, event_time, message_id, endpoint_id, workspace_id, lane, next_at,
           leased, attempt, tries, trigger)
         select id, event_time, message_id, endpoint_id, workspace_id, 0, now(), false, 1, 0, 'resend'
         from ops.webhook_deliveries where id = $1`,
        [id],
      );
      await writer.query('commit');
    } finally {
      writer.release();
    }
    assert.deepEqual(await round, []);
    assert.ok(await has(id));
  });
});
