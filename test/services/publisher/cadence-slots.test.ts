import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import type { PlatformAdapter } from '#contracts/ports/platform.ts';
import { type TargetCommand, target } from '#domain/post-target/target.ts';
import { noAdapter } from '#domain/publish-failures.ts';
import { view } from '#projections/shapes.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { execute } from '#runtime/eventing/execute.ts';
import type { CadenceRule } from '#schemas/cadence.ts';
import type { Segment, TargetEvent } from '#schemas/target.ts';
import type { WorkspaceEvent } from '#schemas/workspace.ts';
import { CadenceSlots } from '#services/publisher/account-slots.ts';
import { checkTimes } from '#test/faults/check-times.ts';
import { Mortals } from '#test/support/mortals.ts';
import { watched } from '#test/support/pool.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { type Account, MovedClock, PublishingWorld } from '#test/support/publishing.ts';
import { planned } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const script = fileURLToPath(new URL('../../support/publisher-process.ts', import.meta.url));
const hourMs = 3_600_000;

type SegmentOf = { readonly segment: Segment };

suite('slots of accounts', { timeoutMs: 240_000, waits: true }, (t) => {
  let world: PublishingWorld;
  let clientId = '';
  const clock = new MovedClock();
  const mortals = new Mortals(script, () => [world.url]);

  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
    clientId = await world.client();
    await world.pool.query(
      `insert into read.workspaces_v1 (id, workspace_id, revision, created_at, updated_at, name, timezone, mode, members)
       values ($1, $1, 0, now(), now(), 'A', 'UTC', 'test', '{}')`,
      [world.workspaceId],
    );
    await ruled({ minIntervalMinutes: 60 });
  });
  t.after(async () => {
    await mortals.end();
    await world.close();
  });

  /** As the read model has it. */
  const ruled = async (more: Partial<CadenceRule>) => {
    await world.pool.query('update read.workspaces_v1 set cadence = $2 where id = $1', [
      world.workspaceId,
      JSON.stringify([{ platform: null, minIntervalMinutes: null, perDay: null, ...more }]),
    ]);
  };
  /** The sandbox, by our clock. */
  const network = (): PlatformAdapter => ({
    boundaryDeadlineMs: world.sandbox.boundaryDeadlineMs,
    settleWindowMs: () => world.sandbox.settleWindowMs(),
    absenceIsProof: (...asked) => world.sandbox.absenceIsProof(...asked),
    listsOwnPosts: (...asked) => world.sandbox.listsOwnPosts(...asked),
    comment: (request, signal) => world.sandbox.comment(request, signal),
    reconcile: (...asked) => world.sandbox.reconcile(...asked),
    processingLimitMs: (platform) => world.sandbox.processingLimitMs(platform),
    publish: async (request, steps) => {
      const outcome = await world.sandbox.publish(request, steps);
      return outcome.kind === 'published' ? { ...outcome, publishedAt: new Date(clock.now()).toISOString() } : outcome;
    },
  });
  const publisher = () => world.publisher({}, { clock, adapterOf: network });
  const story = (id: string) => world.story(`target-${id}`);
  const count = async (id: string, type: string) => (await story(id)).filter((one) => one === type).length;
  const schedule = async (account: Account, more: Parameters<typeof world.schedule>[1] = {}): Promise<string> =>
    (await world.schedule([account], { dueAt: clock.now(), ...more })).targetIds[0] ?? '';
  const tell = async (id: string, command: (commandId: string) => TargetCommand) => {
    const state = await world.target(id);
    assert.ok(state.status !== 'none');
    const context = world.context();
    await execute(world.store, target, id, command(context.commandId), context, {
      partitionKey: state.common.postId,
    });
  };
  const publishedAt = async (id: string): Promise<number | null> => {
    const state = await world.target(id);
    return state.status === 'published' ? Date.parse(state.publishedAt) : null;
  };
  const waitsAt = async (id: string): Promise<number | null> => {
    const state = await world.target(id);
    return state.status === 'pending' && state.retryAt !== null ? Date.parse(state.retryAt) : null;
  };
  const isShown = (id: string, status: string) =>
    until(`the read model shows ${id} as ${status}`, async () => {
      const { rows } = await world.pool.query(`select 1 from ${view('post_targets')} where id = $1 and status = $2`, [
        id,
        status,
      ]);
      return rows.length === 1;
    });

  t('several processes: of the targets of one account that are due together one goes out', async () => {
    await Promise.all([mortals.child(''), mortals.child('')]);
    const accounts = await Promise.all(Array.from({ length: 8 }, () => world.connect(clientId, 'x')));
    const dueAt = clock.now() + 1_500;
    const groups = await Promise.all(accounts.map((one) => Promise.all([1, 2, 3].map(() => schedule(one, { dueAt })))));
    const ended = async (id: string) => (await waitsAt(id)) !== null || (await publishedAt(id)) !== null;
    await until('each went out or waits', async () => (await Promise.all(groups.flat().map(ended))).every(Boolean));
    const out = await Promise.all(groups.map((ids) => Promise.all(ids.map((id) => world.created(id)))));
    assert.deepEqual(
      out.map((created) => created.reduce((sum, one) => sum + one, 0)),
      accounts.map(() => 1),
    );
    for (const ids of groups) {
      const places = (await Promise.all(ids.map(waitsAt))).flatMap((at) => at ?? []).toSorted((a, b) => a - b);
      assert.equal(places.length, 2);
      assert.ok((places[1] ?? 0) - (places[0] ?? 0) >= hourMs, 'places are an hour apart');
    }
    await mortals.end();
  });

  t('a start that comes to nothing holds no other target back', async () => {
    const running = publisher();
    const one = await world.connect(clientId, 'bluesky');
    const dueAt = clock.now() + 1_000;
    const bad = await schedule(one, { dueAt: dueAt - 200, text: 'bad [[sandbox:reject]]' });
    const good = await schedule(one, { dueAt });
    await world.all([bad], 'failed');
    await world.all([good], 'published');
    assert.equal(await count(good, 'TargetPublishDeferred'), 0);
    await running.stop();
  });

  t('targets that were due days ago count when they go out', async () => {
    const one = await world.connect(clientId, 'x');
    const dueAt = clock.now() - 72 * hourMs;
    const [first = '', second = ''] = [await schedule(one, { dueAt }), await schedule(one, { dueAt })];
    for (const id of [first, second]) {
      await tell(id, () => ({ type: 'RefuseAtClaim', failure: { ...noAdapter, retryable: true } }));
    }
    const running = publisher();
    const retry = (id: string) =>
      tell(id, (commandId) => ({ type: 'Retry', commandId, now: new Date(clock.now()).toISOString() }));
    await retry(first);
    await world.all([first], 'published');
    await isShown(first, 'published');
    // Longer than a process remembers what it started by itself.
    clock.pass(120_000);
    await retry(second);
    await until('the second has had its turn', async () =>
      (await story(second)).some((type) => type === 'TargetPublishDeferred' || type === 'TargetPublished'),
    );
    assert.equal(await waitsAt(second), ((await publishedAt(first)) ?? 0) + hourMs);
    assert.equal(await world.created(second), 0);
    await running.stop();
  });

  t('targets of one account that are released together wait at consecutive places, each told once', async () => {
    const one = await world.connect(clientId, 'bluesky');
    const dueAt = clock.now();
    const ids: string[] = [];
    for (let at = 0; at < 20; at += 1) ids.push(await schedule(one, { dueAt, text: `n ${at}` }));
    const running = publisher();
    const out = async () => (await Promise.all(ids.map(publishedAt))).flatMap((at) => at ?? []);
    const waiting = async () => (await Promise.all(ids.map(waitsAt))).flatMap((at) => at ?? []);
    await until('one is out and the others wait', async () => (await waiting()).length === ids.length - 1);
    const places = [...(await out()), ...(await waiting())].toSorted((a, b) => a - b);
    for (const [index, at] of places.entries()) {
      if (index > 0) assert.equal(at - (places[index - 1] ?? 0), hourMs, `place ${index}`);
    }
    for (let gone = 1; gone <= 3; gone += 1) {
      for (const id of ids) if ((await publishedAt(id)) !== null) await isShown(id, 'published');
      clock.pass(hourMs + 2_000);
      await until(`${gone + 1} are out`, async () => (await out()).length > gone);
    }
    const deferrals = await Promise.all(ids.map((id) => count(id, 'TargetPublishDeferred')));
    assert.ok(
      deferrals.every((times) => times <= 1),
      deferrals.join(' '),
    );
    assert.equal(
      deferrals.reduce((sum, times) => sum + times, 0),
      ids.length - 1,
    );
    const at = (await out()).toSorted((a, b) => a - b);
    for (const [index, instant] of at.entries()) {
      if (index > 0) assert.ok(instant - (at[index - 1] ?? 0) >= hourMs, `${instant - (at[index - 1] ?? 0)} ms`);
    }
    await running.stop();
  });

  t('killed between its slot and its claim: the next worker goes on with that slot', async () => {
    const one = await world.connect(clientId, 'x');
    const dying = await mortals.child('publisher:before-claim');
    const first = await schedule(one, { dueAt: Date.now() });
    await mortals.died(dying);
    const slots = () =>
      world.pool.query<{ entries: readonly { targetId: string; state: string }[] }>(
        'select entries from ops.cadence_slots where workspace_id = $1 and account_id = $2',
        [world.workspaceId, one.id],
      );
    assert.deepEqual(
      (await slots()).rows.flatMap(({ entries }) => entries.map(({ targetId, state }) => [targetId, state])),
      [[first, 'under_way']],
    );
    // The slot of the dead process holds another target back for as long as nobody knows what came of it.
    const second = await schedule(one, { dueAt: Date.now() - 1 });
    const running = world.publisher({}, { adapterOf: () => world.sandbox });
    await world.all([first], 'published');
    await until('the second waits', async () => (await waitsAt(second)) !== null);
    assert.deepEqual([await world.created(first), await world.created(second)], [1, 0]);
    await running.stop();
  });

  t(
    'asleep past its lease before its call: the next post is an interval behind the call of whoever took over',
    async () => {
      const one = await world.connect(clientId, 'x');
      const sleeper = await mortals.child('publisher:before-boundary', 'SIGSTOP');
      const first = await schedule(one, { dueAt: Date.now() });
      await mortals.asleep(sleeper);
      // Long after its claim, and well before an interval behind it.
      clock.pass(hourMs / 2);
      const second = await schedule(one);
      const running = publisher();
      await world.all([first], 'published');
      await until('the second waits', async () => (await waitsAt(second)) !== null);
      await isShown(first, 'published');
      await mortals.wakeToEnd(sleeper);
      assert.equal(await world.created(first), 1);
      const out = (await publishedAt(first)) ?? 0;
      clock.pass(((await waitsAt(second)) ?? 0) - clock.now());
      await world.all([second], 'published');
      assert.ok(((await publishedAt(second)) ?? 0) - out >= hourMs);
      await running.stop();
    },
  );

  t('a worker that slept over its reading of the rules goes by what they are now', async () => {
    await ruled({});
    const one = await world.connect(clientId, 'x');
    const [answer, wakes] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let isFirst = true;
    const pool = Object.assign(Object.create(world.pool), {
      query: async (statement: { readonly name?: string }) => {
        const rows = await world.pool.query(statement as never);
        if (statement.name === 'posting-rules' && isFirst) {
          isFirst = false;
          answer.resolve();
          await wakes.promise;
        }
        return rows;
      },
    });
    const first = await schedule(one);
    const running = world.publisher({}, { pool, clock, adapterOf: network });
    await answer.promise;
    const answeredAt = performance.now();
    await ruled({ minIntervalMinutes: 60 });
    await until('its reading is old', () => performance.now() - answeredAt > 1_000);
    const second = await schedule(one);
    await world.all([second], 'published');
    wakes.resolve();
    await until('the first has had its turn', async () => (await story(first)).length > 1);
    assert.equal(await waitsAt(first), ((await publishedAt(second)) ?? 0) + hourMs);
    await running.stop();
  });

  t('killed between its slot and its deferral: it waits for that slot, told once', async () => {
    const one = await world.connect(clientId, 'x');
    const first = await schedule(one, { dueAt: Date.now() });
    const running = world.publisher({}, { adapterOf: () => world.sandbox });
    await world.all([first], 'published');
    await isShown(first, 'published');
    await running.stop();
    const dying = await mortals.child('publisher:before-claim');
    const second = await schedule(one, { dueAt: Date.now() });
    await mortals.died(dying);
    const next = world.publisher({}, { adapterOf: () => world.sandbox });
    await until('the second waits', async () => (await waitsAt(second)) !== null);
    assert.equal(await waitsAt(second), ((await publishedAt(first)) ?? 0) + hourMs);
    assert.equal(await count(second, 'TargetPublishDeferred'), 1);
    await next.stop();
  });

  t('an unknown outcome counts as a publication until the network says that there is none', async () => {
    const one = await world.connect(clientId, 'instagram');
    let mayAnswer = false;
    const mute = (): PlatformAdapter => ({
      ...network(),
      reconcile: async (request, boundary) =>
        mayAnswer ? world.sandbox.reconcile(request, boundary) : { kind: 'undecided' as const },
    });
    const running = world.publisher({}, { adapterOf: mute });
    const first = await schedule(one, { dueAt: Date.now(), text: 'lost [[sandbox:timeout_before once]]' });
    await world.all([first], 'outcome_unknown');
    await isShown(first, 'outcome_unknown');
    const second = await schedule(one, { dueAt: Date.now() });
    const third = await schedule(one, { dueAt: Date.now() });
    const waiting = await until('the others wait', async () => {
      const at = await Promise.all([waitsAt(second), waitsAt(third)]);
      return at.every((one) => one !== null) ? at.toSorted() : null;
    });
    assert.equal((waiting[1] ?? 0) - (waiting[0] ?? 0), hourMs);
    mayAnswer = true;
    // Its own slot does not stand in its way, but those who wait hold theirs.
    await world.all([first], 'pending');
    await until('it waits behind them', async () => (await waitsAt(first)) === (waiting[1] ?? 0) + hourMs);
    await running.stop();
  });

  t('a lost table is made anew from the targets', async () => {
    const one = await world.connect(clientId, 'x');
    const running = publisher();
    const first = await schedule(one);
    await world.all([first], 'published');
    await isShown(first, 'published');
    await world.pool.query('delete from ops.cadence_slots');
    const second = await schedule(one);
    await until('the second waits', async () => (await count(second, 'TargetPublishDeferred')) === 1);
    assert.equal(await waitsAt(second), ((await publishedAt(first)) ?? 0) + hourMs);
    // What its network still looks at is out for them too.
    const page = await world.connect(clientId, 'facebook');
    const dueAt = clock.now();
    const looked = await schedule(page, { dueAt, text: 'Look [[sandbox:processing 3600000ms]]' });
    await world.all([looked], 'processing');
    await isShown(looked, 'processing');
    await world.pool.query('delete from ops.cadence_slots');
    const next = await schedule(page);
    await until('the next one waits', async () => (await count(next, 'TargetPublishDeferred')) === 1);
    assert.ok(((await waitsAt(next)) ?? 0) >= dueAt + hourMs);
    await running.stop();
  });

  t('an account without limits costs no query', async () => {
    const asked: string[] = [];
    const start = () => {
      asked.length = 0;
      const pool = watched(world.pool, ({ name }) => asked.push(name ?? ''));
      return world.publisher({}, { pool, clock, adapterOf: network });
    };
    const one = await world.connect(clientId, 'x');
    const limited = start();
    await world.all([await schedule(one)], 'published');
    assert.deepEqual(
      ['cadence-taken', 'cadence-swap'].map((name) => asked.filter((other) => other === name).length),
      [1, 1],
    );
    await limited.stop();
    await ruled({ platform: 'bluesky', minIntervalMinutes: 60 });
    const unlimited = start();
    await world.all(await Promise.all([1, 2, 3].map(() => schedule(one))), 'published');
    assert.deepEqual(
      asked.filter((name) => name.startsWith('cadence')),
      [],
    );
    await unlimited.stop();
  });

  t('of many that find a slot free at once one takes it; another workspace never sees it', async () => {
    const [workspaceId, accountId, now] = [randomUUID(), randomUUID(), Date.now()];
    const asked = { workspaceId, accountId, out: { from: now - hourMs, to: now }, waitingFrom: now };
    const taking = (more: Partial<typeof asked> = {}) =>
      new CadenceSlots(world.pool).take({ ...asked, ...more }, { now: Date.now, reachMs: hourMs }, ({ entries }) => ({
        result: entries.length,
        entry: { targetId: randomUUID(), at: now, calls: 1, state: 'under_way', revision: 0 },
      }));
    const found = await Promise.all(Array.from({ length: 12 }, () => taking()));
    const took = found.flatMap((entries) => entries ?? []).toSorted((a, b) => a - b);
    assert.deepEqual(
      took,
      took.map((_entries, at) => at),
    );
    assert.equal(await taking({ workspaceId: randomUUID() }), 0);
  });

  t('an attempt that no row shows for ten minutes counts as out for as long as the limit reaches', async () => {
    const [workspaceId, accountId, begun] = [randomUUID(), randomUUID(), Date.now()];
    const asked = { workspaceId, accountId, out: { from: begun - hourMs, to: begun + hourMs }, waitingFrom: begun };
    const seen = (afterMs: number, targetId: string | null = null) => {
      const at = begun + afterMs;
      return new CadenceSlots(world.pool).take(asked, { now: () => at, reachMs: hourMs }, ({ entries }) => ({
        result: entries.map((one) => [one.state, one.at - begun]),
        entry: targetId === null ? null : { targetId, at, calls: 1, state: 'under_way', revision: 0 },
      }));
    };
    await seen(0, randomUUID());
    assert.deepEqual(await seen(599_999), [['under_way', 0]]);
    assert.deepEqual(await seen(600_000), [['out', 600_000]]);
    assert.deepEqual(await seen(600_000 + hourMs - 1, randomUUID()), [['out', 600_000]]);
    assert.deepEqual(await seen(600_000 + hourMs), [['under_way', 600_000 + hourMs - 1]]);
    const { rows } = await world.pool.query<{ left: number }>(
      `select extract(epoch from kept_until - $2::timestamptz) * 1000 as left from ops.cadence_slots where workspace_id = $1`,
      [workspaceId, new Date(begun)],
    );
    assert.equal(Number(rows[0]?.left), 2 * (600_000 + hourMs) - 1);
  });

  t('a comparison of streams finds two that went out too close, where both began under the rule', async () => {
    const since = Date.now() - 600_000;
    const read = new Map<string, readonly DecodedEvent[]>();
    const put = async (stream: string, key: string, events: readonly (TargetEvent | WorkspaceEvent)[], at: number) => {
      const before = read.get(stream) ?? [];
      const context = { ...world.context(), now: new Date(at).toISOString() };
      read.set(stream, [...before, ...(await world.store.append(stream, before.length - 1, events, context, key))]);
    };
    const rule = { platform: null, minIntervalMinutes: 1, perDay: null };
    const home = `workspace-${world.workspaceId}`;
    await put(home, world.workspaceId, [{ type: 'CadenceSet', data: rule }], since - 5_000);
    const out = async (accountId: string, claimedMs: number, calledMs: number, isThread = false): Promise<void> => {
      const [postId, targetId] = [randomUUID(), randomUUID()];
      const [stream, claim] = [`target-${targetId}`, { attempt: 1, takeover: 0 }];
      const one = planned({ targetId, accountId, clientId });
      const publishedAt = new Date(since + calledMs).toISOString();
      const crossed = { ...claim, step: 'boundary', data: null, deadline: publishedAt };
      const made = { ...claim, externalId: targetId, permalink: null, publishedAt };
      const [head, tail] = [0, 1].map((index) => ({ segment: { index, of: 2 } })) as [SegmentOf, SegmentOf];
      const boundary = (more: Partial<SegmentOf>): TargetEvent => ({
        type: 'TargetPublishCheckpointed',
        data: { ...crossed, ...more },
      });
      const put1 = (at: number, ...events: readonly TargetEvent[]) => put(stream, postId, events, since + at);
      await put1(0, { type: 'TargetScheduled', data: { ...one, postId, postRevision: 0 } });
      await put1(claimedMs, { type: 'TargetPublishStarted', data: claim });
      await put1(calledMs, boundary(isThread ? head : {}));
      if (isThread) {
        await put1(calledMs, { type: 'TargetSegmentPublished', data: { ...made, ...head } });
        await put1(calledMs + 50_000, boundary(tail));
      }
      await put1(calledMs + 50_000, { type: 'TargetPublished', data: made });
    };
    const [close, thread, far, before] = Array.from({ length: 4 }, () => randomUUID()) as [string, ...string[]];
    await out(close, 2_000, 20_000);
    await out(close, 30_000, 79_999);
    await out(thread ?? '', 2_000, 2_000, true);
    await out(thread ?? '', 50_000, 61_999);
    await out(far ?? '', 2_000, 20_000);
    await out(far ?? '', 30_000, 80_000);
    await out(before ?? '', 999, 20_000);
    await out(before ?? '', 30_000, 30_000);
    assert.deepEqual(checkTimes(read), [], 'nobody saw the rule in the read model');
    await put(home, world.workspaceId, [{ type: 'CadenceSet', data: { ...rule, perDay: 9 } }], since);
    assert.equal(checkTimes(read).length, 2, checkTimes(read).join(', '));
  });
});
