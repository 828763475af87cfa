import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { testTwinIdOf } from '#domain/ids.ts';
import { type TargetCommand, target } from '#domain/post-target/target.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { composedWorld, composer, refused } from '#test/support/composing.ts';
import { given } from '#test/support/http.ts';
import { failure } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const { world, tester, composed: mine } = await composedWorld(['x', 'bluesky']);
const nowhere = randomUUID();

suite('campaigns over HTTP', (t) => {
  const create = async (more: object = {}) => {
    const made = await tester.post('/campaigns', { name: 'Spring', ...more });
    assert.equal(made.status, 200, made.text);
    return made.data;
  };

  t('a campaign is created, read, changed and listed; it never changes its client', async () => {
    const body = { name: 'Spring', clientId: mine.clientId, color: '#1F6FEB', startsOn: '2026-02-01' };
    const made = await tester.post('/campaigns', body);
    assert.deepEqual(
      { ...made.data, id: '', createdAt: '', updatedAt: '' },
      {
        ...{ id: '', object: 'campaign', name: 'Spring', clientId: mine.clientId, color: '#1f6feb' },
        ...{ startsOn: '2026-02-01', endsOn: null, description: null, postCount: 0 },
        ...{ createdAt: '', updatedAt: '', revision: 0 },
      },
    );
    assert.equal(made.headers.get('etag'), '"0"');
    const path = `/campaigns/${made.data.id}`;
    assert.deepEqual((await tester.get(path)).data, made.data);
    const changes = { name: 'Summer', color: null, endsOn: '2026-03-01', description: 'Green.', clientId: nowhere };
    const changed = await tester.patch(path, changes, { headers: { 'if-match': '"0"' } });
    assert.equal(changed.status, 200, changed.text);
    assert.deepEqual(
      [changed.data.name, changed.data.color, changed.data.endsOn, changed.data.clientId, changed.data.revision],
      ['Summer', null, '2026-03-01', mine.clientId, 1],
    );
    assert.equal((await tester.patch(path, changes)).data.revision, 1);
    assert.deepEqual((await tester.get(path)).data, changed.data);
    const other = await create();
    assert.equal(other.clientId, null);
    const listed = async (query = '') => (await tester.get(`/campaigns${query}`)).rows.map(({ id }) => id);
    assert.deepEqual((await listed()).slice(0, 2), [other.id, made.data.id]);
    assert.deepEqual(await listed(`?clientId=${mine.clientId}`), [made.data.id]);
    assert.deepEqual(await listed(`?clientId=${nowhere}`), []);
    const { nextCursor } = (await tester.get('/campaigns?limit=1')).body.page ?? {};
    assert.deepEqual(await listed(`?limit=1&cursor=${nextCursor}`), [made.data.id]);
  });

  t('stores one event for each command', async () => {
    await given(world, [])
      .request('POST', '/campaigns', { body: { name: 'One event' } })
      .then(200, ['CampaignCreated']);
  });

  t('a repeat of a keyed call answers the same campaign; another body is refused', async () => {
    const key = randomUUID();
    const first = await tester.post('/campaigns', { name: 'Keyed' }, { key });
    const draft = await tester.post('/posts', mine.body({ saveDraft: true, campaignId: first.data.id }));
    assert.equal(draft.status, 200, draft.text);
    assert.equal((await tester.get(`/campaigns/${first.data.id}`)).data.postCount, 1);
    const again = await tester.post('/campaigns', { name: 'Keyed' }, { key });
    assert.deepEqual(again.data, first.data);
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    refused(await tester.post('/campaigns', { name: 'Other' }, { key }), 422, 'idempotency_key_reused');
  });

  t('its client must be known and not archived, its days must be days, its color a color', async () => {
    const post = (more: object) => tester.post('/campaigns', { name: 'Refused', ...more });
    refused(await post({ clientId: nowhere }), 422, 'validation_failed', ['/clientId']);
    const archived = await composer(world, ['x']);
    await tester.delete(`/clients/${archived.clientId}`);
    refused(await post({ clientId: archived.clientId }), 422, 'client_archived');
    refused(await post({ startsOn: '2026-02-31' }), 422, 'validation_failed', ['/startsOn']);
    refused(await post({ startsOn: '2026-02-02', endsOn: '2026-02-01' }), 422, 'validation_failed', ['/endsOn']);
    refused(await post({ color: 'blue' }), 422, 'validation_failed', ['/color']);
    refused(await post({ name: ' ' }), 422, 'validation_failed', ['/name']);
    const { id } = await create({ startsOn: '2026-02-02' });
    refused(await tester.patch(`/campaigns/${id}`, { endsOn: '2026-02-01' }), 422, 'validation_failed', ['/endsOn']);
  });

  t('If-Match guards a change and a deletion', async () => {
    const { id } = await create();
    const headers = { 'if-match': '"7"' };
    refused(await tester.patch(`/campaigns/${id}`, { name: 'No' }, { headers }), 412, 'revision_mismatch');
    refused(await tester.delete(`/campaigns/${id}`, { headers }), 412, 'revision_mismatch');
  });

  t('a deleted campaign is gone; deleting it again answers the same', async () => {
    const made = await create();
    const path = `/campaigns/${made.id}`;
    const gone = await tester.delete(path, { headers: { 'if-match': '"0"' } });
    assert.deepEqual([gone.status, gone.data.revision], [200, 1]);
    assert.deepEqual((await tester.delete(path, { headers: { 'if-match': '"0"' } })).data, gone.data);
    refused(await tester.get(path), 404, 'not_found');
    refused(await tester.patch(path, { name: 'Back' }), 404, 'not_found');
    assert.ok(!(await tester.get('/campaigns?limit=100')).rows.some(({ id }) => id === made.id));
  });

  t('a key limited to clients has the campaigns of its clients, and of no other', async () => {
    const other = await composer(world, ['x']);
    const [own, foreign, open] = [
      await create({ clientId: mine.clientId, name: 'Mine' }),
      await create({ clientId: other.clientId, name: 'Theirs' }),
      await create({ name: 'Of nobody' }),
    ];
    const { caller } = await world.keyOf(world.workspaceId, world.memberId, {
      mode: 'test',
      clientIds: [mine.clientId],
    });
    assert.equal((await caller.get(`/campaigns/${own.id}`)).status, 200);
    for (const { id } of [foreign, open]) {
      refused(await caller.get(`/campaigns/${id}`), 404, 'not_found');
      refused(await caller.patch(`/campaigns/${id}`, { name: 'Taken' }), 404, 'not_found');
      refused(await caller.delete(`/campaigns/${id}`), 404, 'not_found');
    }
    const { rows } = await caller.get('/campaigns?limit=100');
    assert.ok(rows.some(({ id }) => id === own.id) && rows.every(({ clientId }) => clientId === mine.clientId));
    refused(await caller.post('/campaigns', { name: 'New' }), 422, 'validation_failed', ['/clientId']);
    refused(await caller.post('/campaigns', { name: 'New', clientId: other.clientId }), 422, 'validation_failed', [
      '/clientId',
    ]);
    assert.equal((await caller.post('/campaigns', { name: 'New', clientId: mine.clientId })).status, 200);
  });
});

