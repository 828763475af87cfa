import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mintSession } from '#runtime/identity/sessions.ts';
import type { Role } from '#schemas/common.ts';
import type { Invocation, Invoked } from '#services/api/call/invoke.ts';
import { toProblem } from '#services/api/call/problems.ts';
import type { Part, PartTools } from '#services/api/parts.ts';
import { startServer } from '#services/api/server.ts';
import { type Composer, composer, tomorrow } from '#test/support/composing.ts';
import { type Answered, type Caller, startWorld, type World } from '#test/support/http.ts';
import { suite } from '#test/support/suite.ts';

/**
 * Calls inside the process: what they answer, store and spend. Their steps are those of REST (see steps.test.ts); what each
 * wire reads and writes itself is compared here.
 */

suite('an operation inside the process is the call of REST', (t) => {
  let world: World;
  let tools: PartTools;
  let mine: Composer;
  let theirs: Composer;
  const borrowed: Part = (given) => {
    tools = given;
    return (_, next) => next();
  };
  t.before(async () => {
    world = await startWorld({ parts: [borrowed] });
    mine = await composer(world, ['x', 'bluesky'], { name: 'Mine' });
    theirs = await composer(world, ['x'], { name: 'Theirs' });
  });
  t.after(() => world?.close());

  type Asked = Omit<Invocation, 'principal' | 'correlationId'>;
  const invokeBy = async (by: Caller, asked: Asked, given = tools): Promise<Invoked<Record<string, unknown>>> => {
    const principal = await given.identify(by.token ?? '', 'api');
    return given.invoke({ ...asked, principal, correlationId: randomUUID() });
  };
  const problemOf = async (work: Promise<unknown>): Promise<unknown> => {
    const { code, detail, errors, extra } = await work.then(
      () => assert.fail('it was not refused'),
      (error) => toProblem(error),
    );
    return { code, detail, errors: [...errors], ...extra };
  };
  const problemIn = ({ body }: Answered): unknown => {
    const { type, title, status, category, correlationId, ...told } = body;
    return { ...told, errors: body.errors ?? [] };
  };
  /** @param path with the parameters in it */
  const refusedAlike = async (by: Caller, method: string, path: string, asked: Asked): Promise<unknown> => {
    const body = asked.body === undefined ? {} : { raw: JSON.stringify(asked.body) };
    const over = await by.request(method, path, { ...body, key: asked.key ?? null });
    assert.ok(over.status >= 400, over.text);
    const inside = await problemOf(invokeBy(by, asked));
    assert.deepEqual(inside, problemIn(over), `${method} ${path}`);
    return (inside as { readonly code: string }).code;
  };

  const refused = async (by: Caller, asked: Asked): Promise<string> =>
    ((await problemOf(invokeBy(by, asked))) as { readonly code: string }).code;

  t('reads: one, a list with its page, a search, and what has no envelope', async () => {
    const one = await world.tester.get(`/clients/${mine.clientId}`);
    const inside = await invokeBy(world.tester, { operation: 'getClient', params: { id: mine.clientId } });
    assert.deepEqual(inside.data, one.data);
    assert.deepEqual([inside.replayed, inside.consistencyToken, inside.warnings], [false, null, []]);
    const list = await world.tester.get('/clients?limit=1&search=i');
    const listed = await invokeBy(world.tester, { operation: 'listClients', query: { limit: 1, search: 'i' } });
    assert.deepEqual(listed.data, list.rows);
    assert.deepEqual(listed.page, list.body.page);
    const error = await world.tester.get('/errors/not_found');
    const raw = await invokeBy(world.tester, { operation: 'getError', params: { code: 'not_found' } });
    assert.deepEqual(raw.data, error.data);
    const contract = await invokeBy(world.tester, { operation: 'getOpenapi' });
    assert.equal(contract.type, 'application/json');
    assert.deepEqual(JSON.parse(String(contract.data)), (await world.anonymous.get('/openapi.json')).body);
  });

  t('writes: the same events under the same names, and a key is shared with REST', async () => {
    const body = mine.body({ schedule: { type: 'at', scheduledAt: tomorrow() } });
    const stored = async (work: () => Promise<unknown>) => {
      const before = await world.head();
      await work();
      const streams = new Set((await world.eventsAfter(before)).map(({ stream }) => stream));
      const found = await Promise.all([...streams].map((stream) => world.store.readStream(stream)));
      return found
        .flat()
        .map(({ type, metadata }) => `${type} by ${JSON.stringify(metadata.actor)}`)
        .sort();
    };
    const key = randomUUID();
    let made: Invoked<Record<string, unknown>> | undefined;
    const inside = await stored(async () => {
      made = await invokeBy(world.tester, { operation: 'createPost', body, key });
    });
    const over = await stored(() => world.tester.post('/posts', body));
    assert.deepEqual(inside, over);
    assert.ok(inside.length >= 3);
    const again = await world.tester.post('/posts', body, { key });
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    assert.equal(again.data.id, made?.data.id);
    const repeated = await invokeBy(world.tester, { operation: 'createPost', body, key });
    assert.deepEqual([repeated.replayed, repeated.data, repeated.revision], [true, made?.data, made?.revision]);
    const code = await refusedAlike(world.tester, 'POST', '/posts', {
      operation: 'createPost',
      body: { ...body, content: 'Another.' },
      key,
    });
    assert.equal(code, 'idempotency_key_reused');
  });

  t('many in one answer come as one value, and each costs a request', async () => {
    const posts = [mine.body({ content: 'One.' }), mine.body({ content: '' }), mine.body({ saveDraft: true })];
    const key = randomUUID();
    const inside = await invokeBy(world.tester, { operation: 'bulkCreatePosts', body: { posts }, key });
    const over = await world.tester.post('/posts/bulk', undefined, { raw: JSON.stringify({ posts }), key });
    assert.equal(over.headers.get('idempotent-replayed'), 'true');
    const plain = (data: unknown) =>
      JSON.parse(JSON.stringify(data).replaceAll(/"correlationId":"[^"]+"/g, '"correlationId":""'));
    assert.deepEqual(plain(inside.data), plain(over.data));
    assert.deepEqual([inside.data.created, inside.data.rejected], [2, 1]);
  });

  t('the caller reads what it wrote, at once and over both ways', async () => {
    const body = { name: `Written ${randomUUID()}`, type: 'brand' };
    const made = await invokeBy(world.tester, { operation: 'createClient', body, key: randomUUID() });
    assert.ok(made.consistencyToken);
    assert.equal((await world.tester.get(`/clients/${made.data.id}`)).data.name, body.name);
    const read = await invokeBy(world.tester, { operation: 'listClients', query: { search: body.name } });
    assert.deepEqual(
      (read.data as unknown as readonly { id: string }[]).map(({ id }) => id),
      [made.data.id],
    );
  });

  t('If-Match guards a revision', async () => {
    const params = { id: mine.clientId };
    const patch = { operation: 'updateClient', params, body: { timezone: 'Europe/Rome' } };
    assert.equal(await refused(world.tester, { ...patch, ifMatch: '"99"' }), 'revision_mismatch');
    const { revision } = await invokeBy(world.tester, { operation: 'getClient', params });
    const changed = await invokeBy(world.tester, { ...patch, ifMatch: `"${revision}"` });
    assert.equal(changed.data.timezone, 'Europe/Rome');
  });

  t('what the wire reads itself is refused in the words of REST', async () => {
    const by = world.tester;
    const key = randomUUID();
    const id = mine.clientId;
    const client = (body?: unknown) => refusedAlike(by, 'POST', '/clients', { operation: 'createClient', body, key });
    const clients = (path: string, query: Invocation['query'] = {}) =>
      refusedAlike(by, 'GET', path, { operation: 'listClients', query });
    const codes = [
      await clients('/clients?limit=0', { limit: 0 }),
      await clients('/clients?search=%00', { search: '\0' }),
      await refusedAlike(by, 'POST', '/posts', {
        operation: 'createPost',
        body: mine.body({ content: '\ud800' }),
        key,
      }),
      await refusedAlike(by, 'POST', '/posts', { operation: 'createPost', body: mine.body() }),
      await refusedAlike(by, 'PATCH', `/clients/${id}`, { operation: 'updateClient', params: { id }, body: [] }),
      await client(),
      await client({ a: 'x'.repeat(1_100_000) }),
      await client({ a: Array(10_001).fill(1) }),
    ];
    assert.deepEqual(codes, [
      ...['invalid_parameter', 'invalid_parameter', 'validation_failed', 'idempotency_key_required'],
      ...['validation_failed', 'invalid_json', 'payload_too_large', 'too_many_values'],
    ]);
    const foreign = { operation: 'createPost', body: theirs.body({ clientId: id }), key };
    assert.equal(await refused(by, foreign), 'validation_failed');
  });

  t('scope, role, first party and the limit to clients hold inside the process', async () => {
    const of = async (role: Role, more: Parameters<World['keyOf']>[2] = {}) =>
      (await world.keyOf(world.workspaceId, await world.memberOf(world.workspaceId, role), { mode: 'test', ...more }))
        .caller;
    const reader = await of('owner', { scopes: ['posts.read'] });
    const viewer = await of('viewer');
    const manager = await of('manager');
    const limited = await of('owner', { clientIds: [mine.clientId] });
    const key = randomUUID();
    const id = theirs.clientId;
    assert.equal(await refused(reader, { operation: 'listClients' }), 'insufficient_scope');
    assert.equal(await refused(viewer, { operation: 'createPost', body: mine.body(), key }), 'role_required');
    assert.equal(await refused(manager, { operation: 'archiveClient', params: { id }, key }), 'role_required');
    assert.equal(await refused(manager, { operation: 'refreshAnalytics', key }), 'first_party_only');
    assert.equal(await refused(limited, { operation: 'listReports' }), 'client_limited');
    assert.equal(await refused(limited, { operation: 'getClient', params: { id } }), 'not_found');
    const foreign = { operation: 'createPost', body: theirs.body(), key };
    assert.equal(await refused(limited, foreign), 'validation_failed');
    const [only] = (await invokeBy(limited, { operation: 'listClients' })).data as unknown as readonly { id: string }[];
    assert.equal(only?.id, mine.clientId);

    const sessions = { store: world.store, secrets: world.secrets, clock: world.deps.clock };
    const { workspaceId, memberId } = world;
    const { token } = await mintSession(sessions, { workspaceId, memberId, mode: 'test' });
    await world.settled();
    const member = await invokeBy(world.callerWith(token), { operation: 'getAgency' });
    assert.equal(member.data.object, (await world.tester.get('/agency')).data.object);
  });

  t('it spends what REST spends, from the same allowance', async () => {
    let own: PartTools | undefined;
    const part: Part = (given) => {
      own = given;
      return (_, next) => next();
    };
    const deps = { ...world.deps, rate: { perMinute: 60, burst: 30 } };
    const server = await startServer(deps, { host: '127.0.0.1', port: 0 }, [part]);
    try {
      assert.ok(own !== undefined);
      const heard: Record<string, string> = {};
      const told = { set: (name: string, value: string) => void Object.assign(heard, { [name]: value }) };
      const left = () => Number(/r=(\d+)/.exec(heard.RateLimit ?? '')?.[1]);
      await invokeBy(world.tester, { operation: 'listClients', told }, own);
      assert.equal(left(), 29);
      await invokeBy(world.tester, { operation: 'listClients', query: { search: 'x' }, told }, own);
      assert.equal(left(), 19);
      await invokeBy(world.tester, { operation: 'getAgency', told, paid: 1 }, own);
      assert.equal(left(), 19);
      const over = await fetch(`http://127.0.0.1:${server.port}/v1/agency`, {
        headers: { authorization: `Bearer ${world.tester.token}` },
      });
      assert.match(over.headers.get('ratelimit') ?? '', /r=18;/);
      const items = Array.from({ length: 20 }, () => randomUUID());
      const bulk = {
        operation: 'bulkPostTargets',
        body: { action: 'cancel', targetIds: items },
        key: randomUUID(),
        told,
      };
      await invokeBy(world.tester, bulk, own).catch(() => undefined);
      const refused = await problemOf(invokeBy(world.tester, { operation: 'getAgency', told }, own));
      assert.equal((refused as { readonly code: string }).code, 'rate_limited');
    } finally {
      await server.stop(0);
    }
  });

  t('a store that does not answer ends the call in time', async () => {
    let own: PartTools | undefined;
    const part: Part = (given) => {
      own = given;
      return (_, next) => next();
    };
    const stuck = { run: () => new Promise<never>(() => undefined) };
    const patience = { tokenMs: 5_000, appendMs: 100, callMs: 100 };
    const deps = { ...world.deps, patience, lists: Object.assign(Object.create(world.deps.lists), stuck) };
    const server = await startServer(deps, { host: '127.0.0.1', port: 0 }, [part]);
    try {
      assert.ok(own !== undefined);
      const problem = await problemOf(invokeBy(world.tester, { operation: 'listClients' }, own));
      assert.equal((problem as { readonly code: string }).code, 'unavailable');
    } finally {
      await server.stop(0);
    }
  });
});
