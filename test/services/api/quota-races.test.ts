import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { view } from '#projections/shapes.ts';
import { refused } from '#test/support/composing.ts';
import { startWorld, type World } from '#test/support/http.ts';
import { Died } from '#test/support/mortal-store.ts';
import { monthsAhead, quotaWorld } from '#test/support/quotas.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

/** Callers that die, or sleep, between the reservation of a place and the append that it is for. */
suite('the quota, when callers die or come late', { drawn: true, costs: 3, timeoutMs: 180_000 }, (t) => {
  let world: World;
  t.before(async () => {
    world = await startWorld();
  });
  t.after(() => world.close());

  const next = monthsAhead(1);
  const later = monthsAhead(2);
  const at = (instant: string) => ({ schedule: { type: 'at', scheduledAt: instant } });

  /** While it runs, an append to a stream of that kind may die before it is made, or wait. */
  const meddling = async <T>(
    kind: string,
    before: (stream: string) => Promise<void>,
    run: () => Promise<T>,
  ): Promise<T> => {
    const { store } = world;
    const append = store.append.bind(store);
    store.append = async (stream, ...rest) => {
      if (stream.startsWith(`${kind}-`)) await before(stream);
      return append(stream, ...rest);
    };
    try {
      return await run();
    } finally {
      store.append = append;
    }
  };
  const targetsDue = async (workspaceId: string): Promise<number> => {
    await world.settled();
    const { rows } = await world.pool.query(
      `select count(*)::int as count from ${view('post_targets')} where workspace_id = $1 and status <> 'canceled'`,
      [workspaceId],
    );
    return rows[0].count;
  };

  t('fifty callers at once, some of whom die: never over the limit, and nothing is left after the sweep', async () => {
    const { by, composed, count, held, sweep, workspaceId } = await quotaWorld(world, 40);
    const random = seeded('quota deaths');
    const keys = Array.from({ length: 50 }, () => randomUUID());
    const create = (key: string) => by.post('/posts', composed.body({ ...at(next.at), content: key }), { key });
    const dead = async (): Promise<void> => {
      if (random.next() < 0.4) throw new Died('killed before the append of the post');
    };
    const first = await meddling('post', dead, () => Promise.all(keys.map(create)));
    const made = first.filter(({ status }) => status === 200).length;
    const died = first.filter(({ status }) => status === 500).length;
    assert.ok(died > 0 && made > 0, `${made} made, ${died} died`);
    assert.equal(await targetsDue(workspaceId), made * 2);
    assert.equal(await count(next.month), 40, 'the dead hold what they took');
    await sweep();
    assert.equal(await count(next.month), made * 2, 'what the dead took is free');
    // The repeats of the dead go on under other ids; as many get in as there is room.
    const again = await Promise.all(keys.map(create));
    assert.equal(again.filter(({ status }) => status === 200).length, 20);
    for (const one of again.filter(({ status }) => status !== 200)) refused(one, 429, 'quota_exceeded');
    await sweep();
    assert.deepEqual(
      [await targetsDue(workspaceId), await count(next.month), (await held(next.month)).length],
      [40, 40, 40],
    );
  });

  t('a caller that sleeps past the sweep makes its post all the same, with a place that it takes anew', async () => {
    const { by, composed, count, sweep } = await quotaWorld(world, 2);
    let slept = 0;
    const asleep = async (): Promise<void> => {
      slept += 1;
      if (slept === 1) await sweep();
    };
    const made = await meddling('post', asleep, () => by.post('/posts', composed.body(at(next.at))));
    assert.equal(made.status, 200, made.text);
    assert.equal(await count(next.month), 2);
    await sweep();
    assert.equal(await count(next.month), 2);
    assert.equal((await by.get(`/posts/${made.data.id}`)).status, 200);
    // Its place went to another caller meanwhile: it is refused.
    let taken = 0;
    const overtaken = async (): Promise<void> => {
      taken += 1;
      if (taken > 1) return;
      await sweep();
      assert.equal((await by.post('/posts', composed.body(at(later.at)))).status, 200);
    };
    refused(
      await meddling('post', overtaken, () => by.post('/posts', composed.body(at(later.at)))),
      429,
      'quota_exceeded',
    );
    assert.equal(await count(later.month), 2);
  });

  t('a death in a move: the place in the other month is free after the sweep, and the repeat moves', async () => {
    const { by, composed, count, sweep } = await quotaWorld(world, 2);
    const made = await by.post('/posts', composed.body(at(next.at)));
    const [one, two] = (made.data.targets as readonly { id: string }[]).map(({ id }) => id);
    const key = randomUUID();
    const move = () => by.post(`/post-targets/${one}/reschedule`, { scheduledAt: later.at }, { key });
    const dead = async (): Promise<void> => {
      throw new Died('killed before the append of the target');
    };
    assert.equal((await meddling('target', dead, move)).status, 500);
    assert.deepEqual([await count(next.month), await count(later.month)], [2, 1]);
    await sweep();
    assert.deepEqual([await count(next.month), await count(later.month)], [2, 0]);
    assert.equal((await move()).status, 200);
    assert.deepEqual([await count(next.month), await count(later.month)], [1, 1]);
    // Between the move and the former month.
    const bulk = () => by.post('/post-targets/bulk', { action: 'reschedule', targetIds: [two], scheduledAt: later.at });
    let left = 1;
    const late = async (): Promise<void> => {
      left -= 1;
      if (left < 0) throw new Died('killed before the former place is given back');
    };
    assert.equal((await meddling('quota', late, bulk)).status, 200);
    assert.deepEqual([await count(next.month), await count(later.month)], [1, 2]);
    await sweep();
    assert.deepEqual([await count(next.month), await count(later.month)], [0, 2]);
  });

  t('a move that sleeps past the sweep reserves again, and of two moves at once each has its place', async () => {
    const { by, composed, count, sweep } = await quotaWorld(world, 2);
    const made = await by.post('/posts', composed.body(at(next.at)));
    const ids = (made.data.targets as readonly { id: string }[]).map(({ id }) => id);
    let slept = 0;
    const asleep = async (): Promise<void> => {
      slept += 1;
      if (slept === 1) await sweep();
    };
    const move = (id: string, scheduledAt: string) => by.post(`/post-targets/${id}/reschedule`, { scheduledAt });
    const moved = await meddling('target', asleep, () => move(ids[0] ?? '', later.at));
    assert.equal(moved.status, 200, moved.text);
    assert.deepEqual([await count(next.month), await count(later.month)], [1, 1]);
    const both = await Promise.all([...ids, ...ids].map((id, n) => move(id, n < 2 ? later.at : next.at)));
    assert.ok(
      both.every(({ status }) => [200, 409, 412].includes(status)),
      both.map(({ text }) => text).join('\n'),
    );
    await sweep();
    assert.equal((await count(next.month)) + (await count(later.month)), 2);
    for (const { id } of both.map(({ data }) => data)) assert.ok(ids.includes(id));
  });

  t('a draft whose places were given back is published by the repeat of the call', async () => {
    const { by, composed, count, sweep } = await quotaWorld(world, 2);
    const draft = await by.post('/posts', composed.body({ ...at(next.at), saveDraft: true }));
    const key = randomUUID();
    const publish = () => by.post(`/posts/${draft.data.id}/publish`, {}, { key });
    const dead = async (): Promise<void> => {
      throw new Died('killed before the append of the plan');
    };
    assert.equal((await meddling('post', dead, publish)).status, 500);
    assert.equal(await count(next.month), 2);
    await sweep();
    assert.equal(await count(next.month), 0);
    const done = await publish();
    assert.equal(done.status, 200, done.text);
    assert.equal(await count(next.month), 2);
    assert.deepEqual((await publish()).data, done.data);
  });

  t('a revise that dies before its append leaves nothing in its month', async () => {
    const { by, composed, count, sweep } = await quotaWorld(world, 2);
    const made = await by.post('/posts', composed.body(at(next.at)));
    const key = randomUUID();
    const revise = () => by.post(`/posts/${made.data.id}/revise`, at(later.at), { key });
    const dead = async (): Promise<void> => {
      throw new Died('killed before the append of the revise');
    };
    assert.equal((await meddling('post', dead, revise)).status, 500);
    assert.deepEqual([await count(next.month), await count(later.month)], [2, 2]);
    await sweep();
    assert.deepEqual([await count(next.month), await count(later.month)], [2, 0]);
    const done = await revise();
    assert.equal(done.status, 200, done.text);
    assert.deepEqual([await count(next.month), await count(later.month)], [0, 2]);
  });
});
