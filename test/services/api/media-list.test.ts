import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { MediaKind } from '#schemas/media.ts';
import { type AssetOptions, readyAsset } from '#test/support/assets.ts';
import { composer, refused } from '#test/support/composing.ts';
import { type Caller, startWorld, type World } from '#test/support/http.ts';
import { suite } from '#test/support/suite.ts';
import { presignBody, put, uploaded } from '#test/support/uploads.ts';

const url = 'https://cdn.example.com/a.jpg';

suite('the library as a list', (t) => {
  let world: World;
  let owner: Caller;
  const ids = new Map<string, string>();
  const [acme, other] = [randomUUID(), randomUUID()];
  const nameOf = (id: string): string => [...ids].find(([, one]) => one === id)?.[0] ?? id;

  t.before(async () => {
    world = await startWorld();
    owner = world.owner;
    const add = async (name: string, kind: MediaKind, options: AssetOptions = {}) => {
      const made = await readyAsset(world.store, world.workspaceId, kind, { name, ...options });
      ids.set(name, made.id);
    };
    await add('Winter table.jpg', 'image', { clientId: acme, folder: 'Winter' });
    await add('Winter walk.mp4', 'video', { clientId: acme, folder: 'Winter' });
    await add('100%_menu.pdf', 'document', { folder: 'Menus' });
    await add('Snow.gif', 'gif', { clientId: other });
    await add('winter.jpg', 'image');
    await world.settled();
  });
  t.after(() => world.close());

  t('every filter alone and together; a folder by its whole name', async () => {
    const names = async (query: string) => {
      const answer = await owner.get(`/media${query}`);
      assert.equal(answer.status, 200, answer.text);
      return answer.rows.map(({ id }) => nameOf(id)).sort();
    };
    assert.equal((await names('')).length, 5);
    assert.deepEqual(await names('?kind=image'), ['Winter table.jpg', 'winter.jpg']);
    assert.deepEqual(await names('?kind=document'), ['100%_menu.pdf']);
    assert.deepEqual(await names('?folder=Winter'), ['Winter table.jpg', 'Winter walk.mp4']);
    assert.deepEqual(await names('?folder=winter'), []);
    assert.deepEqual(await names('?folder=Win'), []);
    assert.deepEqual(await names(`?clientId=${other}`), ['Snow.gif']);
    assert.deepEqual(await names(`?clientId=${randomUUID()}`), []);
    assert.deepEqual(await names('?search=WINTER'), ['Winter table.jpg', 'Winter walk.mp4', 'winter.jpg']);
    assert.deepEqual(await names('?search=%25_m'), ['100%_menu.pdf']);
    assert.deepEqual(await names('?search=0_m'), [], 'wildcards are taken literally');
    assert.deepEqual(await names(`?kind=video&folder=Winter&clientId=${acme}&search=walk`), ['Winter walk.mp4']);
    for (const bad of ['kind=audio', 'kind=', 'clientId=x', 'folder=', 'status=transcoded', 'limit=0', 'limit=101']) {
      refused(await owner.get(`/media?${bad}`), 400, 'invalid_parameter');
    }
  });

  t(
    'pages neither skip nor repeat an asset while others are added; a cursor is valid for its filters alone',
    async () => {
      const seen: string[] = [];
      let cursor: string | null = null;
      do {
        const query: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`;
        const page = await owner.get(`/media?limit=2${query}`);
        assert.equal(page.body.page?.cursor, cursor);
        seen.push(...page.rows.map(({ id }) => id));
        cursor = page.body.page?.nextCursor ?? null;
        await readyAsset(world.store, world.workspaceId, 'gif', { name: 'meanwhile.gif', clientId: other });
        await world.settled();
      } while (cursor !== null);
      // All were stored at one instant: those that came meanwhile have any place after it.
      const old = seen.filter((id) => nameOf(id) !== id);
      assert.equal(new Set(seen).size, seen.length);
      assert.deepEqual([...old].sort(), [...ids.values()].sort());
      const first = await owner.get('/media?limit=1');
      const next = encodeURIComponent(first.body.page?.nextCursor ?? '');
      assert.equal((await owner.get(`/media?limit=5&cursor=${next}`)).status, 200, 'the limit may change');
      refused(await owner.get(`/media?limit=1&kind=image&cursor=${next}`), 400, 'invalid_cursor');
      refused(await owner.get(`/clients?limit=1&cursor=${next}`), 400, 'invalid_cursor');
    },
  );

  t('newest first, by the time of the request', async () => {
    const made: string[] = [];
    for (let n = 0; n < 3; n += 1) {
      made.unshift((await owner.post('/media/import-url', { url, folder: 'Order' })).data.id);
      world.clock.shiftMs += 10;
    }
    const rows = (await owner.get('/media?folder=Order')).rows;
    assert.deepEqual(
      rows.map(({ id }) => id),
      made,
    );
  });
});

suite('the library and its tenants', (t) => {
  let world: World;
  let stranger: Caller;
  t.before(async () => {
    world = await startWorld();
    stranger = (await world.agency('Southern Cross')).owner;
  });
  t.after(() => world.close());

  t('every operation answers another workspace’s asset as unknown; a test key’s assets are in the twin', async () => {
    const { owner, tester } = world;
    const offer = await uploaded(owner);
    const assetId = String(offer.data.assetId);
    const unknown = randomUUID();
    const words = (answer: { readonly text: string; readonly body: object }, id: string) =>
      JSON.stringify({ ...answer.body, correlationId: '' }).replaceAll(id, '');
    for (const by of [stranger, tester]) {
      assert.equal((await by.get(`/media/${assetId}`)).status, 404);
      const foreign = await by.post('/media', { assetId });
      assert.equal(words(foreign, assetId), words(await by.post('/media', { assetId: unknown }), unknown));
      refused(foreign, 422, 'validation_failed', ['/assetId']);
    }
    assert.equal((await owner.get(`/media/${assetId}`)).data.status, 'pending');
    const made = (await tester.post('/media/import-url', { url })).data.id;
    assert.equal((await owner.get(`/media/${made}`)).status, 404);
    assert.equal((await tester.get(`/media/${made}`)).status, 200);
    assert.ok((await world.store.readStream(`media-${made}`))[0]?.metadata.workspaceId !== world.workspaceId);
  });

  t('another workspace’s client is answered as unknown', async () => {
    const theirs = (await stranger.post('/clients', { name: 'Theirs', type: 'brand' })).data.id;
    const { owner } = world;
    const asks = (clientId: string) => [
      owner.post('/media/presign', { ...presignBody(), clientId }),
      owner.post('/media/import-url', { url, clientId }),
    ];
    const { assetId } = (await uploaded(owner)).data;
    for (const answer of await Promise.all([...asks(theirs), owner.post('/media', { assetId, clientId: theirs })])) {
      refused(answer, 422, 'validation_failed', ['/clientId']);
      assert.match(answer.text, /is not known/);
    }
  });

  t('networks of another workspace’s accounts do not count', async () => {
    const { tester } = await world.agency('Third');
    await composer(world, ['x', 'youtube'], { by: tester, name: 'Of the third' });
    const made = await world.tester.post('/media/import-url', { url });
    assert.deepEqual(made.data.readiness, {});
  });

  t('the same key in two workspaces makes two offers; an upload URL is for its own asset alone', async () => {
    const key = randomUUID();
    const [mine, theirs] = [
      await world.owner.post('/media/presign', presignBody(), { key }),
      await stranger.post('/media/presign', presignBody(), { key }),
    ];
    assert.equal(theirs.headers.get('idempotent-replayed'), null);
    assert.notEqual(mine.data.assetId, theirs.data.assetId);
    assert.ok((await put(mine, Buffer.from('bytes'))).ok);
    assert.equal(await world.deps.blobs.head(String(theirs.data.key)), null);
    // The signature is of one place.
    const forged = String(mine.data.url).replace(String(mine.data.assetId), String(theirs.data.assetId));
    const sent = await fetch(forged, { method: 'PUT', body: 'bytes', headers: { 'Content-Type': 'image/jpeg' } });
    assert.equal(sent.status, 403);
  });

  t('scopes: media.read reads, media.manage changes', async () => {
    const key = async (scope: string) =>
      (await world.keyOf(world.workspaceId, world.memberId, { scopes: [scope] })).caller;
    const [reader, manager] = [await key('media.read'), await key('media.manage')];
    assert.equal((await reader.get('/media')).status, 200);
    refused(await reader.post('/media/presign', presignBody()), 403, 'insufficient_scope');
    refused(await reader.post('/media/import-url', { url }), 403, 'insufficient_scope');
    refused(await reader.post('/media', { assetId: randomUUID() }), 403, 'insufficient_scope');
    assert.equal((await manager.post('/media/presign', presignBody())).status, 200);
    refused(await manager.get('/media'), 403, 'insufficient_scope');
    refused(await manager.get(`/media/${randomUUID()}`), 403, 'insufficient_scope');
  });
});