suite('posts in campaigns', (t) => {
  const create = async (more: object = {}) =>
    (await tester.post('/campaigns', { name: 'Autumn', ...more })).data.id as string;
  const shown = async (id: string) => (await tester.get(`/posts/${id}`)).data.campaignId;
  const inCampaign = async (campaignId: string) =>
    (await tester.get(`/posts?campaignId=${campaignId}&limit=100`)).rows.map(({ id }) => id);
  const count = async (id: string) => (await tester.get(`/campaigns/${id}`)).data.postCount;

  t('a post is composed into one, as a draft, in bulk and at once; the list and the count have it', async () => {
    const campaignId = await create({ clientId: mine.clientId });
    const body = mine.body({ campaignId });
    const preview = await tester.post('/posts/preview', body);
    assert.equal(preview.data.valid, true, preview.text);
    const post = await tester.post('/posts', body);
    assert.deepEqual([post.status, post.data.campaignId], [200, campaignId], post.text);
    const draft = await tester.post('/posts', { ...body, saveDraft: true });
    const bulk = await tester.post('/posts/bulk', { posts: [body, mine.body()] });
    const [first] = bulk.data.results as readonly { readonly post: { readonly id: string } }[];
    const ids = [first?.post.id, draft.data.id, post.data.id];
    assert.deepEqual((await inCampaign(campaignId)).sort(), [...ids].sort());
    assert.equal(await count(campaignId), 3);
    for (const id of ids) assert.equal(await shown(id ?? ''), campaignId);
    // A discarded draft no longer counts.
    await tester.delete(`/posts/${draft.data.id}`);
    assert.deepEqual([await count(campaignId), (await inCampaign(campaignId)).length], [2, 2]);
  });

  t('a draft takes one, keeps it when it is published, and leaves it when it is replaced without', async () => {
    const campaignId = await create();
    const { clientId: _client, ...draft } = mine.body();
    const made = await tester.post('/posts', mine.body({ saveDraft: true }));
    const path = `/posts/${made.data.id}`;
    assert.equal((await tester.patch(path, { ...draft, campaignId })).data.campaignId, campaignId);
    assert.equal((await tester.patch(path, draft)).data.campaignId, null);
    assert.equal((await tester.patch(path, { ...draft, campaignId })).data.campaignId, campaignId);
    const published = await tester.post(`${path}/publish`, {});
    assert.deepEqual([published.data.status, published.data.campaignId], ['scheduled', campaignId], published.text);
    assert.equal((await tester.post(`${path}/revise`, { content: 'Newer.' })).data.campaignId, campaignId);
  });

  t('an unknown, foreign, deleted or strange one is refused everywhere, and stores nothing', async () => {
    const other = await composer(world, ['x']);
    const gone = await create();
    await tester.delete(`/campaigns/${gone}`);
    const foreign = (await world.owner.post('/campaigns', { name: 'Live' })).data.id;
    const { clientId: _client, ...replacement } = mine.body();
    const made = await tester.post('/posts', mine.body({ saveDraft: true }));
    await world.settled();
    const before = await world.head();
    const cases = [
      ...[nowhere, gone, foreign].map((id) => [id, 'unknown_id'] as const),
      [await create({ clientId: other.clientId }), 'mismatch'] as const,
    ];
    const after = await world.head();
    assert.equal(after - before, 1n);
    for (const [campaignId, code] of cases) {
      const answers = [
        await tester.post('/posts', mine.body({ campaignId })),
        await tester.post('/posts', mine.body({ campaignId, saveDraft: true })),
        await tester.patch(`/posts/${made.data.id}`, { ...replacement, campaignId }),
      ];
      for (const answer of answers) {
        refused(answer, 422, 'validation_failed', ['/campaignId']);
        assert.equal(answer.body.errors?.[0]?.code, code);
      }
      const { data } = await tester.post('/posts/preview', mine.body({ campaignId }));
      const [problem] = data.problems as readonly { readonly errors: readonly { readonly code: string }[] }[];
      assert.deepEqual([data.valid, problem?.errors[0]?.code], [false, code]);
    }
    assert.equal(await world.head(), after);
  });

  t('after the deletion of one its posts have none, and can be published and revised', async () => {
    const campaignId = await create();
    const body = mine.body({ campaignId });
    const post = (await tester.post('/posts', body)).data.id;
    const draft = (await tester.post('/posts', { ...body, saveDraft: true })).data.id;
    assert.equal(await shown(post), campaignId);
    await tester.delete(`/campaigns/${campaignId}`);
    for (const id of [post, draft]) assert.equal(await shown(id), null);
    assert.deepEqual(await inCampaign(campaignId), []);
    const listed = (await tester.get('/posts?limit=100')).rows.filter(({ id }) => id === post || id === draft);
    assert.deepEqual(
      listed.map((row) => row.campaignId),
      [null, null],
    );
    const published = await tester.post(`/posts/${draft}/publish`, {});
    assert.deepEqual([published.status, published.data.campaignId], [200, null], published.text);
    assert.equal((await tester.post(`/posts/${post}/revise`, { content: 'Newer.' })).data.campaignId, null);
    assert.equal((await tester.delete(`/posts/${post}`)).data.campaignId, null);
  });

  t('a key limited to clients cannot name a campaign of another client, or of none', async () => {
    const other = await composer(world, ['x']);
    const clientIds = [mine.clientId];
    const { caller } = await world.keyOf(world.workspaceId, world.memberId, { mode: 'test', clientIds });
    for (const campaignId of [await create({ clientId: other.clientId }), await create()]) {
      const answer = await caller.post('/posts', mine.body({ campaignId }));
      refused(answer, 422, 'validation_failed', ['/campaignId']);
      assert.equal(answer.body.errors?.[0]?.code, 'unknown_id');
      assert.deepEqual((await caller.get(`/posts?campaignId=${campaignId}`)).rows, []);
    }
    const own = await create({ clientId: mine.clientId });
    assert.equal((await caller.post('/posts', mine.body({ campaignId: own }))).status, 200);
  });
});

