import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { account } from '#domain/account.ts';
import { apikey } from '#domain/apikey.ts';
import { approval } from '#domain/approval.ts';
import { client } from '#domain/client.ts';
import { approvalIdOf, recycledPostIdOf } from '#domain/ids.ts';
import { type LivePost, post, statusOf } from '#domain/post/post.ts';
import { type RecycleCommand, recycleLeadMs } from '#domain/post/post-recycle.ts';
import { type TargetCommand, target } from '#domain/post-target/target.ts';
import { type WorkspaceCommand, workspace } from '#domain/workspace.ts';
import { view } from '#projections/shapes.ts';
import { publicTypesOf } from '#projections/webhooks/types.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { createLogger } from '#runtime/process/telemetry.ts';
import { holdPublishing, resumePublishing } from '#runtime/work/publishing-hold.ts';
import type { PostBody } from '#schemas/post.ts';
import { sweepQuotas } from '#services/outcomes/quotas.ts';
import { recyclePosts } from '#services/outcomes/recycles.ts';
import { tendApprovals } from '#services/workflows/posts/approvals.ts';
import { recordOutcomes } from '#services/workflows/posts/outcomes.ts';
import { abandonMs } from '#services/workflows/quota/give-back.ts';
import { Mortals } from '#test/support/mortals.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { type Account, PublishingWorld } from '#test/support/publishing.ts';
import { failure } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const script = fileURLToPath(new URL('./recycles-process.ts', import.meta.url));
const dayMs = 86_400_000;
const keyId = randomUUID();
const setBy = { type: 'apikey', id: keyId } as const;
/** The origins are out an hour ago; the clock of the children is so far ahead. */
const childAheadMs = dayMs;
const neverAborted = new AbortController().signal;

type SetRecycle = Extract<RecycleCommand, { type: 'SetRecycle' }>;

