import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import type { PlatformAdapter, PublishOutcome, ReconcileOutcome } from '#contracts/ports/platform.ts';
import { account } from '#domain/account.ts';
import { type TargetIn, target } from '#domain/post-target/target.ts';
import { SandboxNetwork } from '#infra/platforms/sandbox/index.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { view } from '#projections/shapes.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { everyWorkspace, holdPublishing, resumePublishing } from '#runtime/work/publishing-hold.ts';
import { restored } from '#runtime/work/restores.ts';
import { type EventCatalogue, eventCatalogue } from '#schemas/events.ts';
import { defaultPartitions } from '#schemas/topics.ts';
import { Mortals } from '#test/support/mortals.ts';
import { preparedDatabase, testDatabase } from '#test/support/postgres.ts';
import { type Account, DerivedKeys, MovedClock, PublishingWorld, quickNetwork } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { withMembers } from '#test/support/with-members.ts';

const script = fileURLToPath(new URL('../../support/publisher-process.ts', import.meta.url));
const weekMs = 7 * 86_400_000;
const asked = 'TargetAcceptedByPlatform';
const settled = 'TargetOutcomeSettled';

suite('posts that their network looks at', { timeoutMs: 240_000, waits: true }, (t) => {
  let world: PublishingWorld;
  let clientId: string;
  let facebook: Account;
  const mortals = new Mortals(script, () => [world.url]);
  const schedule = async (one: Account, text: string, more: Parameters<typeof world.schedule>[1] = {}) =>
    (await world.schedule([one], { text, ...more })).targetIds[0] ?? '';
  const story = (id: string) => world.story(`target-${id}`);
  const times = async (id: string, type: string) => (await story(id)).filter((one) => one === type).length;
  const wake = (id: string) =>
    world.pool.query('update ops.work_leases set not_before = now() where id = $1 and not_before > now()', [id]);
  /** The sandbox with other members. */
  const like = (members: Partial<PlatformAdapter>) => {
    const adapter = withMembers<PlatformAdapter>(world.sandbox, members);
    return world.publisher({}, { adapterOf: () => adapter });
  };
  /** The sandbox, whose answers to questions about a post are these. */
  const answering = (said: (handle: unknown) => Promise<ReconcileOutcome | null>) =>
    like({
      reconcile: async (request, boundary, handle) =>
        (await said(handle)) ?? (await world.sandbox.reconcile(request, boundary, handle)),
    });

  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
    clientId = await world.client();
    facebook = await world.connect(clientId, 'facebook');
  });
  t.after(async () => {
    await mortals.end();
    await world.close();
  });

  t('is processing until the network shows it, and gets its first comment then; each network that has it', async () => {
    const publisher = world.publisher();
    const overrides = { firstComment: 'first' };
    const of = (platform: 'youtube' | 'tiktok', given: object) => [
      { platform, contentOverride: null, mediaIdsOverride: null, overrides: { ...given } },
    ];
    const text = 'Look [[sandbox:processing 1500ms]]';
    const film = await schedule(await world.connect(clientId, 'youtube'), text, { variants: of('youtube', overrides) });
    const clip = await schedule(await world.connect(clientId, 'tiktok'), text, {
      variants: of('tiktok', { privacyLevel: 'SELF_ONLY' }),
    });
    const post = await schedule(facebook, text);
    const ids = [film, clip, post];
    for (const state of await world.all(ids, 'processing')) {
      assert.ok(state.status === 'processing');
      assert.ok(Date.parse(state.accepted.until) > Date.now());
    }
    for (const [at, state] of (await world.all(ids, 'published')).entries()) {
      assert.ok(state.status === 'published');
      const [create, ...more] = await world.sandbox.creates(ids[at] ?? '');
      assert.deepEqual([state.externalId, state.common.attempts, more], [create?.postId, 1, []]);
      assert.ok(Date.parse(state.publishedAt) >= (create?.visibleAt?.getTime() ?? Number.NaN));
    }
    await until('the comment is there', async () => (await world.sandbox.comments([film])).length === 1);
    const types = (await story(film)).filter((type) => type !== 'TargetPublishCheckpointed');
    assert.deepEqual(types.slice(0, 4), ['TargetScheduled', 'TargetPublishStarted', asked, settled]);
    await publisher.stop();
  });

  t('is refused after the network has looked at it: failed, and a retry publishes it', async () => {
    const publisher = world.publisher();
    const { targetIds, postId } = await world.schedule([facebook], {
      text: 'Bad [[sandbox:processing_failed once 300ms]]',
    });
    const [id = ''] = targetIds;
    const [state] = await world.all([id], 'failed');
    assert.ok(state?.status === 'failed');
    assert.deepEqual([state.failure.category, state.failure.actor], ['invalid_content', 'user']);
    assert.equal(await world.created(id), 0);
    const retry = { type: 'Retry', commandId: 'r', now: new Date().toISOString() } as const;
    await execute(world.store, target, id, retry, world.context(), { partitionKey: postId });
    await world.all([id], 'published');
    assert.equal(await world.created(id), 1);
    await publisher.stop();
  });

  t('is found after a lost answer: unknown, then processing, then published', async () => {
    const publisher = world.publisher();
    const id = await schedule(facebook, 'Lost [[sandbox:processing 2500ms]] [[sandbox:error_after]]');
    await world.all([id], 'published');
    const types = await story(id);
    assert.deepEqual(types.slice(types.indexOf('TargetOutcomeUnknown')), ['TargetOutcomeUnknown', asked, settled]);
    assert.equal(await world.created(id), 1);
    await publisher.stop();
  });

  t('two publishers ask at once, and one outcome is recorded', async () => {
    const release = Promise.withResolvers<void>();
    let waiting = 0;
    const slow = () =>
      answering(async () => {
        waiting += 1;
        await release.promise;
        return null;
      });
    const publishers = [slow(), slow()];
    const id = await schedule(facebook, 'Twice [[sandbox:processing 100ms]]');
    await until('one asks', () => waiting === 1);
    // Its lease is gone, as after a stall; the other one takes the target.
    await world.pool.query('delete from ops.work_leases where id = $1', [id]);
    await until('both ask', () => waiting === 2);
    release.resolve();
    await world.all([id], 'published');
    for (const one of publishers) await one.stop();
    assert.equal(await times(id, settled), 1);
    assert.equal(await world.created(id), 1);
  });

  t('is asked while publishing is held', async () => {
    const publisher = world.publisher();
    const id = await schedule(facebook, 'Held [[sandbox:processing 1s]]');
    await world.all([id], 'processing');
    await holdPublishing(world.pool, everyWorkspace, 'ann');
    await world.all([id], 'published');
    await resumePublishing(world.pool, everyWorkspace);
    await publisher.stop();
  });

  t('a disconnected account and an archived client: what is accepted is followed to its end', async () => {
    const publisher = world.publisher();
    const other = await world.client();
    const [left, gone] = [await world.connect(clientId, 'facebook'), await world.connect(other, 'facebook')];
    const text = 'Gone [[sandbox:processing 1500ms]]';
    const ids = [await schedule(left, text), await schedule(gone, text)];
    await world.all(ids, 'processing');
    await execute(world.store, account, left.id, { type: 'Disconnect', reason: 'test' }, world.context());
    await world.archive(other);
    await world.all(ids, 'published');
    await publisher.stop();
  });

  t('an instant that the network names is bounded, and an acceptance that cannot be recorded is unknown', async () => {
    const handle = { id: 'h' };
    const said = async (outcome: object, members: Partial<PlatformAdapter> = {}) => {
      const publisher = like({
        publish: async (_request, steps) => {
          await steps.boundary({ key: 'k' });
          return { kind: 'accepted', handle, askAt: new Date().toISOString(), ...outcome } as PublishOutcome;
        },
        reconcile: async () => ({ kind: 'undecided' }),
        ...members,
      });
      const id = await schedule(facebook, 'Odd');
      await until('it is recorded', async () => /processing|outcome_unknown/.test((await world.target(id)).status));
      await publisher.stop();
      return world.target(id);
    };
    for (const [askAt, leastMs, mostMs] of [
      ['2001-01-01T00:00:00.000Z', 50, 1_000],
      ['9999-01-01T00:00:00.000Z', 1_000, 1_000],
      ['soon', 50, 1_000],
    ] as const) {
      const state = await said({ askAt });
      assert.ok(state.status === 'processing', askAt);
      const rest = Date.parse(state.accepted.askAt) - Date.parse(state.accepted.acceptedAt);
      assert.ok(rest > leastMs - 50 && rest <= mostMs, `${askAt}: ${rest}`);
    }
    for (const [outcome, members] of [
      [{ handle: 'x'.repeat(4_097) }, {}],
      [{}, { processingLimitMs: () => null }],
      [{}, { processingLimitMs: () => -10_000 }],
    ] as const) {
      const state = await said(outcome, members);
      assert.equal(state.status === 'outcome_unknown' && state.accepted, null);
    }
  });

  t(
    'a question without an answer is put again within a quarter of the age, also when the schedule is over',
    async () => {
      const clock = new MovedClock();
      let minutes = 20;
      const adapter = withMembers<PlatformAdapter>(world.sandbox, {
        publish: async (_request, steps) => {
          await steps.boundary({ key: 'k' });
          return { kind: 'accepted', handle: null, askAt: new Date(clock.now()).toISOString() };
        },
        processingLimitMs: () => weekMs,
        // Within the answer: the rest after it is of the new age.
        reconcile: async () => {
          clock.pass(minutes * 60_000);
          minutes = 0;
          return { kind: 'undecided' };
        },
      });
      const dayMs = 86_400_000;
      const deps = { clock, adapterOf: () => adapter, processingRest: { minMs: 50, maxMs: dayMs } };
      const publisher = world.publisher({ reconcileDelaysMs: [0, 50] }, deps);
      const id = await schedule(facebook, 'Silent');
      const restSeconds = async () => {
        const sql = 'select extract(epoch from not_before - now())::float8 as rest from ops.work_leases where id = $1';
        return Number((await world.pool.query(sql, [id])).rows[0]?.rest ?? 0);
      };
      await until('it rests', async () => (await restSeconds()) > 30);
      assert.ok((await restSeconds()) < 6 * 60, `${await restSeconds()} s`);
      await publisher.stop();
    },
  );

  t('an adapter that says accepted without a boundary has made no call: deferred', async () => {
    const publisher = like({
      publish: async () => ({ kind: 'accepted', handle: null, askAt: new Date().toISOString() }),
    });
    const id = await schedule(facebook, 'Nothing');
    await until('it is deferred', async () => (await times(id, 'TargetPublishDeferred')) > 0);
    await publisher.stop();
  });

  t('a worker of the build before, which does not know the event, leaves the target alone', async () => {
    const id = await schedule(facebook, 'Mixed [[sandbox:processing 1500ms]]');
    const publisher = world.publisher();
    await world.all([id], 'processing');
    await publisher.stop();
    const before = await story(id);
    const { [asked]: _unknown, ...known } = eventCatalogue.target ?? {};
    const catalogue: EventCatalogue = { ...eventCatalogue, target: known };
    const codec = new EventCodec(new DerivedKeys(), catalogue);
    const loaded: string[] = [];
    const old = new DomainStore(world.eventStore, codec, defaultPartitions);
    const load: DomainStore['load'] = (decider, one, upTo) => {
      loaded.push(one);
      return old.load(decider, one, upTo);
    };
    await wake(id);
    const former = world.publisher({}, { store: withMembers(old, { load }) });
    await until('it has met the target', () => loaded.includes(id));
    await until('it lets it rest', async () => {
      const { rowCount } = await world.pool.query(
        `select from ops.work_leases where id = $1 and not_before > now() + interval '5 s'`,
        [id],
      );
      return rowCount === 1;
    });
    await former.stop();
    assert.deepEqual(await story(id), before);
    await wake(id);
    const next = world.publisher();
    await world.all([id], 'published');
    assert.equal(await world.created(id), 1);
    await next.stop();
  });

  t('a clock that goes a week ahead and back: unknown, and published once', async () => {
    const clock = new MovedClock();
    const publisher = world.publisher({}, { clock });
    const id = await schedule(facebook, 'Clock [[sandbox:processing 4s]]');
    await world.all([id], 'processing');
    clock.pass(weekMs);
    await world.all([id], 'outcome_unknown');
    clock.pass(-weekMs);
    await until('it is published', async () => {
      await wake(id);
      return (await world.target(id)).status === 'published';
    });
    assert.equal(await world.created(id), 1);
    await publisher.stop();
  });

  t('accepted by a clock that is a week ahead: asked at once when it is right again', async () => {
    const clock = new MovedClock();
    clock.pass(weekMs);
    const ahead = world.publisher({}, { clock });
    const id = await schedule(facebook, 'Ahead [[sandbox:processing 1s]]', { dueAt: Date.now() - 1_000 });
    const [state] = (await world.all([id], 'processing')) as readonly TargetIn<'processing'>[];
    assert.ok(Date.parse(state?.accepted.askAt ?? '') > Date.now() + weekMs / 2);
    await ahead.stop();
    const right = world.publisher();
    await world.all([id], 'published');
    await right.stop();
  });

  for (const point of [
    'sandbox.post_accepted',
    'publisher:after-call',
    'publisher:after-outcome',
    'publisher:after-ask',
  ]) {
    t(`killed at ${point}: accepted or asked again by the next worker, published once`, async () => {
      const dying = await mortals.child(point);
      const id = await schedule(facebook, 'Dies [[sandbox:processing 3s]]');
      await mortals.died(dying);
      const publisher = world.publisher();
      await world.all([id], 'published');
      const types = await story(id);
      assert.equal(types.filter((type) => type === asked).length, 1, types.join(' '));
      assert.equal(types.includes('TargetOutcomeUnknown'), false, types.join(' '));
      assert.equal(await world.created(id), 1);
      await publisher.stop();
    });
  }

  t('no post was created twice', async () => {
    assert.deepEqual(await world.sandbox.duplicates(), []);
  });
});

