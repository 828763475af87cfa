import { deepEqual, equal, ok } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { approval, type Decision } from '#domain/approval.ts';
import { Rejection } from '#domain/decider.ts';
import { approvalIdOf, targetIdOf } from '#domain/ids.ts';
import { post, statusOf } from '#domain/post/post.ts';
import { target } from '#domain/post-target/target.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { defaultPartitions } from '#schemas/topics.ts';
import { fanOut } from '#services/workflows/fan-out.ts';
import { tendApprovals } from '#services/workflows/posts/approvals.ts';
import { commandContext, openDomain } from '#test/support/domain.ts';
import { Died, mortal } from '#test/support/mortal-store.ts';
import { planned, postBody } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const due = '2026-01-01T00:00:00.000Z';
const submittedBy = { type: 'member', id: 'ann' } as const;
const decidedBy = { type: 'member', id: 'ben' } as const;
const hashOf = (letter: string): string => letter.repeat(64);

/** A post of two targets that waits for its approval; nothing but its own append was made. */
const submitted = async () => {
  const { store, events, codec } = openDomain();
  const postId = randomUUID();
  const clientId = randomUUID();
  const targets = ['a', 'b'].map(() => {
    const accountId = randomUUID();
    return planned({ targetId: targetIdOf(postId, accountId, 1), accountId, clientId, dueAt: due });
  });
  const ids = targets.map(({ targetId }) => targetId);
  const send = (command: Parameters<typeof post.decide>[0]) => execute(store, post, postId, command, commandContext());
  const written = { clientId, createdBy: submittedBy, body: postBody() };
  const submission = { postId, hash: hashOf('a'), submittedBy };
  const plan = { number: 1, targets };
  await send({ type: 'Schedule', commandId: randomUUID(), ...written, plan, submission });
  const revise = (letter: string) =>
    send({
      ...{ type: 'Revise', commandId: randomUUID(), body: postBody({ content: letter }), changed: ['content'] },
      ...{ targetIds: ids, times: null, submission: { ...submission, hash: hashOf(letter) } },
    });
  const decide = (decision: Decision, request = 1) =>
    execute(
      store,
      approval,
      approvalIdOf(postId, request),
      { type: 'Decide', decision, decidedBy, comment: 'Because.' },
      commandContext(),
      { partitionKey: postId },
    );
  const seen = async () => {
    const approvals = await Promise.all([1, 2].map((n) => store.load(approval, approvalIdOf(postId, n))));
    const loaded = await Promise.all(ids.map((id) => store.load(target, id)));
    const { state } = await store.load(post, postId);
    return {
      post: statusOf(state),
      targets: loaded.map((one) => one.state.status),
      approvals: approvals.map((one) => one.state.status),
    };
  };
  /** A process that dies before its append with this number; true: it came to its end. */
  const lives = async (appends: number, work: (mortalStore: DomainStore) => Promise<void>): Promise<boolean> => {
    const mine = new DomainStore(
      mortal(events, appends, async () => undefined),
      codec,
      defaultPartitions,
    );
    try {
      await work(mine);
      return true;
    } catch (error) {
      if (error instanceof Died) return false;
      throw error;
    }
  };
  const fan = () => fanOut(store, postId, commandContext());
  const all = () => events.readAll({ after: null, limit: 10_000 });
  return { store, postId, ids, send, revise, decide, seen, lives, fan, all };
};

const outcomes = {
  approve: { post: 'scheduled', targets: 'pending', approval: 'approved' },
  reject: { post: 'canceled', targets: 'canceled', approval: 'rejected' },
  request_changes: { post: 'draft', targets: 'canceled', approval: 'changes_requested' },
} as const;

