import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { account } from '#domain/account.ts';
import { campaign } from '#domain/campaign.ts';
import { invite } from '#domain/invite.ts';
import { post, statusOf } from '#domain/post/post.ts';
import { type TargetCommand, target } from '#domain/post-target/target.ts';
import { archivedWithOpen, disconnectedWithOpen, openTargetsOf } from '#projections/queries/disconnected-accounts.ts';
import { view } from '#projections/shapes.ts';
import { InvalidEvent } from '#runtime/eventing/codec.ts';
import { Unavailable, uuidv7 } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { createLogger, createRegistry } from '#runtime/process/telemetry.ts';
import type { Failure } from '#schemas/target.ts';
import { cleanUpDisconnected } from '#services/outcomes/disconnected.ts';
import { sweepMetrics } from '#services/outcomes/metrics.ts';
import { Resting } from '#services/outcomes/resting.ts';
import type { SweptKind } from '#services/outcomes/rounds.ts';
import { sweep } from '#services/outcomes/sweeper.ts';
import { recordOutcomes } from '#services/workflows/posts/outcomes.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { type Account, PublishingWorld } from '#test/support/publishing.ts';
import { campaignFields } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

/** Sorts before every id. */
const beforeAll = '00000000-0000-0000-0000-000000000000';

const failure: Failure = {
  category: 'invalid_content',
  code: 'content_rejected',
  message: 'no',
  platformCode: null,
  platformMessage: null,
  retryable: false,
  actor: 'user',
  mediaId: null,
};

