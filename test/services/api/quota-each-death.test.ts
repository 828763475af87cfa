import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { recycleLeadMs } from '#domain/post/post-recycle.ts';
import { target } from '#domain/post-target/target.ts';
import { monthOf } from '#domain/zones.ts';
import { view } from '#projections/shapes.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { recyclePost } from '#services/outcomes/recycles.ts';
import { sweep } from '#services/outcomes/sweeper.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { abandonMs } from '#services/workflows/quota/give-back.ts';
import { type Answered, startWorld, type World } from '#test/support/http.ts';
import { livingFor } from '#test/support/meddling.ts';
import { Died } from '#test/support/mortal-store.ts';
import { monthsAhead, quotaWorld } from '#test/support/quotas.ts';
import { failure } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const next = monthsAhead(1);
const later = monthsAhead(2);
const at = (instant: string) => ({ schedule: { type: 'at', scheduledAt: instant } });
const days = Math.round((Date.parse(later.at) - Date.parse(next.at)) / 86_400_000);

/** An api that dies before each append of a call in turn: after the sweep a month holds what is due in it, and no more. */
suite('the quota, wherever an api dies in a call', { drawn: true, costs: 10, timeoutMs: 240_000 }, (t) => {
  let world: World;
  let one: Awaited<ReturnType<typeof quotaWorld>>;
  t.before(async () => {
    world = await startWorld();
    one = await quotaWorld(world, 1_000);
  });
  t.after(() => world.close());

  interface Made {
    readonly postId: string;
    readonly ids: readonly string[];
    readonly campaignId: string;
  }
  const compose = async (more: Readonly<Record<string, unknown>> = {}): Promise<Made> => {
    const campaign = await one.by.post('/campaigns', { name: 'Moved' });
    const campaignId = campaign.data.id;
    const made = await one.by.post('/posts', one.composed.body({ ...at(next.at), campaignId, ...more }));
    assert.equal(made.status, 200, made.text);
    const ids = (made.data.targets as readonly { readonly id: string }[]).map(({ id }) => id);
    return { postId: made.data.id, ids, campaignId };
  };
  /** All targets of the post fail at their claim, and the sweep frees their places. */
  const failed = async (): Promise<Made> => {
    const made = await compose();
    for (const id of made.ids) {
      const context = contextOf(world.operator, one.workspaceId);
      const options = { partitionKey: made.postId };
      await execute(world.store, target, id, { type: 'RefuseAtClaim', failure }, context, options);
    }
    await one.sweep();
    return made;
  };
  /** A post that is out, whose copy is due in the later month. */
  const recycled = async (): Promise<Made> => {
    const made = await compose();
    await one.publish(made.postId, made.ids);
    const body = { everyDays: days, times: 1 };
    const set = await one.by.request('PUT', `/posts/${made.postId}/recycle`, { body });
    assert.equal(set.data.nextAt, later.at, set.text);
    return made;
  };
  const copyAt = () => Date.parse(later.at) - recycleLeadMs;
  const draft = () => compose({ saveDraft: true });

  /** Targets that are due in the month. */
  const needed = async (month: string): Promise<readonly string[]> => {
    await world.settled();
    const { rows } = await world.pool.query<{ id: string; due_at: string }>(
      `select id, due_at::text from ${view('post_targets')} where workspace_id = $1 and status not in ('failed', 'canceled')`,
      [one.workspaceId],
    );
    const due = rows.filter((row) => monthOf(new Date(row.due_at).toISOString(), 'Europe/Berlin') === month);
    return due.map(({ id }) => id).sort();
  };
  /** As the outcomes process does once everything is old: it ends what the dead api began. */
  const sweepAll = async (aheadMs: number): Promise<void> => {
    await world.settled();
    const now = () => Date.now() + aheadMs;
    await sweep({ store: world.store, pool: world.pool, logger: one.logger, now }, new AbortController().signal);
    await one.sweep(new Map(), aheadMs);
  };
  const check = async (what: string): Promise<void> => {
    for (const { month } of [next, later]) assert.deepEqual(await one.held(month), await needed(month), what);
  };

  const later_ = at(later.at);
  const calls: Readonly<
    Record<
      string,
      readonly [() => Promise<Made>, (made: Made, key: string) => Promise<Pick<Answered, 'status' | 'text'>>]
    >
  > = {
    create: [compose, (_, key) => one.by.post('/posts', one.composed.body({ ...at(next.at), content: key }), { key })],
    'publish a draft': [draft, ({ postId }, key) => one.by.post(`/posts/${postId}/publish`, {}, { key })],
    reschedule: [
      compose,
      ({ ids }, key) => one.by.post(`/post-targets/${ids[0]}/reschedule`, { scheduledAt: later.at }, { key }),
    ],
    'reschedule in bulk': [
      compose,
      ({ ids }, key) =>
        one.by.post('/post-targets/bulk', { action: 'reschedule', targetIds: ids, scheduledAt: later.at }, { key }),
    ],
    'shift a campaign': [
      compose,
      ({ campaignId }, key) => one.by.post(`/campaigns/${campaignId}/shift`, { days }, { key }),
    ],
    'revise the times': [compose, ({ postId }, key) => one.by.post(`/posts/${postId}/revise`, later_, { key })],
    'revise failed targets into another month': [
      failed,
      ({ postId }, key) => one.by.post(`/posts/${postId}/revise`, { content: `Again ${key}.`, ...later_ }, { key }),
    ],
    'retry a failed target': [failed, ({ ids }, key) => one.by.post(`/post-targets/${ids[0]}/retry`, {}, { key })],
    'copy a recycled post': [
      recycled,
      async ({ postId }) => {
        try {
          await recyclePost({ store: world.store, pool: world.pool, now: copyAt }, postId);
        } catch (error) {
          if (!(error instanceof Died)) throw error;
          return { status: 500, text: '' };
        }
        return { status: 200, text: '' };
      },
    ],
    'delete a post': [compose, ({ postId }) => one.by.delete(`/posts/${postId}`)],
  };

  for (const [name, [before, call]] of Object.entries(calls)) {
    t(`${name}: after the sweep nothing is leaked, nothing lacks, and the repeat ends the call`, async () => {
      // The process that copies acts as of the time of the copy.
      const aheadMs = (name === 'copy a recycled post' ? copyAt() - Date.now() : 0) + abandonMs + 5_000;
      for (let appends = 0; ; appends += 1) {
        assert.ok(appends < 30, 'it never comes to an end');
        const made = await before();
        const key = randomUUID();
        const { survived } = await livingFor(world, appends, () => call(made, key));
        const what = `${name}, after ${appends} appends`;
        await sweepAll(aheadMs);
        await check(what);
        const again = await call(made, key);
        assert.equal(again.status, 200, `${what}: ${again.text}`);
        await sweepAll(aheadMs);
        await check(`${what}, and the repeat`);
        if (survived) break;
      }
    });
  }
});