suite('approvals', (t) => {
  t('the request is made from the post, and its targets are held from their first append on', async () => {
    const { store, postId, seen, fan, ids, all } = await submitted();
    await fan();
    await tendApprovals(store, postId);
    deepEqual(await seen(), {
      ...{ post: 'pending_approval', targets: ['awaiting_approval', 'awaiting_approval'] },
      approvals: ['pending', 'none'],
    });
    const { events } = await store.load(target, ids[0] ?? '');
    deepEqual(
      events.map(({ type }) => type),
      ['TargetScheduled', 'TargetHeld'],
    );
    const before = (await all()).length;
    await Promise.all([tendApprovals(store, postId), tendApprovals(store, postId)]);
    equal((await all()).length, before, 'a repeat appends nothing');
  });

  for (const decision of ['approve', 'reject', 'request_changes'] as const) {
    t(`${decision}: whenever a process dies, the next one ends what it began`, async () => {
      for (let appends = 0; ; appends += 1) {
        const { store, postId, decide, seen, lives } = await submitted();
        await tendApprovals(store, postId);
        await decide(decision);
        const isDone = await lives(appends, (mine) => tendApprovals(mine, postId));
        await tendApprovals(store, postId);
        const { post: status, targets, approval: decided } = outcomes[decision];
        deepEqual(await seen(), { post: status, targets: [targets, targets], approvals: [decided, 'none'] });
        if (isDone) break;
        ok(appends < 20, 'it never comes to an end');
      }
    });
  }

  t('what was due before the approval is due at once', async () => {
    const { store, postId, ids, decide } = await submitted();
    await tendApprovals(store, postId);
    const approvedAt = (await decide('approve')).appended[0]?.metadata.occurredAt ?? '';
    await tendApprovals(store, postId);
    const { state } = await store.load(target, ids[0] ?? '');
    ok(state.status === 'pending' && state.common.dueAt === (approvedAt > due ? approvedAt : due));
  });

  t('a revise withdraws the request, wherever a process dies; the former approval releases nothing', async () => {
    for (const isApproved of [false, true]) {
      for (let appends = 0; ; appends += 1) {
        const { store, postId, revise, decide, seen, lives, fan } = await submitted();
        await tendApprovals(store, postId);
        // Approved, and then revised before the approval was carried out.
        if (isApproved) await decide('approve');
        await revise('b');
        const isDone = await lives(appends, async (mine) => {
          await fanOut(mine, postId, commandContext());
          await tendApprovals(mine, postId);
        });
        await fan();
        await tendApprovals(store, postId);
        deepEqual(await seen(), {
          ...{ post: 'pending_approval', targets: ['awaiting_approval', 'awaiting_approval'] },
          approvals: ['withdrawn', 'pending'],
        });
        await decide('approve', 2);
        await tendApprovals(store, postId);
        deepEqual((await seen()).targets, ['pending', 'pending']);
        if (isDone) break;
        ok(appends < 20, 'it never comes to an end');
      }
    }
  });

  t('a revise of a released post holds its targets again, in the append that changes them', async () => {
    const { store, postId, ids, revise, decide, seen, fan } = await submitted();
    await tendApprovals(store, postId);
    await decide('approve');
    await tendApprovals(store, postId);
    await revise('b');
    await fan();
    const { events } = await store.load(target, ids[0] ?? '');
    const [revised, held] = events.slice(-2);
    deepEqual([revised?.type, held?.type], ['TargetRevised', 'TargetHeld']);
    equal(revised?.metadata.commandId, held?.metadata.commandId);
    await tendApprovals(store, postId);
    deepEqual((await seen()).approvals, ['withdrawn', 'pending']);
  });

  t('a post that is deleted needs no decision: the request is withdrawn, and an approval comes too late', async () => {
    for (const isApproved of [false, true]) {
      const { store, postId, ids, send, decide, seen, fan } = await submitted();
      await tendApprovals(store, postId);
      if (isApproved) await decide('approve');
      await send({ type: 'Delete', unsettled: ids.map((targetId) => ({ targetId, appliedRevision: 0 })) });
      await tendApprovals(store, postId);
      await fan();
      const { targets, approvals } = await seen();
      deepEqual(
        [targets, approvals],
        [
          ['canceled', 'canceled'],
          ['withdrawn', 'none'],
        ],
      );
    }
  });

  t('a release with another content, or by an older request, is superseded', async () => {
    const { postId, send, revise } = await submitted();
    await revise('b');
    for (const [request, letter] of [
      [1, 'a'],
      [2, 'a'],
      [3, 'b'],
    ] as const) {
      const approvalId = approvalIdOf(postId, request);
      const decided = { by: { type: 'member', id: 'm' }, comment: null } as const;
      const release = { type: 'Release', approvalId, hash: hashOf(letter), decided } as const;
      const refused = await send(release).catch((error: unknown) => error);
      ok(refused instanceof Rejection && refused.code === 'approval_superseded');
    }
  });
});
