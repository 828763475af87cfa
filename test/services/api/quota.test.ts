import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { post } from '#domain/post/post.ts';
import { recycleLeadMs } from '#domain/post/post-recycle.ts';
import { target } from '#domain/post-target/target.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { recyclePost } from '#services/outcomes/recycles.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { refused } from '#test/support/composing.ts';
import { startWorld, type World } from '#test/support/http.ts';
import { monthsAhead, quotaWorld } from '#test/support/quotas.ts';
import { failure } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

type Target = { readonly id: string; readonly platform: string };
const targetsOf = (data: Readonly<Record<string, unknown>>): readonly Target[] => data.targets as readonly Target[];

suite('quota over HTTP', { timeoutMs: 120_000 }, (t) => {
  let world: World;
  t.before(async () => {
    world = await startWorld();
  });
  t.after(() => world.close());

  const next = monthsAhead(1);
  const later = monthsAhead(2);
  const at = (instant: string) => ({ schedule: { type: 'at', scheduledAt: instant } });

  t('without a quota nothing is counted against one, and no place is taken', async () => {
    const { by, composed, count } = await quotaWorld(world, null);
    assert.equal((await by.post('/posts', composed.body(at(next.at)))).status, 200);
    assert.equal(await count(next.month), 0);
    await world.settled();
    const { data } = await by.get('/quota');
    assert.deepEqual([data.limit, data.remaining], [null, null]);
    const preview = await by.post('/posts/preview', composed.body(at(next.at)));
    assert.deepEqual(preview.data.quota, { limit: null, remaining: null, needed: 2 });
  });

  t('the quota of this month shows what is used, scheduled and left, by network', async () => {
    const { by, composed } = await quotaWorld(world, 9);
    const made = await by.post('/posts', composed.body({ schedule: { type: 'now' } }));
    assert.equal(made.status, 200, made.text);
    const { status, data, text } = await by.get('/quota');
    assert.equal(status, 200, text);
    const { period, ...shown } = data as unknown as { period: { from: string; to: string } };
    assert.deepEqual(shown, {
      object: 'quota',
      limit: 9,
      used: 0,
      scheduled: 2,
      remaining: 7,
      resetsAt: period.to,
      perPlatform: [
        { platform: 'bluesky', used: 0, scheduled: 1 },
        { platform: 'x', used: 0, scheduled: 1 },
      ],
    });
    // The workspace is in Berlin.
    for (const end of [period.from, period.to]) assert.match(end, /T2[23]:00:00\.000Z$/);
    assert.ok(period.from <= String(made.data.createdAt) && String(made.data.createdAt) < period.to);
  });

  t('a month without room refuses a post as a whole, and says when the next one begins', async () => {
    const { by, composed, held } = await quotaWorld(world, 3);
    const create = (more: Readonly<Record<string, unknown>>, key: string = randomUUID()) =>
      by.post('/posts', composed.body(more), { key });
    const first = await create(at(next.at));
    assert.equal(first.status, 200, first.text);
    const key = randomUUID();
    const full = await create(at(next.at), key);
    refused(full, 429, 'quota_exceeded');
    assert.match(String(full.body.resetsAt), /T2[23]:00:00\.000Z$/);
    assert.equal(full.headers.get('retry-after'), null);
    // A refused call leaves its key free; another month has room, and so has one target here.
    const moved = await create(at(later.at), key);
    assert.equal(moved.status, 200, moved.text);
    const one = { targets: { mode: 'group', clientId: composed.clientId, platforms: ['x'] } };
    assert.equal((await create({ ...at(next.at), ...one })).status, 200);
    refused(await create({ ...at(next.at), ...one }), 429, 'quota_exceeded');
    assert.equal((await held(next.month)).length, 3);
    // A draft takes no place, and its publication needs one.
    const draft = await create({ ...at(next.at), ...one, saveDraft: true });
    assert.equal(draft.status, 200, draft.text);
    refused(await by.post(`/posts/${draft.data.id}/publish`, {}), 429, 'quota_exceeded');
    assert.equal((await by.post(`/posts/${draft.data.id}/publish`, at(later.at))).status, 200);
    assert.equal((await held(later.month)).length, 3);
  });

  t('a bulk refuses the posts that have no room, and no other', async () => {
    const { by, composed, held } = await quotaWorld(world, 5);
    const posts = [1, 2, 3, 4].map((n) => composed.body({ ...at(next.at), content: `post ${n}` }));
    const { data } = await by.post('/posts/bulk', { posts });
    const results = data.results as readonly { status: string; error?: { code: string; resetsAt: string } }[];
    assert.deepEqual([data.created, data.rejected], [2, 2]);
    for (const { error } of results.filter(({ status }) => status === 'rejected')) {
      assert.equal(error?.code, 'quota_exceeded');
      assert.ok(error.resetsAt > next.at);
    }
    assert.equal((await held(next.month)).length, 4);
  });

  t('a preview shows what is left, and refuses as the call would', async () => {
    const { by, composed } = await quotaWorld(world, 3);
    assert.equal((await by.post('/posts', composed.body(at(next.at)))).status, 200);
    const preview = async (more: Readonly<Record<string, unknown>>) =>
      (await by.post('/posts/preview', composed.body(more))).data;
    const empty = await preview(at(later.at));
    assert.deepEqual([empty.valid, empty.quota], [true, { limit: 3, remaining: 3, needed: 2 }]);
    await world.settled();
    const full = await preview(at(next.at));
    assert.deepEqual([full.valid, full.quota], [false, { limit: 3, remaining: 1, needed: 2 }]);
    const problems = (one: Readonly<Record<string, unknown>>) =>
      (one.problems as readonly { at: string; code: string }[]).map((problem) => [problem.at, problem.code]);
    assert.deepEqual(problems(full), [['create', 'quota_exceeded']]);
    const draft = await preview({ ...at(next.at), saveDraft: true });
    assert.deepEqual([draft.valid, problems(draft)], [true, [['publish', 'quota_exceeded']]]);
  });

  t('a move into another month needs a place there first, and gives the former one back', async () => {
    const { by, composed, count } = await quotaWorld(world, 2);
    const made = await by.post('/posts', composed.body(at(next.at)));
    const [one, two] = targetsOf(made.data).map(({ id }) => id);
    const move = (id: string | undefined, scheduledAt: string) =>
      by.post(`/post-targets/${id}/reschedule`, { scheduledAt });
    assert.equal((await move(one, later.at)).status, 200);
    assert.deepEqual([await count(next.month), await count(later.month)], [1, 1]);
    assert.equal((await by.post('/posts', composed.body(at(next.at)))).status, 429);
    const targets = { mode: 'group', clientId: composed.clientId, platforms: ['x'] };
    assert.equal((await by.post('/posts', composed.body({ ...at(later.at), targets }))).status, 200);
    // The later month is full.
    refused(await move(two, later.at), 429, 'quota_exceeded');
    assert.deepEqual([await count(next.month), await count(later.month)], [1, 2]);
    assert.equal((await by.get(`/post-targets/${two}`)).data.scheduledAt, next.at);
    // Within its month it moves freely.
    assert.equal((await by.post(`/post-targets/${two}/reschedule`, { shiftMinutes: 60 })).status, 200);
    assert.equal((await move(one, next.at)).status, 200);
    assert.deepEqual([await count(next.month), await count(later.month)], [2, 1]);
    // In bulk as well.
    const { data } = await by.post('/post-targets/bulk', {
      action: 'reschedule',
      targetIds: [one, two],
      scheduledAt: later.at,
    });
    const results = data.results as readonly { ok: boolean; error?: { code: string } }[];
    assert.deepEqual(results.map(({ ok }) => ok).sort(), [false, true]);
    assert.deepEqual([await count(next.month), await count(later.month)], [1, 2]);
  });

  t('canceled and deleted targets give their places back', async () => {
    const { by, composed, count } = await quotaWorld(world, 4);
    const [first, second] = [
      await by.post('/posts', composed.body(at(next.at))),
      await by.post('/posts', composed.body(at(next.at))),
    ];
    const [one] = targetsOf(first.data);
    assert.equal((await by.post(`/post-targets/${one?.id}/cancel`, {})).status, 200);
    assert.equal(await count(next.month), 3);
    assert.equal((await by.post(`/post-targets/${one?.id}/cancel`, {})).status, 200);
    assert.equal(await count(next.month), 3);
    assert.equal((await by.delete(`/posts/${second.data.id}`)).status, 200);
    assert.equal(await count(next.month), 1);
    const made = await by.post('/posts', composed.body(at(next.at)));
    assert.equal(made.status, 200, made.text);
    const { data } = await by.post('/post-targets/bulk', {
      action: 'cancel',
      targetIds: targetsOf(made.data).map(({ id }) => id),
    });
    assert.ok((data.results as readonly { ok: boolean }[]).every(({ ok }) => ok));
    assert.equal(await count(next.month), 1);
  });

  t('a failed target gave its place back: a retry and a revise take one again, or are refused', async () => {
    const { by, composed, count, workspaceId, sweep } = await quotaWorld(world, 2);
    const made = await by.post('/posts', composed.body(at(next.at)));
    const targets = targetsOf(made.data);
    for (const { id } of targets) {
      const command = { type: 'RefuseAtClaim', failure } as const;
      const context = contextOf(world.operator, workspaceId);
      await execute(world.store, target, id, command, context, { partitionKey: made.data.id });
    }
    await sweep();
    assert.equal(await count(next.month), 0);
    const other = await by.post(
      '/posts',
      composed.body({ ...at(next.at), targets: { mode: 'group', clientId: composed.clientId, platforms: ['x'] } }),
    );
    assert.equal(other.status, 200);
    await world.settled();
    refused(await by.post(`/posts/${made.data.id}/revise`, { content: 'Both again.' }), 429, 'quota_exceeded');
    assert.equal((await by.post(`/post-targets/${targets[0]?.id}/retry`, {})).status, 200);
    assert.equal(await count(next.month), 2);
    refused(await by.post(`/post-targets/${targets[1]?.id}/retry`, {}), 429, 'quota_exceeded');
    assert.equal((await by.post(`/posts/${other.data.id}/revise`, { schedule: at(later.at).schedule })).status, 200);
    assert.deepEqual([await count(next.month), await count(later.month)], [1, 1]);
    const revised = await by.post(`/posts/${made.data.id}/revise`, { content: 'Both again.' });
    assert.equal(revised.status, 200, revised.text);
    assert.equal(await count(next.month), 2);
  });

  t('a shift of a campaign passes over what has no room in its new month', async () => {
    const { by, composed, count } = await quotaWorld(world, 3);
    const made = await by.post('/campaigns', { name: 'Spring' });
    const campaignId = made.data.id;
    const first = await by.post('/posts', composed.body({ ...at(next.at), campaignId }));
    assert.equal(first.status, 200, first.text);
    assert.equal((await by.post('/posts', composed.body(at(later.at)))).status, 200);
    await world.settled();
    const days = Math.round((Date.parse(later.at) - Date.parse(next.at)) / 86_400_000);
    const shifted = await by.post(`/campaigns/${campaignId}/shift`, { days });
    assert.equal(shifted.status, 200, shifted.text);
    assert.equal(shifted.data.shifted, 1);
    const skipped = shifted.data.skipped as readonly { reason: string }[];
    assert.deepEqual(
      skipped.map(({ reason }) => reason),
      ['quota_exceeded'],
    );
    assert.deepEqual([await count(next.month), await count(later.month)], [1, 3]);
  });

  t('a copy of a recycled post takes places of its own month; three in a row without room end it', async () => {
    const one = await quotaWorld(world, 2);
    const { by, composed, count } = one;
    const made = await by.post('/posts', composed.body(at(next.at)));
    await one.publish(
      made.data.id,
      targetsOf(made.data).map(({ id }) => id),
    );
    const path = `/posts/${made.data.id}/recycle`;
    const recycle = async (dueAt: number): Promise<boolean> => {
      const now = () => dueAt - recycleLeadMs;
      return recyclePost({ store: world.store, pool: world.pool, now }, made.data.id);
    };
    const days = Math.round((Date.parse(later.at) - Date.parse(next.at)) / 86_400_000);
    const other = await by.request('PUT', path, { body: { everyDays: days } });
    assert.equal(other.data.nextAt, later.at, other.text);
    assert.equal(await recycle(Date.parse(later.at)), true);
    assert.deepEqual([await count(next.month), await count(later.month)], [2, 2]);
    // The days after it are in the same month, which is full.
    const daily = await by.request('PUT', path, { body: { everyDays: 1 } });
    assert.equal(daily.status, 200, daily.text);
    for (const day of [1, 2, 3]) {
      assert.equal(await recycle(Date.parse(later.at) + day * 86_400_000), false);
      await world.settled();
      const { data } = await by.get(path);
      assert.deepEqual([data.enabled, data.posted], [day < 3, 1]);
    }
    assert.equal((await by.get(path)).data.stoppedReason, 'failures');
    const stored = await world.store.readStream(`post-${made.data.id}`);
    const failures = stored.filter(({ type }) => type === 'PostRecycleFailed');
    assert.deepEqual(
      failures.map(({ data }) => data.code),
      ['quota_exceeded', 'quota_exceeded', 'quota_exceeded'],
    );
    assert.deepEqual([await count(next.month), await count(later.month)], [2, 2]);
  });

  t('of fifty callers at once as many get in as there is room', async () => {
    const { by, composed, count } = await quotaWorld(world, 21);
    const all = await Promise.all(
      Array.from({ length: 50 }, (_, n) => by.post('/posts', composed.body({ ...at(next.at), content: `post ${n}` }))),
    );
    assert.equal(all.filter(({ status }) => status === 200).length, 10);
    for (const one of all.filter(({ status }) => status !== 200)) refused(one, 429, 'quota_exceeded');
    assert.equal(await count(next.month), 20);
  });

  t('targets that were due before the quota was set take their places, beyond the limit too', async () => {
    const { by, composed, count, set, sweep } = await quotaWorld(world, null);
    for (const instant of [next.at, next.at, later.at]) {
      assert.equal((await by.post('/posts', composed.body(at(instant)))).status, 200);
    }
    await set(3);
    await sweep();
    assert.deepEqual([await count(next.month), await count(later.month)], [4, 2]);
    await sweep();
    assert.deepEqual([await count(next.month), await count(later.month)], [4, 2]);
  });

  t('a place whose post never came is given back after a minute, and the late post goes on elsewhere', async () => {
    const { by, composed, count, sweep, workspaceId } = await quotaWorld(world, 2);
    const made = await by.post('/posts', composed.body(at(next.at)));
    const targets = targetsOf(made.data).map(({ id }) => id);
    assert.equal(await count(next.month), 2);
    // Younger ones wait, those of a post that exists stay.
    const quotas = new Map();
    await sweep(quotas, 0);
    await sweep(quotas);
    assert.equal(await count(next.month), 2);
    const { events } = await world.store.load(post, made.data.id);
    assert.deepEqual(
      events.map(({ type }) => type),
      ['PostScheduled'],
    );
    for (const id of targets) {
      const command = {
        type: 'Cancel',
        reason: 'requested',
        postRevision: null,
        now: new Date().toISOString(),
      } as const;
      const context = contextOf(world.operator, workspaceId);
      await execute(world.store, target, id, command, context, { partitionKey: made.data.id });
    }
    await sweep();
    assert.equal(await count(next.month), 0);
  });
});
