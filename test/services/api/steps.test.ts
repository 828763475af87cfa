import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Type } from 'typebox';
import { closeWorkspaces } from '#runtime/work/closed-workspaces.ts';
import type { Role } from '#schemas/common.ts';
import { BodyBudget, HeavyBodies } from '#services/api/call/bodies.ts';
import { type CallTools, call, OwnWrites, steps } from '#services/api/call/call.ts';
import { calledState, newState, type Operation } from '#services/api/call/operation.ts';
import { toProblem } from '#services/api/call/problems.ts';
import { Refusal } from '#services/api/call/refusal.ts';
import { Warnings } from '#services/api/call/warnings.ts';
import type { Wire } from '#services/api/call/wire.ts';
import { operations } from '#services/api/operations.ts';
import type { Part, PartTools } from '#services/api/parts.ts';
import { type ApiServer, startServer } from '#services/api/server.ts';
import { type Caller, callerOf, startWorld, type World } from '#test/support/http.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

/** The steps of a call: which of them refuses, and what each gives back at the end. */

/** A request in which something is wrong for every step that is not mended yet. */
interface Asked {
  readonly operation: string;
  /** What its credential may do. */
  readonly by: 'closed' | 'nothing' | 'little' | 'one client' | 'all';
  /** Whether the server grants fewer requests than the call costs. */
  readonly isDear: boolean;
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly body: unknown;
  readonly key: string;
}

/** A step, the code of its refusal, and what has to be mended for the next one. */
type Refused = readonly [step: string, code: string, mend: Partial<Asked>];

