import { deepEqual, equal, notEqual, ok, rejects } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { EventStoreError } from '#contracts/ports/event-store.ts';
import { approvalIdOf, targetIdOf } from '#domain/ids.ts';
import { post } from '#domain/post/post.ts';
import { type TargetCommand, target } from '#domain/post-target/target.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import type { PlannedTarget, TargetTime } from '#schemas/target.ts';
import { defaultPartitions, partitionOf } from '#schemas/topics.ts';
import { fanOut, inGroups } from '#services/workflows/fan-out.ts';
import { commandContext, openDomain } from '#test/support/domain.ts';
import { failure, planned, postBody } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const due = '2026-01-01T00:00:00.000Z';
const newer = postBody({ content: 'newer' });

const scheduled = async (size: number, { store, ...domain } = openDomain()) => {
  const postId = randomUUID();
  const clientId = randomUUID();
  const targets = Array.from({ length: size }, () => {
    const accountId = randomUUID();
    return planned({ targetId: targetIdOf(postId, accountId, 1), accountId, clientId, dueAt: due });
  });
  const context = commandContext();
  const createdBy = { type: 'member', id: 'ann' };
  const command = {
    type: 'Schedule',
    commandId: context.commandId,
    clientId,
    createdBy,
    body: postBody(),
    plan: { number: 1, targets },
  } as const;
  const loaded = await execute(store, post, postId, command, context);
  const ids = targets.map(({ targetId }) => targetId);
  const statuses = () =>
    Promise.all(ids.map(async (id) => (await store.load(target, id)).state.status)) as Promise<string[]>;
  const all = () => domain.events.readAll({ after: null, limit: 10_000 });
  const on = (id: string, ...commands: readonly TargetCommand[]) =>
    commands.reduce(
      (before, one) =>
        before.then(
          async () => void (await execute(store, target, id, one, commandContext(), { partitionKey: postId })),
        ),
      Promise.resolve(),
    );
  const revise = (targetIds: readonly string[], times: readonly TargetTime[] | null = null) =>
    execute(
      store,
      post,
      postId,
      { type: 'Revise', commandId: randomUUID(), body: newer, changed: ['content'], targetIds, times },
      commandContext(),
    );
  const cancel = (targetIds: readonly string[]) =>
    execute(store, post, postId, { type: 'CancelTargets', targetIds, reason: 'post_canceled' }, commandContext());
  return { ...domain, store, postId, ids, loaded, context, statuses, all, on, cancel, revise };
};

const start: TargetCommand = { type: 'Start', now: due };
const claim = { attempt: 1, takeover: 0 };
const published: TargetCommand = {
  type: 'RecordPublished',
  ...claim,
  externalId: '1',
  permalink: null,
  publishedAt: due,
};

