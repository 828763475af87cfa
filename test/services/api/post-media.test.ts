import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { testTwinIdOf } from '#domain/ids.ts';
import type { MediaKind } from '#schemas/media.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { type AssetOptions, assetEvents, readyAsset } from '#test/support/assets.ts';
import { type Composer, composer, refused } from '#test/support/composing.ts';
import { type Caller, startWorld, type World } from '#test/support/http.ts';
import { suite } from '#test/support/suite.ts';

const why = { code: 'media_unreadable', message: 'It is damaged.' };

suite('posts with media', (t) => {
  let world: World;
  let by: Caller;
  let twin = '';
  let acme: Composer;
  let other: Composer;
  t.before(async () => {
    world = await startWorld();
    by = world.tester;
    twin = testTwinIdOf(world.workspaceId);
    acme = await composer(world, ['x', 'bluesky', 'instagram'], { name: 'Acme' });
    other = await composer(world, ['x'], { name: 'Other' });
  });
  t.after(() => world.close());

  const ready = async (kind: MediaKind = 'image', options: AssetOptions = {}): Promise<string> =>
    (await readyAsset(world.store, twin, kind, options)).id;
  /** The asset as it was after so many of its events, and how it ended. */
  const halfway = async (events: number, end?: 'MediaFailed' | 'MediaQuarantined'): Promise<string> => {
    const id = randomUUID();
    const stream = `media-${id}`;
    const all = [
      ...assetEvents(twin, id, 'image').slice(0, events),
      ...(end === undefined ? [] : [{ type: end, data: { failure: why } }]),
    ];
    await world.store.append(stream, -1, all, contextOf(world.operator, twin), stream);
    return id;
  };
  const toX = (more: object) => ({
    ...acme.body(),
    targets: { mode: 'group', clientId: acme.clientId, platforms: ['x'] },
    ...more,
  });

  t('show them on the post and on each target, in order', async () => {
    const [one, two, three] = [await ready(), await ready(), await ready('video')];
    const made = await by.post(
      '/posts',
      acme.body({
        mediaIds: [one, two],
        mediaAltTexts: { [one]: 'A table', [randomUUID()]: 'not in the post' },
        variants: [{ platform: 'bluesky', mediaIdsOverride: [three] }],
      }),
    );
    assert.equal(made.status, 200, made.text);
    assert.deepEqual([made.data.mediaIds, made.data.mediaAltTexts], [[one, two], { [one]: 'A table' }]);
    const targets = made.data.targets as readonly { readonly platform: string; readonly mediaIds: readonly string[] }[];
    const expected: Readonly<Record<string, readonly string[]>> = {
      x: [one, two],
      instagram: [one, two],
      bluesky: [three],
    };
    assert.deepEqual(Object.fromEntries(targets.map(({ platform, mediaIds }) => [platform, mediaIds])), expected);
    await world.settled();
    const read = await by.get(`/posts/${made.data.id}`);
    assert.deepEqual(read.data, made.data);
    const rows = await by.get(`/post-targets?postId=${made.data.id}`);
    for (const row of rows.rows) assert.deepEqual(row.mediaIds, expected[String(row.platform)]);
  });

  t('without any text too; a network that needs media refuses text alone', async () => {
    assert.equal((await by.post('/posts', acme.body({ content: '', mediaIds: [await ready()] }))).status, 200);
    refused(await by.post('/posts', acme.body()), 422, 'validation_failed', ['/mediaIds']);
  });

  t('an unknown id is named at the place where the caller wrote it', async () => {
    const [known, unknown] = [await ready(), randomUUID()];
    const answer = await by.post(
      '/posts',
      acme.body({
        mediaIds: [known, unknown],
        coverMediaId: unknown,
        variants: [{ platform: 'bluesky', mediaIdsOverride: [known, known, unknown] }],
      }),
    );
    const paths = ['/mediaIds/1', '/variants/0/mediaIdsOverride/2', '/coverMediaId'];
    refused(answer, 422, 'validation_failed', paths);
    for (const { message } of answer.body.errors ?? []) assert.match(message, /is not known/);
    const segments = [
      { content: 'one', mediaIds: [] },
      { content: 'two', mediaIds: [known, unknown] },
    ];
    const draft = await by.post('/posts', acme.body({ saveDraft: true, thread: { segments } }));
    refused(draft, 422, 'validation_failed', ['/thread/segments/1/mediaIds/1']);
  });

  t('media that are not ready, or have failed, cannot be published', async () => {
    const importing = await by.post('/media/import-url', { url: 'https://cdn.example.com/a.jpg' });
    for (const id of [
      await halfway(1),
      await halfway(2),
      await halfway(5),
      await halfway(3, 'MediaFailed'),
      await halfway(3, 'MediaQuarantined'),
      importing.data.id,
    ]) {
      const answer = await by.post('/posts', toX({ mediaIds: [id] }));
      refused(answer, 422, 'media_not_publishable', ['/mediaIds/0']);
    }
  });

  t('media of another client cannot be used, whichever client the post belongs to', async () => {
    const [ours, theirs, all] = [
      await ready('image', { clientId: acme.clientId }),
      await ready('image', { clientId: other.clientId }),
      await ready(),
    ];
    refused(await by.post('/posts', toX({ mediaIds: [all, theirs] })), 422, 'media_not_in_client', ['/mediaIds/1']);
    assert.equal((await by.post('/posts', toX({ mediaIds: [all, ours] }))).status, 200);
    const accountIds = [acme.accounts.x, other.accounts.x];
    const both = (mediaIds: readonly string[]) =>
      by.post('/posts', acme.body({ targets: { mode: 'accounts', accountIds }, mediaIds }));
    refused(await both([ours]), 422, 'media_not_in_client', ['/mediaIds/0']);
    assert.equal((await both([all])).status, 200);
    const onlyTheirs = acme.body({ targets: { mode: 'accounts', accountIds: [other.accounts.x] }, mediaIds: [theirs] });
    assert.equal((await by.post('/posts', onlyTheirs)).status, 200, 'the target’s client counts');
  });

  t('the network’s own rules: kinds, counts, files that cannot be made to fit', async () => {
    const [image, video, document] = [await ready(), await ready('video'), await ready('document')];
    const many = await Promise.all(Array.from({ length: 5 }, () => ready()));
    const long = await ready('video', { probe: { durationMs: 10_800_000, bytes: 900_000_000 } });
    for (const mediaIds of [[document], many, [image, document], [long]]) {
      refused(await by.post('/posts', toX({ mediaIds })), 422, 'validation_failed', ['/mediaIds']);
    }
    const spoken = await by.post('/posts', toX({ mediaIds: [long] }));
    assert.match(spoken.text, new RegExp(long), 'it names the file');
    assert.equal((await by.post('/posts', toX({ mediaIds: [video] }))).status, 200);
    const cover = await by.post('/posts', toX({ mediaIds: [video], coverMediaId: video }));
    refused(cover, 422, 'validation_failed', ['/coverMediaId']);
    const films = await composer(world, ['tiktok'], { name: 'Films' });
    const late = { mediaIds: [video], coverFrameMs: 10_001 };
    refused(await by.post('/posts', films.body(late)), 422, 'validation_failed', ['/coverFrameMs']);
    assert.equal((await by.post('/posts', toX(late))).status, 200, 'X has no frames to choose');
  });

  t(
    'names each fault of the media at once; the code is that of the first kind: unknown, not ready, another client’s',
    async () => {
      const [unknown, pending, theirs] = [
        randomUUID(),
        await halfway(2),
        await ready('document', { clientId: other.clientId }),
      ];
      const ask = (mediaIds: readonly string[]) => by.post('/posts', toX({ mediaIds }));
      const kind = '/mediaIds';
      const all = [kind, '/mediaIds/0', '/mediaIds/1', '/mediaIds/2'];
      refused(await ask([theirs, pending, unknown]), 422, 'validation_failed', all);
      refused(await ask([theirs, pending]), 422, 'media_not_publishable', all.slice(0, 3));
      refused(await ask([theirs]), 422, 'media_not_in_client', all.slice(0, 2));
      refused(await ask([await ready('document')]), 422, 'validation_failed', ['/mediaIds']);
    },
  );

  t('a draft may name media that are not ready, but not unknown media or another client’s', async () => {
    const draft = (more: object) => by.post('/posts', toX({ saveDraft: true, ...more }));
    refused(await draft({ mediaIds: [randomUUID()] }), 422, 'validation_failed', ['/mediaIds/0']);
    const theirs = await ready('image', { clientId: other.clientId });
    refused(await draft({ mediaIds: [theirs] }), 422, 'media_not_in_client', ['/mediaIds/0']);
    refused(await draft({ coverMediaId: theirs }), 422, 'media_not_in_client', ['/coverMediaId']);
    const accounts = { mode: 'accounts', accountIds: [other.accounts.x] };
    assert.equal((await draft({ mediaIds: [theirs], targets: accounts })).status, 200);

    const id = await halfway(5);
    const made = await draft({ mediaIds: [id] });
    assert.equal(made.status, 200, made.text);
    assert.deepEqual(made.data.mediaIds, [id]);
    const publish = () => by.post(`/posts/${made.data.id}/publish`, {});
    refused(await publish(), 422, 'media_not_publishable', ['/mediaIds/0']);
    const stream = `media-${id}`;
    const [, , , , , transcoded] = assetEvents(twin, id, 'image');
    assert.ok(transcoded !== undefined);
    await world.store.append(stream, 4, [transcoded], contextOf(world.operator, twin), stream);
    const published = await publish();
    assert.equal(published.status, 200, published.text);

    const {
      saveDraft: _,
      clientId: __,
      ...replace
    } = { saveDraft: true, ...toX({ mediaIds: [theirs] }) } as Record<string, unknown>;
    const second = await draft({});
    refused(await by.patch(`/posts/${second.data.id}`, replace), 422, 'media_not_in_client', ['/mediaIds/0']);
    const unknown = { ...replace, mediaIds: [randomUUID()] };
    refused(await by.patch(`/posts/${second.data.id}`, unknown), 422, 'validation_failed', ['/mediaIds/0']);
  });

  t(
    'a draft is not refused for what only its publication needs: a frame, a cover, a kind, a number of files',
    async () => {
      const draft = (more: object) => by.post('/posts', toX({ saveDraft: true, ...more }));
      const [video, document] = [await ready('video'), await ready('document')];
      const bodies = [
        { coverFrameMs: 86_400_000, mediaIds: [video] },
        { coverFrameMs: 86_400_000 },
        { coverMediaId: video, mediaIds: [video] },
        { mediaIds: [document] },
        { mediaIds: [video, document], content: '' },
        { content: '' },
        { content: 'ä'.repeat(40_000) },
        { targets: { mode: 'group', clientId: acme.clientId, platforms: ['pinterest'] } },
        { targets: { mode: 'selection', accountIds: [randomUUID()] } },
        { schedule: { type: 'at', scheduledAt: '2020-01-01T00:00:00Z' } },
        { variants: [{ platform: 'tiktok', overrides: { privacyLevel: 'NOBODY' } }] },
      ];
      for (const more of bodies) {
        const made = await draft(more);
        assert.equal(made.status, 200, made.text);
        assert.deepEqual([made.data.status, made.data.targets], ['draft', []]);
        const { clientId: _client, saveDraft: _draft, ...replacement } = toX(more) as Record<string, unknown>;
        const replaced = await by.patch(`/posts/${made.data.id}`, replacement);
        assert.equal(replaced.status, 200, replaced.text);
      }
      const cover = await draft({ coverMediaId: video, mediaIds: [video] });
      refused(await by.post(`/posts/${cover.data.id}/publish`, {}), 422, 'validation_failed', ['/coverMediaId']);
    },
  );

  t('a caller that received media.ready may compose at once, however far behind the read models are', async () => {
    const lock = await world.pool.connect();
    try {
      await lock.query('begin');
      // Nothing is written to the table until it is let go; it can be read.
      await lock.query('lock table read.media_v1 in share mode');
      const id = await ready();
      const made = await by.post('/posts', toX({ mediaIds: [id] }));
      assert.equal(made.status, 200, made.text);
      const seen = await lock.query('select 1 from read.media where id = $1', [id]);
      assert.equal(seen.rowCount, 0);
    } finally {
      await lock.query('rollback');
      lock.release();
    }
    await world.settled();
  });

  t('a post without media makes no query of the library', async () => {
    const asked: string[] = [];
    const note = ({ sql }: { readonly sql: string }) => asked.push(sql);
    world.deps.knex.on('query', note);
    try {
      assert.equal((await by.post('/posts', toX({}))).status, 200);
      assert.deepEqual(
        asked.filter((sql) => sql.includes('media')),
        [],
      );
      assert.equal((await by.post('/posts', toX({ mediaIds: [await ready(), await ready()] }))).status, 200);
      assert.equal(asked.filter((sql) => sql.includes('media')).length, 1, 'all of a post in one query');
    } finally {
      world.deps.knex.removeListener('query', note);
    }
  });

  t('a repeat answers the post as it was created', async () => {
    const id = await ready();
    const key = randomUUID();
    const body = toX({ mediaIds: [id] });
    const first = await by.post('/posts', body, { key });
    const again = await by.post('/posts', body, { key });
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    assert.deepEqual(again.data, first.data);
  });
});
