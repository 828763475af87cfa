import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { post } from '#domain/post/post.ts';
import { target } from '#domain/post-target/target.ts';
import { cleanUpDisconnected } from '#services/outcomes/disconnected.ts';
import { type Composer, composedWorld, composer, refused } from '#test/support/composing.ts';
import { suite } from '#test/support/suite.ts';

const { world, tester, composed } = await composedWorld(['x', 'bluesky', 'threads']);

suite('disconnect an account', (t) => {
  const of = ({ accounts }: Composer, platform: string): string => accounts[platform] ?? '';
  const story = async (id: string) => (await world.store.readStream(`account-${id}`)).map(({ type }) => type);
  const reconnect = async (clientId: string, platform: string) => {
    const invite = await tester.post(`/clients/${clientId}/connect-invites`, { platforms: [platform] });
    const form = new URLSearchParams({ platform, username: 'acme', timezone: '' });
    const answer = await fetch(String(invite.data.url), { method: 'POST', body: form });
    assert.equal(answer.status, 200, await answer.text());
    await world.settled();
  };

  t('answers the account, says why, and takes no more posts to it', async () => {
    const id = of(composed, 'x');
    const before = (await tester.get(`/accounts/${id}`)).data;
    const made = await tester.post(`/accounts/${id}/disconnect`);
    assert.equal(made.status, 200, made.text);
    const { health, updatedAt, ...rest } = made.data;
    const { health: _, updatedAt: __, ...kept } = before;
    assert.deepEqual(rest, { ...kept, status: 'disconnected', revision: before.revision + 1 });
    assert.deepEqual(health, { state: 'disconnected', reason: 'Disconnected on request.', checkedAt: updatedAt });
    assert.equal(made.headers.get('etag'), `"${made.data.revision}"`);
    await world.settled();
    assert.deepEqual((await tester.get(`/accounts/${id}`)).data, made.data);
    const listed = await tester.post('/posts', composed.body({ targets: { mode: 'selection', accountIds: [id] } }));
    refused(listed, 422, 'account_disconnected');
    const group = await tester.post('/posts', composed.body());
    const targets = group.data.targets as readonly { readonly platform: string }[];
    assert.deepEqual(targets.map(({ platform }) => platform).sort(), ['bluesky', 'threads']);
  });

  t('a repeat under its key replays; again under another key answers unchanged, without an event', async () => {
    const id = of(composed, 'bluesky');
    const key = randomUUID();
    const first = await tester.post(`/accounts/${id}/disconnect`, undefined, { key });
    const repeat = await tester.post(`/accounts/${id}/disconnect`, undefined, { key });
    assert.equal(repeat.headers.get('idempotent-replayed'), 'true');
    assert.deepEqual(repeat.data, first.data);
    const other = await tester.post(`/accounts/${id}/disconnect`);
    assert.equal(other.status, 200);
    assert.deepEqual(other.data, first.data);
    assert.deepEqual(await story(id), ['AccountConnected', 'AccountDisconnected']);
  });

  t('If-Match guards it, and an id of another tenant is unknown', async () => {
    const id = of(composed, 'threads');
    const stale = await tester.post(`/accounts/${id}/disconnect`, undefined, { headers: { 'if-match': '"7"' } });
    refused(stale, 412, 'revision_mismatch');
    refused(await world.owner.post(`/accounts/${id}/disconnect`), 404, 'not_found');
    refused(await tester.post(`/accounts/${randomUUID()}/disconnect`), 404, 'not_found');
    assert.deepEqual(await story(id), ['AccountConnected']);
    const fresh = await tester.post(`/accounts/${id}/disconnect`, undefined, { headers: { 'if-match': '"0"' } });
    assert.equal(fresh.status, 200, fresh.text);
  });

  t(
    'connected again it keeps its id, its history and its published posts; what was canceled stays canceled',
    async () => {
      const mine = await composer(world, ['x']);
      const id = of(mine, 'x');
      const made = await tester.post('/posts', mine.body());
      const [{ id: targetId = '' } = {}] = made.data.targets as readonly { readonly id: string }[];
      const gone = await tester.post(`/accounts/${id}/disconnect`);
      await world.settled();
      const [event] = (await world.store.readStream(`account-${id}`)).slice(-1);
      const cause = {
        workspaceId: event?.metadata.workspaceId ?? '',
        correlationId: 'c',
        causationId: event?.id ?? '',
      };
      await cleanUpDisconnected(
        world.store,
        world.pool,
        { accountId: id, revision: gone.data.revision, ...cause },
        null,
      );
      await reconnect(mine.clientId, 'x');
      const back = (await tester.get(`/accounts/${id}`)).data;
      assert.deepEqual([back.status, back.createdAt, back.revision], ['connected', gone.data.createdAt, 2]);
      assert.deepEqual(await story(id), ['AccountConnected', 'AccountDisconnected', 'AccountReauthorized']);
      assert.equal((await tester.get(`/post-targets/${targetId}`)).data.status, 'canceled');
      assert.equal((await world.store.load(target, targetId)).state.status, 'canceled');
      const { state } = await world.store.load(post, made.data.id);
      const [intent] = state.status === 'live' ? state.intents : [];
      assert.equal(intent?.kind === 'cancel' && intent.reason, 'account_disconnected');
      const again = await tester.post('/posts', mine.body());
      assert.equal(again.status, 200, again.text);
      refused(await tester.post(`/post-targets/${targetId}/retry`), 409, 'target_not_retryable');
    },
  );
});