suite('the steps of a call', (t) => {
  let world: World;
  let dear: ApiServer;
  let clientId: string;
  const tools: { dear?: PartTools; cheap?: PartTools } = {};
  const tokens: Partial<Record<Asked['by'], string>> = {};
  const borrowing =
    (name: keyof typeof tools): Part =>
    (given) => {
      tools[name] = given;
      return (_, next) => next();
    };

  t.before(async () => {
    world = await startWorld({ parts: [borrowing('cheap')] });
    const deps = { ...world.deps, rate: { perMinute: 60, burst: 1 } };
    dear = await startServer(deps, { host: '127.0.0.1', port: 0 }, [borrowing('dear')]);
    clientId = (await world.tester.post('/clients', { name: 'Mine', type: 'brand' })).data.id;
    const of = async (role: Role, more: Parameters<World['keyOf']>[2]): Promise<string> =>
      (await world.keyOf(world.workspaceId, await world.memberOf(world.workspaceId, role), { mode: 'test', ...more }))
        .secret;
    tokens.nothing = await of('viewer', { scopes: ['posts.read'], clientIds: [clientId] });
    tokens.little = await of('viewer', { clientIds: [clientId] });
    tokens['one client'] = await of('owner', { clientIds: [clientId] });
    tokens.all = await of('owner', {});
    const other = await world.agency('Closed');
    tokens.closed = other.liveKey.secret;
    await closeWorkspaces(world.pool, [other.workspaceId], { why: 'moved', by: 'test', eraseAt: null });
    await until('the workspace is closed', async () => (await other.owner.get('/agency')).status === 403);
    await world.settled();
  });
  t.after(async () => {
    await dear?.stop(0);
    await world?.close();
  });

  const overRest = async ({ operation: id, by, isDear, params, query, body, key }: Asked): Promise<unknown> => {
    const operation = operations.find((one) => one.id === id);
    assert.ok(operation !== undefined);
    const base = isDear ? `http://127.0.0.1:${dear.port}` : world.origin();
    const caller: Caller = callerOf(() => `${base}/v1`, tokens[by] ?? null);
    const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => params[name] ?? '');
    const search = new URLSearchParams(query).toString();
    const asked = search === '' ? path : `${path}?${search}`;
    const answer = await caller.request(operation.method, asked, { raw: JSON.stringify(body), key });
    assert.ok(answer.status >= 400, answer.text);
    const { code, detail = null, errors = [] } = answer.body;
    return { code, detail, errors };
  };
  const inside = async ({ operation, by, isDear, params, query, body, key }: Asked): Promise<unknown> => {
    const given = isDear ? tools.dear : tools.cheap;
    assert.ok(given !== undefined);
    const principal = await given.identify(tokens[by] ?? '', 'api');
    const asked = { operation, principal, params, query, body, key, correlationId: randomUUID() };
    const refusal = await given.invoke(asked).then(
      () => assert.fail('it was not refused'),
      (error) => toProblem(error),
    );
    return { code: refusal.code, detail: refusal.detail, errors: [...refusal.errors] };
  };
  const codeOf = (refusal: unknown): unknown => (refusal as { readonly code: string }).code;

  /** Asks over both wires, mends the first fault, asks again, until the last step refuses. */
  const refuseAtEach = async (wrong: Asked, refusals: readonly Refused[]): Promise<void> => {
    let asked = wrong;
    for (const [step, code, mend] of refusals) {
      const over = await overRest(asked);
      assert.equal(codeOf(over), code, `REST, ${step}`);
      assert.deepEqual(await inside(asked), over, `inside, ${step}`);
      asked = { ...asked, ...mend };
    }
  };

  const whole: readonly Refused[] = [
    ['open workspace', 'workspace_closed', { by: 'nothing' }],
    ['scope', 'insufficient_scope', { by: 'little' }],
    ['role', 'role_required', { by: 'one client' }],
    ['whole workspace', 'client_limited', { by: 'all' }],
    ['allowance', 'rate_limited', { isDear: false }],
    ['params', 'not_found', { params: { id: randomUUID() } }],
    ['query', 'invalid_parameter', { query: {} }],
    ['body', 'validation_failed', { body: { from: '2026-01-01T00:00:00.000Z' } }],
    ['key', 'idempotency_key_invalid', { key: randomUUID() }],
    ['carry out', 'not_found', {}],
  ];
  const limited: readonly Refused[] = [
    ['query', 'invalid_parameter', { query: {} }],
    ['body', 'validation_failed', { body: { name: 'Spring' } }],
    ['key', 'idempotency_key_invalid', { key: randomUUID() }],
    // No client is named.
    ['clients', 'validation_failed', { body: { name: 'Spring', clientId: randomUUID() } }],
    ['carry out', 'validation_failed', {}],
  ];
  const allWrong = { isDear: true, params: { id: 'nobody' }, query: { colour: 'red' }, body: {}, key: 'two words' };

  t('the two lists have every step, in the order of the table', () => {
    const order = steps.map(({ name }) => name);
    for (const list of [whole, limited]) {
      const names = list.map(([step]) => step);
      assert.deepEqual(
        names,
        order.filter((name) => names.includes(name)),
      );
    }
    assert.deepEqual(new Set([...whole, ...limited].map(([step]) => step)), new Set(order));
  });

  t('a request that is wrong for every step is refused by the first, over both wires in the same words', async () => {
    await refuseAtEach({ operation: 'replayWebhook', by: 'closed', ...allWrong }, whole);
  });

  t('the limit to clients is looked at after the key and before the work', async () => {
    await refuseAtEach({ operation: 'createCampaign', by: 'one client', ...allWrong, isDear: false }, limited);
  });

  t('what a step holds is given back at the end, the latest step first, after a refusal too', async () => {
    const bodyBudget = new BodyBudget();
    const own = tools.cheap;
    assert.ok(own !== undefined);
    const { deps, allowances, patience } = own;
    const remembering = { ownWrites: new OwnWrites(deps), warnings: new Warnings(deps.pool) };
    const given: CallTools = { deps, allowances, patience, bodyBudget, heavyBodies: new HeavyBodies(), ...remembering };
    const principal = await own.identify(tokens.all ?? '', 'api');
    const text = Buffer.from('{"name":"Held"}');
    const asked = async (handle: Operation['handle'], key: string | undefined) => {
      const done: string[] = [];
      const held = () => (bodyBudget.held === text.length ? 'held' : `held ${bodyBudget.held}`);
      const wire: Wire = {
        ...{ params: {}, announcedBytes: text.length, idempotencyKey: key, ifMatch: undefined, consistencyToken: '' },
        ...{ paid: 0, limitHeaders: { set: () => undefined }, hasParameter: () => false, readQuery: () => ({}) },
        accepts: (...types) => types[0] ?? false,
        readBody: async (_, meter) => {
          meter.take(text);
          return { text, values: meter.values };
        },
        answer: () => void done.push(`answer ${held()}`),
        wrote: (token) => void done.push(`wrote ${token.length > 0} ${held()}`),
      };
      const made = operations.find(({ id }) => id === 'createClient');
      assert.ok(made !== undefined);
      const body = Type.Object({ name: Type.String() });
      const operation: Operation = { ...made, idempotent: 'required', body, handle };
      const state = calledState(newState(randomUUID(), ''), operation, principal);
      const end = await call(given, state, wire).then(
        () => 'answered',
        (error) => toProblem(error).code,
      );
      assert.equal(bodyBudget.held, 0);
      return [...done, end];
    };
    const writes: Operation['handle'] = async ({ positions }) => {
      positions.set('clients-0', 1n);
      return { data: {} };
    };
    const key = randomUUID();
    assert.deepEqual(await asked(writes, key), ['answer held', 'wrote true held', 'answered']);
    const refuses: Operation['handle'] = async (it) => {
      await writes(it);
      throw new Refusal('not_found', 'It is gone.');
    };
    assert.deepEqual(await asked(refuses, key), ['wrote true held', 'not_found']);
    assert.deepEqual(await asked(async () => ({ data: {} }), key), ['answer held', 'answered']);
    assert.deepEqual(await asked(writes, undefined), ['idempotency_key_required']);
  });
});