suite('fan-out', (t) => {
  t('creates each target of the plan, partitioned by its post', async () => {
    const { store, postId, ids, context, loaded, statuses, all } = await scheduled(10);
    const positions = new Map<string, bigint>();
    const fanned = await fanOut(store, postId, context, { loaded, positions });
    deepEqual(await statuses(), Array(10).fill('pending'));
    deepEqual([...fanned.targets.keys()].sort(), [...ids].sort());
    const written = [...fanned.targets.values()].flatMap((one) => one.events);
    equal(written.length, 10);
    equal(positions.get(`posts-${partitionOf(postId, defaultPartitions)}`), (await all()).at(-1)?.position);
    for (const { metadata } of written) equal(metadata.partitionKey, postId);
    const [plan] = loaded.events;
    for (const one of fanned.targets.values()) {
      equal(one.events[0]?.metadata.$causationId, plan?.id);
      deepEqual(one.state.status !== 'none' && [one.state.common.postId, one.state.common.postRevision], [postId, 0]);
    }
  });

  t('a second run appends nothing, whichever process runs it', async () => {
    const { store, postId, context, loaded, all } = await scheduled(10);
    await fanOut(store, postId, context, { loaded });
    const before = await all();
    await fanOut(store, postId, context, { loaded });
    await fanOut(store, postId, commandContext());
    deepEqual(await all(), before);
  });

  t('creates each target once when twenty processes run at once', async () => {
    const { store, postId, loaded, all } = await scheduled(10);
    await Promise.all(
      Array.from({ length: 20 }, (_, n) => fanOut(store, postId, commandContext(), n % 2 ? { loaded } : {})),
    );
    equal((await all()).length, 11);
  });

  t('writes the same events whichever process carries the plan out, and at any time', async () => {
    const one = await scheduled(3);
    await fanOut(one.store, one.postId, one.context, { loaded: one.loaded });
    const written = (await one.all()).slice(1);
    // The same post in another store, its targets made by the sweeper an hour later.
    const other = openDomain();
    const [plan] = await one.events.read(`post-${one.postId}`);
    if (plan === undefined) throw new Error('no plan');
    await other.events.append(`post-${one.postId}`, 'none', [{ ...plan, partitionKey: one.postId }]);
    const sweeper = commandContext({ actor: { type: 'service', id: 'sweeper' }, now: '2026-01-01T01:00:00.000Z' });
    await fanOut(new DomainStore(other.events, one.codec, defaultPartitions), one.postId, sweeper);
    const swept = (await other.events.readAll({ after: null, limit: 100 })).slice(1);
    const facts = (events: typeof written) =>
      events.map(({ stream, id, data, metadata }) => [stream, id, String(data), String(Buffer.from(metadata))]).sort();
    deepEqual(facts(swept), facts(written));
  });

  t('shows the present state of a target, not its first state', async () => {
    const { store, postId, context, loaded, ids, on } = await scheduled(2);
    await fanOut(store, postId, context, { loaded });
    const [first = '', second = ''] = ids;
    await on(first, start, published);
    const { targets } = await fanOut(store, postId, commandContext());
    equal(targets.get(first)?.state.status, 'published');
    equal(targets.get(first)?.revision, 2);
    equal(targets.get(first)?.events.length, 3);
    equal(targets.get(second)?.state.status, 'pending');
  });

  t('does nothing for a draft or an unknown post', async () => {
    const { store } = openDomain();
    const { targets } = await fanOut(store, randomUUID(), commandContext());
    equal(targets.size, 0);
  });
});

