import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { testTwinIdOf } from '#domain/ids.ts';
import { view } from '#projections/shapes.ts';
import { limitCodesOf, namesOther } from '#services/api/call/access.ts';
import type { Operation } from '#services/api/call/operation.ts';
import { operations } from '#services/api/operations.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { readyAsset } from '#test/support/assets.ts';
import { testClickHouse } from '#test/support/clickhouse.ts';
import { type Composer, composer, refused, tomorrow } from '#test/support/composing.ts';
import { type Answered, type Caller, startWorld, type World } from '#test/support/http.ts';
import { planned, postBody } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';
import { uploaded } from '#test/support/uploads.ts';

/**
 * A key that is limited to clients, against the table of all operations: nothing of another client shows in any answer,
 * and an id of another client is answered as one that nobody has.
 */

const nowhere = '00000000-0000-4000-8000-000000000000';
const at = { type: 'at', scheduledAt: tomorrow() };
const idsOf = ({ rows }: Answered) => rows.map(({ id, postId }) => String(id ?? postId)).sort();
/** Words of an answer without the id that was sent, and without what differs between any two. */
const words = ({ status, body }: Answered, id: string): string =>
  `${status} ${JSON.stringify({ ...body, correlationId: '' }).replaceAll(id, '<id>')}`;

interface Furnished {
  readonly clientId: string;
  readonly accounts: Composer['accounts'];
  readonly post: string;
  readonly draft: string;
  readonly target: string;
  readonly asset: string;
  readonly upload: string;
  readonly published: string;
}

