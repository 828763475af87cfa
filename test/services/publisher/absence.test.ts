import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import type { PlatformAdapter, ReconcileOutcome } from '#contracts/ports/platform.ts';
import { client } from '#domain/client.ts';
import { target } from '#domain/post-target/target.ts';
import { execute } from '#runtime/eventing/execute.ts';
import type { Platform } from '#schemas/common.ts';
import type { Failure } from '#schemas/target.ts';
import { Mortals } from '#test/support/mortals.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { type Account, PublishingWorld, quick, quickLooks, quickNetwork } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const script = fileURLToPath(new URL('../../support/publisher-process.ts', import.meta.url));
const retries = { unknownOutcome: 'retry_when_absent' } as const;
const lost = 'lost [[sandbox:timeout_before once]]';

suite('rules for unknown outcomes', { timeoutMs: 240_000, waits: true }, (t) => {
  let world: PublishingWorld;
  const mortals = new Mortals(script, () => [world.url]);
  /** Questions to the network, by target. */
  const asked = new Map<string, number>();
  /** Answers that the test puts in the network's place, by target. */
  const instead = new Map<string, () => Promise<ReconcileOutcome | null>>();

  /** The sandbox, watched. */
  const watched = (): PlatformAdapter => ({
    boundaryDeadlineMs: world.sandbox.boundaryDeadlineMs,
    settleWindowMs: () => world.sandbox.settleWindowMs(),
    absenceIsProof: (...asked) => world.sandbox.absenceIsProof(...asked),
    listsOwnPosts: (...asked) => world.sandbox.listsOwnPosts(...asked),
    publish: (request, steps) => world.sandbox.publish(request, steps),
    comment: (request, signal) => world.sandbox.comment(request, signal),
    reconcile: async (request, boundary) => {
      const { targetId } = request;
      const said = (await instead.get(targetId)?.()) ?? (await world.sandbox.reconcile(request, boundary));
      asked.set(targetId, (asked.get(targetId) ?? 0) + 1);
      return said;
    },
  });
  const publisher = () => world.publisher({}, { adapterOf: watched });
  const connected = async (platform: Platform, rules: object = retries): Promise<Account> =>
    world.connect(await world.client({ ...rules }), platform);
  const schedule = async (account: Account, text = lost, more: Parameters<typeof world.schedule>[1] = {}) =>
    (await world.schedule([account], { text, ...more })).targetIds[0] ?? '';
  const setRules = (clientId: string, rules: object) =>
    execute(world.store, client, clientId, { type: 'Update', changes: { rules: { ...rules } } }, world.context());
  const events = (id: string) => world.store.readStream(`target-${id}`);
  const looksOf = async (id: string) =>
    (await events(id))
      .filter(({ type }) => type === 'TargetAbsenceObserved')
      .map(({ data }) => String(data.observedAt));
  const settledBy = async (id: string) =>
    (await events(id)).flatMap(({ type, data }) => (type === 'TargetOutcomeSettled' ? [[data.outcome, data.by]] : []));
  const unknownOf = async (id: string): Promise<readonly Failure[]> =>
    (await events(id)).flatMap(({ type, data }) => (type === 'TargetOutcomeUnknown' ? [data.failure as Failure] : []));
  /** Waits until the publisher rests for an hour: every question of the first minutes was asked. */
  const restsLong = (id: string) =>
    until('the next question is far off', async () => {
      const { rows } = await world.pool.query(
        `select 1 from ops.work_leases where id = $1 and not_before > now() + interval '30 minutes'`,
        [id],
      );
      return rows.length === 1;
    });
  const wake = (id: string) =>
    world.pool.query(`update ops.work_leases set not_before = now() where id = $1 and not_before > now()`, [id]);
  /** Each look came after the settle window, and far enough after the one before it. */
  const looksAreApart = async (id: string, settledAt: string) => {
    const boundary = (await events(id)).find(({ data }) => data.step === 'boundary');
    const windowEndsAt = Date.parse(String(boundary?.data.deadline)) + quickNetwork.settleWindowMs;
    const looks = [...(await looksOf(id)), settledAt].map(Date.parse);
    assert.equal(looks.length, quickLooks.looks);
    for (const [index, look] of looks.entries()) {
      const [before = Number.NEGATIVE_INFINITY] = looks.slice(index - 1, index);
      assert.ok(look >= windowEndsAt, 'a look within the settle window');
      assert.ok(index === 0 || look - before >= quickLooks.gapMs, 'two looks too close to each other');
    }
  };
  const settledAt = async (id: string) =>
    (await events(id)).find(({ type }) => type === 'TargetOutcomeSettled')?.metadata.occurredAt ?? '';

  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
  });
  t.after(async () => {
    await mortals.end();
    await world.close();
  });

  t('hold, the default: the target is never tried again', async () => {
    const running = publisher();
    for (const rules of [{}, { unknownOutcome: 'hold' }]) {
      const id = await schedule(await connected('x', rules));
      await world.all([id], 'outcome_unknown');
      await restsLong(id);
      assert.ok((asked.get(id) ?? 0) >= 4);
      assert.deepEqual([await looksOf(id), await settledBy(id)], [[], []]);
      assert.equal((await world.sandbox.creates(id)).length, 1);
    }
    await running.stop();
  });

  t('retry_when_absent: after three looks the target is tried again, once', async () => {
    const running = publisher();
    const id = await schedule(await connected('x'));
    const [state] = await world.all([id], 'published');
    assert.equal(state?.status === 'published' && state.common.attempts, 2);
    assert.deepEqual(await settledBy(id), [['absent', 'policy']]);
    await looksAreApart(id, await settledAt(id));
    assert.equal(await world.created(id), 1);
    await running.stop();
  });

  t('retry_when_absent, and a network that never shows the post: two posts at most, and a person decides', async () => {
    const running = publisher();
    const id = await schedule(await connected('x'), 'hidden [[sandbox:timeout_after]]');
    instead.set(id, async () => ({ kind: 'absent' }));
    const isReported = async () => (await events(id)).filter(({ type }) => type === 'TargetOutcomeUnknown').length;
    await until('the second attempt has no outcome either', async () => (await isReported()) === 2);
    await restsLong(id);
    const before = asked.get(id) ?? 0;
    await until('the network is asked again', async () => {
      await wake(id);
      return (asked.get(id) ?? 0) >= before + quickLooks.looks + 1;
    });
    assert.equal(await world.created(id), 2);
    assert.deepEqual(await settledBy(id), [['absent', 'policy']]);
    const state = await world.target(id);
    assert.ok(state.status === 'outcome_unknown');
    const [first] = (await events(id)).filter(({ type }) => type === 'TargetOutcomeUnknown');
    assert.equal(state.common.unknownSince, first?.metadata.occurredAt);
    await running.stop();
  });

  t('a network that takes calls, makes nothing and proves it: four attempts, then a person may retry', async () => {
    const running = publisher();
    const account = await connected('bluesky', {});
    const { postId, targetIds } = await world.schedule([account], { text: 'lost [[sandbox:timeout_before]]' });
    const [id = ''] = targetIds;
    const four = Array(4).fill(false);
    const calls = async () => (await world.sandbox.creates(id)).map(({ outcome }) => outcome === 'created');
    const [state] = await world.all([id], 'failed');
    assert.ok(state?.status === 'failed');
    assert.deepEqual([state.failure.code, state.failure.retryable], ['publish_unanswered', true]);
    assert.deepEqual(await calls(), four);
    const absences = (await events(id)).filter(({ data }) => data.outcome === 'absent');
    const waits = absences.map(
      ({ data, metadata }) => Date.parse(String(data.retryAt)) - Date.parse(metadata.occurredAt),
    );
    assert.ok(waits.length === 3 && waits.every((ms, at) => ms > (quick.deferDelaysMs[at] ?? 0) - 50), waits.join());
    const retry = { type: 'Retry', commandId: 'again', now: new Date().toISOString() } as const;
    await execute(world.store, target, id, retry, world.context(), { partitionKey: postId });
    await until('four attempts more', async () => (await calls()).length === 8);
    await world.all([id], 'failed');
    await running.stop();
  });

  t('a network that finds the post at the third look is believed', async () => {
    const running = publisher();
    const account = await connected('x');
    const present = {
      kind: 'present',
      externalId: '17',
      permalink: null,
      publishedAt: '2026-01-01T00:00:00.000Z',
    } as const;
    const id = await schedule(account);
    instead.set(id, async () => ((await looksOf(id)).length === 2 ? present : null));
    const [state] = await world.all([id], 'published');
    assert.ok(state?.status === 'published');
    assert.deepEqual([state.externalId, state.common.attempts], ['17', 1]);
    assert.equal((await looksOf(id)).length, 2);
    assert.deepEqual(await settledBy(id), [['published', 'reconcile']]);
    await running.stop();
  });

  t('an organization of LinkedIn is looked at; a member is not: their unknown outcome waits for a person', async () => {
    const running = publisher();
    const clientId = await world.client({ ...retries });
    const page = await schedule(await world.connect(clientId, 'linkedin', 'acme'));
    const person = await world.connect(clientId, 'linkedin', 'member-made');
    const composed = await world.schedule([person], { text: 'made [[sandbox:timeout_after once]]' });
    const [made = ''] = composed.targetIds;
    const unmade = await schedule(await world.connect(clientId, 'linkedin', 'member-unmade'));
    await world.all([page], 'published');
    assert.deepEqual(await settledBy(page), [['absent', 'policy']]);
    for (const [id, calls] of [
      [made, 1],
      [unmade, 0],
    ] as const) {
      await until('the publisher rests for a day', async () => {
        const { rows } = await world.pool.query(
          `select 1 from ops.work_leases where id = $1 and not_before > now() + interval '20 hours'`,
          [id],
        );
        return rows.length === 1;
      });
      const [failure, ...more] = await unknownOf(id);
      assert.deepEqual(more, []);
      assert.deepEqual([failure?.code, failure?.actor], ['outcome_not_askable', 'user']);
      assert.match(failure?.message ?? '', /Look at the account, and have the operator record what you find/);
      await wake(id);
      assert.deepEqual([await looksOf(id), await settledBy(id)], [[], []]);
      assert.equal(asked.get(id), undefined, 'nobody was asked');
      assert.equal((await world.sandbox.creates(id)).length, 1, 'no second call');
      assert.equal(await world.created(id), calls);
    }
    const found = {
      kind: 'published',
      externalId: null,
      permalink: null,
      publishedAt: new Date().toISOString(),
    } as const;
    const settle = { type: 'Settle', by: 'admin', now: found.publishedAt, outcome: found, commentDueAt: null } as const;
    await execute(world.store, target, made, settle, world.context(), { partitionKey: composed.postId });
    assert.deepEqual(await settledBy(made), [['published', 'admin']]);
    await running.stop();
  });

  t('a worker that dies behind the boundary of a member leaves an outcome for a person', async () => {
    const account = await world.connect(await world.client({ ...retries }), 'linkedin', 'member-dying');
    const { postId, targetIds } = await world.schedule([account], { text: 'Of a member' });
    const [id = ''] = targetIds;
    const owner = { attempt: 1, takeover: 0 };
    const now = new Date(Date.now() - 60_000).toISOString();
    const past = { step: 'boundary', data: { key: 'lost', contentHash: null }, deadline: now, segment: null };
    for (const command of [
      { type: 'Start', now: new Date().toISOString() },
      { ...owner, type: 'Checkpoint', ...past },
    ] as const) {
      await execute(world.store, target, id, command, world.context(), { partitionKey: postId });
    }
    const running = publisher();
    await world.all([id], 'outcome_unknown');
    assert.deepEqual(
      (await unknownOf(id)).map(({ code }) => code),
      ['outcome_not_askable'],
    );
    assert.equal((await world.sandbox.creates(id)).length, 0);
    await running.stop();
  });

  t('telegram and tiktok are never tried again, whatever the rules say', async () => {
    const running = publisher();
    for (const platform of ['telegram', 'tiktok'] as const) {
      const overrides = { privacyLevel: 'SELF_ONLY' };
      const variants =
        platform === 'tiktok' ? [{ platform, contentOverride: null, mediaIdsOverride: null, overrides }] : [];
      const id = await schedule(await connected(platform), lost, { variants });
      await world.all([id], 'outcome_unknown');
      await restsLong(id);
      assert.deepEqual([await looksOf(id), await settledBy(id)], [[], []]);
      assert.equal((await world.sandbox.creates(id)).length, 1);
    }
    await running.stop();
  });

  t('a rule that is taken back between two looks holds the target; given again, the looks go on', async () => {
    const running = publisher();
    const account = await connected('x');
    const id = await schedule(account);
    // After the first look the network gives no answer until the rule is taken back.
    let isHeld = false;
    const undecided = { kind: 'undecided' } as const;
    instead.set(id, async () => (!isHeld && (await looksOf(id)).length === 1 ? undecided : null));
    await until('one look is recorded', async () => (await looksOf(id)).length === 1);
    await setRules(account.clientId, { unknownOutcome: 'hold' });
    isHeld = true;
    const before = asked.get(id) ?? 0;
    await until('the network was asked again', async () => {
      await wake(id);
      return (asked.get(id) ?? 0) >= before + 2;
    });
    await restsLong(id);
    const looks = await looksOf(id);
    assert.deepEqual([looks.length, await settledBy(id)], [1, []]);
    assert.equal((await world.sandbox.creates(id)).length, 1);
    await setRules(account.clientId, retries);
    await until('the target was tried again', async () => {
      await wake(id);
      return (await world.target(id)).status === 'published';
    });
    assert.deepEqual((await looksOf(id)).slice(0, looks.length), looks);
    await looksAreApart(id, await settledAt(id));
    await running.stop();
  });

  t('of a thread only the segment in question is tried again', async () => {
    const running = publisher();
    const segments = ['one', `two ${lost}`, 'three'].map((content) => ({ content, mediaIds: [] }));
    const id = await schedule(await connected('x'), '', { body: { thread: { segments } } });
    await world.all([id], 'published');
    const calls = (await world.sandbox.creates(id)).map(
      ({ segment, outcome }) => `${segment} ${outcome === 'created'}`,
    );
    assert.deepEqual(calls, ['0 true', '1 false', '1 true', '2 true']);
    assert.deepEqual(await settledBy(id), [['absent', 'policy']]);
    await looksAreApart(id, await settledAt(id));
    await running.stop();
  });

  t('killed after each look and after the last: none is lost, none counts twice', async () => {
    const account = await connected('x');
    const id = await schedule(account);
    const stories = ['one look', 'two looks', 'settled'];
    for (const [index] of stories.entries()) {
      const child = await mortals.child('publisher:after-absence');
      // A slow machine may spend the questions of the first minutes before a look counts: the next one is an hour off.
      const isDead = () => child.exitCode !== null || child.signalCode !== null;
      const wokenOrDead = async () => {
        if (!isDead()) await wake(id);
        return isDead();
      };
      await until('it died', wokenOrDead, { everyMs: 200 });
      await mortals.died(child);
      assert.equal((await looksOf(id)).length, Math.min(index + 1, quickLooks.looks - 1));
      assert.equal((await world.target(id)).status, index === 2 ? 'pending' : 'outcome_unknown');
    }
    await looksAreApart(id, await settledAt(id));
    const running = publisher();
    const [state] = await world.all([id], 'published');
    assert.equal(state?.status === 'published' && state.common.attempts, 2);
    assert.deepEqual(await settledBy(id), [['absent', 'policy']]);
    assert.equal(await world.created(id), 1);
    await running.stop();
  });
});