suite('intents', (t) => {
  t('are applied to the targets they name, once', async () => {
    const { store, postId, ids, context, loaded, statuses, cancel, all } = await scheduled(4);
    await fanOut(store, postId, context, { loaded });
    const [first = '', second = ''] = ids;
    const intent = await cancel([first, second]);
    const { targets } = await fanOut(store, postId, commandContext());
    deepEqual(await statuses(), ['canceled', 'canceled', 'pending', 'pending']);
    const canceled = targets.get(first)?.events.at(-1);
    deepEqual(canceled?.data, { reason: 'post_canceled', postRevision: 1 });
    equal(canceled?.metadata.$causationId, intent.appended[0]?.id);
    const before = await all();
    await fanOut(store, postId, commandContext());
    deepEqual(await all(), before);
  });

  t('create targets that do not exist yet', async () => {
    const { store, postId, ids, statuses, cancel } = await scheduled(3);
    await cancel(ids);
    await fanOut(store, postId, commandContext());
    deepEqual(await statuses(), ['canceled', 'canceled', 'canceled']);
  });

  t('are skipped by a target that is publishing or settled, and never applied to it later', async () => {
    const { store, postId, ids, context, loaded, statuses, cancel, on, all } = await scheduled(4);
    await fanOut(store, postId, context, { loaded });
    const [publishing = '', settled = '', limited = '', canceled = ''] = ids;
    await on(publishing, start);
    await on(settled, start, published);
    await on(limited, start, {
      type: 'RecordRateLimited',
      ...claim,
      retryAt: due,
      failure,
      policy: { deferDelaysMs: [], maxRateLimits: 1, jitter: 0 },
    });
    await on(canceled, { type: 'Cancel', reason: 'requested', postRevision: null, now: '2026-01-01T00:00:00.000Z' });
    await cancel(ids);
    await fanOut(store, postId, commandContext());
    deepEqual(await statuses(), ['publishing', 'published', 'canceled', 'canceled']);
    const { state, events } = await store.load(post, postId);
    equal(events.at(-1)?.type, 'PostTargetsSkipped');
    deepEqual(
      state.status === 'live' && [...(state.intents[0]?.skipped ?? [])].sort(),
      [publishing, settled, canceled].sort(),
    );

    // It fails and somebody retries it: open again, and what skipped it then does not reach it now.
    await on(
      publishing,
      { type: 'RecordFailed', ...claim, failure },
      { type: 'Retry', commandId: randomUUID(), now: due },
    );
    const before = await all();
    await fanOut(store, postId, commandContext());
    deepEqual(await all(), before);
    deepEqual(await statuses(), ['pending', 'published', 'canceled', 'canceled']);
  });

  t('are skipped once when many carry them out at once', async () => {
    const { store, postId, ids, context, loaded, cancel, on } = await scheduled(6);
    await fanOut(store, postId, context, { loaded });
    const [first = ''] = ids;
    await on(first, start);
    await cancel(ids);
    await Promise.all(Array.from({ length: 10 }, () => fanOut(store, postId, commandContext())));
    const types = (await store.readStream(`post-${postId}`)).map(({ type }) => type);
    deepEqual(types, ['PostScheduled', 'PostTargetsChanged', 'PostTargetsSkipped']);
    notEqual((await store.load(target, first)).state.status, 'canceled');
  });

  t('revise the targets they name, each with its own time, and try failed ones again', async () => {
    const { store, postId, ids, context, loaded, statuses, revise, on, all } = await scheduled(4);
    await fanOut(store, postId, context, { loaded });
    const [first = '', second = '', third = ''] = ids;
    await on(second, start, { type: 'RecordFailed', ...claim, failure });
    const time = (dueAt: string): TargetTime => ({
      dueAt,
      scheduledLocal: null,
      timezone: 'UTC',
      jitterSeconds: 0,
      scheduleMode: 'managed',
      scheduleModeReason: null,
    });
    const later = ['2027-01-01T00:00:00.000Z', '2027-01-02T00:00:00.000Z'];
    const intent = await revise([first, second], later.map(time));
    const { targets } = await fanOut(store, postId, commandContext());
    deepEqual(await statuses(), ['pending', 'pending', 'pending', 'pending']);
    const bound = ids.map((id) => {
      const state = targets.get(id)?.state;
      return state === undefined || state.status === 'none' ? null : [state.common.postRevision, state.common.dueAt];
    });
    deepEqual(bound, [
      [1, later[0]],
      [1, later[1]],
      [0, due],
      [0, due],
    ]);
    const types = (await store.readStream(`target-${second}`)).map(({ type }) => type);
    deepEqual(types.slice(-2), ['TargetRevised', 'TargetRequeued']);
    equal(targets.get(first)?.events.at(-1)?.metadata.$causationId, intent.appended[0]?.id);
    const before = await all();
    await fanOut(store, postId, commandContext());
    deepEqual(await all(), before);

    await revise([first, third]);
    await fanOut(store, postId, commandContext());
    const again = await store.load(target, first);
    deepEqual(again.state.status !== 'none' && [again.state.common.postRevision, again.state.common.dueAt], [
      2,
      later[0],
    ]);
  });

  t(
    'a revision that comes too late for a target is recorded with its reason, and never reaches the target',
    async () => {
      const { store, postId, ids, context, loaded, revise, on, all } = await scheduled(4);
      await fanOut(store, postId, context, { loaded });
      const [publishing = '', settled = '', canceled = '', open = ''] = ids;
      await on(publishing, start);
      await on(settled, start, published);
      await on(canceled, { type: 'Cancel', reason: 'requested', postRevision: null, now: '2026-01-01T00:00:00.000Z' });
      await revise(ids);
      const fanned = await fanOut(store, postId, commandContext());
      const skips = fanned.post.events.filter(({ type }) => type === 'PostTargetsSkipped').map(({ data }) => data);
      deepEqual(skips, [
        { intentRevision: 1, targetIds: [publishing], reason: 'publishing' },
        { intentRevision: 1, targetIds: [settled], reason: 'published' },
        { intentRevision: 1, targetIds: [canceled], reason: 'canceled' },
      ]);
      equal(fanned.targets.get(publishing)?.state.status, 'publishing');
      const state = fanned.targets.get(open)?.state;
      equal(state?.status === 'pending' && state.common.postRevision, 1);

      await on(
        publishing,
        { type: 'RecordFailed', ...claim, failure },
        { type: 'Retry', commandId: randomUUID(), now: due },
      );
      const before = await all();
      await fanOut(store, postId, commandContext());
      deepEqual(await all(), before);
    },
  );

  t('a revision does not reach a failed thread of which a segment is out, nor a rate-limited target', async () => {
    const { store, postId, ids, context, loaded, revise, on } = await scheduled(2);
    await fanOut(store, postId, context, { loaded });
    const [thread = '', limited = ''] = ids;
    const segment = { index: 0, of: 2 };
    const crossed = { type: 'Checkpoint', ...claim, step: 'boundary', data: {}, deadline: due, segment } as const;
    await on(thread, start, crossed, { ...published, segment }, { type: 'RecordFailed', ...claim, failure });
    const policy = { deferDelaysMs: [], maxRateLimits: 1, jitter: 0 };
    await on(limited, start, { type: 'RecordRateLimited', ...claim, retryAt: due, failure, policy });
    await revise(ids);
    const { post: left } = await fanOut(store, postId, commandContext());
    deepEqual(
      left.events.filter(({ type }) => type === 'PostTargetsSkipped').map(({ data }) => [data.targetIds, data.reason]),
      [
        [[thread], 'segment_published'],
        [[limited], 'rate_limited'],
      ],
    );
  });
});

