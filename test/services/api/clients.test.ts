import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { clientNameIdOf, keyedIdOf } from '#domain/ids.ts';
import { type Caller, given, startWorld, type World } from '#test/support/http.ts';
import { suite } from '#test/support/suite.ts';

const brand = (name: string) => ({ name, type: 'brand' });

suite('clients over HTTP', (t) => {
  let world: World;
  let owner: Caller;
  t.before(async () => {
    world = await startWorld();
    owner = world.owner;
  });
  t.after(() => world.close());

  t('creates a client, answers what a later GET answers, and keeps nothing unknown', async () => {
    const body = {
      ...brand('Acme'),
      defaultPostMode: 'now',
      rules: { own: { deep: [1] } },
      unknown: 1,
      id: randomUUID(),
    };
    const made = await given(world, [])
      .request('POST', '/clients', { body })
      .then(200, ['NameClaimed', 'ClientCreated']);
    assert.equal(made.data.defaultPostMode, 'now');
    assert.deepEqual(made.data.rules, { own: { deep: [1] } });
    assert.equal(made.headers.get('etag'), '"0"');
    assert.ok(made.headers.get('x-consistency-token'));
    const read = await owner.get(`/clients/${made.data.id}`);
    assert.deepEqual(read.data, made.data);
    assert.notEqual(made.data.id, body.id);
    const [event] = await world.store.readStream(`client-${made.data.id}`);
    assert.deepEqual(Object.keys(event?.data ?? {}).sort(), [
      'approvalRequired',
      'brandVoice',
      'defaultPostMode',
      'name',
      'rules',
      'timezone',
      'type',
    ]);
  });

  t('null of an optional member means absent', async () => {
    const body = { ...brand('Nulls'), defaultPostMode: null, timezone: null, rules: null, approvalRequired: null };
    const made = await owner.post('/clients', body);
    assert.equal(made.status, 200, made.text);
    assert.equal(made.data.defaultPostMode, 'schedule');
    assert.deepEqual(made.data.rules, {});
  });

  t('rules are kept whole; the one that the service applies must have a value that it knows', async () => {
    const rules = { own: { deep: [1] }, unknownOutcome: 'retry_when_absent' };
    const made = await owner.post('/clients', { ...brand('Ruled'), rules });
    assert.deepEqual(made.data.rules, rules);
    const { id } = made.data;
    assert.deepEqual((await owner.patch(`/clients/${id}`, { rules: { unknownOutcome: 'hold', b: 1 } })).data.rules, {
      unknownOutcome: 'hold',
      b: 1,
    });
    const cleared = await owner.patch(`/clients/${id}`, { rules: { unknownOutcome: null, b: null } });
    assert.deepEqual(cleared.data.rules, { b: null });
    for (const unknownOutcome of ['retry', 1, {}]) {
      for (const answer of [
        await owner.patch(`/clients/${id}`, { rules: { unknownOutcome } }),
        await owner.post('/clients', { ...brand('Refused'), rules: { unknownOutcome } }),
      ]) {
        assert.deepEqual([answer.status, answer.body.code], [422, 'validation_failed'], answer.text);
        assert.deepEqual(
          answer.body.errors?.map(({ path }) => path),
          ['/rules/unknownOutcome'],
        );
      }
    }
    assert.deepEqual((await owner.get(`/clients/${id}`)).data.rules, { b: null });
  });

  t('a repeat under the same key answers the client as it was created', async () => {
    const key = randomUUID();
    const first = await owner.post('/clients', brand('Replayed'), { key });
    await owner.patch(`/clients/${first.data.id}`, { name: 'Renamed since' });
    const again = await owner.post('/clients', brand('Replayed'), { key });
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    assert.deepEqual(again.data, first.data);
    const other = await owner.post('/clients', brand('Something else'), { key });
    assert.equal(other.status, 422);
    assert.equal(other.body.code, 'idempotency_key_reused');
  });

  t('another key with the name of a live client gets the present client and is not recorded', async () => {
    const first = await owner.post('/clients', brand('Known'));
    await owner.patch(`/clients/${first.data.id}`, { approvalRequired: true });
    const key = randomUUID();
    const second = await given(world, [])
      .request('POST', '/clients', { body: { name: '  kNOWN ', type: 'influencer' }, key })
      .then(200, []);
    assert.equal(second.data.id, first.data.id);
    assert.equal(second.data.approvalRequired, true);
    assert.equal(second.data.type, 'brand');
    assert.equal(second.headers.get('idempotent-replayed'), null);
    const free = await owner.post('/clients', brand('Under the key that was not recorded'), { key });
    assert.equal(free.status, 200);
    assert.notEqual(free.data.id, first.data.id);
  });

  t('20 callers at once with one key make one client; with 20 keys too', async () => {
    for (const keyOf of [() => 'one-key', (at: number) => `key-${at}`]) {
      const name = `Raced ${keyOf(0)}`;
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_none, at) => owner.post('/clients', brand(name), { key: keyOf(at) })),
      );
      assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
      assert.equal(new Set(answers.map(({ data }) => data.id)).size, 1);
    }
  });

  t('different bodies under one key at once: one wins, all others are refused', async () => {
    const key = randomUUID();
    const names = Array.from({ length: 10 }, (_none, at) => `Body ${at} ${key.slice(0, 8)}`);
    const answers = await Promise.all(names.map((name) => owner.post('/clients', brand(name), { key })));
    const won = answers.filter(({ status }) => status === 200);
    assert.equal(won.length, 1);
    for (const { status, body } of answers) if (status !== 200) assert.equal(body.code, 'idempotency_key_reused');
    // What the losers had claimed is free again.
    const lost = names.find((name) => name !== won[0]?.data.name) ?? '';
    assert.equal((await owner.post('/clients', brand(lost))).data.name, lost);
  });

  t('changes only the members that are sent; null resets a member to its default', async () => {
    const made = await owner.post('/clients', {
      ...brand('Patched'),
      timezone: 'Europe/Berlin',
      rules: { a: 1, b: 2 },
    });
    const { id } = made.data;
    const changed = await owner.patch(`/clients/${id}`, { rules: { b: 3 }, nonsense: true });
    assert.deepEqual(changed.data.rules, { b: 3 });
    assert.equal(changed.data.timezone, 'Europe/Berlin');
    const cleared = await owner.patch(`/clients/${id}`, { timezone: null, rules: null, name: null });
    assert.equal(cleared.data.timezone, null);
    assert.deepEqual(cleared.data.rules, {});
    assert.equal(cleared.data.name, 'Patched');
    const same = await given(world, [])
      .request('PATCH', `/clients/${id}`, { body: { name: 'Patched' } })
      .then(200, []);
    assert.equal(same.data.revision, cleared.data.revision);
    assert.deepEqual((await owner.get(`/clients/${id}`)).data, same.data);
  });

  t('a name moves with its client: a taken name is 409, a released name is free', async () => {
    const one = await owner.post('/clients', brand('Mover'));
    const two = await owner.post('/clients', brand('Stayer'));
    const taken = await owner.patch(`/clients/${one.data.id}`, { name: 'stayer' });
    assert.equal(taken.status, 409);
    assert.equal(taken.body.code, 'already_exists');
    await given(world, [])
      .request('PATCH', `/clients/${one.data.id}`, { body: { name: 'Moved' } })
      .then(200, ['NameClaimed', 'ClientUpdated', 'NameReleased']);
    const back = await owner.patch(`/clients/${two.data.id}`, { name: 'Mover' });
    assert.equal(back.data.name, 'Mover');
    const cased = await owner.patch(`/clients/${two.data.id}`, { name: 'MOVER' });
    assert.equal(cased.data.name, 'MOVER');
  });

  t('two clients that want one name at once: one gets it', async () => {
    const made = await Promise.all(['P', 'Q', 'R', 'S'].map((name) => owner.post('/clients', brand(`Racer ${name}`))));
    const answers = await Promise.all(made.map(({ data }) => owner.patch(`/clients/${data.id}`, { name: 'The one' })));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409, 409, 409]);
  });

  t('if a caller dies between claim and creation, the next caller of that name creates the client', async () => {
    const name = 'Orphan';
    const deadKey = randomUUID();
    const deadId = keyedIdOf(world.workspaceId, 'createClient', deadKey);
    const claim = { type: 'NameClaimed', data: { clientId: deadId, name, claimedAt: new Date().toISOString() } };
    const next = await given(world, [
      { stream: `clientname-${clientNameIdOf(world.workspaceId, name)}`, events: [claim] },
    ])
      .request('POST', '/clients', { body: brand(name) })
      .then(200, ['NameClaimed', 'ClientCreated']);
    assert.equal(next.data.id, deadId);
    const dead = await owner.post('/clients', brand(name), { key: deadKey });
    assert.equal(dead.status, 200);
    assert.equal(dead.data.id, deadId);
  });

  t('an old claim whose owner does not have the name is broken', async () => {
    const made = await owner.post('/clients', brand('Half renamed'));
    const name = 'Never reached';
    const claimedAt = new Date(Date.now() - 60_000).toISOString();
    const claim = { type: 'NameClaimed', data: { clientId: made.data.id, name, claimedAt } };
    const next = await given(world, [
      { stream: `clientname-${clientNameIdOf(world.workspaceId, name)}`, events: [claim] },
    ])
      .request('POST', '/clients', { body: brand(name) })
      .then(200, ['ClientNameClaimLapsed', 'NameClaimed', 'ClientCreated']);
    assert.notEqual(next.data.id, made.data.id);
  });

  t('a rename takes an old claim of a client that was never created', async () => {
    const made = await owner.post('/clients', brand('Taker'));
    const name = 'Ghost name';
    const ghost = randomUUID();
    const claimedAt = new Date(Date.now() - 60_000).toISOString();
    const claim = { type: 'NameClaimed', data: { clientId: ghost, name, claimedAt } };
    await given(world, [{ stream: `clientname-${clientNameIdOf(world.workspaceId, name)}`, events: [claim] }])
      .request('PATCH', `/clients/${made.data.id}`, { body: { name } })
      .then(200, ['ClientNameClaimLapsed', 'NameClaimed', 'ClientUpdated', 'NameReleased']);
    await world.settled();
    assert.equal((await owner.get(`/clients/${ghost}`)).status, 404);
  });

  t('If-Match guards a change: the revision, a list, *, and nothing else', async () => {
    const { id } = (await owner.post('/clients', brand('Guarded'))).data;
    const patch = (match: string, type: string) =>
      owner.patch(`/clients/${id}`, { type }, { headers: { 'if-match': match } });
    for (const wrong of ['"7"', 'W/"0"', '0', 'nonsense', '"1", "2"', '']) {
      const refused = await patch(wrong, 'influencer');
      assert.equal(refused.status, 412, wrong);
      assert.equal(refused.body.code, 'revision_mismatch');
    }
    assert.equal((await patch('"0"', 'influencer')).headers.get('etag'), '"1"');
    assert.equal((await patch('"0", "1"', 'brand')).status, 200);
    assert.equal((await patch('*', 'influencer')).status, 200);
    const archive = await owner.delete(`/clients/${id}`, { headers: { 'if-match': '"0"' } });
    assert.equal(archive.status, 412);
  });

  t('archives once, frees the name, still answers, and takes no change', async () => {
    const made = await owner.post('/clients', brand('Farewell'));
    const path = `/clients/${made.data.id}`;
    const gone = await given(world, []).request('DELETE', path).then(200, ['ClientArchived', 'NameReleased']);
    assert.ok(gone.data.archivedAt);
    const again = await given(world, []).request('DELETE', path).then(200, []);
    assert.deepEqual(again.data, gone.data);
    assert.deepEqual((await owner.get(path)).data, gone.data);
    const patched = await owner.patch(path, { type: 'influencer' });
    assert.equal(patched.status, 422);
    assert.equal(patched.body.code, 'client_archived');
    const successor = await owner.post('/clients', brand('farewell'));
    assert.notEqual(successor.data.id, made.data.id);
    const listed = await owner.get('/clients?archived=true&search=farewell');
    assert.deepEqual(
      listed.rows.map(({ id }) => id),
      [made.data.id],
    );
    const live = await owner.get('/clients?search=FAREWELL');
    assert.deepEqual(
      live.rows.map(({ id }) => id),
      [successor.data.id],
    );
  });

  t('an unknown timezone is refused', async () => {
    const refused = await owner.post('/clients', { ...brand('Lost'), timezone: 'Mars/Olympus' });
    assert.equal(refused.body.code, 'validation_failed');
    assert.deepEqual(refused.body.errors?.[0]?.path, '/timezone');
  });
});

