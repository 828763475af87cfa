import assert from 'node:assert/strict';
import type {
  NativeScheduler,
  PlatformAdapter,
  RescheduleOutcome,
  ReviseOutcome,
  UndoOutcome,
  VerifyOutcome,
} from '#contracts/ports/platform.ts';
import { account } from '#domain/account.ts';
import { post } from '#domain/post/post.ts';
import { isBeingCanceled, type TargetCommand, target } from '#domain/post-target/target.ts';
import { execute } from '#runtime/eventing/execute.ts';
import type { TargetEvent } from '#schemas/target.ts';
import { fanOut } from '#services/workflows/fan-out.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { type Account, MovedClock, PublishingWorld } from '#test/support/publishing.ts';
import { failure } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { withMembers } from '#test/support/with-members.ts';

const minuteMs = 60_000;
/** Longer than any test takes: only `pass` brings a clock past it, however busy the machine is. */
const settleWindowMs = 10 * minuteMs;
const undecided = { kind: 'undecided' } as const;
const absent = { kind: 'absent' } as const;

suite('answers of a network’s own scheduler', { waits: true, timeoutMs: 240_000 }, (t) => {
  let world: PublishingWorld;
  let clientId: string;
  let facebook: Account;
  let youtube: Account;
  const clock = new MovedClock();
  /** Answers that a test puts in the network's place, by target. */
  const verifies = new Map<string, () => VerifyOutcome | Promise<VerifyOutcome>>();
  const undoes = new Map<string, () => UndoOutcome | Promise<UndoOutcome>>();
  const changes = new Map<string, (really: () => Promise<RescheduleOutcome>) => Promise<RescheduleOutcome>>();
  /** False: the network's scheduler has no change of time. */
  let canChange = true;
  /** While a test gives an answer to a target that it has just scheduled: the first question may come before it. */
  let giving = false;
  /**
   * Texts of posts whose hand-over has no answer: the network has done its part, or nothing. No fault of the sandbox does it: that
   * ends with the deadline of the call, within which a busy machine may not even have made it.
   */
  const [lost, unmade] = ['lost on the way back', 'lost on the way there'] as const;
  /** While one is closed the network has done its part for a target, and its answer is on the way. */
  const gates = new Map<string, Promise<void>>();
  const isAnswering = new Set<string>();
  const through = async <T>(id: string, answer: T): Promise<T> => {
    isAnswering.add(id);
    await gates.get(id);
    return answer;
  };
  /** When the network was asked about a target, and asked to take it back, by our clock. */
  const asked = new Map<string, number[]>();
  const undone = new Map<string, number[]>();
  /** Files of the post that the network was asked to take back. */
  const filesOfUndo = new Map<string, number>();
  /** Answers to a change of content that a test puts in the network's place. */
  const revises = new Map<string, (really: () => Promise<ReviseOutcome>) => Promise<ReviseOutcome>>();
  /** When it was told another time, and which. */
  const changed = new Map<string, number[]>();
  const newTimes = new Map<string, string[]>();

  const note = (calls: Map<string, number[]>, id: string) => calls.set(id, [...(calls.get(id) ?? []), clock.now()]);
  const scheduler = (own: NativeScheduler): NativeScheduler => ({
    handOver: async (request, steps) => {
      if (request.content === unmade) {
        await steps.boundary({});
        return { kind: 'unknown', failure };
      }
      const answer = await own.handOver(request, steps);
      return request.content === lost ? { kind: 'unknown', failure } : through(request.account.id, answer);
    },
    verify: async (request, handed) => {
      const instead = verifies.get(request.targetId) ?? (giving ? () => undecided : undefined);
      note(asked, request.targetId);
      return instead === undefined ? through(request.targetId, await own.verify(request, handed)) : instead();
    },
    undo: async (request, nativeId) => {
      const instead = undoes.get(request.targetId);
      filesOfUndo.set(request.targetId, request.media.length);
      note(undone, request.targetId);
      return instead === undefined ? own.undo(request, nativeId) : instead();
    },
    ...(canChange
      ? {
          revise: async (request, nativeId, former) => {
            const really = async () =>
              (await own.revise?.(request, nativeId, former)) ?? { kind: 'unknown' as const, failure };
            return (revises.get(request.targetId) ?? ((asked) => asked()))(really);
          },
          reschedule: async (request, nativeId) => {
            const { targetId, dueAt } = request;
            note(changed, targetId);
            newTimes.set(targetId, [...(newTimes.get(targetId) ?? []), dueAt]);
            const really = async () =>
              (await own.reschedule?.(request, nativeId)) ?? { kind: 'unknown' as const, failure };
            return (changes.get(targetId) ?? ((own) => own()))(really);
          },
        }
      : {}),
  });
  const watched = (): PlatformAdapter => ({
    boundaryDeadlineMs: world.sandbox.boundaryDeadlineMs,
    settleWindowMs: () => settleWindowMs,
    absenceIsProof: (...asked) => world.sandbox.absenceIsProof(...asked),
    listsOwnPosts: (...asked) => world.sandbox.listsOwnPosts(...asked),
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
  // A publisher that the machine holds up keeps its leases: whoever takes a lapsed one looks for the instant of the question by
  // the database's clock, which is behind ours.
  const leaseTtlMs = 5 * minuteMs;
  const publishing = (config: Parameters<typeof world.publisher>[0], store = world.store) =>
    world.publisher({ leaseTtlMs, ...config }, { clock, adapterOf: watched, store });
  const start = () => publishing({ reconcileDelaysMs });
  /** Moves our clock and the network's. */
  const pass = async (ms: number): Promise<void> => {
    await world.sandbox.advance(ms);
    clock.pass(ms);
  };
  const schedule = async (account: Account, minutes: number, text = 'hello', firstComment: string | null = null) => {
    const dueAt = clock.now() + minutes * minuteMs;
    const own = { contentOverride: null, mediaIdsOverride: null, overrides: { firstComment } };
    const variants = [{ platform: account.platform, ...own }];
    const { postId, targetIds } = await world.schedule([account], { text, dueAt, variants, scheduleMode: 'native' });
    return { postId, id: targetIds[0] ?? '', dueAt };
  };
  /** Its hand-over goes without an answer, and the network says no more until a test lets it. */
  const lose = async (account: Account, text: string = lost, minutes = 30) => {
    giving = true;
    const made = await schedule(account, minutes, text);
    verifies.set(made.id, () => undecided);
    giving = false;
    return made;
  };
  const cancel = async (postId: string, id: string) => {
    const now = new Date(clock.now()).toISOString();
    const command: TargetCommand = { type: 'Cancel', reason: 'requested', postRevision: null, now };
    await execute(world.store, target, id, command, { ...world.context(), now }, { partitionKey: postId });
  };
  /** @returns when it is due then */
  const move = async (postId: string, id: string, minutes: number): Promise<string> => {
    const [now, dueAt] = [0, minutes].map((ahead) => new Date(clock.now() + ahead * minuteMs).toISOString()) as [
      string,
      string,
    ];
    const commandId = `move-${id}-${minutes}`;
    const command = { type: 'Reschedule', commandId, dueAt, scheduledLocal: null, jitterSeconds: 0, now } as const;
    await execute(world.store, target, id, command, { ...world.context(), now, commandId }, { partitionKey: postId });
    return dueAt;
  };
  const story = (id: string) => world.story(`target-${id}`);
  const times = (calls: Map<string, number[]>, id: string) => calls.get(id)?.length ?? 0;
  const anotherCall = async (calls: Map<string, number[]>, id: string) => {
    const before = times(calls, id);
    await until('it is asked again', () => times(calls, id) > before);
  };
  /** Since the test began: what an action begins may be called before the action has ended. */
  const called = (calls: Map<string, number[]>, id: string, least = 1) =>
    until('it is called so often', () => times(calls, id) >= least);
  const settled = async (id: string) => {
    const events = await world.store.readStream(`target-${id}`);
    return events.filter(({ type }) => type === 'TargetOutcomeSettled');
  };

  t.before(async () => {
    // No call ends by the clock, and what asks after its window need not pass much.
    world = await PublishingWorld.open((await preparedDatabase()).url, { boundaryDeadlineMs: 30_000 });
    clientId = await world.client();
    facebook = await world.connect(clientId, 'facebook');
    youtube = await world.connect(clientId, 'youtube');
  });
  t.after(() => world.close());

  /** Whether each post that the network took for a target is still there. */
  const there = async (id: string): Promise<readonly boolean[]> =>
    (await world.sandbox.creates(id)).flatMap(({ outcome, undoneAt }) =>
      outcome === 'created' ? [undoneAt === null] : [],
    );
  const reasonOf = async (id: string) => (await world.store.readStream(`target-${id}`)).at(-1)?.data.reason;
  /** As DELETE of the post asks for it. */
  const deletePost = async (postId: string, id: string) => {
    const context = world.context();
    const unsettled = [{ targetId: id, appliedRevision: 0 }];
    await execute(world.store, post, postId, { type: 'Delete', unsettled }, context);
    await fanOut(world.store, postId, context);
  };
  const isWanted = async (id: string): Promise<boolean> => !isBeingCanceled(await world.target(id));
  /** Everybody who may end a post that is being handed over. */
  const endings = {
    requested: ({ postId, id }) => cancel(postId, id),
    post_canceled: ({ postId, id }) => deletePost(postId, id),
    client_archived: ({ account: { clientId: own } }) => world.archive(own),
    account_disconnected: async ({ account: { id } }) => {
      await execute(world.store, account, id, { type: 'Disconnect', reason: 'test' }, world.context());
    },
  } as const satisfies Readonly<
    Record<string, (of: { postId: string; id: string; account: Account }) => Promise<void>>
  >;
  type Ending = keyof typeof endings;
  const allEndings = Object.keys(endings) as readonly Ending[];

  t('what is canceled while the network answers is taken back, whoever asks', async () => {
    const publisher = start();
    const outcomes = world.outcomes();
    await Promise.all(
      allEndings.map(async (reason) => {
        for (const how of ['hand-over', 'question'] as const) {
          const own = await world.connect(await world.client(), 'facebook');
          const gate = Promise.withResolvers<void>();
          let made: Awaited<ReturnType<typeof schedule>>;
          if (how === 'hand-over') {
            gates.set(own.id, gate.promise);
            made = await schedule(own, 30);
            await until('it is handed over', () => isAnswering.has(own.id));
          } else {
            made = await lose(own);
            await world.all([made.id], 'outcome_unknown');
            gates.set(made.id, gate.promise);
            verifies.delete(made.id);
            await until('it is asked', () => isAnswering.has(made.id));
          }
          const { id } = made;
          await endings[reason]({ ...made, account: own });
          await until('it is to be canceled', async () => !(await isWanted(id)));
          gate.resolve();
          await world.all([id], 'canceled');
          assert.equal(await reasonOf(id), reason, how);
          assert.deepEqual(await there(id), [false]);
          // The worker kept its claim: the answer was not lost to a takeover.
          assert.ok(!(await story(id)).includes('TargetPublishTakenOver'), (await story(id)).join(' '));
        }
      }),
    );
    await outcomes.stop();
    await publisher.stop();
  });

  t('a cancel between the answer and its append is carried out, and one before the call leaves no post', async () => {
    const { store } = world;
    const own = await world.connect(clientId, 'facebook');
    /** The next target is canceled right before its worker appends this. */
    let moment: TargetEvent['type'] | 'boundary' | null = null;
    const append: typeof store.append = async (stream, expected, events, ...more) => {
      const isNow = events.some(
        ({ type, data }) => type === moment || (data as { readonly step?: string }).step === moment,
      );
      if (isNow) {
        moment = null;
        const id = stream.slice('target-'.length);
        const { state } = await store.load(target, id);
        assert.ok(state.status !== 'none');
        await cancel(state.common.postId, id);
      }
      return store.append(stream, expected, events, ...more);
    };
    const between = withMembers(store, { append });
    const publisher = publishing({ reconcileDelaysMs }, between);
    const meet = async (type: NonNullable<typeof moment>, text?: string) => {
      moment = type;
      const { id } = await schedule(own, 30, text);
      await world.all([id], 'canceled');
      return { story: (await story(id)).slice(2), there: await there(id) };
    };
    const upload = 'TargetPublishCheckpointed';
    assert.deepEqual(await meet('TargetHandedToPlatform'), {
      story: [upload, upload, 'TargetUndoRequested', 'TargetHandedToPlatform', 'TargetCanceled'],
      there: [false],
    });
    assert.deepEqual(await meet('TargetFailed', 'no [[sandbox:reject]]'), {
      story: ['TargetCanceled'],
      there: [],
    });
    assert.deepEqual(await meet('boundary'), { story: [upload, 'TargetCanceled'], there: [] });
    await publisher.stop();
  });

  t(
    'what is canceled while its hand-over has no answer is taken back once the network says that it has it',
    async () => {
      const publisher = start();
      const outcomes = world.outcomes();
      const published: { readonly id: string }[] = [];
      await Promise.all(
        allEndings.map(async (reason) => {
          const own = await world.connect(await world.client(), 'facebook');
          const early = await lose(own);
          const late = await lose(own, lost, 40);
          const absentAfterAll = await lose(own, unmade);
          for (const one of [early, late, absentAfterAll]) {
            await world.all([one.id], 'outcome_unknown');
            if (await isWanted(one.id)) await endings[reason]({ ...one, account: own });
            await until('it is to be canceled', async () => !(await isWanted(one.id)));
            assert.equal((await world.target(one.id)).status, 'outcome_unknown');
          }
          verifies.delete(early.id);
          verifies.set(absentAfterAll.id, () => ({ kind: 'failed', failure }));
          await world.all([early.id, absentAfterAll.id], 'canceled');
          for (const one of [early, absentAfterAll]) assert.equal(await reasonOf(one.id), reason);
          assert.deepEqual([await there(early.id), await there(absentAfterAll.id)], [[false], []]);
          published.push(late);
        }),
      );
      await pass(40 * minuteMs);
      for (const { id } of published) {
        verifies.delete(id);
        // The network has published it: the cancel came to nothing, and says so.
        await world.all([id], 'published');
        const ending = (await world.story(`target-${id}`)).slice(-2);
        assert.deepEqual(ending, ['TargetUndoFailed', 'TargetOutcomeSettled']);
      }
      await outcomes.stop();
      await publisher.stop();
    },
  );

  t('a post whose hand-over had no answer is not published again while the network may show it nowhere', async () => {
    const publisher = start();
    for (const early of [0, 30_000]) {
      const { id, dueAt } = await lose(youtube);
      await world.all([id], 'outcome_unknown');
      verifies.set(id, () => (clock.now() < dueAt + settleWindowMs ? absent : undecided));
      await pass(dueAt - clock.now() - early);
      await anotherCall(asked, id);
      await anotherCall(asked, id);
      assert.equal((await world.target(id)).status, 'outcome_unknown', (await story(id)).join(' '));
      if (early > 0) await pass(early);
      await pass(settleWindowMs);
      verifies.delete(id);
      await world.all([id], 'published');
      assert.equal((await story(id)).filter((type) => type === 'TargetPublishStarted').length, 1);
    }
    await publisher.stop();
  });

  t('a first comment follows the post that the network has published, once and not before', async () => {
    const publisher = start();
    for (const account of [facebook, youtube]) {
      const { id, dueAt } = await schedule(account, 30, 'a word', `first on ${account.platform}`);
      await world.all([id], 'handed_to_platform');
      assert.deepEqual(await world.sandbox.comments([id]), []);
      await pass(dueAt - clock.now());
      await until('its comment', async () => (await story(id)).at(-1) === 'TargetFirstCommentPosted');
      const comments = await world.sandbox.comments([id]);
      assert.deepEqual(
        comments.map(({ content }) => content),
        [`first on ${account.platform}`],
      );
      assert.equal((await world.target(id)).status, 'published');
    }
    await publisher.stop();
  });

  t('a question that the network answers after the due time is none from before it', async () => {
    const publisher = start();
    const { id, dueAt } = await lose(youtube);
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
    const late = await lose(youtube, 'lost [[sandbox:error_before once]]');
    await world.all([late.id], 'outcome_unknown');
    verifies.set(late.id, () => absent);
    await pass(late.dueAt - clock.now());
    await anotherCall(asked, late.id);
    await anotherCall(asked, late.id);
    assert.equal((await world.target(late.id)).status, 'outcome_unknown', (await story(late.id)).join(' '));
    await pass(settleWindowMs);
    await world.all([late.id], 'published');
    const [absence] = await settled(late.id);
    assert.equal(absence?.data.outcome, 'absent');
    const at = Date.parse(absence.metadata.occurredAt);
    assert.ok(at >= late.dueAt + settleWindowMs, `${at} is before the network is sure`);
    const early = await schedule(youtube, 60, 'lost [[sandbox:error_before once]]');
    await world.all([early.id], 'outcome_unknown');
    await pass(settleWindowMs + minuteMs);
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
    await pass(2 * settleWindowMs);
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

  /** Another worker asks in half an hour at the earliest. */
  const restsLong = (id: string) =>
    until('it rests', async () => {
      const sql = `select 1 from ops.work_leases where id = $1 and not_before > now() + interval '30 minutes'`;
      return ((await world.pool.query(sql, [id])).rowCount ?? 0) > 0;
    });
  const refused: UndoOutcome = { kind: 'too_late', failure };

  t('an undo that the network refuses long before its time is tried again, ever less often', async () => {
    const publisher = publishing({});
    const { postId, id } = await schedule(facebook, 600);
    await world.all([id], 'handed_to_platform');
    undoes.set(id, () => refused);
    await cancel(postId, id);
    await restsLong(id);
    assert.ok(times(undone, id) > 1 && times(undone, id) < 8, `${times(undone, id)} calls`);
    assert.deepEqual((await story(id)).slice(-2), ['TargetHandedToPlatform', 'TargetUndoRequested']);
    await publisher.stop();
  });

  t(
    'an undo without an answer is tried again within a quarter of its age, also when its schedule is over',
    async () => {
      const aMinuteOfQuestions = Array.from({ length: 600 }, () => 100);
      const publisher = publishing({ reconcileDelaysMs: aMinuteOfQuestions });
      const { postId, id } = await schedule(facebook, 600);
      await world.all([id], 'handed_to_platform');
      undoes.set(id, () => Promise.reject(new Error('broken')));
      await cancel(postId, id);
      await called(undone, id);
      // Within a call: the rest after it is of the new age, whenever the call began.
      undoes.set(id, async () => {
        undoes.set(id, () => Promise.reject(new Error('broken')));
        await pass(40 * minuteMs);
        throw new Error('broken');
      });
      await anotherCall(undone, id);
      const restSeconds = async () => {
        const sql = 'select extract(epoch from not_before - now())::float8 as rest from ops.work_leases where id = $1';
        return Number((await world.pool.query(sql, [id])).rows[0]?.rest ?? 0);
      };
      await until('it rests', async () => (await restSeconds()) > 30);
      assert.ok((await restSeconds()) < 11 * 60, `${await restSeconds()} s`);
      await publisher.stop();
    },
  );

  t('an undo that was refused is carried out once the network lets it, or failed when its time is near', async () => {
    const publisher = start();
    const later = await schedule(facebook, 30);
    const never = await schedule(facebook, 30);
    for (const { postId, id } of [later, never]) {
      await world.all([id], 'handed_to_platform');
      undoes.set(id, () => refused);
      await cancel(postId, id);
      await called(undone, id, 2);
      assert.equal((await story(id)).at(-1), 'TargetUndoRequested');
    }
    undoes.delete(later.id);
    await world.all([later.id], 'canceled');
    await pass(never.dueAt - clock.now() - minuteMs + 1);
    await until('it has failed', async () => (await story(never.id)).at(-1) === 'TargetUndoFailed');
    await pass(minuteMs);
    await world.all([never.id], 'published');
    assert.equal((await story(never.id)).filter((type) => type === 'TargetUndoFailed').length, 1);
    await publisher.stop();
  });

  /** The network has taken a time whose answer goes lost: what a test does next comes after it. */
  const hasTime = (id: string, dueAt: string) =>
    until('the network has the time', async () => {
      const [create] = await world.sandbox.creates(id);
      return create?.scheduledFor?.toISOString() === dueAt;
    });
  const lostChange = async (really: () => Promise<RescheduleOutcome>): Promise<RescheduleOutcome> => {
    await really();
    return { kind: 'unknown', failure };
  };

  t(
    'a scheduler without a change of time, and one that refuses the time, take the post back and get another',
    async () => {
      for (const how of ['none', 'refuses'] as const) {
        canChange = how !== 'none';
        const publisher = start();
        const { postId, id } = await schedule(youtube, 30);
        await world.all([id], 'handed_to_platform');
        changes.set(id, async () => ({ kind: 'outside_window', failure }));
        const dueAt = await move(postId, id, 60);
        await until('it is handed over again', async () => {
          const now = await world.target(id);
          return now.status === 'handed_to_platform' && now.undo === null && now.common.dueAt === dueAt;
        });
        assert.deepEqual([await there(id), times(changed, id)], [[false, true], how === 'none' ? 0 : 1]);
        assert.ok(!(await story(id)).includes('TargetNativeTimeChanged'));
        await publisher.stop();
        canChange = true;
      }
    },
  );

  t('a change of time without an answer is made again, and no undo takes its place', async () => {
    const publisher = start();
    const { postId, id } = await schedule(facebook, 30);
    await world.all([id], 'handed_to_platform');
    changes.set(id, () => Promise.reject(new Error('broken')));
    const dueAt = await move(postId, id, 60);
    await called(changed, id, 2);
    changes.delete(id);
    await until('it is moved', async () => (await story(id)).at(-1) === 'TargetNativeTimeChanged');
    assert.deepEqual([...new Set(newTimes.get(id))], [dueAt]);
    assert.deepEqual([await there(id), times(undone, id)], [[true], 0]);
    await publisher.stop();
  });

  t('a later time whose answer is lost is waited for, and found as the time of the post', async () => {
    const publisher = start();
    const { postId, id, dueAt } = await schedule(facebook, 30);
    await world.all([id], 'handed_to_platform');
    changes.set(id, lostChange);
    const later = await move(postId, id, 60);
    await called(changed, id);
    await hasTime(id, later);
    const before = times(changed, id);
    await pass(dueAt - clock.now() + settleWindowMs + minuteMs);
    await called(changed, id, before + 1);
    assert.equal((await world.target(id)).status, 'handed_to_platform', (await story(id)).join(' '));
    await pass(Date.parse(later) - clock.now());
    const [published] = await world.all([id], 'published');
    assert.ok(published?.status === 'published');
    assert.deepEqual([published.publishedAt, published.common.dueAt], [later, later]);
    assert.deepEqual((await story(id)).slice(-2), ['TargetNativeTimeChanged', 'TargetOutcomeSettled']);
    assert.equal(await world.created(id), 1);
    await publisher.stop();
  });

  t(
    'around a sooner time whose answer is lost, absence does not make a moved or canceled post ours again',
    async () => {
      const publisher = start();
      const made = [await schedule(facebook, 60), await schedule(youtube, 60)] as const;
      const [moved, canceled] = made;
      await world.all([moved.id, canceled.id], 'handed_to_platform');
      let sooner = '';
      for (const { postId, id } of made) {
        changes.set(id, lostChange);
        sooner = await move(postId, id, 30);
        await called(changed, id);
        await hasTime(id, sooner);
        undoes.set(id, () => Promise.reject(new Error('broken')));
        changes.set(id, () => Promise.reject(new Error('broken')));
        verifies.set(id, () => undecided);
      }
      await pass(Date.parse(sooner) - clock.now());
      for (const { id } of made) verifies.set(id, () => absent);
      await cancel(canceled.postId, canceled.id);
      for (const { id } of made) {
        await anotherCall(asked, id);
        await anotherCall(asked, id);
        assert.equal((await world.target(id)).status, 'handed_to_platform', (await story(id)).join(' '));
      }
      for (const { id } of made) verifies.delete(id);
      await world.all([moved.id, canceled.id], 'published');
      assert.ok((await story(moved.id)).includes('TargetNativeTimeChanged'));
      assert.ok((await story(canceled.id)).includes('TargetUndoFailed'));
      for (const { id } of made) assert.equal(await world.created(id), 1);
      await publisher.stop();
    },
  );

  t('what somebody wants while the network takes a time is told to it next: another time, or the end', async () => {
    const publisher = start();
    const outcomes = world.outcomes();
    for (const wish of ['move', ...allEndings] as const) {
      const own = await world.connect(await world.client(), 'facebook');
      const made = await schedule(own, 30);
      const { postId, id } = made;
      await world.all([id], 'handed_to_platform');
      const gate = Promise.withResolvers<void>();
      changes.set(id, async (really) => {
        const answer = await really();
        await gate.promise;
        return answer;
      });
      const first = await move(postId, id, 60);
      await called(changed, id);
      if (wish !== 'move') await endings[wish]({ ...made, account: own });
      const second = wish === 'move' ? await move(postId, id, 90) : null;
      if (second === null) await until(`it is to be canceled: ${wish}`, async () => !(await isWanted(id)));
      gate.resolve();
      if (second === null) {
        await world.all([id], 'canceled');
        assert.deepEqual([await reasonOf(id), await there(id)], [wish, [false]]);
        continue;
      }
      await until('it is moved', async () => (await story(id)).at(-1) === 'TargetNativeTimeChanged');
      const state = await world.target(id);
      assert.ok(state.status === 'handed_to_platform');
      assert.deepEqual([state.common.dueAt, state.undo], [second, null]);
      assert.deepEqual(new Set(newTimes.get(id)), new Set([first, second]));
      const [create] = await world.sandbox.creates(id);
      assert.equal(create?.scheduledFor?.toISOString(), second);
    }
    await outcomes.stop();
    await publisher.stop();
  });

  t('a network is asked to take back a post with its files: its calls may depend on what they are', async () => {
    const publisher = start();
    const { postId, id } = await schedule(youtube, 30);
    await world.all([id], 'handed_to_platform');
    await cancel(postId, id);
    await world.all([id], 'canceled');
    assert.equal(filesOfUndo.get(id), 1);
    await publisher.stop();
  });

  t(
    'a new content whose answer is lost until the post is out is found as its content, and another is not',
    async () => {
      const publisher = start();
      for (const isTaken of [true, false]) {
        const { postId, id, dueAt } = await schedule(facebook, 30);
        await world.all([id], 'handed_to_platform');
        let isLost = true;
        revises.set(id, async (really) => {
          if (isLost && !isTaken) return { kind: 'unknown', failure };
          const answer = await really();
          return isLost ? { kind: 'unknown', failure } : answer;
        });
        const { state } = await world.store.load(post, postId);
        assert.ok(state.status === 'live');
        const body = { ...state.body, content: `better ${isTaken}` };
        const context = { ...world.context(), now: new Date(clock.now()).toISOString() };
        const wanted = {
          type: 'Revise',
          commandId: context.commandId,
          changed: ['content'],
          body,
          times: null,
        } as const;
        const loaded = await execute(world.store, post, postId, { ...wanted, targetIds: [id] }, context);
        await fanOut(world.store, postId, context, { loaded });
        await until('it was asked for', async () => (asked.get(id) ?? []).length > 0);
        await pass(dueAt - clock.now());
        // It is out, and nobody knows with which content: it is asked for again.
        await anotherCall(asked, id);
        assert.equal((await world.target(id)).status, 'handed_to_platform');
        isLost = false;
        const [published] = await world.all([id], 'published');
        assert.ok(published?.status === 'published');
        assert.equal(published.common.postRevision, isTaken ? 1 : 0);
        const ends = isTaken ? 'TargetNativeRevised' : 'TargetUndoFailed';
        assert.deepEqual((await story(id)).slice(-2), [ends, 'TargetOutcomeSettled']);
        assert.equal(await world.created(id), 1);
      }
      await publisher.stop();
    },
  );

  t('a time that the network refuses near the former one ends as the undo does, and says so', async () => {
    const publisher = start();
    const { postId, id, dueAt } = await schedule(facebook, 30);
    await world.all([id], 'handed_to_platform');
    changes.set(id, async () => refused);
    await move(postId, id, 60);
    await called(changed, id);
    await pass(dueAt - clock.now());
    await world.all([id], 'published');
    assert.deepEqual((await story(id)).slice(-2), ['TargetUndoFailed', 'TargetOutcomeSettled']);
    await publisher.stop();
  });

  t('an expired token is reported once, wherever the network names it', async () => {
    const publisher = start();
    const expired = { ...failure, category: 'reauth_required', code: 'token_dead' } as const;
    const reported = (id: string) =>
      until('the account is reported', async () =>
        (await world.story(`account-${id}`)).includes('AccountReauthRequired'),
      );
    const own = () => world.connect(clientId, 'facebook');

    const unanswered = await own();
    const unsaid = await lose(unanswered);
    verifies.set(unsaid.id, () => ({ ...undecided, failure: expired }));
    await reported(unanswered.id);
    await anotherCall(asked, unsaid.id);

    const unpublished = await own();
    const over = await schedule(unpublished, 30);
    await world.all([over.id], 'handed_to_platform');
    verifies.set(over.id, () => ({ kind: 'failed', failure: expired }));
    await pass(over.dueAt - clock.now());
    await world.all([over.id], 'failed');
    await reported(unpublished.id);

    const silenced = await own();
    const commented = await schedule(silenced, 30, 'hello', 'late [[sandbox:token_death]]');
    await world.all([commented.id], 'handed_to_platform');
    await pass(commented.dueAt - clock.now());
    await world.all([commented.id], 'published');
    await reported(silenced.id);
    assert.equal((await story(commented.id)).at(-1), 'TargetFirstCommentFailed');

    const accounts = [unanswered, unpublished, silenced];
    for (const kind of ['unknown', 'too_late'] as const) {
      const one = await own();
      accounts.push(one);
      const { postId, id } = await schedule(one, 30);
      await world.all([id], 'handed_to_platform');
      undoes.set(id, () => ({ kind, failure: expired }));
      await cancel(postId, id);
      await reported(one.id);
      await anotherCall(undone, id);
      undoes.delete(id);
      await world.all([id], 'canceled');
    }

    const refusing = await own();
    accounts.push(refusing);
    const refusal = await schedule(refusing, 30, 'no [[sandbox:token_death once]]');
    await world.all([refusal.id], 'failed');
    await reported(refusing.id);
    for (const { id } of accounts) {
      assert.deepEqual(await world.story(`account-${id}`), ['AccountConnected', 'AccountReauthRequired']);
    }
    await publisher.stop();
  });
});