suite('assigning posts to campaigns', (t) => {
  const create = async (more: object = {}) =>
    (await tester.post('/campaigns', { name: 'Winter', ...more })).data.id as string;
  const compose = async (more: Record<string, unknown> = {}) => (await tester.post('/posts', mine.body(more))).data.id;
  const shown = async (id: string) => (await tester.get(`/posts/${id}`)).data.campaignId;
  interface Result {
    readonly postId: string;
    readonly ok: boolean;
    readonly revision?: number;
    readonly error?: { readonly code: string; readonly errors?: readonly { path: string; code: string }[] };
  }
  const results = ({ data }: { readonly data: Record<string, unknown> }) => data.results as readonly Result[];
  const ofPost = async (id: string) =>
    (await world.store.readStream(`post-${id}`)).filter(({ type }) => type === 'PostCampaignChanged');

  t('posts join, move and leave, each with a result; a second time nothing changes', async () => {
    const [first, second] = [await create(), await create()];
    const [draft, post] = [await compose({ saveDraft: true }), await compose()];
    const joined = await tester.post(`/campaigns/${first}/assign`, { postIds: [draft, post, draft] });
    assert.equal(joined.status, 200, joined.text);
    assert.equal(joined.headers.get('etag'), '"0"');
    assert.deepEqual(results(joined), [
      { postId: draft, ok: true, revision: 1 },
      { postId: post, ok: true, revision: 1 },
    ]);
    assert.deepEqual([await shown(draft), await shown(post)], [first, first]);
    assert.equal((await tester.get(`/campaigns/${first}`)).data.postCount, 2);
    assert.deepEqual(
      results(await tester.post(`/campaigns/${first}/assign`, { postIds: [post] })).map(({ ok }) => ok),
      [true],
    );
    await tester.post(`/campaigns/${second}/assign`, { postIds: [post] });
    assert.equal(await shown(post), second);
    // It does not belong to the first one any more.
    assert.ok(results(await tester.post(`/campaigns/${first}/unassign`, { postIds: [post] }))[0]?.ok);
    assert.equal(await shown(post), second);
    await tester.post(`/campaigns/${second}/unassign`, { postIds: [post] });
    assert.equal(await shown(post), null);
    assert.deepEqual(
      (await ofPost(post)).map(({ data }) => [data.previousCampaignId, data.campaignId]),
      [
        [null, first],
        [first, second],
        [second, null],
      ],
    );
  });

  t('one that is refused stops no other: unknown, foreign, discarded, of another client', async () => {
    const other = await composer(world, ['x']);
    const campaignId = await create({ clientId: mine.clientId });
    const [good, gone] = [await compose(), await compose({ saveDraft: true })];
    await tester.delete(`/posts/${gone}`);
    const strange = (await tester.post('/posts', other.body())).data.id;
    const postIds = [nowhere, gone, strange, good];
    const answer = results(await tester.post(`/campaigns/${campaignId}/assign`, { postIds }));
    assert.deepEqual(
      answer.map(({ ok, error }) => [ok, error?.code, error?.errors?.[0]?.path, error?.errors?.[0]?.code]),
      [
        [false, 'not_found', undefined, undefined],
        [false, 'not_found', undefined, undefined],
        [false, 'validation_failed', '/postIds/2', 'mismatch'],
        [true, undefined, undefined, undefined],
      ],
    );
    assert.deepEqual([await shown(strange), await shown(good)], [null, campaignId]);
    const stranger = await world.agency('Southern Cross');
    const theirs = (await stranger.tester.post('/campaigns', { name: 'Theirs' })).data.id;
    const foreign = results(await stranger.tester.post(`/campaigns/${theirs}/assign`, { postIds: [good] }));
    assert.equal(foreign[0]?.error?.code, 'not_found');
  });

  t('of a campaign that is unknown or deleted, or has another revision, it is refused as a whole', async () => {
    const campaignId = await create();
    const postIds = [await compose()];
    for (const action of ['assign', 'unassign']) {
      refused(await tester.post(`/campaigns/${nowhere}/${action}`, { postIds }), 404, 'not_found');
      const headers = { 'if-match': '"3"' };
      const stale = await tester.post(`/campaigns/${campaignId}/${action}`, { postIds }, { headers });
      refused(stale, 412, 'revision_mismatch');
      refused(await tester.post(`/campaigns/${campaignId}/${action}`, { postIds: [] }), 422, 'validation_failed');
    }
    await tester.delete(`/campaigns/${campaignId}`);
    refused(await tester.post(`/campaigns/${campaignId}/assign`, { postIds }), 404, 'not_found');
  });

  t('a repeat under the key answers the same, and moves nothing back', async () => {
    const [first, second] = [await create(), await create()];
    const post = await compose();
    const key = randomUUID();
    const assign = () => tester.post(`/campaigns/${first}/assign`, { postIds: [post, nowhere] }, { key });
    const answer = await assign();
    await tester.post(`/campaigns/${second}/assign`, { postIds: [post] });
    const again = await assign();
    assert.deepEqual(again.data, answer.data);
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    assert.equal(await shown(post), second);
  });

  t('a key limited to clients assigns its own posts to its own campaigns', async () => {
    const other = await composer(world, ['x']);
    const clientIds = [mine.clientId];
    const { caller } = await world.keyOf(world.workspaceId, world.memberId, { mode: 'test', clientIds });
    const strange = (await tester.post('/posts', other.body())).data.id;
    const [own, open] = [await create({ clientId: mine.clientId }), await create()];
    const post = await compose();
    await world.settled();
    refused(await caller.post(`/campaigns/${open}/assign`, { postIds: [post] }), 404, 'not_found');
    const answer = results(await caller.post(`/campaigns/${own}/assign`, { postIds: [strange, post] }));
    assert.deepEqual(
      answer.map(({ postId, ok, error }) => [postId, ok, error?.code]),
      [
        [strange, false, 'not_found'],
        [post, true, undefined],
      ],
    );
  });
});

