import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { testTwinIdOf } from '#domain/ids.ts';
import { media } from '#domain/media.ts';
import { mediaFailures } from '#domain/media-failures.ts';
import { S3Blobs } from '#infra/blob/s3.ts';
import { openPostsWith } from '#projections/models/post-bodies.ts';
import { view } from '#projections/shapes.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { endProgress, reportProgress } from '#runtime/work/progress.ts';
import { platforms } from '#schemas/common.ts';
import type { MediaEvent } from '#schemas/media.ts';
import { Customers } from '#services/media/customers.ts';
import { clearReservations } from '#services/media/offers.ts';
import { recountPiece } from '#services/media/recount.ts';
import { ImportUrls } from '#services/workflows/import-urls.ts';
import { MediaUsage } from '#services/workflows/media-usage.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { assetEvents, readyAsset } from '#test/support/assets.ts';
import { composer, refused } from '#test/support/composing.ts';
import { commandContext } from '#test/support/domain.ts';
import { type Answered, type Caller, given, startWorld, type World } from '#test/support/http.ts';
import { freePort } from '#test/support/port.ts';
import { suite } from '#test/support/suite.ts';
import { presignBody, put, uploaded } from '#test/support/uploads.ts';

const mib = 1_048_576;
const bytes = Buffer.from('bytes');
const brand = (name: string) => ({ name, type: 'brand' });
const eventsOf = async (world: World, id: string) =>
  (await world.store.readStream(`media-${id}`)).map(({ type }) => type);

suite('a place for an upload', (t) => {
  let world: World;
  let owner: Caller;
  t.before(async () => {
    world = await startWorld();
    owner = world.owner;
  });
  t.after(() => world.close());

  t('is offered with an address that takes this file and no other', async () => {
    const offer = await given(world, [])
      .request('POST', '/media/presign', { body: presignBody() })
      .then(200, ['MediaUploadOffered']);
    const { assetId, key, expiresAt } = offer.data;
    assert.equal(key, `${world.workspaceId}/${assetId}/upload`);
    const left = Date.parse(String(expiresAt)) - Date.now();
    assert.ok(left > 3_500_000 && left <= 3_600_000, 'an hour');
    assert.equal((await put(offer, bytes, { 'Content-Type': 'image/png' })).ok, false, 'another type');
    assert.equal((await put(offer, Buffer.from('longer bytes'))).ok, false, 'another length');
    assert.equal((await put(offer, bytes)).ok, true);
    const waiting = await owner.get(`/media/${assetId}`);
    const { status, publishable, kind, name, url, sha256, readiness } = waiting.data;
    assert.deepEqual(
      { status, publishable, kind, name, url, sha256, readiness },
      {
        status: 'pending',
        publishable: false,
        kind: 'image',
        name: 'photo.jpg',
        url: null,
        sha256: null,
        readiness: {},
      },
    );
    assert.equal(waiting.headers.get('etag'), '"0"');
    assert.deepEqual((await owner.get('/media')).rows, [], 'it is in no list');
  });

  t('is offered for every accepted type; other types, and files that are too large, are refused', async () => {
    for (const contentType of [
      'image/PNG',
      'image/heic',
      'video/mp4',
      'application/pdf',
      'image/gif',
      'video/quicktime',
    ]) {
      const offer = await owner.post('/media/presign', { ...presignBody(), contentType });
      assert.equal(offer.status, 200, offer.text);
      const headers = offer.data.headers as Readonly<Record<string, string>>;
      assert.equal(headers['Content-Type'], contentType.toLowerCase());
    }
    for (const contentType of [
      'image/heic-sequence',
      'image/svg+xml',
      'text/html',
      'application/zip',
      'image/png; charset=x',
      'video',
      '',
    ]) {
      const answer = await owner.post('/media/presign', { ...presignBody(), contentType });
      refused(answer, 422, 'validation_failed', ['/contentType']);
    }
    const limits: readonly (readonly [contentType: string, most: number])[] = [
      ['image/jpeg', 100 * mib],
      ['image/gif', 100 * mib],
      ['application/pdf', 100 * mib],
      ['video/mp4', 5 * 1024 * mib],
    ];
    for (const [contentType, most] of limits) {
      const ask = (size: number) => owner.post('/media/presign', { fileName: 'f', contentType, bytes: size });
      assert.equal((await ask(most)).status, 200);
      refused(await ask(most + 1), 422, 'validation_failed', ['/bytes']);
    }
    refused(await owner.post('/media/presign', { ...presignBody(), bytes: 0 }), 422, 'validation_failed', ['/bytes']);
  });

  t('a name is the last part of the path, without characters that headers or folders cannot hold', async () => {
    const names: readonly (readonly [sent: string, kept: string])[] = [
      ['../../etc/passwd', 'passwd'],
      ['C:\\photos\\win.jpg', 'win.jpg'],
      ['a\r\nb\u0007.jpg', 'ab.jpg'],
      ['evil\u202Egpj.exe', 'evilgpj.exe'],
      ['..', 'file'],
      ['  ', 'file'],
      [`${'x'.repeat(254)}é`, `${'x'.repeat(254)}é`],
      ['Cafe\u0301.jpg', 'Café.jpg'],
    ];
    for (const [fileName, name] of names) {
      const offer = await owner.post('/media/presign', { ...presignBody(), fileName });
      assert.equal(offer.status, 200, offer.text);
      assert.equal((await owner.get(`/media/${offer.data.assetId}`)).data.name, name);
    }
  });

  t('a repeat answers the same place with a fresh address, until it is registered', async () => {
    const key = randomUUID();
    const first = await owner.post('/media/presign', presignBody(), { key });
    world.clock.shiftMs += 2_000_000;
    const again = await owner.post('/media/presign', presignBody(), { key });
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    assert.deepEqual([again.data.assetId, again.data.key], [first.data.assetId, first.data.key]);
    assert.notEqual(again.data.url, first.data.url);
    assert.ok(String(again.data.expiresAt) > String(first.data.expiresAt));
    world.clock.shiftMs = 3_700_000;
    assert.equal((await put(first, bytes)).ok, false, 'the first has expired');
    assert.equal((await put(again, bytes)).ok, true);
    world.clock.shiftMs = 0;
    const other = await owner.post('/media/presign', { ...presignBody(), fileName: 'other.jpg' }, { key });
    refused(other, 422, 'idempotency_key_reused');
    assert.equal((await owner.post('/media', { assetId: first.data.assetId })).status, 200);
    const late = await owner.post('/media/presign', presignBody(), { key });
    const { assetId, url, headers, expiresAt } = late.data;
    assert.deepEqual(
      { assetId, url, headers, expiresAt },
      { assetId: first.data.assetId, url: null, headers: {}, expiresAt: null },
    );
  });

  t('without a key each call makes an asset; 20 callers of one key make one', async () => {
    const loose = await Promise.all([1, 2].map(() => owner.post('/media/presign', presignBody(), { key: null })));
    assert.equal(new Set(loose.map(({ data }) => data.assetId)).size, 2);
    const key = randomUUID();
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => owner.post('/media/presign', presignBody(), { key })),
    );
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
    const ids = [...new Set(answers.map(({ data }) => String(data.assetId)))];
    assert.equal(ids.length, 1);
    assert.deepEqual(await eventsOf(world, ids[0] ?? ''), ['MediaUploadOffered']);
  });

  t('is refused for a client that is unknown or archived', async () => {
    const gone = await owner.post('/clients', brand('Gone'));
    const forGone = { ...presignBody(), clientId: gone.data.id };
    assert.equal((await owner.post('/media/presign', forGone)).status, 200);
    await owner.delete(`/clients/${gone.data.id}`);
    refused(await owner.post('/media/presign', forGone), 422, 'client_archived');
    const unknown = { ...presignBody(), clientId: randomUUID() };
    refused(await owner.post('/media/presign', unknown), 422, 'validation_failed', ['/clientId']);
  });
});