suite('copies of recycled posts', { timeoutMs: 180_000 }, (t) => {
  let world: PublishingWorld;
  let clientId: string;
  let accounts: readonly Account[];
  const logger = createLogger('test', 'silent');
  const mortals = new Mortals(script, () => [world.url, String(childAheadMs)]);

  const [ownerId, managerId] = [randomUUID(), randomUUID()];
  const ofTeam = (command: WorkspaceCommand) =>
    execute(world.store, workspace, world.workspaceId, command, world.context());
  const keyOf = (id: string, memberId: string) => {
    const key = {
      name: 'k',
      hash: '0'.repeat(64),
      prefix: 'sk_live_0000',
      scopes: ['posts.compose'],
      mode: 'live',
    } as const;
    const now = new Date().toISOString();
    const expiresAt = new Date(Date.now() + dayMs).toISOString();
    const command = { type: 'Create', now, memberId, expiresAt, clientIds: null, ...key } as const;
    return execute(world.store, apikey, id, command, world.context());
  };

  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
    await ofTeam({ type: 'Create', name: 'A', timezone: 'UTC', owner: { memberId: ownerId, name: 'O' } });
    await ofTeam({ type: 'AddMember', memberId: managerId, name: 'M', role: 'manager' });
    await keyOf(keyId, ownerId);
    clientId = await world.client();
    accounts = [await world.connect(clientId, 'x'), await world.connect(clientId, 'bluesky')];
  });
  t.after(async () => {
    await mortals.end();
    await world.close();
  });

  const send = (id: string, command: Parameters<typeof post.decide>[0]) =>
    execute(world.store, post, id, command, world.context());
  const stateOf = async (id: string): Promise<LivePost> => {
    const { state } = await world.store.load(post, id);
    assert.ok(state.status === 'live', `${id} is ${state.status}`);
    return state;
  };
  const recycleOf = async (id: string) => (await stateOf(id)).recycle;
  const projected = (id: string) =>
    until('the row shows the stream', async () => {
      const { rows } = await world.pool.query(`select revision from ${view('posts')} where id = $1`, [id]);
      return rows[0]?.revision === (await world.story(`post-${id}`)).length - 1;
    });
  /** What a publisher makes of the targets of a post. */
  const settle = async (id: string, outcome: 'published' | 'failed', publishedAt = new Date().toISOString()) => {
    for (const { targetId } of (await stateOf(id)).plan.targets) {
      const command: TargetCommand =
        outcome === 'failed'
          ? { type: 'RecordFailed', attempt: 1, takeover: 0, failure }
          : { type: 'RecordPublished', attempt: 1, takeover: 0, externalId: 'e', permalink: null, publishedAt };
      for (const one of [{ type: 'Start', now: '2099-01-01T00:00:00.000Z' } as const, command]) {
        await execute(world.store, target, targetId, one, world.context(), { partitionKey: id });
      }
      await recordOutcomes(world.store, await world.store.readStream(`target-${targetId}`));
    }
  };
  const set = (over: Partial<SetRecycle> = {}): SetRecycle => ({
    ...{ type: 'SetRecycle', enabled: true, everyDays: 1, times: null, until: null, setBy },
    ...{ needsApproval: false, next: null, ...over },
  });
  /** A post that is out since an hour and recycled, as if it was set before. */
  const origin = async (
    over: Parameters<typeof set>[0] = {},
    to: readonly Account[] = accounts,
    body: Partial<PostBody> = {},
    agoMs = 3_600_000,
  ) => {
    const dueAt = Date.now() - agoMs;
    const { postId } = await world.schedule(to, { dueAt, body });
    await send(postId, set(over));
    await settle(postId, 'published', new Date(dueAt + 1000).toISOString());
    await projected(postId);
    return { id: postId, dueAt };
  };
  /** One round, so long after now. @returns the copies that it made */
  const round = async (aheadMs: number, store: DomainStore = world.store): Promise<number> => {
    const deps = { store, pool: world.pool, logger, now: () => Date.now() + aheadMs };
    return recyclePosts(deps, neverAborted);
  };
  /** A round in which nothing of other tests is due any more. */
  const roundOf = async (id: string, aheadMs: number): Promise<number> => {
    const made = await round(aheadMs);
    await projected(id);
    return made;
  };
  /** A process dies there with the copy of this post. */
  const dies = async (id: string, fault: string) => {
    await mortals.died(await mortals.child(fault));
    await projected(id);
  };
  const end = async (id: string) => {
    await send(id, { type: 'ClearRecycle' });
    await projected(id);
  };

  t('once the post is out, each copy goes to its accounts at the same time of the day, before it is due', async () => {
    const body = { content: 'again', externalRef: randomUUID() };
    const { id, dueAt } = await origin({ everyDays: 2, times: 2 }, accounts, body);
    assert.equal(await roundOf(id, 0), 0, 'the first copy has a time, and is not due');
    const first = new Date(dueAt + 2 * dayMs).toISOString();
    assert.deepEqual((await recycleOf(id))?.next, { day: 2, dueAt: first });
    assert.equal(await roundOf(id, 2 * dayMs - 2 * 3_600_000 - 60_000), 0);
    assert.equal(await roundOf(id, 2 * dayMs - 2 * 3_600_000 + 60_000), 1, 'an hour before');
    assert.equal(await roundOf(id, 2 * dayMs), 0);
    const copyId = recycledPostIdOf(id, 1);
    const copy = await stateOf(copyId);
    const origins = await stateOf(id);
    assert.deepEqual(copy.recycledFrom, { postId: id, occurrence: 1, day: 2 });
    assert.deepEqual([copy.createdBy, copy.clientId, copy.body.content], [setBy, origins.clientId, 'again']);
    assert.equal(copy.body.externalRef, undefined);
    assert.deepEqual(
      copy.plan.targets.map((one) => [one.accountId, one.dueAt]),
      accounts.map((one) => [one.id, first]).sort(),
    );
    const targets = await Promise.all(copy.plan.targets.map(({ targetId }) => world.target(targetId)));
    assert.deepEqual(
      targets.map(({ status }) => status),
      ['pending', 'pending'],
    );
    assert.equal(await roundOf(id, 4 * dayMs - recycleLeadMs), 1);
    const after = await recycleOf(id);
    assert.deepEqual([after?.posted, after?.enabled, after?.stoppedReason], [2, false, 'times']);
    assert.equal(await roundOf(id, 6 * dayMs), 0);
  });

  t('missed copies collapse into one, which is due at once', async () => {
    const { id } = await origin();
    await roundOf(id, 0);
    const aheadMs = 5 * dayMs + 7_200_000;
    const before = Date.now() + aheadMs;
    assert.equal(await roundOf(id, aheadMs), 1);
    assert.equal(await roundOf(id, aheadMs), 0);
    const { recycledFrom, plan } = await stateOf(recycledPostIdOf(id, 1));
    assert.equal(recycledFrom?.day, 5);
    assert.ok(plan.targets.every(({ dueAt }) => Date.parse(dueAt) >= before));
    assert.equal((await recycleOf(id))?.next?.day, 6);
    await end(id);
  });

  t('it ends with the last day', async () => {
    const { id, dueAt } = await origin({ until: new Date(Date.now() + 1.5 * dayMs).toISOString() });
    await roundOf(id, 0);
    assert.equal((await recycleOf(id))?.next?.dueAt, new Date(dueAt + dayMs).toISOString());
    assert.equal(await roundOf(id, dayMs - recycleLeadMs), 1);
    assert.equal((await recycleOf(id))?.stoppedReason, 'until');
    // A copy that was missed is not made after it.
    const late = await origin({ until: new Date(Date.now() + 1.5 * dayMs).toISOString() });
    await roundOf(late.id, 0);
    assert.equal(await roundOf(late.id, 2 * dayMs), 0);
    assert.deepEqual([(await recycleOf(late.id))?.stoppedReason, (await recycleOf(late.id))?.posted], ['until', 0]);
  });

  t('a disconnected account is left out; without any it ends', async () => {
    const [kept, gone] = [await world.connect(clientId, 'x'), await world.connect(clientId, 'x')];
    const disconnect = (one: Account) =>
      execute(world.store, account, one.id, { type: 'Disconnect', reason: 'requested' }, world.context());
    const { id } = await origin({}, [kept, gone]);
    await roundOf(id, 0);
    await disconnect(gone);
    assert.equal(await roundOf(id, dayMs), 1);
    const copy = await stateOf(recycledPostIdOf(id, 1));
    assert.deepEqual(copy.body.targetSelection.accountIds, [kept.id]);
    await disconnect(kept);
    assert.equal(await roundOf(id, 2 * dayMs), 0);
    assert.equal((await recycleOf(id))?.stoppedReason, 'account_disconnected');
  });

  t('an archive ends it, whether the archive finds it or the next copy does', async () => {
    const archived = await world.client();
    const one = await world.connect(archived, 'x');
    const [atOnce, later] = [await origin({}, [one]), await origin({}, [one])];
    await roundOf(later.id, 0);
    const running = world.outcomes();
    await world.archive(archived);
    await until('both end', async () => {
      const ends = await Promise.all([atOnce, later].map(({ id }) => recycleOf(id)));
      return ends.every((recycle) => recycle?.stoppedReason === 'client_archived');
    });
    await running.stop();
    // Set while the archive was under way.
    await send(later.id, set());
    await projected(later.id);
    await roundOf(later.id, 0);
    assert.equal(await roundOf(later.id, dayMs), 0);
    assert.equal((await recycleOf(later.id))?.stoppedReason, 'client_archived');
  });

  t(
    'three copies in a row that are refused end it, and so do three that fail; one that goes out begins anew',
    async () => {
      const refused = await origin({}, accounts, { mediaIds: [randomUUID()] });
      await roundOf(refused.id, 0);
      for (const day of [1, 2, 3]) assert.equal(await roundOf(refused.id, day * dayMs), 0);
      const story = await world.story(`post-${refused.id}`);
      assert.deepEqual(story.slice(-7), [
        'PostRecyclePlanned',
        ...['PostRecycleFailed', 'PostRecyclePlanned', 'PostRecycleFailed', 'PostRecyclePlanned'],
        ...['PostRecycleFailed', 'PostRecycleCleared'],
      ]);
      assert.equal((await recycleOf(refused.id))?.stoppedReason, 'failures');
      const [why] = (await world.store.readStream(`post-${refused.id}`)).filter(
        ({ type }) => type === 'PostRecycleFailed',
      );
      assert.deepEqual(why?.data, {
        ...{ day: 1, code: 'validation_failed' },
        message: 'The input is not valid. /mediaIds/0 is not known.',
      });
      const failing = await origin();
      await roundOf(failing.id, 0);
      const outcomes = ['failed', 'failed', 'published', 'failed', 'failed', 'failed'] as const;
      for (const [at, outcome] of outcomes.entries()) {
        assert.equal(await roundOf(failing.id, (at + 1) * dayMs), 1, `copy ${at + 1}`);
        await settle(recycledPostIdOf(failing.id, at + 1), outcome);
      }
      assert.equal(await roundOf(failing.id, 7 * dayMs), 0);
      assert.deepEqual(
        [(await recycleOf(failing.id))?.stoppedReason, (await recycleOf(failing.id))?.posted],
        ['failures', 6],
      );
    },
  );

  t('a copy is held where its client or the one who set it needs an approval', async () => {
    const strict = await world.client();
    const one = await world.connect(strict, 'x');
    await execute(
      world.store,
      client,
      strict,
      { type: 'Update', changes: { approvalRequired: true } },
      world.context(),
    );
    const [byClient, byCreator] = [await origin({}, [one]), await origin({ needsApproval: true })];
    await roundOf(byClient.id, 0);
    assert.equal(await round(dayMs), 2);
    for (const { id } of [byClient, byCreator]) {
      const copyId = recycledPostIdOf(id, 1);
      const copy = await stateOf(copyId);
      assert.equal(statusOf(copy), 'pending_approval');
      assert.equal((await world.story(`approval-${copy.approval?.id}`))[0], 'ApprovalRequested');
      await projected(id);
      await end(id);
    }
  });

  t(
    'a copy is held where the member behind it is removed or a creator by then; the end of a key holds nothing',
    async () => {
      const manager = { type: 'member', id: managerId } as const;
      const managersKey = randomUUID();
      await keyOf(managersKey, managerId);
      const byKey = { type: 'apikey', id: managersKey } as const;
      const origins = [
        await origin({ setBy: manager }),
        await origin({ setBy: byKey }),
        // A key that no workspace of ours made has nobody behind it.
        await origin({ setBy: { type: 'apikey', id: randomUUID() } }),
      ];
      await execute(world.store, apikey, managersKey, { type: 'Revoke' }, world.context());
      for (const { id } of origins) await roundOf(id, 0);
      const statuses = async (day: number) => {
        await round(day * dayMs);
        for (const { id } of origins) await projected(id);
        return Promise.all(origins.map(async ({ id }) => statusOf(await stateOf(recycledPostIdOf(id, day)))));
      };
      const [free, held] = ['scheduled', 'pending_approval'] as const;
      assert.deepEqual(await statuses(1), [free, free, held]);
      await ofTeam({ type: 'ChangeRole', memberId: managerId, role: 'creator' });
      assert.deepEqual(await statuses(2), [held, held, held]);
      await ofTeam({ type: 'ChangeRole', memberId: managerId, role: 'manager' });
      assert.deepEqual(await statuses(3), [free, free, held]);
      await ofTeam({ type: 'RemoveMember', memberId: managerId });
      assert.deepEqual(await statuses(4), [held, held, held]);
      for (const { id } of origins) await end(id);
    },
  );

  /** Three daily copies of a post that waits for an approval; the states of their targets, and the reasons they show. */
  const approvalOf = async (copyId: string) => (await world.story(`approval-${approvalIdOf(copyId, 1)}`)).at(-1);
  const cancelsOf = async (copyId: string) => {
    const ids = (await stateOf(copyId)).plan.targets.map(({ targetId }) => targetId);
    const events = await Promise.all(ids.map((id) => world.store.readStream(`target-${id}`)));
    return events
      .map((one) => one.at(-1))
      .map((last) => (last?.type === 'TargetCanceled' ? last.data.reason : last?.type));
  };

  t('a copy that still waits when the next is due is replaced by it', async () => {
    const { id } = await origin({ needsApproval: true });
    await roundOf(id, 0);
    const copies = [1, 2, 3].map((occurrence) => recycledPostIdOf(id, occurrence));
    const [first = '', second = '', third = ''] = copies;
    for (const day of [1, 2, 3]) assert.equal(await roundOf(id, day * dayMs), 1);
    for (const replaced of [first, second]) {
      assert.deepEqual(await cancelsOf(replaced), ['copy_replaced', 'copy_replaced']);
      assert.equal(await approvalOf(replaced), 'ApprovalWithdrawn');
    }
    assert.deepEqual(await cancelsOf(third), ['TargetHeld', 'TargetHeld']);
    const decide = { type: 'Decide', decision: 'approve', decidedBy: world.context().actor, comment: null } as const;
    const approve = (copyId: string) =>
      execute(world.store, approval, approvalIdOf(copyId, 1), decide, world.context(), { partitionKey: copyId });
    await assert.rejects(approve(first));
    await approve(third);
    await tendApprovals(world.store, third);
    assert.deepEqual(await cancelsOf(third), ['TargetReleased', 'TargetReleased']);
    // The webhook and GET tell it.
    for (const targetId of (await stateOf(first)).plan.targets.map((one) => one.targetId)) {
      await recordOutcomes(world.store, await world.store.readStream(`target-${targetId}`));
    }
    const canceled = (await world.store.readStream(`post-${first}`)).at(-1);
    assert.deepEqual([canceled?.type, canceled?.data.reason], ['PostCanceled', 'copy_replaced']);
    const shown = `select count(*)::int as count from ${view('post_targets')} where post_id = $1 and cancel_reason = 'copy_replaced'`;
    await until('the rows show it', async () => (await world.pool.query(shown, [first])).rows[0]?.count === 2);
    await end(id);
  });

  t('a waiting copy that a worker begins at the same moment is not met by the next one', async () => {
    const { id } = await origin();
    await roundOf(id, 0);
    assert.equal(await roundOf(id, dayMs), 1);
    const [begun] = (await stateOf(recycledPostIdOf(id, 1))).plan.targets;
    assert.ok(begun !== undefined);
    const partitionKey = recycledPostIdOf(id, 1);
    let asked = false;
    // The worker claims one target between the look at the copy and its cancel.
    const store: DomainStore = Object.assign(Object.create(world.store), {
      append: async (...args: Parameters<DomainStore['append']>) => {
        if (args[0] === `post-${partitionKey}` && !asked) {
          asked = true;
          const start = { type: 'Start', now: '2099-01-01T00:00:00.000Z' } as const;
          await execute(world.store, target, begun.targetId, start, world.context(), { partitionKey });
        }
        return world.store.append(...args);
      },
      load: world.store.load.bind(world.store),
      readStream: world.store.readStream.bind(world.store),
    });
    assert.equal(await round(2 * dayMs, store), 0);
    assert.ok(asked);
    assert.deepEqual((await cancelsOf(partitionKey)).sort(), ['TargetPublishStarted', 'copy_replaced']);
    assert.equal(await roundOf(id, 2 * dayMs), 0);
    assert.equal((await recycleOf(id))?.next?.day, 3);
    await end(id);
  });

  t('what a caller changes at the same moment holds, and the copy that was made is counted', async () => {
    const { id } = await origin({ times: 5 });
    await roundOf(id, 0);
    let cleared = false;
    // The caller clears the settings right after the copy is stored.
    const store: DomainStore = Object.assign(Object.create(world.store), {
      append: async (...args: Parameters<DomainStore['append']>) => {
        if (args[0] === `post-${id}` && !cleared) {
          cleared = true;
          await send(id, { type: 'ClearRecycle' });
        }
        return world.store.append(...args);
      },
      load: world.store.load.bind(world.store),
      readStream: world.store.readStream.bind(world.store),
    });
    assert.equal(await round(dayMs, store), 1);
    assert.deepEqual([(await recycleOf(id))?.enabled, (await recycleOf(id))?.posted], [false, 1]);
    await send(id, set());
    await projected(id);
    assert.equal(await round(dayMs), 0, 'set again, it has a time, and no other copy is made for that day');
    assert.equal((await recycleOf(id))?.posted, 1);
    await projected(id);
    await end(id);
  });

  t('two rounds at the same time make one copy', async () => {
    const { id } = await origin();
    await roundOf(id, 0);
    await Promise.all([round(dayMs), round(dayMs), round(dayMs)]);
    await projected(id);
    await round(dayMs);
    assert.equal((await recycleOf(id))?.posted, 1);
    assert.deepEqual(await world.story(`post-${recycledPostIdOf(id, 2)}`), []);
    await projected(id);
    await end(id);
  });

  for (const [fault, isRecorded] of [
    ['recycle:after-copy', false],
    ['recycle:after-record', true],
  ] as const) {
    t(
      `killed at ${fault}: the next process records the copy, makes no other, and its plan is carried out`,
      async () => {
        const { id } = await origin();
        await roundOf(id, 0);
        await dies(id, fault);
        const copyId = recycledPostIdOf(id, 1);
        assert.deepEqual(await world.story(`post-${copyId}`), ['PostScheduled']);
        assert.equal((await recycleOf(id))?.posted, isRecorded ? 1 : 0);
        await mortals.child('');
        await until('the copy is recorded', async () => (await recycleOf(id))?.posted === 1);
        const running = world.outcomes();
        const ids = (await stateOf(copyId)).plan.targets.map(({ targetId }) => targetId);
        await world.all(ids, 'pending');
        await running.stop();
        await mortals.end();
        await projected(id);
        assert.equal(await round(childAheadMs), 0);
        assert.equal((await world.story(`post-${id}`)).filter((type) => type === 'PostRecycled').length, 1);
        await end(id);
      },
    );
  }

  for (const fault of ['recycle:before-cancels', 'recycle:after-replace']) {
    t(`killed at ${fault}: the next process goes on, and one copy is left`, async () => {
      const { id } = await origin({ needsApproval: true }, accounts, {}, 25 * 3_600_000);
      await roundOf(id, 0);
      // The clock of the child is a day ahead: the first copy is that of today.
      await send(id, { type: 'ClearRecycle' });
      await send(
        id,
        set({ needsApproval: true, next: { day: 1, dueAt: new Date(Date.now() - 60_000).toISOString() } }),
      );
      await projected(id);
      assert.equal(await roundOf(id, 0), 1);
      await dies(id, fault);
      const [first, second] = [recycledPostIdOf(id, 1), recycledPostIdOf(id, 2)];
      assert.deepEqual(await world.story(`post-${second}`), []);
      await mortals.child('');
      await until('the copy is recorded', async () => (await recycleOf(id))?.posted === 2);
      // The record comes before the targets of the copy.
      await until('the copy is whole', async () => (await cancelsOf(second)).every((type) => type === 'TargetHeld'));
      await mortals.end();
      assert.deepEqual(await cancelsOf(first), ['copy_replaced', 'copy_replaced']);
      assert.equal(await approvalOf(first), 'ApprovalWithdrawn');
      assert.deepEqual(await cancelsOf(second), ['TargetHeld', 'TargetHeld']);
      await projected(id);
      await end(id);
    });
  }

  t('days count from the publication, also where an approval was late', async () => {
    const dueAt = Math.floor((Date.now() - 4 * dayMs - 3 * 3_600_000) / 60_000) * 60_000;
    const wall = { scheduledLocal: new Date(dueAt).toISOString().slice(0, 16), timezone: 'UTC' };
    const [one] = accounts;
    assert.ok(one !== undefined);
    const { postId: id, targetIds } = await world.schedule([{ ...one, ...wall }], { dueAt, held: 'publish' });
    await send(id, set({ everyDays: 2 }));
    const decide = { type: 'Decide', decision: 'approve', decidedBy: world.context().actor, comment: null } as const;
    await execute(world.store, approval, approvalIdOf(id, 1), decide, world.context(), { partitionKey: id });
    await tendApprovals(world.store, id);
    const shown = await until('the release is shown', async () => {
      const row = `select status, scheduled_local from ${view('post_targets')} where id = $1`;
      const { rows } = await world.pool.query(row, [...targetIds]);
      return rows[0]?.status === 'pending' ? rows[0] : null;
    });
    assert.equal(shown.scheduled_local, null, 'nobody asked for the time at which it goes out');
    await settle(id, 'published');
    await projected(id);
    assert.equal(await roundOf(id, 0), 0);
    assert.deepEqual((await recycleOf(id))?.next, { day: 2, dueAt: new Date(dueAt + 6 * dayMs).toISOString() });
    assert.equal(await roundOf(id, 60_000), 0, 'no copy within the minute');
    assert.equal(await roundOf(id, 2 * dayMs), 1);
    await end(id);
  });

  t('a copy that went out late moves the next one, and what has begun counts as out now', async () => {
    const { id, dueAt } = await origin({ everyDays: 2 });
    await roundOf(id, 0);
    assert.equal(await roundOf(id, 2 * dayMs), 1);
    const copyId = recycledPostIdOf(id, 1);
    // A minute less than half a day before the next copy is due.
    await settle(copyId, 'published', new Date(dueAt + 2 * dayMs + dayMs / 2 + 60_000).toISOString());
    assert.equal(await roundOf(id, 4 * dayMs), 0);
    assert.deepEqual((await recycleOf(id))?.next, { day: 5, dueAt: new Date(dueAt + 5 * dayMs).toISOString() });
    assert.equal(await roundOf(id, 5 * dayMs), 1);
    const second = await stateOf(recycledPostIdOf(id, 2));
    assert.equal(second.recycledFrom?.day, 5);
    // A worker has begun it when the next one is due.
    const [begun] = second.plan.targets;
    assert.ok(begun !== undefined);
    const start = { type: 'Start', now: '2099-01-01T00:00:00.000Z' } as const;
    await execute(world.store, target, begun.targetId, start, world.context(), {
      partitionKey: recycledPostIdOf(id, 2),
    });
    assert.equal(await roundOf(id, 7 * dayMs - recycleLeadMs), 0);
    assert.equal((await recycleOf(id))?.next?.day, 9);
    await end(id);
  });

  t('a copy whose places were given back before it was stored is made, told of as created, and counted', async () => {
    await world.pool.query(
      `insert into read.workspaces_v1 (id, workspace_id, revision, created_at, updated_at, name, timezone, mode, members,
         posting_quota, posting_quota_revision)
       values ($1, $1, 0, now(), now(), 'A', 'UTC', 'test', '{}', 100, 0)`,
      [world.workspaceId],
    );
    const { id } = await origin();
    await roundOf(id, 0);
    await dies(id, 'quota:after-reserve');
    const copyId = recycledPostIdOf(id, 1);
    assert.deepEqual(await world.story(`post-${copyId}`), []);
    const now = () => Date.now() + childAheadMs + abandonMs + 1_000;
    await sweepQuotas({ store: world.store, pool: world.pool, now }, async (_, work) => work(), neverAborted);
    assert.deepEqual(await world.story(`post-${copyId}`), ['PostAbandoned']);
    for (const day of [1, 2]) {
      assert.equal(await roundOf(id, day * dayMs + 2 * abandonMs), 1, `day ${day}`);
      assert.equal((await recycleOf(id))?.posted, day);
    }
    const events = await world.store.readStream(`post-${copyId}`);
    assert.deepEqual(
      events.slice(0, 2).map((one) => [one.type, publicTypesOf(one, 'post')]),
      [
        ['PostAbandoned', []],
        ['PostScheduled', ['post.created', 'post.scheduled']],
      ],
    );
    await end(id);
  });

  t('after a restore the copy that was due before it is left out, and the next one is another post', async () => {
    const { id } = await origin();
    await roundOf(id, 0);
    const { rows } = await world.pool.query<{ readonly restored_at: Date }>(
      `insert into ops.restores (restored_at, store_as_of, declared_by, completed_at)
       values (date_trunc('milliseconds', now()) + interval '1 day', now() - interval '2 days', 'ann', now())
       returning restored_at`,
    );
    try {
      assert.equal(await roundOf(id, dayMs), 0);
      assert.ok((await world.story(`post-${id}`)).includes('PostRecycleFailed'));
      assert.equal(await roundOf(id, 2 * dayMs), 1);
      assert.equal((await recycleOf(id))?.posted, 1);
      // The lost time had a first copy as well: networks know its targets.
      assert.deepEqual(await world.story(`post-${recycledPostIdOf(id, 1)}`), []);
      const copyId = recycledPostIdOf(id, 1, rows[0]?.restored_at.toISOString());
      assert.ok((await world.story(`post-${copyId}`)).includes('PostScheduled'));
      assert.deepEqual((await recycleOf(id))?.copies, [copyId]);
    } finally {
      await world.pool.query('delete from ops.restores');
    }
    await end(id);
  });

  t('while publishing is held none is made; it is made once that ends', async () => {
    const { id } = await origin();
    await roundOf(id, 0);
    await holdPublishing(world.pool, world.workspaceId, 'ann');
    assert.equal(await roundOf(id, dayMs), 0);
    await resumePublishing(world.pool, world.workspaceId);
    assert.equal(await roundOf(id, dayMs), 1);
    await end(id);
  });

  t('the outcomes process makes them', async () => {
    const { id } = await origin();
    await roundOf(id, 0);
    await send(id, { type: 'ClearRecycle' });
    // The next copy is due now, by a clock that nobody moved.
    await send(id, set({ next: { day: 1, dueAt: new Date().toISOString() } }));
    const running = world.outcomes(100);
    await until('a copy', async () => (await recycleOf(id))?.posted === 1);
    await running.stop();
    await end(id);
  });
});
