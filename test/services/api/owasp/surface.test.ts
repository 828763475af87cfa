import assert from 'node:assert/strict';
import { createApp } from '#services/api/app.ts';
import type { Operation } from '#services/api/call/operation.ts';
import { operations } from '#services/api/operations.ts';
import { pagesParts } from '#services/pages/part.ts';
import { type Answered, startWorld, type World } from '#test/support/http.ts';
import { suite } from '#test/support/suite.ts';

/** OWASP API5, API8 and API9 over the table of operations: methods, spellings of paths, headers, inventory. */

const nowhere = '00000000-0000-4000-8000-000000000000';
const pathOf = ({ path }: Operation): string => path.replace(/\{\w+\}/g, nowhere);
const bodyOf = ({ example }: Operation) => (example.body === undefined ? {} : { body: example.body });
const pages = [
  ...[
    'GET /',
    'GET /.well-known/oauth-protected-resource/v1',
    'GET /.well-known/postline-feed-keys.json',
    'GET /approval/{token}',
    'GET /connect/callback',
    'GET /connect/choice/{token}',
    'GET /connect/code/{token}',
    'GET /connect/{document}',
    'GET /docs',
    'GET /docs/{*file}',
    'GET /invite/{token}',
    'GET /network/deletion/{code}',
    'GET /network/sandbox/{platform}',
    'GET /network/{platform}',
  ],
  ...['POST /approval/{token}', 'POST /connect/choice/{token}', 'POST /connect/code/{token}', 'POST /invite/{token}'],
  ...['POST /network/sandbox/{platform}', 'POST /network/sandbox/{platform}/{topic}'],
  ...['POST /network/{platform}', 'POST /network/{platform}/{topic}'],
];
const verbs = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
/** Some at once, because most of a call is waiting. */
const each = async (check: (operation: Operation) => Promise<void>): Promise<void> => {
  const width = 8;
  for (let at = 0; at < operations.length; at += width) await Promise.all(operations.slice(at, at + width).map(check));
};