suite('registering an upload', (t) => {
  let world: World;
  let owner: Caller;
  t.before(async () => {
    world = await startWorld();
    owner = world.owner;
  });
  t.after(() => world.close());

  t('starts the work with the given details, and answers what a later GET answers', async () => {
    const offer = await uploaded(owner, { fileName: 'table.jpg', folder: 'Winter' });
    const body = { assetId: offer.data.assetId, altText: 'A table', platforms: ['twitter', 'x', 'tiktok'] };
    const made = await given(world, [])
      .request('POST', '/media', { body })
      .then(200, ['RequestAccepted', 'MediaRegistered', 'RequestCompleted']);
    const { readyEvent, ...asset } = made.data;
    assert.equal(readyEvent, 'media.ready');
    const { status, publishable, name, folder, altText, contentType, bytes: size, readiness, variants } = asset;
    assert.deepEqual(
      { status, publishable, name, folder, altText, contentType, size, readiness, variants },
      {
        status: 'transcoding',
        publishable: false,
        name: 'table.jpg',
        folder: 'Winter',
        altText: 'A table',
        contentType: 'image/jpeg',
        size: bytes.length,
        readiness: { x: 'preparing', tiktok: 'preparing' },
        variants: [],
      },
    );
    assert.equal(made.headers.get('etag'), '"1"');
    assert.ok(made.headers.get('x-consistency-token'));
    assert.deepEqual((await owner.get(`/media/${asset.id}`)).data, asset);
    assert.deepEqual(
      (await owner.get('/media')).rows.map(({ id }) => id),
      [asset.id],
    );
  });

  t('refuses an unknown asset, a missing upload, and an upload that differs from the announced file', async () => {
    refused(await owner.post('/media', { assetId: randomUUID() }), 422, 'validation_failed', ['/assetId']);
    refused(await owner.post('/media', { assetId: 'nonsense' }), 422, 'validation_failed', ['/assetId']);
    refused(await owner.post('/media', { assetId: randomUUID() }, { key: null }), 400, 'idempotency_key_required');
    const offer = await owner.post('/media/presign', presignBody());
    const { assetId, key } = offer.data;
    const idempotent = randomUUID();
    const early = await given(world, [])
      .request('POST', '/media', { body: { assetId }, key: idempotent })
      .then(422, []);
    refused(early, 422, 'media_not_uploaded');
    // Whatever got past the address: what lies there is looked at.
    for (const [contentType, body] of [
      ['image/jpeg', 'more bytes'],
      ['image/png', 'bytes'],
    ] as const) {
      await world.deps.blobs.put(String(key), Buffer.from(body), { contentType, bytes: body.length });
      refused(await owner.post('/media', { assetId }), 422, 'media_not_uploaded');
    }
    assert.equal((await put(offer, bytes)).ok, true);
    const corrected = await owner.post('/media', { assetId }, { key: idempotent });
    assert.equal(corrected.status, 200, 'a refused call may be made again under its key');
    assert.equal(corrected.headers.get('idempotent-replayed'), null);
  });

  t('a repeat gets the first answer; another key gets the present asset', async () => {
    const offer = await uploaded(owner);
    const { assetId } = offer.data;
    const key = randomUUID();
    const first = await owner.post('/media', { assetId, name: 'One' }, { key });
    const { workspaceId } = world;
    const id = String(assetId);
    const why = { code: 'media_unreadable', message: 'It is damaged.' };
    await execute(
      world.store,
      media,
      id,
      { type: 'RecordFailed', failure: why },
      contextOf(world.operator, workspaceId),
    );
    const again = await owner.post('/media', { assetId, name: 'One' }, { key });
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    assert.deepEqual(again.data, first.data);
    const other = await owner.post('/media', { assetId, name: 'Two' });
    assert.equal(other.headers.get('idempotent-replayed'), null);
    assert.deepEqual([other.data.name, other.data.status, other.data.failure], ['One', 'failed', why]);
    assert.equal(other.headers.get('etag'), '"2"');
    refused(await owner.post('/media', { assetId, name: 'Two' }, { key }), 422, 'idempotency_key_reused');
    assert.deepEqual(await eventsOf(world, id), ['MediaUploadOffered', 'MediaRegistered', 'MediaFailed']);
  });

  t('20 callers at once, with one key and with 20: registered once', async () => {
    for (const keyOf of [() => 'one-key', (at: number) => `key-${at}`]) {
      const { assetId } = (await uploaded(owner)).data;
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_none, at) => owner.post('/media', { assetId }, { key: keyOf(at) })),
      );
      for (const { status, text } of answers) assert.equal(status, 200, text);
      assert.deepEqual([...new Set(answers.map(({ data }) => data.revision))], [1]);
      assert.deepEqual(await eventsOf(world, String(assetId)), ['MediaUploadOffered', 'MediaRegistered']);
    }
  });

  t('killed between acceptance and append: the repeat registers the accepted request', async () => {
    const { assetId } = (await uploaded(owner)).data;
    const key = randomUUID();
    const store = world.store;
    const append = store.append.bind(store);
    // The process is gone after the acceptance: its next append does not come to pass.
    store.append = async (stream, ...more) => {
      if (stream === `media-${assetId}`) throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
      return append(stream, ...more);
    };
    try {
      refused(await owner.post('/media', { assetId, name: 'Accepted' }, { key }), 503, 'unavailable');
    } finally {
      store.append = append;
    }
    const again = await owner.post('/media', { assetId, name: 'Accepted' }, { key });
    assert.equal(again.status, 200, again.text);
    assert.deepEqual([again.data.name, again.data.revision], ['Accepted', 1]);
  });

  t('the client may be given at either step; it must be live and of this workspace', async () => {
    const [one, two] = [await owner.post('/clients', brand('One')), await owner.post('/clients', brand('Two'))];
    const asset = (await uploaded(owner, { clientId: one.data.id })).data.assetId;
    refused(await owner.post('/media', { assetId: asset, clientId: randomUUID() }), 422, 'validation_failed', [
      '/clientId',
    ]);
    const moved = await owner.post('/media', { assetId: asset, clientId: two.data.id });
    assert.equal(moved.data.clientId, two.data.id);
    const kept = (await uploaded(owner, { clientId: one.data.id })).data.assetId;
    await owner.delete(`/clients/${one.data.id}`);
    refused(await owner.post('/media', { assetId: kept }), 422, 'client_archived');
    assert.deepEqual(await eventsOf(world, String(kept)), ['MediaUploadOffered']);
  });

  t('platforms by default: those with a live account, of the client where there is one', async () => {
    const a = await composer(world, ['x', 'bluesky'], { name: 'A' });
    await composer(world, ['bluesky', 'tiktok'], { name: 'B' });
    const { tester } = world;
    const gone = await composer(world, ['youtube'], { name: 'C' });
    assert.equal((await tester.delete(`/clients/${gone.clientId}`)).status, 200);
    const platformsOf = async (more: object) => {
      const { assetId } = (await uploaded(tester)).data;
      const made = await tester.post('/media', { assetId, ...more });
      assert.equal(made.status, 200, made.text);
      return Object.keys(made.data.readiness as object).sort();
    };
    assert.deepEqual(await platformsOf({}), ['bluesky', 'tiktok', 'x']);
    assert.deepEqual(await platformsOf({ clientId: a.clientId }), ['bluesky', 'x']);
    assert.deepEqual(await platformsOf({ platforms: ['pinterest'] }), ['pinterest']);
    assert.deepEqual(await platformsOf({ platforms: null }), ['bluesky', 'tiktok', 'x']);
    assert.deepEqual(await platformsOf({ platforms: [] }), []);
    refused(await tester.post('/media', { assetId: randomUUID(), platforms: ['myspace'] }), 422, 'validation_failed', [
      '/platforms/0',
    ]);
  });
});