suite('posts that their network never shows', { timeoutMs: 120_000, waits: true }, (t) => {
  let world: PublishingWorld;
  let account: Account;
  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url, { acceptedLimitMs: 1_000 });
    account = await world.connect(await world.client(), 'facebook');
  });
  t.after(() => world?.close());

  t('are unknown from the limit on; the network is asked on with their handle, and shows one late', async () => {
    const handles: unknown[] = [];
    const adapter = withMembers<PlatformAdapter>(world.sandbox, {
      reconcile: (request, boundary, handle) => {
        handles.push(handle);
        return world.sandbox.reconcile(request, boundary, handle);
      },
    });
    const publisher = world.publisher({}, { adapterOf: () => adapter });
    const texts = ['Never [[sandbox:processing_never]]', 'Late [[sandbox:processing 5s]]'];
    const [never = '', late = ''] = (
      await Promise.all(texts.map((text) => world.schedule([account], { text })))
    ).flatMap(({ targetIds }) => targetIds);
    for (const state of await world.all([never, late], 'outcome_unknown')) {
      assert.ok(state.status === 'outcome_unknown' && state.accepted !== null);
      assert.ok(state.askedFrom >= state.accepted.until);
    }
    await until('the late one is shown', async () => {
      await world.pool.query('update ops.work_leases set not_before = now() where id = $1 and not_before > now()', [
        late,
      ]);
      return (await world.target(late)).status === 'published';
    });
    assert.ok(handles.length > 2 && handles.every((handle) => typeof (handle as { id?: unknown }).id === 'string'));
    for (const [id, made] of [[never, 0] as const, [late, 1] as const]) {
      assert.equal(await world.created(id), made);
      const types = await world.story(`target-${id}`);
      assert.equal(types.filter((type) => type === asked).length, 1, types.join(' '));
      assert.equal(types.filter((type) => type === 'TargetPublishStarted').length, 1, types.join(' '));
    }
    await publisher.stop();
  });
});

