import { deepEqual, equal, ok } from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { keyedIdOf, targetIdOf } from '#domain/ids.ts';
import { post } from '#domain/post/post.ts';
import { target } from '#domain/post-target/target.ts';
import { PostgresEventStore } from '#infra/postgres/event-store.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { defaultPartitions } from '#schemas/topics.ts';
import { fanOut } from '#services/workflows/fan-out.ts';
import { built } from '#test/support/bundles.ts';
import { commandContext, MemoryDataKeys } from '#test/support/domain.ts';
import { testDatabase } from '#test/support/postgres.ts';
import { failure, planned, postBody } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const main = path.join(import.meta.dirname, 'caller.ts');

interface Ended {
  readonly signal: string | null;
  readonly answer: string;
}

suite('a process killed with -9 between two durable effects', { drawn: true, costs: 4 }, (t) => {
  let events: PostgresEventStore;
  let store: DomainStore;
  let url: string;
  t.before(async () => {
    url = (await testDatabase()).url;
    events = await PostgresEventStore.open({ url });
    store = new DomainStore(events, new EventCodec(new MemoryDataKeys()), defaultPartitions);
  });
  t.after(() => events?.close());

  const run = (order: Readonly<Record<string, string>>, fault = ''): Promise<Ended> =>
    new Promise((resolve, reject) => {
      const env = { ...process.env, CALLER: JSON.stringify({ url, ...order }), POSTLINE_FAULT: fault };
      execFile(process.execPath, [built(main)], { env, timeout: 30_000 }, (error, answer, errors) => {
        if (error === null || error.signal === 'SIGKILL') resolve({ signal: error?.signal ?? null, answer });
        else reject(new Error(errors, { cause: error }));
      });
    });
  const dies = async (order: Readonly<Record<string, string>>, fault: string) =>
    deepEqual(await run(order, fault), { signal: 'SIGKILL', answer: '' });

  const scheduledPost = async (size: number) => {
    const postId = randomUUID();
    const clientId = randomUUID();
    const targets = Array.from({ length: size }, () => {
      const accountId = randomUUID();
      return planned({ targetId: targetIdOf(postId, accountId, 1), accountId, clientId });
    });
    const plan = { number: 1, targets };
    const createdBy = { type: 'member', id: 'ann' };
    const context = commandContext();
    const { commandId } = context;
    await execute(
      store,
      post,
      postId,
      { type: 'Schedule', commandId, clientId, createdBy, body: postBody(), plan },
      context,
    );
    const ids = targets.map(({ targetId }) => targetId);
    const types = async () =>
      (await Promise.all(ids.map((id) => store.readStream(`target-${id}`)))).map((one) => one.map(({ type }) => type));
    return { postId, ids, types };
  };

  t('between two targets: the next process completes the plan, and each target exists once', async () => {
    const { postId, types } = await scheduledPost(60);
    await dies({ call: 'fanOut', postId }, 'fanout:between-targets');
    const left = (await types()).filter((one) => one.length > 0).length;
    process.stdout.write(`died with ${left} of 60 targets written\n`);
    ok(left >= 1 && left < 60, `${left} targets`);
    equal((await run({ call: 'fanOut', postId })).answer, '60');
    deepEqual(await types(), Array(60).fill(['TargetScheduled']));
  });

  t('between two targets of an intent', async () => {
    const { postId, ids, types } = await scheduledPost(60);
    await fanOut(store, postId, commandContext());
    const cancel = { type: 'CancelTargets', targetIds: ids, reason: 'post_canceled' } as const;
    await execute(store, post, postId, cancel, commandContext());
    await dies({ call: 'fanOut', postId }, 'fanout:between-intents');
    equal((await run({ call: 'fanOut', postId })).answer, '60');
    deepEqual(await types(), Array(60).fill(['TargetScheduled', 'TargetCanceled']));
  });

  t(
    'between two targets of a revision, of which every second is tried again: never one without the other',
    async () => {
      const { postId, ids, types } = await scheduledPost(60);
      await fanOut(store, postId, commandContext());
      const claim = { attempt: 1, takeover: 0 };
      const failed = ids.filter((_id, index) => index % 2 === 1);
      for (const id of failed) {
        const options = { partitionKey: postId };
        await execute(store, target, id, { type: 'Start', now: '2099-01-01T00:00:00.000Z' }, commandContext(), options);
        await execute(store, target, id, { type: 'RecordFailed', ...claim, failure }, commandContext(), options);
      }
      const body = postBody({ content: 'newer' });
      const revise = {
        type: 'Revise',
        commandId: randomUUID(),
        body,
        changed: ['content'],
        targetIds: ids,
        times: null,
      } as const;
      await execute(store, post, postId, revise, commandContext());
      await dies({ call: 'fanOut', postId }, 'fanout:between-intents');
      for (const one of await types())
        ok(['TargetScheduled', 'TargetFailed', 'TargetRevised', 'TargetRequeued'].includes(one.at(-1) ?? ''));
      equal((await run({ call: 'fanOut', postId })).answer, '60');
      const again = ['TargetScheduled', 'TargetPublishStarted', 'TargetFailed', 'TargetRevised', 'TargetRequeued'];
      const left = await types();
      deepEqual(
        left.filter((_one, index) => index % 2 === 1),
        Array(30).fill(again),
      );
      deepEqual(
        left.filter((_one, index) => index % 2 === 0),
        Array(30).fill(['TargetScheduled', 'TargetRevised']),
      );
    },
  );

  for (const [fault, before] of [
    ['fanout:before-skips', 0],
    ['fanout:after-skips', 2],
  ] as const) {
    t(`${fault}: the next process records each skip once`, async () => {
      const { postId, ids } = await scheduledPost(3);
      await fanOut(store, postId, commandContext());
      const [publishing = '', canceled = ''] = ids;
      const options = { partitionKey: postId };
      await execute(
        store,
        target,
        publishing,
        { type: 'Start', now: '2099-01-01T00:00:00.000Z' },
        commandContext(),
        options,
      );
      await execute(
        store,
        target,
        canceled,
        { type: 'Cancel', reason: 'requested', postRevision: null, now: '2026-01-01T00:00:00.000Z' },
        commandContext(),
        options,
      );
      const revise = {
        type: 'Revise',
        commandId: randomUUID(),
        body: postBody(),
        changed: [],
        targetIds: ids,
        times: null,
      } as const;
      await execute(store, post, postId, revise, commandContext());
      const skips = async () =>
        (await store.readStream(`post-${postId}`))
          .filter(({ type }) => type === 'PostTargetsSkipped')
          .map(({ data }) => data.reason);
      await dies({ call: 'fanOut', postId }, fault);
      equal((await skips()).length, before);
      equal((await run({ call: 'fanOut', postId })).answer, '3');
      deepEqual(await skips(), ['publishing', 'canceled']);
    });
  }

  for (const [fault, before] of [
    ['request:after-accept', ['TargetScheduled']],
    ['request:after-effects', ['TargetScheduled', 'TargetRescheduled']],
  ] as const) {
    t(`${fault}: a repeat carries out the accepted request once`, async () => {
      const { postId, ids, types } = await scheduledPost(1);
      await fanOut(store, postId, commandContext());
      const [targetId = ''] = ids;
      const request = `request-${keyedIdOf(commandContext().workspaceId, 'reschedulePostTarget', fault)}`;
      const order = { call: 'reschedule', postId, targetId, key: fault };
      await dies({ ...order, dueAt: '2027-01-01T00:00:00.000Z' }, fault);
      deepEqual(await types(), [before]);
      const again = await run({ ...order, dueAt: '2028-01-01T00:00:00.000Z' });
      deepEqual(JSON.parse(again.answer), { result: 1, replayed: true });
      const { state } = await store.load(target, targetId);
      equal(state.status === 'pending' && state.common.dueAt, '2027-01-01T00:00:00.000Z');
      deepEqual(await types(), [['TargetScheduled', 'TargetRescheduled']]);
      deepEqual(
        (await store.readStream(request)).map(({ type }) => type),
        ['RequestAccepted', 'RequestCompleted'],
      );
    });
  }
});