suite('importing by an address', (t) => {
  let world: World;
  let owner: Caller;
  t.before(async () => {
    world = await startWorld();
    owner = world.owner;
  });
  t.after(() => world.close());
  const url = 'https://cdn.example.com/photos/Winter%20table.jpg?size=large';

  t('is requested, and answered as not processed yet', async () => {
    const made = await given(world, [])
      .request('POST', '/media/import-url', { body: { url, folder: 'Winter' } })
      .then(200, ['MediaImportRequested']);
    const { readyEvent, ...asset } = made.data;
    assert.equal(readyEvent, 'media.ready');
    const { status, kind, contentType, bytes: size, name, folder } = asset;
    assert.deepEqual(
      { status, kind, contentType, size, name, folder },
      { status: 'transcoding', kind: null, contentType: null, size: null, name: 'Winter table.jpg', folder: 'Winter' },
    );
    assert.deepEqual((await owner.get(`/media/${asset.id}`)).data, asset);
    const kept = [made.text, (await owner.get(`/media/${asset.id}`)).text, ...world.lines];
    for (const text of kept) assert.ok(!text.includes('size=large'), 'an address may hold a credential');
    const stored = await world.pool.query("select encode(data, 'escape') as data from es.events where stream = $1", [
      `media-${asset.id}`,
    ]);
    const event = JSON.parse(stored.rows[0].data);
    assert.equal(event.url, 'https://cdn.example.com/photos/Winter%20table.jpg');
    const sealed = await world.pool.query('select id::text, sealed from ops.media_imports where asset_id = $1', [
      asset.id,
    ]);
    assert.deepEqual([sealed.rows.length, sealed.rows[0].id], [1, event.source]);
    assert.ok(!sealed.rows[0].sealed.includes('size='));
    const urls = new ImportUrls(world.pool, world.secrets);
    assert.equal(await urls.find(event.source), url);
    const plain = await owner.post('/media/import-url', { url: 'https://cdn.example.com/plain.jpg' });
    assert.equal(
      (await world.pool.query('select from ops.media_imports where asset_id = $1', [plain.data.id])).rowCount,
      0,
    );
    assert.deepEqual((await owner.get('/media?kind=image')).rows, [], 'its kind is not known');
    assert.equal((await owner.get('/media?folder=Winter')).rows.length, 1);
  });

  t('only of public https addresses', async () => {
    for (const bad of [
      ...['http://cdn.example.com/a.jpg', 'https://10.0.0.1/a.jpg', 'https://localhost/a.jpg', 'ftp://cdn.example/a'],
      ...['https://user:secret@cdn.example.com/a.jpg', 'not a url', 'https://[::1]/a', 'file:///etc/passwd'],
    ]) {
      const answer = await given(world, [])
        .request('POST', '/media/import-url', { body: { url: bad } })
        .then(422, []);
      refused(answer, 422, 'url_not_allowed', ['/url']);
    }
    refused(await owner.post('/media/import-url', {}), 422, 'validation_failed', ['/url']);
    refused(await owner.post('/media/import-url', { url }, { key: null }), 400, 'idempotency_key_required');
  });

  t('20 callers at once with one key are one import; a repeat answers as at first', async () => {
    const key = randomUUID();
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => owner.post('/media/import-url', { url, name: 'Raced' }, { key })),
    );
    for (const { status, text } of answers) assert.equal(status, 200, text);
    const ids = [...new Set(answers.map(({ data }) => data.id))];
    assert.equal(ids.length, 1);
    assert.deepEqual(await eventsOf(world, ids[0] ?? ''), ['MediaImportRequested']);
    const again = await owner.post('/media/import-url', { url, name: 'Raced' }, { key });
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    assert.deepEqual(again.data, answers[0]?.data);
    refused(await owner.post('/media/import-url', { url, name: 'Else' }, { key }), 422, 'idempotency_key_reused');
    const registered = await owner.post('/media', { assetId: ids[0] });
    assert.deepEqual(registered.data, again.data, 'an import is registered already');
  });

  t('for a client that is unknown or archived: refused', async () => {
    const gone = await owner.post('/clients', brand('Gone'));
    await owner.delete(`/clients/${gone.data.id}`);
    refused(await owner.post('/media/import-url', { url, clientId: gone.data.id }), 422, 'client_archived');
    const unknown = await owner.post('/media/import-url', { url, clientId: randomUUID() });
    refused(unknown, 422, 'validation_failed', ['/clientId']);
  });
});