suite('shifting campaigns', (t) => {
  interface Target {
    readonly id: string;
    readonly scheduledAt: string;
    readonly scheduledLocal: string | null;
    readonly status: string;
    readonly platform: string;
  }
  const create = async () => (await tester.post('/campaigns', { name: 'Shifted' })).data.id;
  const compose = async (campaignId: string, more: Record<string, unknown> = {}) =>
    (await tester.post('/posts', mine.body({ campaignId, ...more }))).data.id;
  const targetsOf = async (postId: string) =>
    (await tester.get(`/posts/${postId}`)).data.targets as unknown as readonly Target[];
  const shiftBy = (caller: typeof tester, campaignId: string, by: object, ask = {}) =>
    caller.post(`/campaigns/${campaignId}/shift`, by, ask);
  const shift = (campaignId: string, by: object, ask = {}) => shiftBy(tester, campaignId, by, ask);
  const at = (ms: number) => ({ schedule: { type: 'at', scheduledAt: new Date(ms).toISOString() } });
  const hour = 3_600_000;

  t('moves the pending targets of its posts, and of no others, once; webhooks learn both members', async () => {
    const campaignId = await create();
    const due = Date.now() + 24 * hour;
    const [first, second] = [await compose(campaignId, at(due)), await compose(campaignId, at(due))];
    const beside = (await tester.post('/posts', mine.body(at(due)))).data.id;
    await compose(campaignId, { saveDraft: true });
    const [stopped] = await targetsOf(second);
    await tester.post(`/post-targets/${stopped?.id}/cancel`, {});
    const key = randomUUID();
    const answer = await shift(campaignId, { minutes: 90 }, { key });
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(answer.data, {
      ...{ object: 'campaign_shift', campaignId, revision: 2, minutes: 90, days: null, shifted: 3, skippedCount: 1 },
      skipped: [{ targetId: stopped?.id, reason: 'canceled' }],
    });
    const times = async (postId: string) =>
      (await targetsOf(postId)).map(({ status, scheduledAt }) => [status, Date.parse(scheduledAt) - due]);
    assert.deepEqual(await times(first), [
      ['pending', 90 * 60_000],
      ['pending', 90 * 60_000],
    ]);
    assert.deepEqual((await times(second)).sort(), [
      ['canceled', 0],
      ['pending', 90 * 60_000],
    ]);
    assert.deepEqual(
      (await times(beside)).map(([, moved]) => moved),
      [0, 0],
    );
    const again = await shift(campaignId, { minutes: 90 }, { key });
    assert.deepEqual(again.data, answer.data);
    assert.deepEqual((await times(first))[0], ['pending', 90 * 60_000]);
    const stored = await world.store.readStream(`campaign-${campaignId}`);
    assert.deepEqual(
      stored.map(({ type }) => type),
      ['CampaignCreated', 'CampaignShifted', 'CampaignShiftCompleted'],
    );
    assert.deepEqual([stored[1]?.data.minutes, stored[1]?.data.days], [90, null]);
    // An earlier time is as good.
    assert.equal((await shift(campaignId, { minutes: -60 })).data.shifted, 3);
    assert.deepEqual((await times(first))[0], ['pending', 30 * 60_000]);
  });

  t('days keep the wall-clock time of each target in its own zone, over a change of the clocks', async () => {
    const zones = { x: 'Europe/Berlin', bluesky: 'America/New_York' };
    const clocks = await composer(world, ['x', 'bluesky'], { zones });
    const campaignId = await create();
    // Berlin changes its clocks on the last Sunday of March and of October, New York on other days.
    const year = new Date().getUTCFullYear() + 1;
    const sunday = (month: number) => {
      const last = new Date(Date.UTC(year, month, 31));
      return last.getUTCDate() - last.getUTCDay();
    };
    const eve = `${year}-03-${sunday(2) - 1}T09:00`;
    const local = { schedule: { type: 'at', scheduledLocal: eve } };
    const instant = { schedule: { type: 'at', scheduledAt: `${year}-03-${sunday(2) - 1}T08:00:00.000Z` } };
    const made = async (schedule: object) =>
      (await tester.post('/posts', clocks.body({ campaignId, ...schedule }))).data.id;
    const [named, fixed] = [await made(local), await made(instant)];
    const of = async (postId: string, platform: string) =>
      (await targetsOf(postId)).find((one) => one.platform === platform);
    const before = await of(named, 'bluesky');
    const answer = await shift(campaignId, { days: 1 });
    assert.deepEqual([answer.data.shifted, answer.data.days, answer.data.minutes], [4, 1, null], answer.text);
    const berlin = await of(named, 'x');
    assert.deepEqual(
      [berlin?.scheduledAt, berlin?.scheduledLocal],
      [`${year}-03-${sunday(2)}T07:00:00.000Z`, `${year}-03-${sunday(2)}T09:00`],
    );
    const york = await of(named, 'bluesky');
    assert.equal(Date.parse(york?.scheduledAt ?? '') - Date.parse(before?.scheduledAt ?? ''), 24 * hour);
    // A time that was sent as an instant has a wall-clock time too.
    assert.equal((await of(fixed, 'x'))?.scheduledAt, `${year}-03-${sunday(2)}T07:00:00.000Z`);
    assert.equal((await of(fixed, 'bluesky'))?.scheduledAt, `${year}-03-${sunday(2)}T08:00:00.000Z`);
    await shift(campaignId, { days: -1 });
    assert.equal((await of(fixed, 'x'))?.scheduledAt, `${year}-03-${sunday(2) - 1}T08:00:00.000Z`);
    assert.equal((await of(named, 'x'))?.scheduledLocal, eve);
  });

  t('over the other change of the clocks too, and into the hour that they skip; minutes do not', async () => {
    const zones = { x: 'Europe/Berlin', bluesky: 'America/New_York' };
    const clocks = await composer(world, ['x', 'bluesky'], { zones });
    const thisYear = new Date().getUTCFullYear();
    /** The nth Sunday of the next such month; 0: the last one. */
    const sunday = (month: number, nth: number): number => {
      const [found = 0] = [thisYear, thisYear + 1]
        .map((year) => {
          const first = new Date(Date.UTC(year, month - 1, 1));
          const last = new Date(Date.UTC(year, month, 0));
          if (nth === 0) return last.getTime() - last.getUTCDay() * 24 * hour;
          return first.getTime() + (((7 - first.getUTCDay()) % 7) + 7 * (nth - 1)) * 24 * hour;
        })
        .filter((at) => at > Date.now() + 72 * hour);
      return found;
    };
    const eveOf = (day: number, time: string) => `${new Date(day - 24 * hour).toISOString().slice(0, 10)}T${time}`;
    for (const [platform, day, time, movedHours] of [
      ['x', sunday(10, 0), '09:00', 25],
      ['bluesky', sunday(11, 1), '09:00', 25],
      ['bluesky', sunday(3, 2), '09:00', 23],
      // Half past two does not exist on that day: half past three.
      ['x', sunday(3, 0), '02:30', 24],
      ['bluesky', sunday(3, 2), '02:30', 24],
    ] as const) {
      const campaignId = await create();
      const targets = { mode: 'accounts', accountIds: [clocks.accounts[platform]] };
      const schedule = { type: 'at', scheduledLocal: eveOf(day, time) };
      const made = await tester.post('/posts', clocks.body({ campaignId, targets, schedule }));
      const [before] = await targetsOf(made.data.id);
      const since = async () => {
        const [now] = await targetsOf(made.data.id);
        return (Date.parse(now?.scheduledAt ?? '') - Date.parse(before?.scheduledAt ?? '')) / hour;
      };
      await shift(campaignId, { days: 1 });
      assert.deepEqual([platform, time, await since()], [platform, time, movedHours]);
      await shift(campaignId, { days: -1 });
      assert.equal(await since(), 0);
      await shift(campaignId, { minutes: 24 * 60 });
      assert.equal(await since(), 24);
    }
  });

  t('held and rate-limited targets move; published and handed-over ones are passed over with the reason', async () => {
    const campaignId = await create();
    const due = Date.now() + 24 * hour;
    const strict = await composer(world, ['x']);
    await tester.patch(`/clients/${strict.clientId}`, { approvalRequired: true });
    const heldPost = (await tester.post('/posts', strict.body({ campaignId, ...at(due) }))).data.id;
    const [moving, settled] = [await compose(campaignId, at(due)), await compose(campaignId, at(due))];
    const [held] = await targetsOf(heldPost);
    const [limited, pending] = await targetsOf(moving);
    const [out, handed] = await targetsOf(settled);
    const now = new Date(due).toISOString();
    const tell = async (postId: string, id: string | undefined, ...commands: readonly TargetCommand[]) => {
      const context = contextOf(world.operator, testTwinIdOf(world.workspaceId));
      for (const command of [{ type: 'Start', now } as const, ...commands]) {
        await execute(world.store, target, id ?? '', command, context, { partitionKey: postId });
      }
    };
    const claim = { attempt: 1, takeover: 0 };
    const policy = { deferDelaysMs: [30_000], maxRateLimits: 2, jitter: 0 };
    await tell(moving, limited?.id, { type: 'RecordRateLimited', ...claim, retryAt: now, failure, policy });
    const there = { externalId: 'e', permalink: null, publishedAt: now };
    await tell(settled, out?.id, { type: 'RecordPublished', ...claim, ...there });
    await tell(
      ...([settled, handed?.id] as const),
      { type: 'Checkpoint', ...claim, step: 'boundary', data: null, deadline: now },
      { type: 'RecordHandedOver', ...claim, nativeId: 'n1' },
    );
    await world.settled();
    const { data, text } = await shift(campaignId, { minutes: 60 });
    assert.deepEqual([data.shifted, data.skippedCount], [3, 2], text);
    assert.deepEqual(
      new Map(
        (data.skipped as readonly { targetId: string; reason: string }[]).map((one) => [one.targetId, one.reason]),
      ),
      new Map([
        [out?.id, 'published'],
        [handed?.id, 'handed_to_platform'],
      ]),
    );
    const all = (await Promise.all([heldPost, moving, settled].map(targetsOf))).flat();
    assert.deepEqual(
      [held, limited, pending, out, handed].map((one) => {
        const now = all.find(({ id }) => id === one?.id);
        return [now?.status, (Date.parse(now?.scheduledAt ?? '') - due) / hour];
      }),
      [
        ['awaiting_approval', 1],
        ['pending', 1],
        ['pending', 1],
        ['published', 0],
        ['handed_to_platform', 0],
      ],
    );
  });

  t('a new time in the past or too far ahead is skipped, and the rest moves', async () => {
    const campaignId = await create();
    const soon = await compose(campaignId, at(Date.now() + hour));
    const later = await compose(campaignId, at(Date.now() + 72 * hour));
    const past = await shift(campaignId, { days: -1 });
    assert.deepEqual([past.data.shifted, past.data.skippedCount], [2, 2]);
    const reasons = past.data.skipped as readonly { readonly targetId: string; readonly reason: string }[];
    assert.deepEqual(
      reasons.map(({ targetId, reason }) => [targetId, reason]).sort(),
      (await targetsOf(soon)).map(({ id }) => [id, 'schedule_in_past']).sort(),
    );
    await tester.post('/posts', mine.body({ campaignId, ...at(Date.now() + 400 * 24 * hour) }));
    const far = await shift(campaignId, { days: 365 });
    assert.deepEqual([far.data.shifted, far.data.skippedCount], [4, 2]);
    assert.ok((far.data.skipped as readonly { reason: string }[]).every(({ reason }) => reason === 'schedule_too_far'));
    assert.ok(
      (await targetsOf(later)).every(({ scheduledAt }) => Date.parse(scheduledAt) > Date.now() + 360 * 24 * hour),
    );
  });

  t('a key limited to clients moves no target of another client, and learns of none', async () => {
    const other = await composer(world, ['x']);
    const { caller } = await world.keyOf(world.workspaceId, world.memberId, {
      ...{ mode: 'test', clientIds: [mine.clientId] },
    });
    const made = await tester.post('/campaigns', { name: 'Mixed', clientId: mine.clientId });
    const accountIds = [mine.accounts.x, other.accounts.x];
    const mixed = await compose(made.data.id, {
      targets: { mode: 'accounts', accountIds },
      ...at(Date.now() + 24 * hour),
    });
    await world.settled();
    const before = await targetsOf(mixed);
    const answer = await shiftBy(caller, made.data.id, { minutes: 60 });
    // Another credential than the one that reads.
    await world.settled();
    const after = new Map((await targetsOf(mixed)).map((one) => [one.id, one]));
    const moved = before.map((one) => [
      (one as unknown as { accountId: string }).accountId,
      Date.parse(after.get(one.id)?.scheduledAt ?? '') - Date.parse(one.scheduledAt),
    ]);
    assert.deepEqual(Object.fromEntries(moved), { [String(mine.accounts.x)]: hour, [String(other.accounts.x)]: 0 });
    assert.deepEqual([answer.data.shifted, answer.data.skippedCount, answer.data.skipped], [1, 0, []], answer.text);
    // One that is settled is not told of either.
    const theirs = before.find((one) => (one as unknown as { accountId: string }).accountId === other.accounts.x);
    await tester.post(`/post-targets/${theirs?.id}/cancel`, {});
    await world.settled();
    const again = await shiftBy(caller, made.data.id, { minutes: 60 });
    assert.deepEqual([again.data.shifted, again.data.skippedCount, again.data.skipped], [1, 0, []], again.text);
  });

  t('exactly one of minutes and days; an unknown or deleted campaign is 404; If-Match guards', async () => {
    const campaignId = await create();
    for (const by of [{}, { minutes: 1, days: 1 }, { minutes: null, days: null }]) {
      refused(await shift(campaignId, by), 422, 'validation_failed', ['']);
    }
    refused(await shift(campaignId, { days: 366 }), 422, 'validation_failed', ['/days']);
    refused(await shift(nowhere, { days: 1 }), 404, 'not_found');
    refused(await shift(campaignId, { days: 1 }, { headers: { 'if-match': '"4"' } }), 412, 'revision_mismatch');
    const empty = await shift(campaignId, { days: 1 });
    assert.deepEqual([empty.data.shifted, empty.data.skipped, empty.data.revision], [0, [], 0]);
    await tester.delete(`/campaigns/${campaignId}`);
    refused(await shift(campaignId, { days: 1 }), 404, 'not_found');
  });
});