suite('outcomes', { waits: true }, (t) => {
  let world: PublishingWorld;
  let clientId: string;
  let accounts: readonly Account[];

  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
    clientId = await world.client();
    accounts = await Promise.all(Array.from({ length: 10 }, () => world.connect(clientId, 'x')));
  });
  t.after(() => world.close());

  const later = () => Date.now() + 3_600_000;
  const act = (postId: string, id: string, command: TargetCommand) =>
    execute(world.store, target, id, command, world.context(), { partitionKey: postId });
  const publish = async (postId: string, id: string) => {
    const { state } = await act(postId, id, { type: 'Start', now: new Date(later() + 1).toISOString() });
    const attempt = state.status === 'none' ? 0 : state.common.attempts;
    const publishedAt = '2026-01-01T00:00:00.000Z';
    const command = { type: 'RecordPublished', externalId: 'e', permalink: null, publishedAt } as const;
    await act(postId, id, { ...command, attempt, takeover: 0 });
  };
  const postStatus = async (postId: string) => statusOf((await world.store.load(post, postId)).state);
  const is = (postId: string, status: string) =>
    until(`${status}`, async () => (await postStatus(postId)) === status, { withinMs: 15_000 });
  const targetEvents = async (ids: readonly string[]) =>
    (await Promise.all(ids.map((id) => world.store.readStream(`target-${id}`)))).flat();

  t('ten outcomes publish their post, and its outcome is recorded once', async () => {
    const running = world.outcomes();
    const { postId, targetIds } = await world.schedule(accounts, { dueAt: later() });
    await Promise.all(targetIds.map((id) => publish(postId, id)));
    await is(postId, 'published');
    const story = await world.story(`post-${postId}`);
    assert.equal(story.filter((type) => type === 'PostTargetSettled').length, 10);
    assert.equal(story.filter((type) => type === 'PostPublished').length, 1);
    await running.stop();
  });

  t('mixed outcomes, then a retry: partial is recorded once, then published', async () => {
    const running = world.outcomes();
    const { postId, targetIds } = await world.schedule(accounts.slice(0, 3), { dueAt: later() });
    const [a = '', b = '', c = ''] = targetIds;
    await publish(postId, a);
    await act(postId, b, { type: 'RefuseAtClaim', failure });
    await act(postId, c, { type: 'Cancel', reason: 'requested', postRevision: null, now: '2026-01-01T00:00:00.000Z' });
    await is(postId, 'partially_published');
    await act(postId, b, { type: 'Retry', commandId: uuidv7(), now: new Date(later()).toISOString() });
    await is(postId, 'publishing');
    await act(postId, b, { type: 'RefuseAtClaim', failure });
    await is(postId, 'partially_published');
    await act(postId, b, { type: 'Retry', commandId: uuidv7(), now: new Date(later()).toISOString() });
    await publish(postId, b);
    await is(postId, 'published');
    const story = await world.story(`post-${postId}`);
    assert.equal(story.filter((type) => type === 'PostPartiallyPublished').length, 1);
    assert.equal(story.filter((type) => type === 'PostTargetReopened').length, 2);
    await running.stop();
  });

  t('several outcomes of one post are one append; repeated, late or concurrent ones append nothing', async () => {
    const { postId, targetIds } = await world.schedule(accounts, { dueAt: later() });
    await Promise.all(targetIds.map((id) => publish(postId, id)));
    const events = await targetEvents(targetIds);
    const before = (await world.story(`post-${postId}`)).length;
    await Promise.all([
      recordOutcomes(world.store, events),
      recordOutcomes(world.store, events.slice(0, 20)),
      recordOutcomes(world.store, events),
    ]);
    const reported = await world.store.readStream(`post-${postId}`);
    assert.equal(reported.length - before, 11);
    await recordOutcomes(world.store, events);
    await recordOutcomes(world.store, events.slice(5, 9));
    assert.equal((await world.store.readStream(`post-${postId}`)).length, reported.length);
    assert.ok(new Set(reported.slice(before).map(({ metadata }) => metadata.commandId)).size <= 3);
  });

  t('a batch that was recorded in part appends only the rest, with its own ids', async () => {
    const { postId, targetIds } = await world.schedule(accounts.slice(0, 3), { dueAt: later() });
    for (const id of targetIds)
      await act(postId, id, {
        type: 'Cancel',
        reason: 'requested',
        postRevision: null,
        now: '2026-01-01T00:00:00.000Z',
      });
    const events = await targetEvents(targetIds);
    await recordOutcomes(world.store, events.slice(0, 2));
    await recordOutcomes(world.store, events);
    const reported = await world.store.readStream(`post-${postId}`);
    assert.deepEqual(
      reported.map(({ type }) => type),
      ['PostScheduled', 'PostTargetSettled', 'PostTargetSettled', 'PostTargetSettled', 'PostCanceled'],
    );
    assert.equal(new Set(reported.map(({ id }) => id)).size, reported.length);
  });

  t('an archived client: an intent cancels open targets, published ones stay, invites are revoked', async () => {
    const running = world.outcomes();
    const other = await world.client();
    const two = await Promise.all([world.connect(other, 'x'), world.connect(other, 'threads')]);
    const { postId, targetIds } = await world.schedule(two, { dueAt: later() });
    const [a = '', b = ''] = targetIds;
    await publish(postId, a);
    const inviteId = randomUUID();
    await execute(
      world.store,
      invite,
      inviteId,
      {
        type: 'Create',
        clientId: other,
        platforms: ['x'],
        expiresAt: new Date(later()).toISOString(),
        keyVersion: 'v1',
        recipientEmail: null,
        maxAccounts: 50,
      },
      world.context(),
    );
    await world.archive(other);
    await world.all([b], 'canceled');
    await until('revoked', async () => (await world.story(`invite-${inviteId}`)).includes('ConnectInviteRevoked'));
    await is(postId, 'published');
    assert.deepEqual((await world.story(`target-${b}`)).slice(-1), ['TargetCanceled']);
    assert.equal((await world.target(a)).status, 'published');
    const story = await world.story(`post-${postId}`);
    assert.equal(story.filter((type) => type === 'PostTargetsChanged').length, 1);
    await running.stop();
  });

  t('an archived client: a partly published thread is left to its claim, without repeated events', async () => {
    const other = await world.client();
    const one = await world.connect(other, 'x');
    const segments = ['one', 'two'].map((content) => ({ content, mediaIds: [] }));
    const { postId, targetIds } = await world.schedule([one], { body: { thread: { segments } } });
    const [id = ''] = targetIds;
    const claim = { attempt: 1, takeover: 0 };
    const segment = { index: 0, of: 2 };
    const now = new Date().toISOString();
    const commands: readonly TargetCommand[] = [
      { type: 'Start', now },
      { ...claim, type: 'Checkpoint', step: 'boundary', data: {}, deadline: now, segment },
      { ...claim, type: 'RecordPublished', externalId: 'e', permalink: null, publishedAt: now, segment },
      {
        ...claim,
        type: 'RecordRateLimited',
        retryAt: new Date(later()).toISOString(),
        failure,
        policy: { deferDelaysMs: [], jitter: 0, maxRateLimits: 10 },
      },
    ];
    for (const command of commands) await act(postId, id, command);
    const running = world.outcomes();
    await until('its row shows it', async () => {
      const { rows } = await world.pool.query(`select status, external_id from ${view('post_targets')} where id = $1`, [
        id,
      ]);
      return rows[0]?.status === 'rate_limited' && rows[0]?.external_id === 'e';
    });
    await world.archive(other);
    await until('its row shows it', async () => {
      const { rows } = await world.pool.query('select archived_at from read.clients where id = $1', [other]);
      return rows[0]?.archived_at !== null;
    });
    const deps = { store: world.store, pool: world.pool, logger: createLogger('test', 'silent') };
    for (let times = 0; times < 3; times += 1) await sweep(deps, new AbortController().signal);
    await running.stop();
    assert.deepEqual(await world.story(`post-${postId}`), ['PostScheduled']);
  });

  t('the sweep finds what a network has of an archived client, unless it is being taken back or too late', async () => {
    const minutes = (many: number): number => Date.now() + many * 60_000;
    const claim = { attempt: 1, takeover: 0 };
    const handedOver = async (dueAt: number, ...more: readonly TargetCommand[]) => {
      const client = await world.client();
      const { postId, targetIds } = await world.schedule([await world.connect(client, 'facebook')], { dueAt });
      const [id = ''] = targetIds;
      const started = { type: 'Start', now: new Date(dueAt + 1).toISOString() } as const;
      const deadline = new Date(dueAt).toISOString();
      const crossed = { ...claim, type: 'Checkpoint', step: 'boundary', data: {}, deadline } as const;
      const handed = { ...claim, type: 'RecordHandedOver', nativeId: `n-${id}` } as const;
      for (const command of [started, crossed, handed, ...more]) await act(postId, id, command);
      await world.archive(client);
      return { client, id };
    };
    const cancel = { type: 'Cancel', reason: 'requested', postRevision: null, now: new Date().toISOString() } as const;
    const open = await handedOver(minutes(60));
    const undoing = await handedOver(minutes(60), cancel);
    const late = await handedOver(minutes(1));
    await until('their rows show it', async () => {
      const ids = [open, undoing, late];
      const { rows } = await world.pool.query(
        `select t.id from ${view('post_targets')} t join read.clients c on c.id = t.client_id
         where t.id = any($1) and t.status = 'handed_to_platform' and c.archived_at is not null
           and (t.id <> $2 or t.undo = 'pending')`,
        [ids.map(({ id }) => id), undoing.id],
      );
      return rows.length === ids.length;
    });
    const found = (await archivedWithOpen(world.pool, new Date(0), beforeAll)).map(({ id }) => id);
    assert.deepEqual(
      [open, undoing, late].map(({ client }) => found.includes(client)),
      [true, false, false],
    );
    const openOf = async ({ client }: typeof open) =>
      (await openTargetsOf(world.pool, client, beforeAll)).flatMap((one) => one.targetIds);
    assert.deepEqual(await Promise.all([open, undoing, late].map(openOf)), [[open.id], [], []]);
  });

  t('while the archive of one client stands still, the disconnect of another workspace is carried out', async () => {
    const [big, other] = [await world.client(), randomUUID()];
    const one = await world.connect(big, 'x');
    const posts = await Promise.all([1, 2, 3].map(() => world.schedule([one], { dueAt: later() })));
    const own = world.workspaceId;
    Object.assign(world, { workspaceId: other });
    const leaving = await world.connect(await world.client(), 'bluesky');
    const left = await world.schedule([leaving], { dueAt: later() });
    Object.assign(world, { workspaceId: own });
    const targetIds = [...posts, left].flatMap((made) => made.targetIds);
    await until('all rows are there', async () => {
      const sql = `select count(*)::int as n from ${view('post_targets')} where id = any($1::uuid[])`;
      return (await world.pool.query(sql, [targetIds])).rows[0].n === targetIds.length;
    });
    const [held, isHeld] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const ofBig = new Set(posts.map(({ postId }) => postId));
    const store: typeof world.store = Object.assign(Object.create(world.store), {
      load: async (...args: Parameters<typeof world.store.load>) => {
        if (ofBig.has(args[1])) isHeld.resolve();
        if (ofBig.has(args[1])) await held.promise;
        return world.store.load(...args);
      },
      append: world.store.append.bind(world.store),
      readStream: world.store.readStream.bind(world.store),
    });
    const running = world.outcomes(60_000, { store });
    try {
      await world.archive(big);
      await isHeld.promise;
      await disconnect(leaving.id, other);
      await world.all(left.targetIds, 'canceled', 5_000);
    } finally {
      held.resolve();
    }
    await world.all(
      posts.flatMap((made) => made.targetIds),
      'canceled',
    );
    await running.stop();
  });

  t('a post scheduled while its client was archived is found by the sweep', async () => {
    const other = await world.client();
    const one = await world.connect(other, 'x');
    await world.archive(other);
    const { targetIds } = await world.schedule([one], { dueAt: later() });
    const running = world.outcomes(200);
    await world.all(targetIds, 'canceled');
    await running.stop();
  });

  const disconnect = (id: string, workspaceId = world.workspaceId) =>
    execute(world.store, account, id, { type: 'Disconnect', reason: 'test' }, { ...world.context(), workspaceId });

  t('a disconnected account: an intent cancels its pending and rate-limited targets, and no others', async () => {
    const running = world.outcomes();
    const [leaving, staying] = await Promise.all([world.connect(clientId, 'x'), world.connect(clientId, 'threads')]);
    const mixed = await world.schedule([leaving, staying], { dueAt: later() });
    const alone = await world.schedule([leaving], { dueAt: later() });
    const published = await world.schedule([leaving], { dueAt: later() });
    const limited = await world.schedule([leaving], { dueAt: later() });
    const [limitedId = ''] = limited.targetIds;
    await publish(published.postId, published.targetIds[0] ?? '');
    await act(limited.postId, limitedId, { type: 'Start', now: new Date(later() + 1).toISOString() });
    const retryAt = new Date(later()).toISOString();
    const policy = { deferDelaysMs: [], jitter: 0, maxRateLimits: 10 };
    const limit = { type: 'RecordRateLimited', attempt: 1, takeover: 0, retryAt, failure, policy } as const;
    await act(limited.postId, limitedId, limit);
    await is(published.postId, 'published');
    await disconnect(leaving.id);
    const gone = [mixed.targetIds[0] ?? '', alone.targetIds[0] ?? '', limitedId];
    await world.all(gone, 'canceled');
    for (const { postId } of [alone, limited]) await is(postId, 'canceled');
    for (const id of gone) {
      const last = (await world.store.readStream(`target-${id}`)).at(-1);
      assert.deepEqual(last?.data, { reason: 'account_disconnected', postRevision: 1 });
    }
    const whole = (await world.store.readStream(`post-${alone.postId}`)).at(-1);
    assert.deepEqual([whole?.type, whole?.data], ['PostCanceled', { reason: 'account_disconnected' }]);
    assert.equal((await world.target(mixed.targetIds[1] ?? '')).status, 'pending');
    assert.equal(await postStatus(mixed.postId), 'scheduled');
    assert.equal((await world.target(published.targetIds[0] ?? '')).status, 'published');
    assert.deepEqual(await world.story(`post-${published.postId}`), [
      'PostScheduled',
      'PostTargetSettled',
      'PostPublished',
    ]);
    await running.stop();
  });

  t('a disconnected account: what its network’s scheduler has is taken back there before it is canceled', async () => {
    const [outcomes, publisher] = [world.outcomes(), world.publisher()];
    const leaving = await world.connect(clientId, 'facebook', 'hands-over');
    const { postId, targetIds } = await world.schedule([leaving], { dueAt: later(), scheduleMode: 'native' });
    const [id = ''] = targetIds;
    await world.all(targetIds, 'handed_to_platform');
    await until('its row shows it', async () => {
      const { rows } = await world.pool.query(`select status from ${view('post_targets')} where id = $1`, [id]);
      return rows[0]?.status === 'handed_to_platform';
    });
    await disconnect(leaving.id);
    await world.all(targetIds, 'canceled');
    const [row] = await world.sandbox.creates(id);
    assert.ok(row !== undefined && row.undoneAt !== null, 'the network has it no longer');
    const [asked, canceled] = (await world.store.readStream(`target-${id}`)).slice(-2);
    assert.deepEqual([asked?.type, canceled?.type], ['TargetUndoRequested', 'TargetCanceled']);
    assert.equal(canceled?.data.reason, 'account_disconnected');
    await is(postId, 'canceled');
    await Promise.all([outcomes.stop(), publisher.stop()]);
  });

  t('one bad post of an archived client delays none of its others; the walk begins again after a rest', async () => {
    const other = await world.client();
    const one = await world.connect(other, 'x');
    const posts = await Promise.all([1, 2, 3].map(() => world.schedule([one], { dueAt: later() })));
    const [bad, ...good] = posts.toSorted((a, b) => (a.postId < b.postId ? -1 : 1));
    const ids = posts.flatMap((made) => made.targetIds);
    await until('all rows are there', async () => {
      const sql = `select count(*)::int as n from ${view('post_targets')} where id = any($1::uuid[])`;
      return (await world.pool.query(sql, [ids])).rows[0].n === ids.length;
    });
    let isSick = true;
    const store: typeof world.store = Object.assign(Object.create(world.store), {
      load: async (...args: Parameters<typeof world.store.load>) => {
        if (isSick && args[1] === bad?.postId) throw new InvalidEvent(args[1], 'PostScheduled', 'asked for');
        return world.store.load(...args);
      },
      append: world.store.append.bind(world.store),
      readStream: world.store.readStream.bind(world.store),
    });
    const failed: SweptKind[] = [];
    const running = world.outcomes(60_000, { store, onFailure: (kind) => failed.push(kind) });
    await world.archive(other);
    await world.all(
      good.flatMap((made) => made.targetIds),
      'canceled',
    );
    const waits = "select from ops.clean_ups where stream = $1 and failures = 1 and due_at > now() + interval '30 s'";
    await until('it rests', async () => (await world.pool.query(waits, [`client-${other}`])).rowCount === 1);
    assert.deepEqual(failed, ['client']);
    isSick = false;
    await world.pool.query('update ops.clean_ups set due_at = now() where stream = $1', [`client-${other}`]);
    await world.all(bad?.targetIds ?? [], 'canceled');
    await until('the walk is over', async () => !(await noted(`client-${other}`)));
    await running.stop();
  });

  const noted = async (stream: string): Promise<boolean> =>
    (await world.pool.query('select from ops.clean_ups where stream = $1', [stream])).rowCount === 1;

  t('a disconnected account with more targets than one page: all of them are canceled, each once', async () => {
    const leaving = await world.connect(clientId, 'x');
    const posts = await Promise.all(
      Array.from({ length: 103 }, (_, at) => world.schedule([leaving], { dueAt: later() + (at % 3) })),
    );
    const targetIds = posts.flatMap((one) => one.targetIds);
    await until('all rows are there', async () => {
      const { rows } = await world.pool.query(
        `select count(*)::int as n from ${view('post_targets')} where account_id = $1`,
        [leaving.id],
      );
      return rows[0].n === targetIds.length;
    });
    const two = [world.outcomes(60_000), world.outcomes(60_000)];
    const [disconnected] = (await disconnect(leaving.id)).events.slice(-1);
    await world.all(targetIds, 'canceled');
    await until('the walk is over', async () => !(await noted(`account-${leaving.id}`)));
    for (const one of two) await one.stop();
    // What a death behind a page leaves behind: the page is walked again, by rows that may be behind.
    const subject = { accountId: leaving.id, revision: disconnected?.revision ?? 0, workspaceId: world.workspaceId };
    const cause = { correlationId: uuidv7(), causationId: uuidv7() };
    await cleanUpDisconnected(world.store, world.pool, { ...subject, ...cause }, null);
    for (const id of targetIds)
      assert.deepEqual(await world.story(`target-${id}`), ['TargetScheduled', 'TargetCanceled']);
  });

  t('an account connected again before the outcomes ran: only what was scheduled before is canceled', async () => {
    const one = await world.connect(clientId, 'x', 'leaves-and-returns');
    const before = await world.schedule([one], { dueAt: later() });
    await disconnect(one.id);
    await world.connect(clientId, 'x', 'leaves-and-returns');
    const after = await world.schedule([one], { dueAt: later() });
    await until('the row of the later target is there', async () => {
      const { rows } = await world.pool.query(`select id from ${view('post_targets')} where id = $1`, [
        after.targetIds[0],
      ]);
      return rows.length === 1;
    });
    const running = world.outcomes();
    await world.all(before.targetIds, 'canceled');
    await is(before.postId, 'canceled');
    assert.equal((await world.target(after.targetIds[0] ?? '')).status, 'pending');
    assert.deepEqual(await world.story(`post-${after.postId}`), ['PostScheduled']);
    await running.stop();
  });

  t('a post scheduled while its account was disconnected is found by the sweep', async () => {
    const one = await world.connect(clientId, 'x');
    await disconnect(one.id);
    const { targetIds } = await world.schedule([one], { dueAt: later() });
    await until('the rows show both', async () => {
      const { rows } = await world.pool.query(
        `select t.id from ${view('post_targets')} t join read.accounts a on a.id = t.account_id
         where t.id = any($1::uuid[]) and a.status = 'disconnected'`,
        [targetIds],
      );
      return rows.length === 1;
    });
    const deps = { store: world.store, pool: world.pool, logger: createLogger('test', 'silent') };
    await sweep(deps, new AbortController().signal);
    assert.ok(await noted(`account-${one.id}`));
    const running = world.outcomes(60_000);
    await world.all(targetIds, 'canceled');
    await running.stop();
  });

  t('an account connected again before its targets were seen: the sweep finds those that it left', async () => {
    const one = await world.connect(clientId, 'x', 'returns-early');
    const before = await world.schedule([one], { dueAt: later() });
    await disconnect(one.id);
    const during = await world.schedule([one], { dueAt: later() });
    await world.connect(clientId, 'x', 'returns-early');
    const after = await world.schedule([one], { dueAt: later() });
    const left = [...before.targetIds, ...during.targetIds];
    await until('the rows show all three, and the account connected', async () => {
      const { rows } = await world.pool.query(
        `select t.id from ${view('post_targets')} t join read.accounts a on a.id = t.account_id
         where t.id = any($1::uuid[]) and a.status = 'connected' and a.revision = 2`,
        [[...left, ...after.targetIds]],
      );
      return rows.length === 3;
    });
    const deps = { store: world.store, pool: world.pool, logger: createLogger('test', 'silent') };
    await sweep(deps, new AbortController().signal);
    assert.ok(await noted(`account-${one.id}`));
    const running = world.outcomes(60_000);
    await world.all(left, 'canceled');
    await running.stop();
    assert.equal((await world.target(after.targetIds[0] ?? '')).status, 'pending');
    // What was scheduled afterwards is no work for a sweep: once the rows show the others canceled, it finds nothing.
    await until('no sweep finds the account again', async () => {
      const found = await disconnectedWithOpen(world.pool, new Date(0), beforeAll);
      return found.every(({ id }) => id !== one.id);
    });
  });

  t('the sweep completes an interrupted fan-out, in one process at a time', async () => {
    const { postId, targetIds } = await world.schedule(accounts, { dueAt: later(), fan: false });
    assert.equal((await world.target(targetIds[0] ?? '')).status, 'none');
    const [a, b] = [world.outcomes(200), world.outcomes(200)];
    await world.all(targetIds, 'pending');
    await until('the row says so', async () => {
      const { rows } = await world.pool.query(`select fan_out_behind as behind from ${view('posts')} where id = $1`, [
        postId,
      ]);
      return rows[0]?.behind === false;
    });
    for (const id of targetIds) assert.deepEqual(await world.story(`target-${id}`), ['TargetScheduled']);
    await Promise.all([a.stop(), b.stop()]);
    const deps = { store: world.store, pool: world.pool, logger: createLogger('test', 'silent') };
    assert.equal(await sweep(deps, new AbortController().signal), 0);
  });

  t('the sweep completes a shift that died before its targets, once; what it passed over stays', async () => {
    const { postId, targetIds } = await world.schedule(accounts.slice(0, 3), { dueAt: later() });
    const [moving = '', begun = '', canceled = ''] = targetIds;
    const dueAt = async (id: string) => {
      const state = await world.target(id);
      return state.status === 'none' ? '' : state.common.dueAt;
    };
    const [before, stays] = [await dueAt(moving), await dueAt(begun)];
    await act(postId, begun, { type: 'Start', now: new Date(later() + 1).toISOString() });
    await act(postId, canceled, { type: 'Cancel', reason: 'requested', postRevision: null, now: before });
    const id = uuidv7();
    const run = (command: Parameters<typeof campaign.decide>[0]) =>
      execute(world.store, campaign, id, command, { ...world.context(), commandId: 'the shift' });
    await run({ type: 'Create', clientId: null, fields: campaignFields });
    await run({ type: 'Shift', commandId: 'the shift', minutes: 60, days: null, targetIds, skipped: 1 });
    // What a death right after the decision leaves behind; a row that is young is left to its api.
    await until('the row shows the shift', async () => {
      const { rows } = await world.pool.query(
        'select id from read.campaigns where id = $1 and shifting_since < now()',
        [id],
      );
      return rows.length === 1;
    });
    const deps = { store: world.store, pool: world.pool, logger: createLogger('test', 'silent') };
    await sweep(deps, new AbortController().signal);
    assert.equal(await dueAt(moving), before);
    const late = { ...deps, now: () => Date.now() + 60_000 };
    await Promise.all([1, 2].map(() => sweep(late, new AbortController().signal)));
    assert.equal(Date.parse(await dueAt(moving)) - Date.parse(before), 3_600_000);
    const stream = await world.store.readStream(`campaign-${id}`);
    assert.deepEqual(
      stream.slice(2).map(({ type, data }) => [type, data.shifted, data.skipped, data.passedOver]),
      [
        [
          ...['CampaignShiftCompleted', 1, 3],
          [
            { reason: 'publishing', targetIds: [begun] },
            { reason: 'canceled', targetIds: [canceled] },
          ],
        ],
      ],
    );
    // It can be moved again by now, and is not: the shift is over.
    const policy = { deferDelaysMs: [1_000], jitter: 0, maxRateLimits: 2 };
    const limited = { type: 'RecordRateLimited', attempt: 1, takeover: 0, failure, retryAt: stays } as const;
    await act(postId, begun, { ...limited, policy });
    await sweep(late, new AbortController().signal);
    assert.equal(await dueAt(begun), stays);
    assert.deepEqual(await world.story(`target-${moving}`), ['TargetScheduled', 'TargetRescheduled']);
  });

  t(
    'the sweep completes a revise that died before its targets; a failed post is open again, and ends again',
    async () => {
      const { postId, targetIds } = await world.schedule(accounts.slice(0, 3), { dueAt: later() });
      const [failing = '', canceled = '', other = ''] = targetIds;
      const running = world.outcomes(200);
      const start = { type: 'Start', now: new Date(later() + 1).toISOString() } as const;
      const claim = { attempt: 1, takeover: 0 };
      await act(postId, failing, start);
      await act(postId, failing, { type: 'RecordFailed', ...claim, failure });
      await act(postId, canceled, {
        type: 'Cancel',
        reason: 'requested',
        postRevision: null,
        now: new Date().toISOString(),
      });
      await act(postId, other, start);
      await act(postId, other, { type: 'RecordFailed', ...claim, failure });
      await is(postId, 'failed');
      const { state } = await world.store.load(post, postId);
      assert.ok(state.status === 'live');
      const body = { ...state.body, content: 'newer' };
      const named = { changed: ['content'], targetIds: [failing, canceled, other], times: null };
      const revise = { type: 'Revise', commandId: randomUUID(), body, ...named } as const;
      await execute(world.store, post, postId, revise, world.context());
      assert.equal(await postStatus(postId), 'scheduled');
      await world.all([failing, other], 'pending');
      await until('the skip is recorded', async () =>
        (await world.story(`post-${postId}`)).includes('PostTargetsSkipped'),
      );
      for (const id of [failing, other]) await publish(postId, id);
      await is(postId, 'published');
      await running.stop();
      const wholes = (await world.story(`post-${postId}`)).filter((type) =>
        /^Post(Published|Failed|Partially)/.test(type),
      );
      assert.deepEqual(wholes, ['PostFailed', 'PostPublished']);
    },
  );

  t('one bad post delays no other: it is counted and retried after ever longer pauses', async () => {
    const [bad, good] = [
      await world.schedule(accounts, { dueAt: later(), fan: false }),
      await world.schedule(accounts, { dueAt: later(), fan: false }),
    ];
    const behind = async () => {
      const { rows } = await world.pool.query(`select count(*)::int as n from ${view('posts')} where fan_out_behind`);
      return rows[0].n;
    };
    await until('both are seen to be behind', async () => (await behind()) === 2);
    let loads = 0;
    let sick: unknown = new InvalidEvent(`post-${bad.postId}`, 'PostScheduled', 'asked for');
    const store: typeof world.store = Object.assign(Object.create(world.store), {
      load: (...args: Parameters<typeof world.store.load>) => {
        if (args[1] !== bad.postId) return world.store.load(...args);
        loads += 1;
        throw sick;
      },
      append: world.store.append.bind(world.store),
      readStream: world.store.readStream.bind(world.store),
    });
    let now = 0;
    const [failed, resting] = [[] as string[], new Resting(() => now)];
    const registry = createRegistry('test');
    const count = sweepMetrics(registry, world.pool).onFailure;
    const onFailure = (kind: SweptKind) => {
      failed.push(kind);
      count(kind);
    };
    const deps = { store, pool: world.pool, logger: createLogger('test', 'silent'), resting, onFailure };
    const swept = () => sweep(deps, new AbortController().signal);
    assert.equal(await swept(), 1, 'the good one, though the bad one is older');
    await world.all(good.targetIds, 'pending');
    const minutes = (n: number) => n * 60_000;
    for (const [at, expected] of [
      [1, 1],
      [minutes(1) - 1, 1],
      [minutes(1), 2],
      [minutes(3) - 1, 2],
      [minutes(3), 3],
    ] as const) {
      now = at;
      await swept();
      assert.equal(loads, expected, `after ${at} ms`);
    }
    assert.deepEqual(failed, ['post', 'post', 'post']);
    await until('the row of the good one says so', async () => (await behind()) === 1);
    const shown = await registry.metrics();
    assert.match(shown, /^plans_behind\{thread="test"\} 1$/m);
    const [, age] = /^plans_behind_oldest_seconds\{thread="test"\} ([\d.]+)$/m.exec(shown) ?? [];
    assert.ok(Number(age) > 0, 'the first scrape knows its age');
    assert.match(shown, /^sweep_failures_total\{kind="post",thread="test"\} 3$/m);
    now = minutes(60);
    sick = new Unavailable('asked for');
    await assert.rejects(swept(), Unavailable, 'a part that is away ends the sweep');
    assert.equal(failed.length, 3, 'and is no fault of the post');
    await world.schedule(accounts, { dueAt: later(), fan: false });
    await until('one more is seen to be behind', async () => (await behind()) === 2);
    await assert.rejects(swept(), Unavailable, 'the second sweep ends at the same post');
    assert.equal(failed.length, 4, 'and the post rests');
    assert.equal(await swept(), 1, 'so that the third gets to the one behind it');
    await until('the row of that one says so', async () => (await behind()) === 1);
    now = minutes(120);
    assert.equal(await sweep({ ...deps, store: world.store }, new AbortController().signal), 1);
    await world.all(bad.targetIds, 'pending');
  });

  t('both consumers run', async () => {
    const running = world.outcomes();
    await until('lanes run', () =>
      running.outcomes.consumers.every((one) => [...one.status().values()].every(({ state }) => state === 'running')),
    );
    await running.stop();
  });
});