suite('room for media', (t) => {
  let world: World;
  let owner: Caller;
  let usage: MediaUsage;
  let workspaceId: string;
  t.before(async () => {
    world = await startWorld({ deps: { mediaQuota: 1_000 } });
    owner = world.owner;
    usage = new MediaUsage(world.pool, 1_000);
    workspaceId = (await owner.get('/agency')).data.id;
  });
  t.after(() => world.close());
  const ask = (bytes: number, by = owner, key: string = randomUUID()) =>
    by.post('/media/presign', { fileName: 'f.jpg', contentType: 'image/jpeg', bytes }, { key });
  const used = async () => (await usage.of(workspaceId)).bytes;
  const cleared = () => {
    const deps = { store: world.store, blobs: world.deps.blobs, usage };
    return clearReservations(deps, new AbortController().signal);
  };
  const later = (sql = 'true') =>
    world.pool.query(`update ops.media_usage set reserved_until = now() - interval '1 second' where ${sql}`);

  t('is taken when an upload is offered, by the sandbox too, and never more than there is', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_none, at) => ask(90, at % 2 === 0 ? owner : world.tester)),
    );
    const taken = answers.filter(({ status }) => status === 200);
    assert.equal(taken.length, 11);
    assert.equal(await used(), 990);
    const full = answers.find(({ status }) => status !== 200) as Answered;
    refused(full, 422, 'media_quota_exceeded');
    assert.deepEqual([full.body.quotaBytes, full.body.usedBytes], [1_000, 990]);
    const key = randomUUID();
    const body = { ...presignBody(), bytes: 10 };
    const tooMuch = { ...body, bytes: 11 };
    const none = await given(world, []).request('POST', '/media/presign', { body: tooMuch, key }).then(422, []);
    refused(none, 422, 'media_quota_exceeded');
    assert.equal((await owner.post('/media/presign', body, { key })).status, 200, 'a refused call leaves its key free');
    const imported = await owner.post('/media/import-url', { url: 'https://cdn.example.com/a.jpg' });
    refused(imported, 422, 'media_quota_exceeded');
    await usage.setQuota(workspaceId, 2_000);
    assert.equal((await ask(1_000)).status, 200);
    refused(await ask(1), 422, 'media_quota_exceeded');
    await usage.setQuota(workspaceId, null);
    refused(await ask(1), 422, 'media_quota_exceeded');
  });

  t(
    'is released by an upload that never arrives and by a caller that dies before the offer; an upload that arrived keeps it',
    async () => {
      await later();
      assert.equal(await cleared(), 13);
      assert.equal(await used(), 0);
      const body = Buffer.alloc(300);
      const key = randomUUID();
      const offer = await ask(300, owner, key);
      assert.ok((await put(offer, body)).ok);
      // As a caller leaves it who dies before the append.
      await usage.reserve(randomUUID(), workspaceId, 200, new Date());
      const never = await ask(400, owner, key.replace(/^./, 'x'));
      await later();
      assert.equal(await cleared(), 2);
      assert.equal(await used(), 300);
      // Its address had expired, and is asked for again: room is taken again, as far as there is any.
      const again = await ask(400, owner, key.replace(/^./, 'x'));
      assert.deepEqual([again.data.assetId, await used()], [never.data.assetId, 700]);
      await later(`asset_id = '${String(again.data.assetId)}'`);
      assert.equal(await cleared(), 1);
      assert.equal((await ask(600)).status, 200);
      refused(await ask(400, owner, key.replace(/^./, 'x')), 422, 'media_quota_exceeded');
      // It came at the last moment of its former address.
      assert.ok((await put(again, Buffer.alloc(400))).ok);
      refused(await owner.post('/media', { assetId: again.data.assetId }), 422, 'media_quota_exceeded');
      const registered = await owner.post('/media', { assetId: offer.data.assetId });
      assert.equal(registered.status, 200, registered.text);
      assert.equal(await used(), 900);
      await later();
      assert.equal(await cleared(), 1, 'the one that never came');
      assert.equal(await used(), 300);
    },
  );

  t('assets without a right count are counted in pieces, by one worker at a time', async () => {
    const { store, pool, logger } = world;
    const made = await world.agency('Old Hand');
    const twin = testTwinIdOf(made.workspaceId);
    const body = (bytes: number) => ({ probe: { bytes }, platforms: [] });
    const ids: string[] = [];
    for (let at = 0; at < 120; at += 1)
      ids.push((await readyAsset(store, at % 2 === 0 ? made.workspaceId : twin, 'image', body(10))).id);
    const [rendered = '', refusedOne = '', offered = ''] = ids;
    const append = (id: string, revision: number, event: MediaEvent) =>
      store.append(`media-${id}`, revision, [event], commandContext({ workspaceId: made.workspaceId }), `media-${id}`);
    // Two networks share one file.
    for (const [at, platform] of (['x', 'threads'] as const).entries()) {
      const file = { key: 'k', contentType: 'image/jpeg', bytes: 7, sha256: 'a'.repeat(64), width: 1, height: 1 };
      const data = { platform, use: 'feed', rendition: 'b'.repeat(32), durationMs: null, ...file } as const;
      await append(rendered, 5 + at, { type: 'MediaRenditionReady', data });
    }
    const failed = randomUUID();
    const failure = { code: 'media_unreadable', message: 'It is damaged.' };
    const [offer, registered] = assetEvents(made.workspaceId, failed, 'image');
    await store.append(
      `media-${failed}`,
      -1,
      [offer, registered, { type: 'MediaFailed', data: { failure } }] as MediaEvent[],
      commandContext({ workspaceId: made.workspaceId }),
      `media-${failed}`,
    );
    await usage.set(failed, made.workspaceId, 500);
    await usage.set(rendered, made.workspaceId, 10);
    await usage.set(refusedOne, made.workspaceId, 99);
    await usage.reserve(offered, made.workspaceId, 33, new Date(Date.now() + 60_000));
    await world.settled();
    const counted = async () => (await usage.of(made.workspaceId)).bytes;
    assert.equal(await counted(), 642);
    const customers = new Customers(store);
    const deps = { pool, usage, logger, store };
    const stays = new AbortController().signal;
    const other = await pool.connect();
    await other.query('begin; select from ops.media_recount for update');
    assert.deepEqual(await recountPiece(deps, customers, stays), { corrected: 0, more: false }, 'another one is at it');
    await other.query('rollback');
    other.release();
    assert.deepEqual(await recountPiece(deps, customers, stays), { corrected: 100, more: true }, 'its share of reads');
    const dying = new AbortController();
    let reads = 0;
    const load = ((...args: Parameters<typeof store.load>) => {
      reads += 1;
      if (reads === 5) dying.abort();
      return store.load(...args);
    }) as typeof store.load;
    await assert.rejects(recountPiece({ ...deps, store: { load } as typeof store }, customers, dying.signal), /abort/i);
    for (let more = true; more; ) ({ more } = await recountPiece(deps, customers, stays));
    // 118 of ten, one of seventeen, and the room that is kept for one.
    assert.equal(await counted(), 1_180 + 17 + 33);
    assert.deepEqual(await recountPiece(deps, customers, stays), { corrected: 0, more: false }, 'it rests');
    await pool.query('update ops.media_recount set next_at = now()');
    assert.deepEqual(await recountPiece(deps, customers, stays), { corrected: 0, more: false }, 'all is right');
    // The worker counted it after the walk had looked: its count is newer.
    await usage.set(rendered, made.workspaceId, 24);
    await usage.correct(rendered, made.workspaceId, 17, 17);
    await usage.correct(rendered, made.workspaceId, null, 17);
    assert.equal(await counted(), 1_180 + 24 + 33);
  });
});