suite('the events of a fan-out', (t) => {
  const bob = { type: 'member', id: 'bob' } as const;
  const monday = '2026-01-05T08:00:00.000Z';
  const sweeper = () => commandContext({ actor: { type: 'service', id: 'sweeper' }, now: '2026-02-01T00:00:00.000Z' });
  const clientId = randomUUID();
  const written = { clientId, createdBy: { type: 'member', id: 'ann' }, body: postBody() } as const;
  const hash = 'a'.repeat(64);
  const submission = { hash, submittedBy: bob };
  const planOfOne = (postId: string, over: Partial<PlannedTarget> = {}) => {
    const accountId = randomUUID();
    const targetId = targetIdOf(postId, accountId, 1);
    return { number: 1, targets: [planned({ targetId, accountId, clientId, dueAt: due, ...over })] };
  };
  /** A post whose targets wait for its approval. */
  const held = async () => {
    const domain = openDomain();
    const postId = randomUUID();
    const plan = planOfOne(postId);
    const command = {
      ...({ type: 'Schedule', commandId: randomUUID(), ...written, plan } as const),
      submission: { postId, ...submission },
    } as const;
    const loaded = await execute(domain.store, post, postId, command, commandContext());
    return { ...domain, postId, loaded, targetId: plan.targets[0]?.targetId ?? '' };
  };
  const writtenBy = (event: DecodedEvent | undefined) => [event?.metadata.actor, event?.metadata.occurredAt];

  t('name who planned the post and when, also behind a draft of somebody else', async () => {
    const { store } = openDomain();
    const postId = randomUUID();
    const draft = { type: 'Draft', ...written } as const;
    await execute(store, post, postId, draft, commandContext());
    equal((await fanOut(store, postId, sweeper())).targets.size, 0);
    const command = { type: 'Schedule', commandId: randomUUID(), ...written, plan: planOfOne(postId) } as const;
    await execute(store, post, postId, command, commandContext({ actor: bob, now: monday }));
    const { targets } = await fanOut(store, postId, sweeper());
    for (const { events } of targets.values()) deepEqual(writtenBy(events[0]), [bob, monday]);
    equal(targets.size, 1);
  });

  t('name who canceled and when, whichever process carries it out', async () => {
    const { store, postId, ids, revise } = await scheduled(2);
    const [first = ''] = ids;
    await revise(ids);
    const command = { type: 'CancelTargets', targetIds: [first], reason: 'post_canceled' } as const;
    await execute(store, post, postId, command, commandContext({ actor: bob, now: monday }));
    const { targets } = await fanOut(store, postId, sweeper());
    deepEqual(writtenBy(targets.get(first)?.events.at(-1)), [bob, monday]);
  });

  t('of a plan that was just written, held or not, are appended without a read', async () => {
    const one = await scheduled(3);
    const other = await held();
    for (const { store, postId, loaded, events } of [one, other]) {
      const read: string[] = [];
      const reading = events.read.bind(events);
      events.read = (stream, ...rest) => {
        read.push(stream);
        return reading(stream, ...rest);
      };
      await fanOut(store, postId, commandContext(), { loaded });
      deepEqual(
        read.filter((stream) => stream.startsWith('target-')),
        [],
      );
      const asked = events.asked.filter(({ stream }) => stream.startsWith('target-'));
      deepEqual(new Set(asked.map(({ expected }) => expected)), new Set(['none']));
    }
    const { store, postId } = other;
    const [target] = (await fanOut(store, postId, commandContext())).targets.values();
    equal(target?.state.status, 'awaiting_approval');
  });

  t('of an older plan are not taken for new ones: the caller sees the present state of its targets', async () => {
    const { store, postId, ids, context, loaded, on, cancel } = await scheduled(2);
    await fanOut(store, postId, context, { loaded });
    const [first = '', second = ''] = ids;
    await on(first, start, published);
    const later = await cancel([second]);
    const { targets } = await fanOut(store, postId, commandContext(), { loaded: later });
    const seen = targets.get(first);
    deepEqual([seen?.state.status, seen?.events.length], ['published', 3]);
  });

  t('release what waited for the approval, at the instant of the decision', async () => {
    const { store, postId, targetId } = await held();
    const approvalId = approvalIdOf(postId, 1);
    await fanOut(store, postId, sweeper());
    const command = { type: 'Release', approvalId, hash, decided: { by: bob, comment: 'Good.' } } as const;
    await execute(store, post, postId, command, commandContext({ now: monday }));
    const { targets } = await fanOut(store, postId, sweeper());
    const { state } = targets.get(targetId) ?? {};
    // It was due before: now it is due at once.
    deepEqual(state?.status === 'pending' && [state.common.dueAt, state.common.askedTime?.dueAt], [monday, due]);
  });

  t(
    'give a target back to this service where the revised post has a setting that its network does not schedule',
    async () => {
      const { store } = openDomain();
      const postId = randomUUID();
      const plan = planOfOne(postId, {
        platform: 'youtube',
        dueAt: '2026-03-01T00:00:00.000Z',
        scheduleMode: 'native',
      });
      const targetIds = plan.targets.map(({ targetId }) => targetId);
      const schedule = { type: 'Schedule', commandId: randomUUID(), ...written, plan } as const;
      await execute(store, post, postId, schedule, commandContext());
      const body = postBody({
        ...{ scheduleMode: 'native', schedule: { ...postBody().schedule, type: 'at' } },
        variants: [
          {
            platform: 'youtube',
            contentOverride: null,
            mediaIdsOverride: null,
            overrides: { privacyStatus: 'private' },
          },
        ],
      });
      const revise = {
        type: 'Revise',
        commandId: randomUUID(),
        body,
        changed: ['variants'],
        targetIds,
        times: null,
      } as const;
      await execute(store, post, postId, revise, commandContext());
      const [seen] = (await fanOut(store, postId, sweeper())).targets.values();
      deepEqual(
        seen?.state.status === 'pending' && [seen.state.common.scheduleMode, seen.state.common.scheduleModeReason],
        ['managed', 'setting_not_schedulable'],
      );
    },
  );

  t('a target whose worker is faster is skipped, and the caller sees what it does', async () => {
    const { store, postId, ids, context, loaded, cancel, on, events, all } = await scheduled(1);
    await fanOut(store, postId, context, { loaded });
    const [only = ''] = ids;
    await cancel(ids);
    const append = events.append.bind(events);
    let isFirst = true;
    events.append = async (...asked) => {
      if (isFirst) {
        isFirst = false;
        await on(only, start);
      }
      return append(...asked);
    };
    const positions = new Map<string, bigint>();
    const fanned = await fanOut(store, postId, commandContext(), { positions });
    equal(fanned.targets.get(only)?.state.status, 'publishing');
    deepEqual(fanned.post.events.at(-1)?.data, { intentRevision: 1, targetIds: ids, reason: 'publishing' });
    const topic = `posts-${partitionOf(postId, defaultPartitions)}`;
    equal(positions.get(topic), (await all()).at(-1)?.position);
  });

  t('a store that is away while an intent is carried out is no reason to skip a target', async () => {
    const { store, postId, ids, context, loaded, cancel, events, statuses } = await scheduled(1);
    await fanOut(store, postId, context, { loaded });
    await cancel(ids);
    events.append = async () => {
      throw new EventStoreError('unavailable', 'away');
    };
    const waiting = commandContext({ giveUpAt: performance.now() });
    await rejects(fanOut(store, postId, waiting), { name: 'Unavailable' });
    deepEqual(await statuses(), ['pending']);
  });

  t('are appended in groups, each when the one before has ended', async () => {
    const seen: string[] = [];
    await inGroups(
      [1, 2, 3, 4, 5],
      async (item) => {
        seen.push(`begin ${item}`);
        await Promise.resolve();
        seen.push(`end ${item}`);
      },
      2,
    );
    deepEqual(seen, [
      ...['begin 1', 'begin 2', 'end 1', 'end 2', 'begin 3', 'begin 4', 'end 3', 'end 4'],
      ...['begin 5', 'end 5'],
    ]);
  });
});

