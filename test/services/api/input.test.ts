import assert from 'node:assert/strict';
import { connect } from 'node:net';
import fc from 'fast-check';
import { operations } from '#services/api/operations.ts';
import { startWorld, type World } from '#test/support/http.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

const nested = (depth: number): string => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
const withRules = (rules: string): string => `{"name":"Corpus","type":"brand","rules":${rules}}`;

/** What is sent, and the code it is refused with. */
const refused: readonly (readonly [string, string | Buffer, string])[] = [
  ['nothing', '', 'invalid_json'],
  ['half an object', '{"name":', 'invalid_json'],
  ['two values', '{}{}', 'invalid_json'],
  ['a trailing comma', '{"name":"a",}', 'invalid_json'],
  ['NaN', '{"name":NaN}', 'invalid_json'],
  ['a comment', '{/*x*/"name":"a"}', 'invalid_json'],
  ['a bare NUL byte', Buffer.from('{"name":"a\0b"}'), 'invalid_json'],
  ['malformed UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]), 'invalid_json'],
  ['UTF-16', Buffer.from('{"name":"a"}', 'utf16le'), 'invalid_json'],
  ['33 levels', withRules(nested(32)), 'invalid_json'],
  ['100,000 levels of arrays', '['.repeat(100_000), 'invalid_json'],
  ['100,000 levels, closed', `${'['.repeat(100_000)}${']'.repeat(100_000)}`, 'invalid_json'],
  ['an array', '[]', 'validation_failed'],
  ['a string', '"x"', 'validation_failed'],
  ['null', 'null', 'validation_failed'],
  ['a number', '1', 'validation_failed'],
  ['no members', '{}', 'validation_failed'],
  ['an escaped NUL', '{"name":"a\\u0000b","type":"brand"}', 'validation_failed'],
  ['an escaped NUL in what is kept whole', withRules('{"x":["\\u0000"]}'), 'validation_failed'],
  ['an escaped NUL in a member name', withRules('{"\\u0000":1}'), 'validation_failed'],
  ['a lone surrogate', '{"name":"\\ud800","type":"brand"}', 'validation_failed'],
  ['a lone low surrogate in a member name', withRules('{"\\udc00":1}'), 'validation_failed'],
  ['a number over a double', withRules('{"n":1e999}'), 'validation_failed'],
  ['a number for a name', '{"name":1,"type":"brand"}', 'validation_failed'],
  ['an object for a name', '{"name":{"toString":1},"type":"brand"}', 'validation_failed'],
  ['a name of blanks', '{"name":"   ","type":"brand"}', 'validation_failed'],
  ['a name of 201', `{"name":"${'x'.repeat(201)}","type":"brand"}`, 'validation_failed'],
  ['another type', '{"name":"a","type":"__proto__"}', 'validation_failed'],
  ['a required member null', '{"name":null,"type":"brand"}', 'validation_failed'],
  ['a list for an object', withRules('[]'), 'validation_failed'],
  ['the name in __proto__', '{"__proto__":{"name":"a"},"type":"brand"}', 'validation_failed'],
];

suite('input over HTTP', (t) => {
  let world: World;
  t.before(async () => {
    world = await startWorld();
  });
  t.after(() => world.close());

  for (const [what, raw, code] of refused) {
    t(`${what}: a problem, and nothing stored`, async () => {
      const before = await world.head();
      const headers = { 'content-type': 'application/json' };
      const answer = await world.owner.request('POST', '/clients', { raw, headers });
      assert.equal(answer.body.code, code, answer.text);
      assert.equal(answer.status, code === 'invalid_json' ? 400 : 422);
      assert.equal(answer.body.correlationId, answer.headers.get('x-correlation-id'));
      if (code === 'validation_failed') assert.ok((answer.body.errors ?? []).length > 0);
      assert.equal(await world.head(), before);
    });
  }

  t('bytes that are not HTTP get a problem of the same form, and the connection ends', async () => {
    const { hostname, port } = new URL(world.origin());
    const answerTo = async (sent: string): Promise<string> => {
      const socket = connect(Number(port), hostname);
      socket.end(sent);
      let answer = '';
      for await (const chunk of socket) answer += String(chunk);
      return answer;
    };
    const heavy = `GET /v1/agency HTTP/1.1\r\nHost: x\r\nX-Heavy: ${'a'.repeat(20_000)}\r\n\r\n`;
    for (const sent of ['nonsense\r\n\r\n', 'GET /v1/agency HTTP/9\r\n\r\n', heavy]) {
      const answer = await answerTo(sent);
      const [head = '', body = ''] = answer.split('\r\n\r\n');
      assert.match(head, /^HTTP\/1\.1 400 /);
      assert.match(head, /application\/problem\+json/);
      assert.equal(JSON.parse(body).code, 'malformed_request');
    }
  });

  t('errors name their member by JSON Pointer', async () => {
    const answer = await world.owner.request('POST', '/clients', {
      raw: '{"name":"","rules":1,"approvalRequired":"yes"}',
    });
    const paths = new Set(answer.body.errors?.map(({ path }) => path));
    assert.deepEqual([...paths].sort(), ['/approvalRequired', '/name', '/rules', '/type']);
    assert.equal(
      answer.body.errors?.find(({ path }) => path === '/approvalRequired')?.message,
      'must be true or false',
    );
    assert.equal(answer.body.errors?.filter(({ path }) => path === '/approvalRequired').length, 1);
    const odd = await world.owner.request('POST', '/clients', { raw: withRules('{"a/b~c":"\\u0000"}') });
    assert.equal(odd.body.errors?.[0]?.path, '/rules/a~1b~0c');
  });

  t('odd but harmless values are accepted, and free-form values are kept whole', async () => {
    const raw =
      '{"name":"Odd","name":"Odder","type":"brand","__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}},' +
      `"rules":{"__proto__":{"polluted":true},"deep":${nested(28)},"big":12345678901234567890,"emoji":"👩‍👩‍👧‍👦\\u2028"},"status":"archived"}`;
    const made = await world.owner.request('POST', '/clients', { raw: Buffer.from(`\ufeff${raw}`) });
    assert.equal(made.status, 200, made.text);
    assert.equal(made.data.name, 'Odder');
    assert.equal(({} as { polluted?: boolean }).polluted, undefined);
    assert.equal(({} as { admin?: boolean }).admin, undefined);
    const read = await world.owner.get(`/clients/${made.data.id}`);
    assert.deepEqual(read.data, made.data);
    assert.match(read.text, /"__proto__":\{"polluted":true\}/);
  });

  t('where a body is optional, the text null is no body, as some generated clients send it', async () => {
    const optional = operations.filter(({ bodyOptional }) => bodyOptional === true);
    assert.ok(optional.length >= 8);
    const headers = { 'content-type': 'application/json' };
    for (const { id, method, path } of optional) {
      const unknown = path.replaceAll(/\{\w+\}/g, '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0009');
      const none = await world.owner.request(method, unknown);
      const answer = await world.owner.request(method, unknown, { raw: 'null', headers });
      assert.deepEqual([answer.status, answer.body.code], [none.status, none.body.code], id);
      assert.notEqual(answer.body.code, 'validation_failed', id);
    }
  });

  t('a body that is too large to store is refused', async () => {
    const before = await world.head();
    const rules = { text: 'x'.repeat(600 * 1024) };
    const answer = await world.owner.post('/clients', { name: 'Heavy', type: 'brand', rules });
    assert.equal(answer.status, 422);
    assert.equal(answer.body.code, 'validation_failed');
    assert.equal(await world.head(), before);
    const light = await world.owner.post('/clients', { name: 'Heavy', type: 'brand' });
    assert.equal(light.status, 200);
  });

  t('no body of any shape is answered with 5xx', async () => {
    const { seed } = seeded('any body');
    const member = fc.oneof(
      fc.constantFrom('name', 'type', 'rules', 'brandVoice', 'timezone', 'defaultPostMode'),
      fc.string(),
    );
    const value = fc.oneof(fc.jsonValue(), fc.constantFrom('brand', 'Europe/Berlin', 'now', null, true));
    const bodies = fc.dictionary(member, value, { maxKeys: 8 });
    await fc.assert(
      fc.asyncProperty(bodies, async (body) => {
        const answer = await world.owner.post('/clients', body);
        assert.ok(answer.status < 500, answer.text);
      }),
      { seed, numRuns: 150 },
    );
  });

  t('mass assignment changes no member that the caller may not set', async () => {
    const body = {
      name: 'Mass',
      type: 'brand',
      id: 'x',
      workspaceId: world.workspaceId,
      revision: 99,
      archivedAt: '2020-01-01T00:00:00.000Z',
      accountCount: 7,
      createdAt: '2020-01-01T00:00:00.000Z',
    };
    const made = await world.owner.post('/clients', body);
    assert.equal(made.data.revision, 0);
    assert.equal(made.data.archivedAt, null);
    assert.equal(made.data.accountCount, 0);
    assert.notEqual(made.data.createdAt, body.createdAt);
  });
});