suite('deleting an asset', (t) => {
  let world: World;
  let tester: Caller;
  let client: Awaited<ReturnType<typeof composer>>;
  t.before(async () => {
    world = await startWorld();
    tester = world.tester;
    client = await composer(world, ['x']);
  });
  t.after(() => world.close());
  const ready = async () =>
    (await readyAsset(world.store, testTwinIdOf(world.workspaceId), 'image', { platforms: ['x'] })).id;
  const draft = (more: object) => tester.post('/posts', client.body({ saveDraft: true, ...more }));

  t('hides it at once; a repeat answers the same, whatever revision it names', async () => {
    const id = await ready();
    const path = `/media/${id}`;
    const stale = await given(world, [], tester)
      .request('DELETE', path, { headers: { 'if-match': '"0"' } })
      .then(412, []);
    refused(stale, 412, 'revision_mismatch');
    const headers = { 'if-match': '"5"' };
    const gone = await given(world, [], tester).request('DELETE', path, { headers }).then(200, ['MediaDeleted']);
    assert.equal(gone.headers.get('etag'), '"6"');
    const again = await given(world, [], tester).request('DELETE', path, { headers }).then(200, []);
    assert.deepEqual(again.data, gone.data);
    assert.deepEqual([gone.data.id, gone.data.object, gone.data.revision], [id, 'media_deletion', 6]);
    await world.settled();
    refused(await tester.get(path), 404, 'not_found');
    const listed = await tester.get('/media?limit=100');
    assert.ok(listed.rows.every((row) => row.id !== id));
    refused(await tester.post('/posts', client.body({ mediaIds: [id] })), 422, 'validation_failed', ['/mediaIds/0']);
    refused(await draft({ mediaIds: [id] }), 422, 'validation_failed', ['/mediaIds/0']);
    refused(await tester.post('/media', { assetId: id }), 422, 'validation_failed', ['/assetId']);
  });

  t('deletes an offer without an upload too, and a repeat of the offer signs no address', async () => {
    const key = randomUUID();
    const offer = await tester.post('/media/presign', presignBody(), { key });
    const path = `/media/${offer.data.assetId}`;
    await given(world, [], tester).request('DELETE', path).then(200, ['MediaDeleted']);
    const again = await tester.post('/media/presign', presignBody(), { key });
    assert.deepEqual([again.status, again.data.assetId, again.data.url], [200, offer.data.assetId, null]);
    refused(await tester.post('/media', { assetId: offer.data.assetId }), 422, 'validation_failed', ['/assetId']);
  });

  t('is refused while a draft, or a post that is not published, names the asset anywhere', async () => {
    const segments = (id: string) => [
      { content: 'a', mediaIds: [] },
      { content: 'b', mediaIds: [id] },
    ];
    const ways: readonly ((id: string) => object)[] = [
      (id) => ({ mediaIds: [id], saveDraft: false }),
      (id) => ({ mediaIds: [id] }),
      (id) => ({ variants: [{ platform: 'x', mediaIdsOverride: [id] }] }),
      (id) => ({ thread: { segments: segments(id) } }),
      (id) => ({ coverMediaId: id }),
    ];
    for (const names of ways) {
      const id = await ready();
      const made = await draft(names(id));
      assert.equal(made.status, 200, made.text);
      const kept = await given(world, [], tester).request('DELETE', `/media/${id}`).then(409, []);
      refused(kept, 409, 'media_in_use');
      assert.deepEqual(kept.body.postIds, [made.data.id]);
      // A stranger learns nothing of it.
      refused(await world.owner.delete(`/media/${id}`), 404, 'not_found');
      const { rowCount } = await world.pool.query(`update ${view('posts')} set status = 'published' where id = $1`, [
        made.data.id,
      ]);
      assert.equal(rowCount, 1);
      await given(world, [], tester).request('DELETE', `/media/${id}`).then(200, ['MediaDeleted']);
    }
  });

  t(
    'at the same time as a post that takes the asset: one of them is refused, or the post keeps the files',
    async () => {
      for (let round = 0; round < 6; round += 1) {
        const id = await ready();
        await world.settled();
        const [made, gone] = await Promise.all([
          tester.post('/posts', client.body({ mediaIds: [id] })),
          tester.delete(`/media/${id}`),
        ]);
        await world.settled();
        const holders = await openPostsWith(world.pool, testTwinIdOf(world.workspaceId), id, 10);
        if (made.status !== 200) refused(made, 422, 'validation_failed', ['/mediaIds/0']);
        assert.deepEqual(holders, made.status === 200 ? [{ id: made.data.id, clientId: client.clientId }] : []);
        if (gone.status !== 200) refused(gone, 409, 'media_in_use');
        assert.ok(made.status === 200 || gone.status === 200);
      }
    },
  );
});

