import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { composedWorld, composer, refused } from '#test/support/composing.ts';
import { given } from '#test/support/http.ts';
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
