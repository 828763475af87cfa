import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { account } from '#domain/account.ts';
import { Rejection } from '#domain/decider.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import { target } from '#domain/post-target/target.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { Registry } from '#runtime/process/metrics.ts';
import { platforms } from '#schemas/common.ts';
import type { Variant } from '#schemas/post.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { PublishingWorld } from '#test/support/publishing.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { withMembers } from '#test/support/with-members.ts';

const required: readonly Variant[] = [
  { platform: 'tiktok', contentOverride: null, mediaIdsOverride: null, overrides: { privacyLevel: 'SELF_ONLY' } },
  { platform: 'pinterest', contentOverride: null, mediaIdsOverride: null, overrides: { boardId: '42' } },
  { platform: 'x', contentOverride: 'short', mediaIdsOverride: null, overrides: {} },
];

/** No worker takes over what another one has, however busy the machine: attempts are counted. */
const unhurried = 30_000;

suite('publisher', { waits: true }, (t) => {
  let world: PublishingWorld;
  let clientId: string;

  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
    clientId = await world.client();
  });
  t.after(() => world.close());

  t('ten targets are published once each, at their time and not before', async () => {
    const publisher = world.publisher();
    const accounts = await Promise.all(platforms.map((platform) => world.connect(clientId, platform)));
    const dueAt = Date.now() + 1_200;
    const { targetIds } = await world.schedule(accounts, { dueAt, variants: required });
    const states = await world.all(targetIds, 'published');
    for (const [at, state] of states.entries()) {
      assert.equal(state.status === 'published' && state.common.attempts, 1);
      const creates = await world.sandbox.creates(targetIds[at] ?? '');
      assert.equal(creates.length, 1);
      assert.ok((creates[0]?.callStartedAt.getTime() ?? 0) >= dueAt, 'early');
      const started = (await world.store.readStream(`target-${targetIds[at]}`)).find(
        ({ type }) => type === 'TargetPublishStarted',
      );
      assert.ok(Date.parse(started?.metadata.occurredAt ?? '') >= dueAt, 'claimed early');
    }
    const x = (await world.sandbox.creates(targetIds[platforms.indexOf('x')] ?? ''))[0];
    assert.equal(x?.platform, 'x');
    await publisher.stop();
  });

  t('a target that another process rescheduled is not published at its old time', async () => {
    const loaded = new Set<string>();
    const load: DomainStore['load'] = async (decider, id, upTo) => {
      const found = await world.store.load(decider, id, upTo);
      loaded.add(id);
      return found;
    };
    const store = withMembers(world.store, { load });
    const publisher = world.publisher({}, { store });
    const one = await world.connect(clientId, 'x');
    const { targetIds, postId } = await world.schedule([one], { dueAt: Date.now() + 2_000 });
    const [id = ''] = targetIds;
    await until('the publisher knows the old time', () => loaded.has(id));
    const later = new Date(Date.now() + 2_500).toISOString();
    await execute(
      world.store,
      target,
      id,
      {
        type: 'Reschedule',
        now: '2026-01-01T00:00:00.000Z',
        commandId: 'c',
        dueAt: later,
        scheduledLocal: null,
        jitterSeconds: 0,
      },
      { ...world.context(), commandId: 'c' },
      { partitionKey: postId },
    );
    await world.all([id], 'published');
    const [create] = await world.sandbox.creates(id);
    assert.ok((create?.callStartedAt.getTime() ?? 0) >= Date.parse(later), 'early');
    await publisher.stop();
  });

  t('a missing required override fails before the network is called', async () => {
    const publisher = world.publisher();
    const accounts = [await world.connect(clientId, 'tiktok'), await world.connect(clientId, 'pinterest')];
    const { targetIds } = await world.schedule(accounts);
    const states = await world.all(targetIds, 'failed');
    assert.deepEqual(
      states.map((state) => state.status === 'failed' && state.failure.code),
      ['tiktok_privacy_level_required', 'pinterest_board_required'],
    );
    const untitled = await world.schedule([await world.connect(clientId, 'youtube')], { text: '\n' });
    const [film] = await world.all(untitled.targetIds, 'failed');
    assert.equal(film?.status === 'failed' && film.failure.code, 'youtube_title_required');
    for (const id of [...targetIds, ...untitled.targetIds]) assert.deepEqual(await world.sandbox.creates(id), []);
    await publisher.stop();
  });

  t('at the claim: an archived client and a disconnected account cancel, an expired account fails', async () => {
    const other = await world.client();
    const gone = await world.connect(clientId, 'threads');
    const lapsed = await world.connect(clientId, 'bluesky');
    const archived = await world.connect(other, 'x');
    const dueAt = Date.now() + 700;
    const { targetIds } = await world.schedule([gone, lapsed], { dueAt });
    const { targetIds: others } = await world.schedule([archived], { dueAt });
    await execute(world.store, account, gone.id, { type: 'Disconnect', reason: 'test' }, world.context());
    await execute(world.store, account, lapsed.id, { type: 'RequireReauth', reason: 'test' }, world.context());
    await world.archive(other);
    const publisher = world.publisher();
    const [left = '', expired = ''] = targetIds;
    await world.all([...others, left], 'canceled');
    const [state] = await world.all([expired], 'failed');
    assert.deepEqual(state?.status === 'failed' && [state.failure.category, state.failure.code], [
      'reauth_required',
      'account_reauth_required',
    ]);
    for (const [id, reason] of [
      [others[0], 'client_archived'],
      [left, 'account_disconnected'],
    ]) {
      const story = await world.store.readStream(`target-${id}`);
      assert.deepEqual(
        story.map(({ type, data }) => [type, data.reason]),
        [
          ['TargetScheduled', undefined],
          ['TargetCanceled', reason],
        ],
      );
    }
    await publisher.stop();
  });

  t('an attempt of a worker that is gone ends before its call if the client was archived since', async () => {
    const other = await world.client();
    const ids: string[] = [];
    for (const platform of ['x', 'facebook'] as const) {
      const one = await world.connect(other, platform);
      const native = platform === 'facebook';
      const { targetIds, postId } = await world.schedule([one], {
        dueAt: Date.now() + (native ? 3_600_000 : 0),
        ...(native ? { scheduleMode: 'native' } : {}),
      });
      const [id = ''] = targetIds;
      ids.push(id);
      const start = { type: 'Start', now: new Date().toISOString() } as const;
      await execute(world.store, target, id, start, world.context(), { partitionKey: postId });
    }
    await world.archive(other);
    const publisher = world.publisher();
    await world.all(ids.slice(0, 1), 'canceled');
    const [id = ''] = ids;
    assert.equal((await world.store.readStream(`target-${id}`)).at(-1)?.data.reason, 'client_archived');
    await world.all(ids, 'canceled');
    for (const each of ids) assert.deepEqual(await world.sandbox.creates(each), []);
    await publisher.stop();
  });

  t('the publisher retries a rate limit at the time the network named, and not for ever', async () => {
    const publisher = world.publisher({ leaseTtlMs: unhurried });
    const one = await world.connect(clientId, 'x');
    const { targetIds } = await world.schedule([one], { text: 'a [[sandbox:rate_limit once 700ms]]' });
    const { targetIds: never } = await world.schedule([one], { text: 'b [[sandbox:rate_limit 100ms]]' });
    await world.all(targetIds, 'published');
    const story = await world.store.readStream(`target-${targetIds[0]}`);
    const limited = story.find(({ type }) => type === 'TargetRateLimited');
    const again = story.findLast(({ type }) => type === 'TargetPublishStarted');
    assert.ok((again?.metadata.occurredAt ?? '') >= String(limited?.data.retryAt));
    assert.deepEqual(again?.data.attempt, 2);
    const [failed] = await world.all(never, 'failed');
    assert.equal(failed?.status === 'failed' && failed.failure.category, 'rate_limited');
    assert.equal((await world.story(`target-${never[0]}`)).filter((type) => type === 'TargetRateLimited').length, 2);
    await publisher.stop();
  });

  t('an unavailable network defers the target before the boundary, three times', async () => {
    const publisher = world.publisher();
    const one = await world.connect(clientId, 'x');
    const { targetIds: twice } = await world.schedule([one], { text: 'a [[sandbox:down 2x]]' });
    const { targetIds: always } = await world.schedule([one], { text: 'b [[sandbox:down]]' });
    await world.all(twice, 'published');
    const [failed] = await world.all(always, 'failed');
    const deferred = (types: readonly string[]) => types.filter((type) => type === 'TargetPublishDeferred').length;
    assert.equal(deferred(await world.story(`target-${twice[0]}`)), 2);
    assert.equal(deferred(await world.story(`target-${always[0]}`)), 3);
    assert.equal(failed?.status === 'failed' && failed.failure.category, 'platform_down');
    await publisher.stop();
  });

  t('a repeated attempt is late by its own time, and the planned time stays', async () => {
    const registry = new Registry();
    const publisher = world.publisher({ leaseTtlMs: unhurried }, { registry });
    const one = await world.connect(clientId, 'x');
    const dueAt = Date.now() - 3_600_000;
    const { targetIds } = await world.schedule([one], { dueAt, text: 'late [[sandbox:down 2x]]' });
    const [state] = await world.all(targetIds, 'published');
    assert.equal(state?.status === 'published' && Date.parse(state.common.dueAt), dueAt);
    const shown = await registry.metrics();
    const figure = (name: string) =>
      Number(new RegExp(`^publish_start_lateness_seconds_${name} (.*)$`, 'm').exec(shown)?.[1]);
    assert.equal(figure('count'), 3);
    assert.ok(figure('sum') >= 3_600 && figure('sum') < 7_200, shown);
    await publisher.stop();
  });

  t('an expired token fails the target and is reported once for the account', async () => {
    const publisher = world.publisher();
    const one = await world.connect(clientId, 'linkedin', 'token-death-acme');
    const first = await world.schedule([one], { text: 'a' });
    await world.all(first.targetIds, 'failed');
    await until('reauth', async () => (await world.story(`account-${one.id}`)).length === 2);
    const second = await world.schedule([one], { text: 'b' });
    await world.all(second.targetIds, 'failed');
    assert.deepEqual(await world.story(`account-${one.id}`), ['AccountConnected', 'AccountReauthRequired']);
    await publisher.stop();
  });

  t('reconcile finds a post accepted without an answer, and it is never sent again', async () => {
    const publisher = world.publisher();
    const accounts = [
      await world.connect(clientId, 'x'),
      await world.connect(clientId, 'instagram'),
      await world.connect(clientId, 'bluesky'),
    ];
    for (const fault of ['timeout_after', 'error_after', 'late 600ms']) {
      const { targetIds } = await world.schedule(accounts, { text: `${fault} [[sandbox:${fault}]]` });
      for (const state of await world.all(targetIds, 'published')) {
        assert.equal(state.status === 'published' && state.common.attempts, 1, fault);
      }
      for (const id of targetIds) assert.equal(await world.created(id), 1, fault);
    }
    await publisher.stop();
  });

  t('a post proven absent is published again with the same handle; unprovable absence stays unknown', async () => {
    const publisher = world.publisher();
    const accounts = await Promise.all(platforms.map((platform) => world.connect(clientId, platform)));
    const text = 'x [[sandbox:timeout_before once]]';
    const variants = required.map((one) => (one.platform === 'x' ? { ...one, contentOverride: text } : one));
    const { targetIds } = await world.schedule(accounts, { text, variants });
    const provable = targetIds.filter((_, at) => rulesOf(platforms[at] ?? 'x').publish.absenceIsProof);
    const open = targetIds.filter((id) => !provable.includes(id));
    assert.ok(provable.length > 0 && open.length > 0);
    const states = await world.all(provable, 'published');
    assert.ok(states.every((state) => state.status === 'published' && state.common.attempts === 2));
    for (const id of provable) {
      assert.equal(await world.created(id), 1);
      const rows = await world.sandbox.creates(id);
      assert.equal(new Set(rows.map(({ key }) => key)).size, 1, 'the same handle');
    }
    await world.all(open, 'outcome_unknown');
    for (const id of open) assert.equal(await world.created(id), 0);
    await publisher.stop();
  });

  t(
    'the claim of a dead worker is taken over: before the boundary it continues, after it the network is asked',
    async () => {
      const one = await world.connect(clientId, 'instagram');
      const dead = async (text: string, boundary: boolean) => {
        const { targetIds, postId } = await world.schedule([one], { text });
        const [id = ''] = targetIds;
        const act = (command: Parameters<typeof target.decide>[0]) =>
          execute(world.store, target, id, command, world.context(), { partitionKey: postId });
        await act({ type: 'Start', now: new Date().toISOString() });
        if (boundary) {
          await act({
            type: 'Checkpoint',
            attempt: 1,
            takeover: 0,
            step: 'boundary',
            data: { key: 'nothing' },
            deadline: new Date(Date.now() + 100).toISOString(),
          });
        }
        return id;
      };
      const [before, after] = [await dead('before', false), await dead('after', true)];
      const publisher = world.publisher();
      await world.all([before, after], 'published');
      assert.deepEqual((await world.story(`target-${before}`)).slice(1, 3), [
        'TargetPublishStarted',
        'TargetPublishTakenOver',
      ]);
      assert.equal((await world.story(`target-${before}`)).filter((type) => type === 'TargetPublishStarted').length, 1);
      const story = await world.story(`target-${after}`);
      assert.deepEqual(story.slice(3, 7), [
        'TargetPublishTakenOver',
        'TargetOutcomeUnknown',
        'TargetOutcomeSettled',
        'TargetPublishStarted',
      ]);
      assert.equal(await world.created(before), 1);
      assert.equal(await world.created(after), 1);
      await publisher.stop();
    },
  );

  t('an attempt that is interrupted again and again fails in the end', async () => {
    const one = await world.connect(clientId, 'x');
    const { targetIds, postId } = await world.schedule([one], { text: 'round' });
    const [id = ''] = targetIds;
    const act = (command: Parameters<typeof target.decide>[0]) =>
      execute(world.store, target, id, command, world.context(), { partitionKey: postId });
    await act({ type: 'Start', now: new Date().toISOString() });
    for (let takeover = 0; takeover < 10; takeover += 1) await act({ type: 'TakeOver', attempt: 1, takeover });
    const publisher = world.publisher();
    const [state] = await world.all([id], 'failed');
    assert.equal(state?.status === 'failed' && state.failure.code, 'publish_interrupted');
    assert.equal(await world.created(id), 0);
    await publisher.stop();
  });

  t('cancel and publish racing at the due instant: exactly one wins', async () => {
    const random = seeded('cancel against claim');
    const publisher = world.publisher();
    const one = await world.connect(clientId, 'x');
    const rounds = await Promise.all(
      Array.from({ length: 50 }, async (_, round) => {
        const dueAt = Date.now() + 1_500 + round * 10;
        const { targetIds, postId } = await world.schedule([one], { dueAt, text: `race ${round}` });
        return { id: targetIds[0] ?? '', postId, cancelAt: dueAt + random.int(-3, 25) };
      }),
    );
    const canceled = await Promise.all(
      rounds.map(async ({ id, postId, cancelAt }) => {
        await delay(cancelAt - Date.now());
        try {
          const command = {
            type: 'Cancel',
            reason: 'requested',
            postRevision: null,
            now: '2026-01-01T00:00:00.000Z',
          } as const;
          await execute(world.store, target, id, command, world.context(), { partitionKey: postId });
          return true;
        } catch (error) {
          if (error instanceof Rejection && error.code === 'target_not_pending') return false;
          throw error;
        }
      }),
    );
    const won = rounds.filter((_, at) => canceled[at]).map(({ id }) => id);
    const lost = rounds.filter((_, at) => !canceled[at]).map(({ id }) => id);
    process.stdout.write(`  cancel won ${won.length}, publish won ${lost.length}\n`);
    await world.all(lost, 'published');
    await world.all(won, 'canceled');
    for (const id of won) assert.deepEqual(await world.sandbox.creates(id), []);
    for (const id of lost) assert.equal(await world.created(id), 1);
    await publisher.stop();
  });

  t('two publishers share the work and publish each target once', async () => {
    const accounts = await Promise.all(Array.from({ length: 30 }, () => world.connect(clientId, 'x')));
    const both = [world.publisher(), world.publisher()];
    const { targetIds } = await world.schedule(accounts, { dueAt: Date.now() + 500 });
    await world.all(targetIds, 'published');
    for (const id of targetIds) assert.equal((await world.sandbox.creates(id)).length, 1);
    await Promise.all(both.map((one) => one.stop()));
  });

  t('no post was created twice', async () => {
    assert.deepEqual(await world.sandbox.duplicates(), []);
  });
});