suite('a key limited to clients', { timeoutMs: 120_000 }, (t) => {
  let world: World;
  let all: Caller;
  let limited: Caller;
  let several: Caller;
  let mine: Furnished;
  let second: Furnished;
  let theirs: Furnished;
  /** A post and a draft of my client that go to an account of the other client, too; an asset of nobody. */
  let mixed: { readonly post: string; readonly draft: string; readonly ownTarget: string; readonly asset: string };

  const furnish = async (name: string): Promise<Furnished> => {
    const twin = testTwinIdOf(world.workspaceId);
    const made = await composer(world, ['x', 'bluesky'], { name });
    const { clientId, accounts } = made;
    const post = await all.post('/posts', made.body({ schedule: at, content: name }));
    const draft = await all.post('/posts', made.body({ schedule: at, content: name, saveDraft: true }));
    const asset = await readyAsset(world.store, twin, 'image', { name, clientId });
    const offer = await uploaded(all, { clientId });
    const published = randomUUID();
    const where = { clientId, accountId: accounts.x ?? '', platform: 'x' } as const;
    const publishedAt = new Date(Date.now() - 3_600_000).toISOString();
    const target = planned({ targetId: randomUUID(), ...where, dueAt: publishedAt });
    const plan = { number: 1, targets: [target] };
    const out = { attempt: 1, takeover: 0, externalId: 'x-1', permalink: null, publishedAt };
    const settled = { targetId: target.targetId, targetRevision: 1, outcome: 'published', publishedAt };
    const streams = {
      [`post-${published}`]: [
        { type: 'PostScheduled', data: { clientId, createdBy: { type: 'member', id: 'm' }, body: postBody(), plan } },
        { type: 'PostTargetSettled', data: settled },
      ],
      [`target-${target.targetId}`]: [
        { type: 'TargetScheduled', data: { ...target, postId: published, postRevision: 0 } },
        { type: 'TargetPublished', data: out },
      ],
    };
    for (const [stream, events] of Object.entries(streams)) {
      await world.store.append(stream, -1, events, contextOf(world.operator, twin), published);
    }
    const targets = post.data.targets as readonly { readonly id: string }[];
    return {
      ...{ clientId, accounts, published, post: post.data.id, draft: draft.data.id, target: targets[0]?.id ?? '' },
      ...{ asset: asset.id, upload: String(offer.data.assetId) },
    };
  };

  t.before(async () => {
    const { client } = await testClickHouse();
    world = await startWorld({ deps: { analytics: client } });
    all = world.tester;
    [mine, second, theirs] = [await furnish('Mine'), await furnish('Second'), await furnish('Theirs')];
    const accountIds = [mine.accounts.x, theirs.accounts.x];
    const body = { clientId: mine.clientId, content: 'mixed', schedule: at, targets: { mode: 'accounts', accountIds } };
    const post = await all.post('/posts', body);
    assert.equal(post.status, 200, post.text);
    const draft = await all.post('/posts', { ...body, saveDraft: true });
    const targets = post.data.targets as readonly { readonly id: string; readonly clientId: string }[];
    const asset = await readyAsset(world.store, testTwinIdOf(world.workspaceId), 'image', { name: 'everybody' });
    mixed = {
      ...{ post: post.data.id, draft: draft.data.id, asset: asset.id },
      ownTarget: targets.find(({ clientId }) => clientId === mine.clientId)?.id ?? '',
    };
    const keyOf = async (...clientIds: readonly string[]) =>
      (await world.keyOf(world.workspaceId, world.memberId, { mode: 'test', clientIds })).caller;
    limited = await keyOf(mine.clientId);
    several = await keyOf(mine.clientId, second.clientId);
    await world.settled();
  });
  t.after(() => world?.close());

  const theirIds = (): readonly string[] => [
    ...[theirs.clientId, theirs.accounts.x ?? '', theirs.accounts.bluesky ?? '', theirs.post, theirs.draft],
    ...[theirs.target, theirs.asset, theirs.upload, theirs.published, mixed.post, mixed.draft],
  ];
  const pathOf = ({ path }: Operation, id: string): string => path.replace(/\{\w+\}/g, id);
  const ask = async (operation: Operation, path: string, caller = limited): Promise<Answered> => {
    const { body } = operation.example;
    return caller.request(operation.method, path, body === undefined ? {} : { body });
  };

  t('the contract says the rule of every operation', async () => {
    const { text } = await all.get('/openapi.json');
    const { paths, components } = JSON.parse(text) as {
      readonly paths: Record<
        string,
        Record<string, { readonly responses: Record<string, { readonly $ref?: string }> }>
      >;
      readonly components: { readonly responses: Record<string, object> };
    };
    for (const { id, path, method, limited } of operations) {
      if (limited !== 'open' && limited !== 'ids') assert.ok(text.includes(`\`${id}\``), id);
      const { responses = {} } = paths[path]?.[method.toLowerCase()] ?? {};
      const refused = components.responses[responses['403']?.$ref?.split('/').at(-1) ?? ''];
      assert.equal(JSON.stringify(refused).includes('client_limited'), limitCodesOf(limited).length > 0, id);
    }
  });

  t('every operation answers a foreign id exactly as an unknown one, and stores nothing', async () => {
    const before = await world.head();
    for (const operation of operations) {
      if (operation.scope === null || !operation.path.includes('{id}')) continue;
      const unknown = await ask(operation, pathOf(operation, nowhere));
      const refused = operation.limited === 'refused' ? 'client_limited' : 'not_found';
      const code = operation.firstParty === true ? 'first_party_only' : refused;
      assert.equal(unknown.body.code, code, `${operation.id}: ${unknown.text}`);
      for (const id of theirIds()) {
        const foreign = await ask(operation, pathOf(operation, id));
        assert.equal(words(foreign, id), words(unknown, nowhere), operation.id);
      }
    }
    assert.equal(await world.head(), before);
  });

  t('no operation shows an id, a name or a row of another client', async () => {
    // A shown target names its post, which is of its own client.
    const strange = [...theirIds().filter((id) => id !== mixed.post), 'Theirs'];
    let shown = 0;
    for (const operation of operations) {
      if (operation.method !== 'GET' || operation.scope === null) continue;
      const queries =
        operation.list === true ? ['', `?clientId=${theirs.clientId}`, `?clientId=${mine.clientId}`] : [''];
      for (const query of queries.filter((one) => one === '' || operation.query?.properties.clientId !== undefined)) {
        for (const id of operation.path.includes('{') ? [mine.post, mine.draft, mine.clientId, mine.target] : ['']) {
          const answer = await ask(operation, `${pathOf(operation, id)}${query}`);
          if (answer.status === 200) shown += 1;
          const found = strange.filter((one) => answer.text.includes(one) && !query.includes(one));
          assert.deepEqual(found, [], `${operation.id}${query}: ${answer.text}`);
        }
      }
    }
    assert.ok(shown > 15, `only ${shown} answers`);
  });

  t('lists have the rows of the clients, and all of them', async () => {
    const both = async (path: string) => [idsOf(await limited.get(path)), idsOf(await several.get(path))];
    assert.deepEqual(await both('/clients'), [[mine.clientId], [mine.clientId, second.clientId].sort()]);
    const accountsOf = (...some: readonly Furnished[]) =>
      some.flatMap(({ accounts }) => Object.values(accounts)).sort();
    assert.deepEqual(await both('/accounts'), [accountsOf(mine), accountsOf(mine, second)]);
    const postsOf = (...some: readonly Furnished[]) =>
      some.flatMap((one) => [one.post, one.draft, one.published]).sort();
    assert.deepEqual(await both('/posts'), [postsOf(mine), postsOf(mine, second)]);
    assert.deepEqual(await both('/media'), [
      [mine.asset, mixed.asset].sort(),
      [mine.asset, second.asset, mixed.asset].sort(),
    ]);
    const targets = (await several.get('/post-targets?limit=100')).rows;
    assert.ok(targets.every(({ clientId }) => clientId === mine.clientId || clientId === second.clientId));
    assert.ok(targets.some(({ id }) => id === mixed.ownTarget));
    assert.equal(targets.length, 7);
    const figures = '/analytics/posts';
    assert.deepEqual(idsOf(await limited.get(figures)), [mine.published]);
    assert.deepEqual(idsOf(await several.get(`${figures}?clientId=${second.clientId}`)), [second.published]);
    assert.deepEqual(idsOf(await several.get(`${figures}?clientId=${theirs.clientId}`)), []);
    for (const path of [figures, '/best-times'])
      refused(await several.get(path), 400, 'invalid_parameter', ['/clientId']);
    assert.equal((await limited.get('/best-times')).status, 200);
  });

  t('a page of one limit is none of another', async () => {
    const { nextCursor } = (await several.get('/posts?limit=1')).body.page ?? {};
    assert.equal((await several.get(`/posts?limit=1&cursor=${nextCursor}`)).rows.length, 1);
    for (const caller of [limited, all])
      refused(await caller.get(`/posts?limit=1&cursor=${nextCursor}`), 400, 'invalid_cursor');
  });

  t('a post that goes to another client too is hidden, and so is the draft of one', async () => {
    for (const id of [mixed.post, mixed.draft]) {
      assert.equal((await limited.get(`/posts/${id}`)).status, 404);
      assert.equal((await limited.post(`/posts/${id}/publish`, {})).status, 404);
    }
    // Its own target is shown: it names no other client.
    assert.equal((await limited.get(`/post-targets/${mixed.ownTarget}`)).status, 200);
  });

  t('ids in a body are unknown, also under the key of the call that made the post', async () => {
    const own = {
      clientId: mine.clientId,
      content: 'hello',
      schedule: at,
      targets: { mode: 'group', clientId: mine.clientId },
    };
    const accounts = (id: string | undefined) => ({ targets: { mode: 'accounts', accountIds: [mine.accounts.x, id] } });
    const cases: readonly ((of: Partial<Furnished>) => Record<string, unknown>)[] = [
      ({ clientId }) => ({ ...own, clientId, targets: { mode: 'group', clientId } }),
      ({ accounts: of }) => ({ ...own, ...accounts(of?.x) }),
      ({ asset }) => ({ ...own, mediaIds: [asset] }),
      ({ asset }) => ({ ...own, variants: [{ platform: 'x', mediaIdsOverride: [asset] }] }),
      ({ asset }) => ({ ...own, thread: { segments: [{ content: 'a' }, { content: 'b', mediaIds: [asset] }] } }),
      ({ asset }) => ({ ...own, saveDraft: true, coverMediaId: asset }),
    ];
    const unknown = { clientId: nowhere, accounts: { x: nowhere }, asset: nowhere };
    for (const bodyOf of cases) {
      const foreign = await limited.post('/posts', bodyOf(theirs));
      assert.equal(foreign.status, 422, foreign.text);
      assert.equal(words(foreign, nowhere), words(await limited.post('/posts', bodyOf(unknown)), nowhere));
      assert.match(foreign.text, /"unknown_id"/);
      assert.equal(
        (await limited.post('/posts', bodyOf({ ...mine, accounts: { x: mine.accounts.bluesky ?? '' } }))).status,
        200,
      );
    }
    const body = {
      clientId: theirs.clientId,
      content: 'secret',
      schedule: at,
      targets: { mode: 'group', clientId: theirs.clientId },
    };
    const key = randomUUID();
    assert.equal((await all.post('/posts', body, { key })).status, 200);
    const again = await limited.post('/posts', body, { key });
    assert.equal(again.status, 422, again.text);
    assert.ok(!again.text.includes('secret'));
    // Names in free-form settings are no ids.
    const overrides = { accountId: theirs.accounts.x, clientId: theirs.clientId };
    const kept = await limited.post('/posts', { ...own, variants: [{ platform: 'x', overrides }] });
    assert.equal(kept.status, 200, kept.text);
    assert.deepEqual((kept.data.variants as { overrides: unknown }[])[0]?.overrides, overrides);
  });

  t('an entry of a bulk call and a target of one are unknown like any other, also for a repeat', async () => {
    const own = { content: 'hello', schedule: at, clientId: mine.clientId };
    const group = (clientId: string) => ({ ...own, clientId, targets: { mode: 'group', clientId } });
    const results = ({ data }: Answered) => data.results as readonly Record<string, unknown>[];
    const posts = [group(mine.clientId), group(theirs.clientId), { ...group(mine.clientId), mediaIds: [theirs.asset] }];
    const made = await limited.post('/posts/bulk', { posts });
    assert.deepEqual(
      results(made).map(({ status }) => status),
      ['created', 'rejected', 'rejected'],
      made.text,
    );
    const unknown = [group(mine.clientId), group(nowhere), { ...group(mine.clientId), mediaIds: [nowhere] }];
    const others = await limited.post('/posts/bulk', { posts: unknown });
    const errors = (answer: Answered) =>
      results(answer)
        .slice(1)
        .map(({ error }) => ({ ...(error as object), correlationId: '' }));
    assert.deepEqual(errors(made), errors(others));
    const key = randomUUID();
    assert.equal((await all.post('/posts/bulk', { posts }, { key })).status, 200);
    refused(await limited.post('/posts/bulk', { posts }, { key }), 422, 'idempotency_key_reused');
    const same = { posts: [group(second.clientId)] };
    assert.deepEqual(
      results(await several.post('/posts/bulk', same, { key: `${key}-2` })),
      results(await all.post('/posts/bulk', same, { key: `${key}-2` })),
    );

    const targetIds = [mine.target, theirs.target, nowhere];
    const moved = await limited.post('/post-targets/bulk', { action: 'reschedule', targetIds, shiftMinutes: 1 });
    assert.deepEqual(
      results(moved).map(({ targetId, ok, error }) => [targetId, ok, (error as { code?: string } | undefined)?.code]),
      [
        [mine.target, true, undefined],
        [theirs.target, false, 'not_found'],
        [nowhere, false, 'not_found'],
      ],
      moved.text,
    );
    const seen = await limited.post('/posts/preview', { ...group(mine.clientId), mediaIds: [theirs.asset] });
    assert.match(seen.text, /"unknown_id"/);
  });

  t('a preview says nothing of the posts of another client on an account of the key', async () => {
    const targets = { mode: 'accounts', accountIds: [mine.accounts.x] };
    const body = { content: 'Twice on one account.', schedule: at, targets };
    const other = await all.post('/posts', { ...body, clientId: theirs.clientId });
    assert.equal(other.status, 200, other.text);
    await world.settled();
    const preview = { ...body, clientId: mine.clientId };
    assert.match((await all.post('/posts/preview', preview)).text, /"duplicate_text"/);
    const shown = await limited.post('/posts/preview', preview);
    assert.equal(shown.status, 200, shown.text);
    assert.doesNotMatch(shown.text, /"duplicate_text"/);
    assert.ok(!shown.text.includes(other.data.id));
    // Nor of a post that goes to another client, too.
    const accountIds = [mine.accounts.x, theirs.accounts.x];
    const both = { ...preview, content: 'Twice, and for two clients.', targets: { mode: 'accounts', accountIds } };
    assert.equal((await all.post('/posts', both)).status, 200);
    await world.settled();
    const again = { ...both, targets };
    assert.match((await all.post('/posts/preview', again)).text, /"duplicate_text"/);
    assert.doesNotMatch((await limited.post('/posts/preview', again)).text, /"duplicate_text"/);
    // A post of the key's own clients is told of, also where it hides another.
    const own = await all.post('/posts', { ...preview, content: body.content });
    await world.settled();
    assert.ok((await limited.post('/posts/preview', preview)).text.includes(own.data.id));
  });

  t('a post whose targets are not written yet is shown by the accounts that it names', async () => {
    const isListed = async () => idsOf(await limited.get('/posts?limit=100')).includes(mixed.post);
    assert.equal(await isListed(), false);
    const { rows } = await world.pool.query(`select * from ${view('post_targets')} where post_id = $1`, [mixed.post]);
    assert.equal(rows.length, 2);
    // As while the fan-out is left to the sweeper, and after its first target.
    await world.pool.query(`update ${view('posts')} set fan_out_behind = true where id = $1`, [mixed.post]);
    await world.pool.query(`delete from ${view('post_targets')} where post_id = $1 and client_id <> $2`, [
      mixed.post,
      mine.clientId,
    ]);
    assert.equal(await isListed(), false);
    const targets = { mode: 'accounts', accountIds: [mine.accounts.x] };
    const preview = { clientId: mine.clientId, content: 'mixed', schedule: at, targets };
    assert.ok((await all.post('/posts/preview', preview)).text.includes(mixed.post));
    assert.doesNotMatch((await limited.post('/posts/preview', preview)).text, /"duplicate_text"/);
    await world.pool.query(`update ${view('posts')} set fan_out_behind = true where id = $1`, [mine.post]);
    assert.ok(idsOf(await limited.get('/posts?limit=100')).includes(mine.post));
  });

  t('assets are made for a client of the key; those of the workspace are read and used, never changed', async () => {
    const presign = { fileName: 'a.jpg', contentType: 'image/jpeg', bytes: 10 };
    refused(await limited.post('/media/presign', presign), 422, 'validation_failed', ['/clientId']);
    refused(await limited.post('/media/presign', { ...presign, clientId: theirs.clientId }), 422, 'validation_failed', [
      '/clientId',
    ]);
    assert.equal((await limited.post('/media/presign', { ...presign, clientId: mine.clientId })).status, 200);
    refused(await limited.post('/media/import-url', { url: 'https://cdn.example/a.jpg' }), 422, 'validation_failed', [
      '/clientId',
    ]);
    assert.equal((await limited.post('/media', { assetId: mine.upload })).status, 200);
    const unknown = await limited.post('/media', { assetId: nowhere });
    assert.equal(
      words(await limited.post('/media', { assetId: theirs.upload }), theirs.upload),
      words(unknown, nowhere),
    );
    const offer = await uploaded(all);
    refused(await limited.post('/media', { assetId: offer.data.assetId }), 403, 'client_limited');
    assert.equal((await limited.get(`/media/${mixed.asset}`)).status, 200);
    refused(await limited.delete(`/media/${mixed.asset}`), 403, 'client_limited');
    const body = {
      clientId: mine.clientId,
      content: '',
      schedule: at,
      targets: { mode: 'group', clientId: mine.clientId },
    };
    assert.equal((await limited.post('/posts', { ...body, mediaIds: [mixed.asset] })).status, 200);
    assert.equal((await limited.delete(`/media/${mine.asset}`)).body.code, 'media_in_use');
  });

  t('the targets of a bulk call are looked up in one query, and those that no row shows in their streams', async () => {
    const { store, knex } = world.deps;
    const draft = await all.post('/posts', {
      ...{ content: 'hello', schedule: at, clientId: mine.clientId },
      targets: { mode: 'accounts', accountIds: [mine.accounts.x] },
    });
    const [fresh] = draft.data.targets as readonly { readonly id: string }[];
    await world.settled();
    await world.pool.query(`delete from ${view('post_targets')} where id = $1`, [fresh?.id]);
    const strange = (await several.get('/post-targets?limit=100')).rows.filter(
      ({ clientId }) => clientId === second.clientId,
    );
    assert.ok(strange.length > 2);
    const targetIds = [...strange.map(({ id }) => id), theirs.target, mine.target, fresh?.id];
    const asked: string[] = [];
    const streams: string[] = [];
    const note = ({ sql }: { readonly sql: string }) => asked.push(sql);
    const read = store.readStream;
    store.readStream = (name, ...more) => {
      streams.push(name);
      return read.call(store, name, ...more);
    };
    knex.on('query', note);
    try {
      const moved = await limited.post('/post-targets/bulk', { action: 'reschedule', targetIds, shiftMinutes: 1 });
      const reported = (moved.data.results as readonly { readonly ok: boolean }[]).map(({ ok }) => ok);
      assert.deepEqual(reported, [...Array(strange.length + 1).fill(false), true, true], moved.text);
    } finally {
      knex.removeListener('query', note);
      store.readStream = read;
    }
    assert.equal(asked.filter((sql) => sql.includes('"postClientId"')).length, 1, asked.join('\n'));
    assert.deepEqual(
      targetIds.slice(0, -2).filter((id) => streams.includes(`target-${id}`)),
      [],
    );
  });

  t('the answer of a bulk call that names another client is refused before its first byte', async () => {
    const { store } = world.deps;
    const own = { content: 'hello', schedule: at, clientId: mine.clientId };
    const posts = [{ ...own, targets: { mode: 'group', clientId: mine.clientId } }];
    const calls = [
      { path: '/posts/bulk', body: { posts }, theirs: `post-${theirs.post}` },
      {
        path: '/post-targets/bulk',
        body: { action: 'reschedule', targetIds: [mine.target], shiftMinutes: 1 },
        theirs: `target-${theirs.target}`,
      },
    ];
    for (const { path, body, theirs: instead } of calls) {
      const key = randomUUID();
      const made = await limited.post(path, body, { key });
      assert.equal(made.status, 200, made.text);
      const [result] = made.data.results as readonly { readonly post?: { readonly id: string } }[];
      const stream = result?.post === undefined ? `target-${mine.target}` : `post-${result.post.id}`;
      // A mistake that no id of the call shows: the answer to a repeat is made from a stream of the other client.
      const [read, foreign] = [store.readStream, await store.readStream(instead)];
      store.readStream = async (name, upTo, ...more) =>
        name === stream && (upTo !== undefined || name.startsWith('post-'))
          ? foreign
          : read.call(store, name, upTo, ...more);
      try {
        const leaking = await all.post(path, body, { key });
        assert.equal(leaking.status, 200, leaking.text);
        assert.ok(leaking.text.includes(theirs.clientId), `${path} leaks nothing: ${leaking.text}`);
        refused(await limited.post(path, body, { key }), 404, 'not_found');
      } finally {
        store.readStream = read;
      }
      assert.deepEqual((await limited.post(path, body, { key })).data, made.data);
    }
  });

  t('what it may do it does: posts, targets, its client; a key for all clients is as before', async () => {
    assert.equal((await limited.get('/agency')).status, 200);
    assert.equal((await limited.patch(`/clients/${mine.clientId}`, { timezone: 'Asia/Tokyo' })).status, 200);
    assert.equal((await limited.post(`/clients/${mine.clientId}/connect-invites`, { platforms: ['x'] })).status, 200);
    assert.equal((await limited.post(`/post-targets/${mine.target}/cancel`)).status, 200);
    assert.equal((await limited.post(`/posts/${mine.draft}/publish`, {})).status, 200);
    assert.equal((await all.get(`/posts/${mixed.post}`)).status, 200);
    refused(await limited.post('/clients', { name: 'New', type: 'brand' }), 403, 'client_limited');
  });

  t('an answer that names another client is found, wherever it stands', () => {
    assert.equal(namesOther({ a: [{ b: { clientId: 'theirs' } }] }, ['mine']), true);
    assert.equal(namesOther([{ clientId: 'mine', targets: [{ clientId: null }] }, 'theirs', null], ['mine']), false);
    assert.equal(namesOther({ overrides: { clientId: 'theirs' } }, ['mine']), false);
  });
});