suite('OWASP API5, API8, API9: the surface', (t) => {
  let world: World;
  t.before(async () => {
    world = await startWorld();
  });
  t.after(() => world?.close());

  t('API5 a method that a path does not take is 405 with Allow, to everybody alike', async () => {
    const taken = Map.groupBy(operations, pathOf);
    for (const [path, all] of taken) {
      const methods = all.map(({ method }) => method as string);
      const allow = [...methods, ...(methods.includes('GET') ? ['HEAD'] : [])].sort();
      for (const verb of [...verbs, 'PROPFIND'].filter((one) => !methods.includes(one))) {
        for (const caller of [world.anonymous, world.owner]) {
          const answer = await caller.request(verb, path, verb === 'GET' ? {} : { body: {} });
          assert.equal(answer.status, 405, `${verb} ${path}: ${answer.text}`);
          assert.equal(answer.headers.get('allow'), [...allow, 'OPTIONS'].join(', '), `${verb} ${path}`);
        }
      }
    }
  });

  t('API5 no header, query or body makes another method of a call', async () => {
    const made = await world.owner.post('/clients', { name: 'Overridden', type: 'brand' });
    await world.settled();
    const before = await world.head();
    const headers = {
      'x-http-method-override': 'DELETE',
      'x-http-method': 'DELETE',
      'x-method-override': 'DELETE',
    };
    const read = await world.owner.get(`/clients/${made.data.id}`, { headers });
    assert.deepEqual([read.status, read.data.id], [200, made.data.id]);
    await world.owner.get(`/clients/${made.data.id}?_method=DELETE`);
    const posted = await world.owner.post(`/clients/${made.data.id}`, { _method: 'DELETE' }, { headers });
    assert.equal(posted.status, 405);
    await each(async (operation) => {
      if (operation.method !== 'GET') return;
      const answer = await world.owner.get(pathOf(operation), { headers });
      assert.notEqual(answer.status, 405, operation.id);
    });
    assert.equal(await world.head(), before, 'something was stored');
    assert.equal((await world.owner.get(`/clients/${made.data.id}`)).data.archivedAt, null);
  });

  t('API5 a path in another spelling is no path, with or without a token', async () => {
    const before = await world.head();
    await each(async (operation) => {
      const path = pathOf(operation);
      const upper = path.replace(/[a-z]/, (letter) => letter.toUpperCase());
      const encoded = path.replace(/[a-z]/, (letter) => `%${letter.charCodeAt(0).toString(16)}`);
      const spellings = [
        `${path}/`,
        upper,
        encoded,
        `/${path}`,
        `${path};x=1`,
        `${path}%2f`,
        `${path}%00`,
        `${path}.json`,
      ];
      for (const spelling of spellings) {
        const { method } = operation;
        const answers = [
          await world.anonymous.request(method, spelling, bodyOf(operation)),
          await world.owner.request(method, spelling, bodyOf(operation)),
        ];
        for (const answer of answers) {
          // Where the last part is a parameter, the spelling is another value of it; `/media/presign.json` is one too.
          const known = [401, 404, 405, ...(operation.firstParty === true ? [403] : [])].includes(answer.status);
          assert.ok(known, `${method} ${spelling}: ${answer.status} ${answer.text}`);
        }
        assert.notEqual(answers[1]?.status, 401);
      }
    });
    assert.equal(await world.head(), before, 'something was stored');
  });

  t('API8 every answer of every operation has the headers, and no word of the machinery', async () => {
    const origin = { origin: 'https://evil.example' };
    const check = ({ id }: Operation, { headers, text, status }: Answered): void => {
      const where = `${id} ${status}`;
      // What is the same for everybody may be kept, as the docs are.
      assert.match(headers.get('cache-control') ?? '', /no-store|no-cache|public|max-age/, where);
      if (!['getOpenapi', 'getAsyncapi', 'listErrors', 'getError'].includes(id)) {
        assert.equal(headers.get('cache-control'), 'no-store', where);
      }
      assert.equal(headers.get('x-content-type-options'), 'nosniff', where);
      assert.match(headers.get('content-type') ?? '', /^application\/(problem\+)?json/, where);
      for (const [name] of headers)
        assert.ok(!/^access-control-|^x-powered-by$|^server$|^set-cookie$/.test(name), name);
      if (status >= 400) assert.ok(!/node_modules|\.ts:\d|at async |select .* from /i.test(text), text);
    };
    await each(async (operation) => {
      const { method } = operation;
      const path = pathOf(operation);
      check(operation, await world.owner.request(method, path, { ...bodyOf(operation), headers: origin }));
      check(operation, await world.anonymous.request(method, path, { ...bodyOf(operation), headers: origin }));
      const preflight = await world.anonymous.request('OPTIONS', path, {
        headers: { ...origin, 'access-control-request-method': method },
      });
      assert.equal(preflight.headers.get('access-control-allow-origin'), null, operation.id);
    });
  });

  t('API8 a body in another type than JSON is refused by every operation that takes one', async () => {
    await each(async (operation) => {
      if (operation.body === undefined || Object.keys(operation.body.properties).length === 0) return;
      for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']) {
        const answer = await world.owner.request(operation.method, pathOf(operation), {
          raw: JSON.stringify(operation.example.body ?? {}),
          headers: { 'content-type': type },
        });
        const wanted = [415, ...(operation.firstParty === true ? [403] : [])];
        assert.ok(wanted.includes(answer.status), `${operation.id} ${type}: ${answer.text}`);
      }
    });
  });

  t('API9 the routes are the operations of the contract, in both directions', async () => {
    interface Routed {
      readonly router?: { readonly stack: readonly { readonly path: unknown; readonly methods: readonly string[] }[] };
    }
    const { middleware } = createApp(world.deps, pagesParts);
    const routers = middleware.flatMap((one) => (one as Routed).router ?? []);
    const routed = routers.flatMap(({ stack }) =>
      stack.flatMap(({ path, methods }) =>
        methods.filter((one) => one !== 'HEAD').map((one) => `${one} ${String(path).replace(/:(\w+)/g, '{$1}')}`),
      ),
    );
    const outside = routed.filter((one) => !one.includes(' /v1/'));
    // Pages for people. Files have an address of their own where the api serves them itself.
    assert.deepEqual([...new Set(outside)].sort(), pages);
    const { text } = await world.anonymous.get('/openapi.json');
    const { paths } = JSON.parse(text) as { readonly paths: Readonly<Record<string, object>> };
    const documented = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods)
        .filter((one) => verbs.includes(one.toUpperCase()))
        .map((one) => `${one.toUpperCase()} /v1${path}`),
    );
    assert.deepEqual(routed.filter((one) => one.includes(' /v1/')).sort(), documented.sort());
    assert.equal(documented.length, operations.length);
  });

  t('API9 no path of debugging, metrics or another version answers', async () => {
    const paths = [
      '/metrics',
      '/healthz',
      '/debug',
      '/debug/pprof',
      '/admin',
      '/v0/clients',
      '/v2/clients',
      '/graphql',
    ];
    const hidden = ['/.env', '/.git/config', '/swagger.json', '/api-docs', '/v1', '/v1/', '/v1/admin', '/v1/metrics'];
    for (const path of [...paths, ...hidden]) {
      const { status } = await fetch(`${world.origin()}${path}`, { redirect: 'manual' });
      assert.ok([301, 302, 308, 404].includes(status), `${path}: ${status}`);
    }
  });
});
