import assert from 'node:assert/strict';
import type { NativeScheduler, PlatformAdapter, UndoOutcome, VerifyOutcome } from '#contracts/ports/platform.ts';
import { type TargetCommand, target } from '#domain/target.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { testDatabase } from '#test/support/postgres.ts';
import { type Account, MovedClock, PublishingWorld, quickNetwork } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const minuteMs = 60_000;
const undecided = { kind: 'undecided' } as const;
const absent = { kind: 'absent' } as const;

suite('answers of a network’s own scheduler', { timeoutMs: 240_000 }, (t) => {
  let world: PublishingWorld;
  let clientId: string;
  let facebook: Account;
  let youtube: Account;
  const clock = new MovedClock();
  /** Answers that a test puts in the network's place, by target. */
  const verifies = new Map<string, () => VerifyOutcome | Promise<VerifyOutcome>>();
  const undoes = new Map<string, () => UndoOutcome | Promise<UndoOutcome>>();
  /** When the network was asked about a target, and asked to take it back, by our clock. */
  const asked = new Map<string, number[]>();
  const undone = new Map<string, number[]>();

  const note = (calls: Map<string, number[]>, id: string) => calls.set(id, [...(calls.get(id) ?? []), clock.now()]);
  const scheduler = (own: NativeScheduler): NativeScheduler => ({
    handOver: (request, steps) => own.handOver(request, steps),
    verify: async (request, handed) => {
      const instead = verifies.get(request.targetId);
      note(asked, request.targetId);
      return instead === undefined ? own.verify(request, handed) : instead();
    },
    undo: async (request, nativeId) => {
      const instead = undoes.get(request.targetId);
      note(undone, request.targetId);
      return instead === undefined ? own.undo(request, nativeId) : instead();
    },
  });
  const watched = (): PlatformAdapter => ({
    boundaryDeadlineMs: world.sandbox.boundaryDeadlineMs,
    settleWindowMs: (platform) => world.sandbox.settleWindowMs(platform),
    absenceIsProof: (platform) => world.sandbox.absenceIsProof(platform),
    listsOwnPosts: (platform) => world.sandbox.listsOwnPosts(platform),
    publish: (...call) => world.sandbox.publish(...call),
    reconcile: (...call) => world.sandbox.reconcile(...call),
    comment: (...call) => world.sandbox.comment(...call),
    nativeScheduler: (platform) => {
      const own = world.sandbox.nativeScheduler(platform);
      return own === null ? null : scheduler(own);
    },
  });
  // An hour of questions, so that some fall into each time that a test looks at.
  const reconcileDelaysMs = Array.from({ length: 36_000 }, () => 100);
  const start = () => world.publisher({ reconcileDelaysMs }, { clock, adapterOf: watched });
  /** Moves our clock and the network's. */
  const pass = async (ms: number): Promise<void> => {
    await world.sandbox.advance(ms);
    clock.pass(ms);
  };
  const schedule = async (account: Account, minutes: number, text = 'hello') => {
    const dueAt = clock.now() + minutes * minuteMs;
    const { postId, targetIds } = await world.schedule([account], { text, dueAt, scheduleMode: 'native' });
    return { postId, id: targetIds[0] ?? '', dueAt };
  };
  const cancel = async (postId: string, id: string) => {
    const now = new Date(clock.now()).toISOString();
    const command: TargetCommand = { type: 'Cancel', reason: 'requested', postRevision: null, now };
    await execute(world.store, target, id, command, { ...world.context(), now }, { partitionKey: postId });
  };
  const story = (id: string) => world.story(`target-${id}`);
  const times = (calls: Map<string, number[]>, id: string) => calls.get(id)?.length ?? 0;
  const anotherCall = async (calls: Map<string, number[]>, id: string) => {
    const before = times(calls, id);
    await until('it is asked again', () => times(calls, id) > before);
  };
  const settled = async (id: string) => {
    const events = await world.store.readStream(`target-${id}`);
    return events.filter(({ type }) => type === 'TargetOutcomeSettled');
  };

  t.before(async () => {
    world = await PublishingWorld.open((await testDatabase()).url);
    clientId = await world.client();
    facebook = await world.connect(clientId, 'facebook');
    youtube = await world.connect(clientId, 'youtube');
  });
  t.after(() => world.close());

  t('a post whose hand-over had no answer is not published again while the network may show it nowhere', async () => {
    const publisher = start();
    for (const early of [0, 30_000]) {
      const { id, dueAt } = await schedule(youtube, 30, 'lost [[sandbox:timeout_after once]]');
      verifies.set(id, () => undecided);
      await world.all([id], 'outcome_unknown');
      verifies.set(id, () => (clock.now() < dueAt + quickNetwork.settleWindowMs ? absent : undecided));
      await pass(dueAt - clock.now() - early);
      await anotherCall(asked, id);
      await anotherCall(asked, id);
      assert.equal((await world.target(id)).status, 'outcome_unknown', (await story(id)).join(' '));
      if (early > 0) await pass(early);
      await until('the network is sure', () => clock.now() > dueAt + quickNetwork.settleWindowMs);
      verifies.delete(id);
      await world.all([id], 'published');
      assert.equal((await story(id)).filter((type) => type === 'TargetPublishStarted').length, 1);
    }
    await publisher.stop();
  });

  t('a question that the network answers after the due time is none from before it', async () => {
    const publisher = start();
    const { id, dueAt } = await schedule(youtube, 30, 'lost [[sandbox:timeout_after once]]');
    verifies.set(id, () => undecided);
    await world.all([id], 'outcome_unknown');
    // Long after the call's own window.
    await pass(10 * minuteMs);
    const answer = Promise.withResolvers<VerifyOutcome>();
    verifies.set(id, () => answer.promise);
    await anotherCall(asked, id);
    await pass(dueAt - clock.now());
    verifies.set(id, () => undecided);
    answer.resolve(absent);
    await anotherCall(asked, id);
    assert.equal((await world.target(id)).status, 'outcome_unknown', (await story(id)).join(' '));
    verifies.delete(id);
    await world.all([id], 'published');
    await publisher.stop();
  });

  t('absence is proof again once the network is sure, and before it begins to publish', async () => {
    const publisher = start();
    const late = await schedule(youtube, 30, 'lost [[sandbox:error_before once]]');
    verifies.set(late.id, () => undecided);
    await world.all([late.id], 'outcome_unknown');
    verifies.set(late.id, () => absent);
    await pass(late.dueAt - clock.now());
    await world.all([late.id], 'published');
    const [absence] = await settled(late.id);
    assert.equal(absence?.data.outcome, 'absent');
    const at = Date.parse(absence.metadata.occurredAt);
    assert.ok(at >= late.dueAt + quickNetwork.settleWindowMs, `${at} is before the network is sure`);
    const early = await schedule(youtube, 30, 'lost [[sandbox:error_before once]]');
    await world.all([early.id], 'handed_to_platform');
    assert.equal((await settled(early.id))[0]?.data.outcome, 'absent');
    assert.deepEqual([await world.created(late.id), await world.created(early.id)], [1, 1]);
    await publisher.stop();
  });

  t('a post that was absent before the network was sure has not gone, however late the answer came', async () => {
    const publisher = start();
    const { id, dueAt } = await schedule(facebook, 30);
    await world.all([id], 'handed_to_platform');
    const answer = Promise.withResolvers<VerifyOutcome>();
    verifies.set(id, () => answer.promise);
    await pass(dueAt - clock.now());
    await anotherCall(asked, id);
    await pass(2 * quickNetwork.settleWindowMs);
    verifies.delete(id);
    answer.resolve(absent);
    await world.all([id], 'published');
    await publisher.stop();
  });

  t('an undo whose check is answered after the due time is none from before it', async () => {
    const publisher = start();
    const { postId, id, dueAt } = await schedule(facebook, 30);
    await world.all([id], 'handed_to_platform');
    const answer = Promise.withResolvers<VerifyOutcome>();
    verifies.set(id, () => answer.promise);
    undoes.set(id, () => Promise.reject(new Error('broken')));
    await cancel(postId, id);
    await anotherCall(asked, id);
    await pass(dueAt - clock.now());
    verifies.set(id, () => undecided);
    answer.resolve(absent);
    await anotherCall(asked, id);
    assert.equal((await world.target(id)).status, 'handed_to_platform', (await story(id)).join(' '));
    verifies.delete(id);
    await world.all([id], 'published');
    await publisher.stop();
  });
});