suite('an asset as shown', (t) => {
  let world: World;
  let owner: Caller;
  t.before(async () => {
    world = await startWorld();
    owner = world.owner;
  });
  t.after(() => world.close());

  const rendition = '1'.repeat(32);
  const sha256 = 'b'.repeat(64);
  const failure = { code: 'media_too_long', message: 'X takes videos of at most 140 s; this one has 200 s.' };

  t('ready: its files by addresses that are read for 15 minutes', async () => {
    const body = Buffer.from('jpeg');
    const { id } = await readyAsset(world.store, world.workspaceId, 'image', {
      blobs: world.deps.blobs,
      body,
      name: 'Täble "1".jpg',
      platforms: ['x'],
      needs: [
        { platform: 'x', use: 'feed' },
        { platform: 'x', use: 'carousel' },
      ],
    });
    await world.settled();
    const { data } = await owner.get(`/media/${id}`);
    assert.deepEqual([data.status, data.publishable, data.readiness], ['transcoded', true, { x: 'not_needed' }]);
    assert.deepEqual([data.width, data.height, data.durationMs, data.bytes], [1_080, 1_080, null, body.length]);
    const [feed] = data.variants as readonly { readonly status: string; readonly url: string }[];
    assert.deepEqual([feed?.status, feed?.url], ['not_needed', data.url], 'one address for one file');
    const read = await fetch(String(data.url));
    assert.equal(await read.text(), 'jpeg');
    assert.match(read.headers.get('content-disposition') ?? '', /T%C3%A4ble/);
    const { search } = new URL(String(data.url));
    assert.ok(search.length > 20);
    for (const line of world.lines) assert.ok(!line.includes(search.slice(1)), 'what opens a file is not logged');
    world.clock.shiftMs = 901_000;
    const late = await fetch(String(data.url));
    assert.equal(late.status, 403);
    assert.equal(((await late.json()) as { readonly code: string }).code, 'upload_url_invalid');
    world.clock.shiftMs = 0;
  });

  t('each need has its state, and each network shows the strongest state of its uses', async () => {
    const id = randomUUID();
    const at = `${world.workspaceId}/${id}`;
    const file = { key: `${at}/${rendition}.mp4`, contentType: 'video/mp4', bytes: 700, sha256 };
    const size = { width: 720, height: 1_280, durationMs: 10_000 };
    const [offered, registered, stored, probed] = assetEvents(world.workspaceId, id, 'video');
    const needs = [
      { platform: 'x', use: 'feed', rendition },
      { platform: 'x', use: 'carousel', rendition: null },
      { platform: 'tiktok', use: 'feed', rendition: null },
      { platform: 'instagram', use: 'reel', rendition },
    ] as const;
    const spec = {
      ...{ kind: 'video', mode: 'encode', width: 720, height: 1_280, fit: 'scale', fps: null, videoKbps: 5_000 },
      ...{ audio: null, maxBytes: null },
    };
    const events = [
      ...[offered, registered, stored, probed].flatMap((one) => (one === undefined ? [] : [one])),
      { type: 'MediaRenditionsPlanned', data: { initial: true, needs, renditions: [{ id: rendition, spec }] } },
      { type: 'MediaRenditionReady', data: { platform: 'x', use: 'feed', rendition, ...file, ...size } },
      { type: 'MediaRenditionFailed', data: { platform: 'youtube', use: 'feed', rendition: null, failure } },
    ];
    const shown = await given(world, [{ stream: `media-${id}`, events }])
      .request('GET', `/media/${id}`)
      .then(200, []);
    // The asset was registered for all ten; none of the others takes files of this kind.
    const others = Object.fromEntries(platforms.map((platform) => [platform, 'not_needed']));
    assert.deepEqual(shown.data.readiness, {
      ...others,
      x: 'ready',
      instagram: 'preparing',
      youtube: 'failed',
    });
    assert.equal(shown.data.publishable, false, 'wait for this, not for a network');
    assert.equal(shown.data.progress, null);
    await reportProgress(world.pool, id, 0.25);
    const later = await world.owner.get(`/media/${id}`);
    assert.equal(later.data.progress, 0.25);
    assert.equal((await world.owner.get('/media?limit=100')).rows.find((row) => row.id === id)?.progress, 0.25);
    await endProgress(world.pool, id);
    const variants = shown.data.variants as readonly Readonly<Record<string, unknown>>[];
    assert.deepEqual(
      variants.map(({ platform, use, status, bytes: has, width, failure: why }) => [
        `${platform}/${use}`,
        status,
        has,
        width,
        why,
      ]),
      [
        ['x/feed', 'ready', 700, 720, null],
        ['x/carousel', 'not_needed', 4_000_000, 1_080, null],
        ['tiktok/feed', 'not_needed', 4_000_000, 1_080, null],
        ['instagram/reel', 'preparing', null, null, null],
        ['youtube/feed', 'failed', null, null, failure],
      ],
    );
    assert.match(String(variants[0]?.url), new RegExp(rendition));
    assert.equal(variants[3]?.url, null);
  });

  t('a refused asset shows no file and no progress', async () => {
    for (const [end, status] of [
      ['MediaFailed', 'failed'],
      ['MediaQuarantined', 'quarantined'],
    ] as const) {
      const id = randomUUID();
      const why = { code: 'media_bomb', message: 'It unpacks to more than an honest file would.' };
      const events = [
        ...assetEvents(world.workspaceId, id, 'image', { platforms: ['x', 'threads'] }).slice(0, 3),
        { type: end, data: { failure: why } },
      ];
      const shown = await given(world, [{ stream: `media-${id}`, events }])
        .request('GET', `/media/${id}`)
        .then(200, []);
      const { url, posterUrl, failure: reported, readiness, publishable } = shown.data;
      assert.deepEqual(
        { status: shown.data.status, url, posterUrl, reported, readiness, publishable },
        {
          status,
          url: null,
          posterUrl: null,
          reported: why,
          readiness: { x: 'failed', threads: 'failed' },
          publishable: false,
        },
      );
    }
  });

  t('every code of a failure is in the catalogue', async () => {
    for (const code of Object.keys(mediaFailures)) {
      const page = await owner.get(`/errors/${code}`);
      assert.deepEqual([page.status, page.data.code, page.data.status, page.data.category], [200, code, null, 'media']);
    }
    for (const [code, status] of [
      ['upload_url_invalid', 403],
      ['upload_mismatch', 400],
    ] as const) {
      assert.equal((await owner.get(`/errors/${code}`)).data.status, status);
    }
  });

  t('unknown, malformed: one and the same 404', async () => {
    const words = async (id: string) => ({ ...(await owner.get(`/media/${id}`)).body, correlationId: '' });
    const unknown = await words(randomUUID());
    assert.equal(unknown.code, 'not_found');
    assert.deepEqual(await words('nonsense'), unknown);
    // A path of its own, which takes another method.
    assert.equal((await words('presign')).code, 'method_not_allowed');
  });
});