suite('lists over HTTP', (t) => {
  let world: World;
  t.before(async () => {
    world = await startWorld();
    for (let at = 0; at < 7; at += 1)
      await world.owner.post('/clients', { name: `Client ${at}`, type: at % 2 ? 'brand' : 'influencer' });
    await world.settled();
  });
  t.after(() => world.close());

  const walk = async (path: string, limits: readonly number[]) => {
    const seen: string[] = [];
    let cursor: string | null = null;
    for (let at = 0; at < 20; at += 1) {
      const sent: string | null = cursor;
      const page = await world.owner.get(
        `${path}limit=${limits[at % limits.length]}${sent === null ? '' : `&cursor=${sent}`}`,
      );
      assert.equal(page.status, 200, page.text);
      assert.equal(page.body.page?.cursor, sent);
      seen.push(...page.rows.map((row) => String(row.name)));
      cursor = page.body.page?.nextCursor ?? null;
      assert.equal(page.body.page?.hasMore, cursor !== null);
      if (cursor === null) break;
    }
    return seen;
  };

  t('pages are whole, newest first, and their size may change', async () => {
    const all = ['Client 6', 'Client 5', 'Client 4', 'Client 3', 'Client 2', 'Client 1', 'Client 0'];
    assert.deepEqual(await walk('/clients?', [2]), all);
    assert.deepEqual(await walk('/clients?', [1, 3]), all);
    assert.deepEqual(await walk('/clients?', [100]), all);
    assert.deepEqual(await walk('/clients?type=brand&', [2]), ['Client 5', 'Client 3', 'Client 1']);
  });

  t('a cursor is valid for its own list, filters and workspace alone', async () => {
    const next = (await world.owner.get('/clients?limit=2')).body.page?.nextCursor ?? '';
    const other = await world.agency('Other');
    const test = world.tester;
    const [version, body] = next.split('.');
    const refused = [
      world.owner.get(`/clients?limit=2&type=brand&cursor=${next}`),
      world.owner.get(`/accounts?limit=2&cursor=${next}`),
      other.owner.get(`/clients?limit=2&cursor=${next}`),
      test.get(`/clients?limit=2&cursor=${next}`),
      world.owner.get(`/clients?limit=2&cursor=${next.slice(0, -2)}AA`),
      world.owner.get(`/clients?limit=2&cursor=${version}.${body}`),
      world.owner.get('/clients?cursor='),
      world.owner.get('/clients?cursor=nonsense'),
    ];
    for (const answer of await Promise.all(refused)) {
      assert.equal(answer.status, 400, answer.text);
      assert.equal(answer.body.code, 'invalid_cursor');
    }
  });

  t('with writes between pages no row is skipped or repeated', async () => {
    const first = await world.owner.get('/clients?limit=3');
    await world.owner.post('/clients', { name: 'In between', type: 'brand' });
    await world.owner.patch(`/clients/${first.rows[0]?.id}`, { approvalRequired: true });
    const second = await world.owner.get(`/clients?limit=100&cursor=${first.body.page?.nextCursor}`);
    const names = [...first.rows, ...second.rows].map((row) => row.name);
    assert.deepEqual(names, ['Client 6', 'Client 5', 'Client 4', 'Client 3', 'Client 2', 'Client 1', 'Client 0']);
  });

  t('unknown ids in filters give an empty list; malformed ones a problem', async () => {
    const empty = await world.owner.get(
      '/accounts?clientId=00000000-0000-4000-8000-000000000000&platform=twitter,bluesky',
    );
    assert.deepEqual(empty.rows, []);
    for (const query of [
      'limit=0',
      'limit=101',
      'limit=1.5',
      'limit=',
      'limit=9999999999999999999',
      'limit=2&limit=3',
      'clientId=nonsense',
      'platform=myspace',
      'platform=',
      'search=x',
      'archived=true',
      'clientId=%00',
    ]) {
      const refused = await world.owner.get(`/accounts?${query}`);
      assert.equal(refused.status, 400, query);
      assert.equal(refused.body.code, 'invalid_parameter');
      assert.equal(refused.body.errors?.[0]?.path.split('/')[1], query.split('=')[0]);
    }
    const named = await world.owner.get('/accounts?serach=x');
    assert.match(named.text, /limit, cursor, asOf, clientId, platform/);
  });

  t('wildcards in a search are ordinary letters', async () => {
    assert.deepEqual((await world.owner.get('/clients?search=%25')).rows, []);
    assert.deepEqual((await world.owner.get('/clients?search=_')).rows, []);
  });
});