// What waits or takes long stands last: a run that asks only whether a test fails ends before it.
suite('fan-out that is interrupted, late or large', (t) => {
  t('completes a fan-out that a crash interrupted', async () => {
    const { store, postId, ids, context, loaded, statuses, events, all } = await scheduled(5);
    for (let n = 0; n < 5 * 6; n += 1) events.failNext('unavailable');
    await fanOut(store, postId, context, { loaded }).catch(() => undefined);
    equal((await all()).length, 1);
    const again = await fanOut(store, postId, commandContext());
    equal(again.targets.size, ids.length);
    deepEqual(await statuses(), Array(5).fill('pending'));
  });

  t('ends at the deadline of the waiting caller', async () => {
    const { store, postId, context, loaded, events } = await scheduled(2);
    for (let n = 0; n < 2 * 6; n += 1) events.failNext('unavailable');
    const before = events.asked.length;
    const waiting = { ...context, giveUpAt: performance.now() };
    await rejects(fanOut(store, postId, waiting, { loaded }), { name: 'Unavailable' });
    ok(events.asked.length - before <= 2 * 4, String(events.asked.length - before));
  });

  t('takes a plan of five hundred targets', async () => {
    const { store, postId, context, loaded, all } = await scheduled(500);
    const started = performance.now();
    const { targets } = await fanOut(store, postId, context, { loaded });
    equal(targets.size, 500);
    equal((await all()).length, 501);
    await fanOut(store, postId, commandContext());
    equal((await all()).length, 501);
    process.stdout.write(`fan-out of 500 targets, twice: ${Math.round(performance.now() - started)} ms\n`);
  });
});