suite('posts that their network looked at when a restore lost it', { timeoutMs: 240_000, waits: true }, (t) => {
  t(
    'a copy from before the acceptance, and one from behind it: each is published once, or waits for a person',
    async () => {
      const networks = new SandboxNetwork({ database: { url: (await preparedDatabase()).url }, ...quickNetwork });
      const { url } = await preparedDatabase();
      const adapterOf = () => networks;
      let world = await PublishingWorld.open(url);
      const clientId = await world.client();
      const accounts = [await world.connect(clientId, 'facebook'), await world.connect(clientId, 'facebook')];
      const [one, other] = accounts as [Account, Account];
      const idOf = async (of: Account, text: string, dueAt: number) =>
        (await world.schedule([of], { text, dueAt })).targetIds[0] ?? '';
      // This one is accepted when the copy is made; the other one is not due yet.
      const inCopy = await idOf(one, 'Accepted [[sandbox:processing 4s]]', Date.now());
      const later = await idOf(other, 'Not yet [[sandbox:processing 1s]]', Date.now() + 3_600_000);
      const first = world.publisher({}, { adapterOf });
      await world.all([inCopy], 'processing');
      await first.stop();
      await until('the rows are there', async () => {
        const sql = `select count(*)::int as n from ${view('post_targets')} where status = 'processing' or id = $1`;
        return (await world.pool.query<{ n: number }>(sql, [later])).rows[0]?.n === 2;
      });
      await world.close();
      const copy = (await testDatabase(new URL(url).pathname.slice(1))).url;
      const asOf = new Date().toISOString();

      world = await PublishingWorld.open(url);
      const lost = world.publisher({}, { adapterOf });
      const { state } = await world.store.load(target, later);
      assert.ok(state.status === 'pending');
      const move = { type: 'Reschedule', commandId: 'm', scheduledLocal: null, jitterSeconds: 0 } as const;
      const now = new Date().toISOString();
      const options = { partitionKey: state.common.postId };
      await execute(world.store, target, later, { ...move, now, dueAt: now }, world.context(), options);
      await world.all([inCopy, later], 'published');
      await lost.stop();
      await world.close();

      const pool = openPool({ url: copy, max: 1, name: 'operator' });
      await restored(pool, asOf, 'ann');
      await resumePublishing(pool, everyWorkspace);
      await pool.end();
      world = await PublishingWorld.open(copy);
      const after = world.publisher({}, { adapterOf });
      const [seen] = await world.all([inCopy], 'published');
      assert.ok((await world.story(`target-${inCopy}`)).includes('TargetOutcomeUnknown'), 'a restore proves nothing');
      assert.equal(seen?.status === 'published' && seen.firstComment, null);
      // Its time is an hour off: at that time the network is asked first, and has it.
      const { common } = (await world.target(later)) as TargetIn<'pending'>;
      const again = { ...move, commandId: 'n', now: new Date().toISOString(), dueAt: new Date().toISOString() };
      await execute(world.store, target, later, again, world.context(), { partitionKey: common.postId });
      await world.all([later], 'published');
      for (const id of [inCopy, later]) {
        const made = (await networks.creates(id)).filter(({ outcome }) => outcome === 'created');
        assert.equal(made.length, 1, id);
      }
      await after.stop();
      await world.close();
      await networks.close();
    },
  );
});
