import assert from 'node:assert/strict';
import { type TargetCommand, target } from '#domain/post-target/target.ts';
import { noAdapter } from '#domain/publish-failures.ts';
import { leaseKindOfTargets } from '#projections/queries/due-targets.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { Restores, restored } from '#runtime/work/restores.ts';
import type { Platform } from '#schemas/common.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { type Composer, composer, refused } from '#test/support/composing.ts';
import type { World } from '#test/support/http.ts';
import { connect, type Mcp, mcpWorld } from '#test/support/mcp.ts';
import { suite } from '#test/support/suite.ts';

suite('a person’s word after a restore', (t) => {
  let world: World;
  let mcp: Mcp;
  let one: Composer;
  let other: Composer;
  t.before(async () => {
    const query = ((...given: Parameters<World['pool']['query']>) =>
      world.pool.query(...given)) as World['pool']['query'];
    world = await mcpWorld({ deps: { restores: new Restores({ query }) } });
    mcp = await connect(world, world.testKey.secret);
    one = await composer(world, ['telegram', 'x']);
    other = await composer(world, ['telegram', 'x']);
    await world.tester.patch(`/clients/${other.clientId}`, { approvalRequired: true });
  });
  t.after(async () => {
    await mcp?.close();
    await world?.close();
  });

  const on = ({ accounts }: Composer, platform: Platform): string => accounts[platform] ?? '';
  const body = (of: Composer, platforms: readonly Platform[], more: Readonly<Record<string, unknown>> = {}) =>
    of.body({ targets: { mode: 'selection', accountIds: platforms.map((name) => on(of, name)) }, ...more });
  const made = async (of: Composer, platforms: readonly Platform[], more: Readonly<Record<string, unknown>> = {}) => {
    const { status, data, text } = await world.tester.post('/posts', body(of, platforms, more));
    assert.equal(status, 200, text);
    return data as typeof data & { readonly targets: readonly { readonly id: string }[] };
  };
  const act = async (id: string, command: TargetCommand) => {
    const { state, events } = await world.store.load(target, id);
    assert.ok(state.status !== 'none');
    const context = contextOf(world.operator, events[0]?.metadata.workspaceId ?? '');
    return execute(world.store, target, id, command, context, { partitionKey: state.common.postId });
  };
  const failed = async (of: Composer, platform: Platform, content: string): Promise<string> => {
    const { targets } = await made(of, [platform], { content });
    const id = targets[0]?.id ?? '';
    await act(id, { type: 'Start', now: new Date(Date.now() + 2 * 86_400_000).toISOString() });
    await act(id, { type: 'RecordFailed', attempt: 1, takeover: 0, failure: noAdapter });
    return id;
  };

  t('a retry, a publication and a release that no network can answer for wait for it, at each door', async () => {
    const ids = await Promise.all(['a', 'b', 'c'].map((text) => failed(one, 'telegram', text)));
    const askable = await failed(one, 'x', 'd');
    const page = await failed(await composer(world, ['linkedin'], { username: 'acme' }), 'linkedin', 'e');
    const person = await failed(await composer(world, ['linkedin'], { username: 'member-acme' }), 'linkedin', 'e');
    const drafts = await Promise.all(
      (['telegram', 'x'] as const).map((name) => made(one, [name], { saveDraft: true })),
    );
    const held = await made(other, ['telegram']);
    const { targets: due } = await made(one, ['telegram'], { content: 'due' });
    const lost = due[0]?.id ?? '';
    const asOf = new Date(Date.now() - 3_600_000).toISOString();
    await restored(world.pool, asOf, 'ann');
    const { rows } = await world.pool.query<{ at: Date }>('select restored_at as at from ops.restores');
    const restoredAt = rows[0]?.at.toISOString() ?? '';
    const evenLater = { reconcileAt: restoredAt, evenLater: true } as const;
    await act(lost, { type: 'RecordRestored', restoredAt, ...evenLater });
    await world.settled();

    refused(await world.tester.post(`/post-targets/${ids[0]}/retry`), 409, 'restore_unconfirmed');
    refused(await world.tester.post(`/post-targets/${lost}/retry`), 409, 'restore_unconfirmed');
    // LinkedIn lists the posts of a page, never those of a person.
    assert.equal((await world.tester.post(`/post-targets/${page}/retry`)).status, 200);
    refused(await world.tester.post(`/post-targets/${person}/retry`), 409, 'restore_unconfirmed');
    const bulk = await world.tester.post('/post-targets/bulk', { action: 'retry', targetIds: [ids[1], askable] });
    assert.match(bulk.text, /restore_unconfirmed/);
    assert.equal((await world.store.load(target, askable)).state.status, 'pending');
    const tool = await mcp.call('retry', { targetIds: [ids[2]] });
    assert.match(tool.text, new RegExp(`Look at these accounts, and confirm them: ${on(one, 'telegram')}`));
    const publish = (id: string) => world.tester.post(`/posts/${id}/publish`, {});
    refused(await publish(drafts[0]?.id ?? ''), 409, 'restore_unconfirmed');
    assert.equal((await publish(drafts[1]?.id ?? '')).status, 200);
    const drafted = await mcp.call('publish_draft', { postId: drafts[0]?.id, action: 'publish_now' });
    assert.equal(drafted.code, 'restore_unconfirmed', drafted.text);
    const approvalId = String(held.approvalId);
    refused(await world.tester.post(`/approvals/${approvalId}/approve`, {}), 409, 'restore_unconfirmed');

    // A new post needs none, and neither does one to an account that somebody confirmed.
    const fresh = await world.tester.post('/posts', body(one, ['telegram'], { content: 'fresh' }));
    assert.equal(fresh.status, 200, fresh.text);
    const said = await mcp.call('confirm_account', { accountId: on(one, 'telegram') });
    assert.equal(said.isError, false, said.text);
    // As a publisher left it when its questions were over.
    await world.pool.query(
      `insert into ops.work_leases (kind, id, holder, epoch, until, not_before)
       values ($1, $2, 'gone', 1, now(), now() + interval '1 hour')`,
      [leaseKindOfTargets, lost],
    );
    for (const id of [...ids, lost]) {
      const { status, text } = await world.tester.post(`/post-targets/${id}/retry`);
      assert.equal(status, 200, text);
      assert.equal((await world.store.load(target, id)).state.status, 'pending');
    }
    const rests = await world.pool.query('select 1 from ops.work_leases where id = $1 and not_before > now()', [lost]);
    assert.equal(rests.rowCount, 0, 'a retry waits for no rest');
    assert.equal((await publish(drafts[0]?.id ?? '')).status, 200);
    refused(await world.tester.post(`/approvals/${approvalId}/approve`, {}), 409, 'restore_unconfirmed');
    const path = `/accounts/${on(other, 'telegram')}/confirm-restored`;
    assert.equal((await world.tester.post(path)).status, 200);
    assert.equal((await world.tester.post(`/approvals/${approvalId}/approve`, {})).status, 200);
  });

  t('nobody gives it for an account of another workspace', async () => {
    const path = `/accounts/${on(one, 'x')}/confirm-restored`;
    refused(await world.owner.post(path), 404, 'not_found');
    const { rows } = await world.pool.query('select account_id::text as id from ops.restore_words');
    assert.deepEqual(rows.map(({ id }) => id).sort(), [on(one, 'telegram'), on(other, 'telegram')].sort());
  });
});