suite('while the blob store is unavailable', (t) => {
  let world: World;
  let blobs: S3Blobs;
  t.before(async () => {
    const endpoint = `http://127.0.0.1:${await freePort()}`;
    const keys = { accessKeyId: 'test', secretAccessKey: 'test' };
    const own = { secrets: new Secrets(`v1:${randomBytes(32).toString('base64')}`), origin: () => world.origin() };
    blobs = new S3Blobs({ endpoint, publicEndpoint: endpoint, bucket: 'media', region: 'us-east-1', ...keys, ...own });
    world = await startWorld({ deps: { blobs } });
  });
  t.after(async () => {
    await world?.close();
    await blobs?.close();
  });

  t('calls that need it get 503; nothing is stored, and the key stays free', async () => {
    const { owner } = world;
    const id = randomUUID();
    const [offered] = assetEvents(world.workspaceId, id, 'image');
    assert.ok(offered !== undefined);
    const key = randomUUID();
    const answer = await given(world, [{ stream: `media-${id}`, events: [offered] }])
      .request('POST', '/media', { body: { assetId: id }, key })
      .then(503, []);
    refused(answer, 503, 'unavailable');
    assert.ok(answer.headers.get('retry-after'));
    const again = await owner.post('/media', { assetId: id, name: 'Another body' }, { key });
    refused(again, 503, 'unavailable');
    const fetched = await fetch(await blobs.presignOwn('w/a/picture', { expiresAt: new Date(Date.now() + 60_000) }));
    assert.equal(fetched.status, 503, 'a network may fetch it later');
    assert.equal((await owner.get(`/media/${id}`)).status, 200, 'it has no file yet');
  });

  t('calls that do not need it succeed', async () => {
    const { owner } = world;
    const imported = await owner.post('/media/import-url', { url: 'https://cdn.example.com/a.jpg' });
    assert.equal(imported.status, 200, imported.text);
    assert.deepEqual(
      (await owner.get('/media')).rows.map(({ id }) => id),
      [imported.data.id],
    );
    const { clientId, body } = await composer(world, ['x']);
    const { id } = await readyAsset(world.store, testTwinIdOf(world.workspaceId), 'image', { clientId });
    assert.equal((await world.tester.post('/posts', body({ mediaIds: [id] }))).status, 200);
  });
});
