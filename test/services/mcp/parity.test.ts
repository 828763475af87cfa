import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type Composer, composer, tomorrow } from '#test/support/composing.ts';
import type { World } from '#test/support/http.ts';
import { callMessage, connect, failed, type Mcp, mcpWorld, send, worked } from '#test/support/mcp.ts';
import { suite } from '#test/support/suite.ts';

/** The same call over REST and over MCP has the same effects, and a retry of the protocol has none. */

/** Members that differ from call to call, or follow from one that does. */
const ids = /"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"/g;
/** An HMAC over all of the request, ids included. */
const fingerprints = /"fingerprint":"[\w-]+"/g;
const instants = /"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"/g;

suite('mcp and rest', (t) => {
  let world: World;
  let composed: Composer;
  let mcp: Mcp;
  t.before(async () => {
    world = await mcpWorld();
    composed = await composer(world, ['x', 'bluesky'], { name: 'Acme' });
    mcp = await connect(world, world.testKey.secret);
  });
  t.after(async () => {
    await mcp?.close();
    await world?.close();
  });

  /** Types and data of what was stored, without ids and times; in an order that no race changes. */
  const storedBy = async (act: () => Promise<unknown>): Promise<readonly string[]> => {
    const before = await world.head();
    await act();
    const stored: string[] = [];
    const { rows } = await world.pool.query('select distinct stream from es.events where position > $1 order by 1', [
      String(before),
    ]);
    for (const { stream } of rows) {
      for (const { type, data, position } of await world.store.readStream(stream)) {
        if (position === undefined || BigInt(position) <= before) continue;
        stored.push(
          `${type} ${JSON.stringify(data).replace(ids, '"id"').replace(instants, '"time"').replace(fingerprints, '"of"')}`,
        );
      }
    }
    assert.ok(stored.length > 0);
    return stored.sort();
  };

  const at = tomorrow();
  const content = 'The same word.';
  const rest = (more: object = {}) => ({
    ...{ clientId: composed.clientId, content, targets: { mode: 'group', clientId: composed.clientId } },
    schedule: { type: 'at', scheduledAt: at },
    ...more,
  });
  const made = async (more: object = {}): Promise<string> => {
    const { status, data, text } = await world.tester.post('/posts', rest(more));
    assert.equal(status, 200, text);
    await world.settled();
    return data.id;
  };
  const targetsOf = async (id: string) =>
    ((await world.tester.get(`/posts/${id}`)).data.targets as { id: string }[]).map((one) => one.id);

  const same = async (name: string, args: object, other: () => Promise<unknown>): Promise<void> => {
    const [ours, theirs] = [
      await storedBy(async () => worked(await mcp.call(name, args as Record<string, unknown>))),
      await storedBy(other),
    ];
    assert.deepEqual(ours, theirs);
  };

  t('compose: a draft, a scheduled post, one with variants and a thread', async () => {
    const post = (more: object) => () => world.tester.post('/posts', rest(more));
    const { clientId } = composed;
    await same('compose_post', { clientId, content, scheduledAt: at }, post({ saveDraft: true }));
    await same('compose_post', { clientId, content, scheduledAt: at, action: 'schedule' }, post({}));
    const parts = [{ content: 'One' }, { content: 'Two' }];
    await same(
      'compose_post',
      {
        ...{ clientId, content, scheduledAt: at, action: 'schedule', aiDisclosure: true, thread: parts },
        variants: [{ platform: 'x', content: 'On X', settings: { firstComment: 'More' } }],
        accountIds: [composed.accounts.x],
      },
      post({
        targets: { mode: 'selection', clientId, accountIds: [composed.accounts.x] },
        variants: [{ platform: 'x', contentOverride: 'On X', overrides: { firstComment: 'More' } }],
        aiDisclosure: true,
        thread: { segments: parts },
      }),
    );
  });

  t('update, publish, revise', async () => {
    const [draft, twin] = [await made({ saveDraft: true }), await made({ saveDraft: true })];
    await same('revise_post', { postId: draft, content: 'Other' }, () =>
      world.tester.patch(`/posts/${twin}`, { ...rest({ content: 'Other' }), clientId: undefined }),
    );
    await same('publish_draft', { postId: draft, action: 'schedule', scheduledAt: at }, () =>
      world.tester.post(`/posts/${twin}/publish`, { schedule: { type: 'at', scheduledAt: at } }),
    );
    await same('revise_post', { postId: draft, content: 'Revised' }, () =>
      world.tester.post(`/posts/${twin}/revise`, { content: 'Revised' }),
    );
  });

  t('reschedule, cancel', async () => {
    const [one, twin] = [await made(), await made()];
    const scheduledAt = '2027-02-02T10:00:00.000Z';
    const targetIds = await targetsOf(twin);
    await same('reschedule', { postId: one, scheduledAt }, () =>
      world.tester.post('/post-targets/bulk', { action: 'reschedule', targetIds, scheduledAt }),
    );
    await same('cancel', { postId: one }, () => world.tester.delete(`/posts/${twin}`));
  });

  t('import', async () => {
    const url = 'https://cdn.example/winter.png';
    await same('import_media', { url, name: 'a.png' }, () =>
      world.tester.post('/media/import-url', { url, name: 'a.png' }),
    );
  });

  t('a key of the caller makes REST and MCP one call, whatever the client', async () => {
    const idempotencyKey = randomUUID();
    const args = { clientId: composed.clientId, content, scheduledAt: at, action: 'schedule', idempotencyKey };
    const first = worked(await mcp.call('compose_post', args));
    const other = await connect(world, world.testKey.secret, 'v1');
    const answer = await other.call('compose_post', args);
    await other.close();
    const again = worked(answer);
    assert.deepEqual([first.replayed, again.replayed, again.postId], [false, true, first.postId]);
    assert.match(answer.text, /nothing new was done/);
    const byRest = await world.tester.post('/posts', { ...rest(), saveDraft: false }, { key: idempotencyKey });
    assert.equal(byRest.data.id, first.postId);
    failed(await mcp.call('compose_post', { ...args, content: 'Other' }), 'idempotency_key_reused');
  });

  t('the same message twice posts once; another request id, argument or credential posts again', async () => {
    const args = { clientId: composed.clientId, content: 'Once', action: 'schedule', scheduledAt: at };
    const postOf = async (id: number | string, more: object = {}, token = world.testKey.secret) => {
      const { text } = await send(world, token, callMessage('compose_post', { ...args, ...more }, id));
      return /"postId":"([\w-]+)"/.exec(text)?.[1] ?? text;
    };
    const both = await Promise.all([postOf(7), postOf(7)]);
    assert.equal(both[0], both[1]);
    const key = await world.keyOf(world.workspaceId, world.memberId, { mode: 'test' });
    const others = [both[0], await postOf(8), await postOf('7'), await postOf(7, { content: 'Twice' })];
    others.push(await postOf(7, {}, key.secret));
    assert.equal(new Set(others).size, others.length);
  });
});
