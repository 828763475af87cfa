import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { account } from '#domain/account.ts';
import { targetIdOf } from '#domain/ids.ts';
import { post } from '#domain/post/post.ts';
import { type TargetCommand, type TargetIn, target } from '#domain/post-target/target.ts';
import { noAdapter } from '#domain/publish-failures.ts';
import { SandboxNetwork } from '#infra/platforms/sandbox/index.ts';
import { view } from '#projections/shapes.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { everyWorkspace, resumePublishing } from '#runtime/work/publishing-hold.ts';
import { newestRestore, restored, trustAccount } from '#runtime/work/restores.ts';
import type { Platform } from '#schemas/common.ts';
import type { PublisherDeps } from '#services/publisher/publisher.ts';
import { fanOut } from '#services/workflows/fan-out.ts';
import { type XWorld, xWorld } from '#test/support/networks/x/world.ts';
import { preparedDatabase, testDatabase } from '#test/support/postgres.ts';
import { type Account, PublishingWorld, quickNetwork } from '#test/support/publishing.ts';
import { planned, postBody } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

/**
 * The networks are outside of the database that is restored: the sandbox of all networks in a database of its own, and a
 * simulated X with its own ledger.
 */

const hourMs = 3_600_000;

suite('after a restore from an older copy', { timeoutMs: 240_000 }, (t) => {
  let networks: SandboxNetwork;
  let x: XWorld;
  t.before(async () => {
    networks = new SandboxNetwork({ database: { url: (await preparedDatabase()).url }, ...quickNetwork });
    x = await xWorld();
  });
  t.after(async () => {
    await x?.network.close();
    await networks?.close();
  });

  const adapterOf: PublisherDeps['adapterOf'] = (network) => (network === 'live' ? x.adapter : networks);
  const ask = async (world: PublishingWorld, id: string, command: TargetCommand) => {
    const { state } = await world.store.load(target, id);
    assert.ok(state.status !== 'none');
    return execute(world.store, target, id, command, world.context(), { partitionKey: state.common.postId });
  };
  const move = (world: PublishingWorld, id: string, dueAt: number, commandId: string = String(Math.random())) =>
    ask(world, id, {
      ...{ type: 'Reschedule', commandId, now: new Date().toISOString(), scheduledLocal: null, jitterSeconds: 0 },
      dueAt: new Date(dueAt).toISOString(),
    });
  const onX = async (world: PublishingWorld, clientId: string): Promise<Account> => {
    const person = x.network.person();
    const one = await world.connect(clientId, 'x', person.id, 'live');
    const kept = await x.account(person);
    const credential = await x.credentials.read(kept.id);
    assert.ok(credential !== null);
    const owner = { accountId: one.id, workspaceId: world.workspaceId, clientId, platform: 'x' as const };
    await x.credentials.keep(owner, { secret: credential.secret, expiresAt: null });
    return one;
  };
  /** Posts that the networks have for a target. */
  const out = async (ids: readonly string[]): Promise<readonly number[]> => {
    const rows = (await networks.ledger({ targetIds: ids, limit: 10_000 })).filter(
      ({ outcome }) => outcome === 'created',
    );
    const created = x.network.state.creates;
    return ids.map((id) => {
      const made = created.filter((one) => one.tag === id && one.postId !== null).length;
      return made + rows.filter((row) => row.targetId === id).length;
    });
  };
  const statusesOf = (world: PublishingWorld, ids: readonly string[]) =>
    Promise.all(ids.map(async (id) => (await world.target(id)).status));

  t(
    'of 20 targets that went out none goes out twice; what the networks show is published, the rest waits for a person',
    async () => {
      const { url } = await preparedDatabase();
      const copied = async (): Promise<string> => (await testDatabase(new URL(url).pathname.slice(1))).url;
      let world = await PublishingWorld.open(url);
      const clientId = await world.client();
      const accounts: Account[] = [];
      for (let at = 0; at < 5; at += 1) accounts.push(await onX(world, clientId));
      for (const platform of ['facebook', 'threads', 'bluesky', 'linkedin'] as const satisfies readonly Platform[]) {
        for (let at = 0; at < 3; at += 1) accounts.push(await world.connect(clientId, platform));
      }
      for (let at = 0; at < 3; at += 1) accounts.push(await world.connect(clientId, 'telegram'));
      const isSilent = accounts.map(({ platform }) => platform === 'telegram');
      const due = await world.schedule(accounts, { text: 'Good morning', dueAt: Date.now() + 1_000 });
      assert.equal(due.targetIds.length, 20);
      // Later ones: two that go out early, in the time that is lost, and two that do not; one that failed, and one held.
      const facebook = await world.connect(clientId, 'facebook');
      const telegram = await world.connect(clientId, 'telegram');
      const later = (one: Account, text: string) => world.schedule([one], { text, dueAt: Date.now() + hourMs });
      const [early, earlySilent, late, lateSilent, trusted] = await Promise.all([
        ...[later(facebook, 'early'), later(telegram, 'early'), later(facebook, 'late'), later(telegram, 'late')],
        later(await world.connect(clientId, 'telegram'), 'trusted'),
      ]);
      type Made = Awaited<ReturnType<typeof later>> | undefined;
      const idOf = (made: Made): string => made?.targetIds[0] ?? '';
      const failing = idOf(await later(facebook, 'failed'));
      await move(world, failing, Date.now() - 1_000);
      await ask(world, failing, { type: 'Start', now: new Date().toISOString() });
      await ask(world, failing, { type: 'RecordFailed', attempt: 1, takeover: 0, failure: noAdapter });
      const trustedAccount = ((await world.target(idOf(trusted))) as TargetIn<'pending'>).common.accountId;
      const all = [...due.targetIds, ...[early, earlySilent, late, lateSilent, trusted].map(idOf), failing];
      await until('the rows are there', async () => {
        const sql = `select count(*)::int as n from ${view('post_targets')} where id = any($1)`;
        return (await world.pool.query<{ n: number }>(sql, [all])).rows[0]?.n === all.length;
      });
      await world.close();
      const copy = await copied();
      const asOf = new Date().toISOString();

      // The time that is lost.
      world = await PublishingWorld.open(url);
      const publisher = world.publisher({}, { adapterOf });
      await world.all(due.targetIds, 'published');
      for (const id of [idOf(early), idOf(earlySilent)]) await move(world, id, Date.now());
      await ask(world, failing, { type: 'Retry', commandId: 'again', now: new Date().toISOString() });
      const gone = [...due.targetIds, idOf(early), idOf(earlySilent), failing];
      await world.all(gone, 'published');
      await publisher.stop();
      await world.close();
      assert.deepEqual(
        await out(gone),
        gone.map(() => 1),
      );

      // The copy takes its place.
      world = await PublishingWorld.open(copy);
      await restored(world.pool, asOf, 'ann');
      const outcomes = world.outcomes(100);
      // Two at once, as of two processes.
      const publishers = [1, 2].map(() => world.publisher({}, { adapterOf }));
      const seen = due.targetIds.filter((_, at) => isSilent[at] === false);
      const silent = due.targetIds.filter((_, at) => isSilent[at] === true);
      await world.all(seen, 'published');
      await world.all(silent, 'outcome_unknown');
      await until('all of it is recorded', async () => (await newestRestore(world.pool))?.completedAt !== null);
      const [unknown] = (await world.all(silent, 'outcome_unknown')) as readonly TargetIn<'outcome_unknown'>[];
      assert.equal(unknown?.restored, true);
      const events = (await world.store.load(target, silent[0] ?? '')).events;
      const said = events.findLast(({ type }) => type === 'TargetOutcomeUnknown')?.data as
        | { reason?: string }
        | undefined;
      assert.equal(said?.reason, 'restored');
      // A second declaration of the same copy changes nothing.
      const before = await newestRestore(world.pool);
      await restored(world.pool, asOf, 'bob');
      assert.deepEqual(await newestRestore(world.pool), before);

      // What is due later, and what failed, is asked about before its first claim.
      await resumePublishing(world.pool, everyWorkspace);
      await trustAccount(world.pool, trustedAccount, 'ann');
      for (const made of [early, earlySilent, late, lateSilent, trusted]) await move(world, idOf(made), Date.now());
      await ask(world, failing, { type: 'Retry', commandId: 'once more', now: new Date().toISOString() });
      await world.all([idOf(early), idOf(late), idOf(trusted), failing], 'published');
      await world.all([idOf(earlySilent), idOf(lateSilent)], 'outcome_unknown');
      assert.deepEqual(
        await out(gone),
        gone.map(() => 1),
      );
      assert.deepEqual(await out([idOf(late), idOf(trusted), idOf(lateSilent)]), [1, 1, 0]);

      // A person's word settles the rest: what is not out goes out by a retry.
      const settled = { kind: 'failed', failure: { ...noAdapter, retryable: true } } as const;
      const now = () => new Date().toISOString();
      await ask(world, idOf(lateSilent), { type: 'Settle', by: 'admin', now: now(), outcome: settled });
      await ask(world, idOf(lateSilent), { type: 'Retry', commandId: 'a word', now: now() });
      await world.all([idOf(lateSilent)], 'published');
      assert.deepEqual(
        await out([...all]),
        all.map(() => 1),
      );
      // The same copy takes its place once more: nothing of it goes out again.
      await restored(world.pool, asOf, 'ann', { again: true });
      await until('it is recorded again', async () => (await newestRestore(world.pool))?.completedAt !== null);
      await resumePublishing(world.pool, everyWorkspace);
      assert.deepEqual(
        await out([...all]),
        all.map(() => 1),
      );
      for (const one of publishers) await one.stop();
      await outcomes.stop();
      assert.deepEqual(
        await statusesOf(world, silent),
        silent.map(() => 'outcome_unknown'),
      );
      await world.close();
    },
  );

  t('a draft of before that is published since then is asked about too; a post that is new is not', async () => {
    const world = await PublishingWorld.open((await preparedDatabase()).url);
    const clientId = await world.client();
    const [threads, telegram] = [await world.connect(clientId, 'threads'), await world.connect(clientId, 'telegram')];
    const postId = randomUUID();
    const accountIds = [threads.id, telegram.id];
    const targetSelection = { mode: 'accounts' as const, clientId, accountIds, platforms: null };
    const body = postBody({ content: 'drafted', targetSelection });
    const createdBy = world.context().actor;
    await execute(world.store, post, postId, { type: 'Draft', clientId, createdBy, body }, world.context());
    const asOf = new Date(Date.now() - hourMs).toISOString();
    await restored(world.pool, asOf, 'ann');
    await resumePublishing(world.pool, everyWorkspace);
    const over = Date.parse((await newestRestore(world.pool))?.restoredAt ?? '');
    await until('the restore is over', async () => Date.now() > over);
    const targets = [threads, telegram].map(({ id: accountId, platform }) =>
      planned({
        accountId,
        clientId,
        platform,
        targetId: targetIdOf(postId, accountId, 1),
        dueAt: new Date().toISOString(),
      }),
    );
    const ids = targets.map(({ targetId }) => targetId);
    const context = world.context();
    const { commandId } = context;
    const plan = { number: 1, targets };
    const publish = { type: 'Schedule', commandId, clientId, createdBy, body, plan } as const;
    await execute(world.store, post, postId, publish, context);
    await fanOut(world.store, postId, context);
    const fresh = await world.schedule([telegram], { text: 'new' });
    const publisher = world.publisher({}, { adapterOf });
    await world.all([ids[0] ?? '', ...fresh.targetIds], 'published');
    await world.all(ids.slice(1), 'outcome_unknown');
    assert.deepEqual(await out(ids), [1, 0]);
    await publisher.stop();
    await world.close();
  });

  t(
    'is declared once for a copy, holds publishing with it, and takes another one of the same copy by name',
    async () => {
      const world = await PublishingWorld.open((await preparedDatabase()).url);
      const asOf = new Date(Date.now() - hourMs).toISOString();
      await restored(world.pool, asOf, 'ann');
      const first = await newestRestore(world.pool);
      await restored(world.pool, asOf, 'bob');
      assert.deepEqual(await newestRestore(world.pool), first);
      await until('the clock moved', async () => Date.now() > Date.parse(first?.restoredAt ?? ''));
      await restored(world.pool, asOf, 'bob', { again: true });
      assert.ok(((await newestRestore(world.pool))?.restoredAt ?? '') > (first?.restoredAt ?? ''));
      const { rows } = await world.pool.query('select scope, set_by from ops.publishing_holds');
      assert.deepEqual(rows, [{ scope: 'all', set_by: 'ann' }]);
      assert.equal((await world.store.load(account, world.workspaceId)).state.status, 'none');
      await world.close();
    },
  );
});
