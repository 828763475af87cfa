import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { Script } from 'node:vm';
import { faultNames } from '#infra/platforms/sandbox/faults.ts';
import { eventTypes } from '#schemas/http/webhook-events.ts';
import { operations } from '#services/api/operations.ts';
import { errorPages } from '#services/api/reference.ts';
import { tools } from '#services/mcp/tools/index.ts';
import {
  type CodeSample,
  literal as pythonLiteral,
  sampleCallsOf,
  typescriptLiteral,
} from '#services/pages/docs/samples.ts';
import { startWorld, type World } from '#test/support/http.ts';
import { curlCall } from '#test/support/shell-words.ts';
import { suite } from '#test/support/suite.ts';

const root = new URL('../../../', import.meta.url);
const contract = JSON.parse(readFileSync(new URL('contracts/openapi.json', root), 'utf8'));

interface Shown {
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly 'x-tagGroups': readonly { readonly name: string; readonly tags: readonly string[] }[];
  readonly paths: Readonly<
    Record<
      string,
      Readonly<Record<string, { readonly operationId: string; readonly 'x-codeSamples': readonly CodeSample[] }>>
    >
  >;
  readonly webhooks: Readonly<Record<string, { readonly post: { readonly summary: string } }>>;
}

const files = [
  ['/docs', 'text/html; charset=utf-8'],
  ['/docs/viewer.js', 'text/javascript; charset=utf-8'],
  ['/docs/start.js', 'text/javascript; charset=utf-8'],
  ['/docs/reference.json', 'application/json; charset=utf-8'],
  ['/docs/guides/first-post.md', 'text/plain; charset=utf-8'],
  ['/docs/guides/sandbox.md', 'text/plain; charset=utf-8'],
  ['/docs/guides/webhooks.md', 'text/plain; charset=utf-8'],
  ['/docs/guides/media.md', 'text/plain; charset=utf-8'],
  ['/docs/guides/errors-and-retries.md', 'text/plain; charset=utf-8'],
  ['/docs/guides/idempotency.md', 'text/plain; charset=utf-8'],
  ['/docs/guides/generated-clients.md', 'text/plain; charset=utf-8'],
  ['/docs/guides/agents-and-apps.md', 'text/plain; charset=utf-8'],
  ['/docs/guides/auditing.md', 'text/plain; charset=utf-8'],
] as const;
const guides = files.map(([path]) => path).filter((path) => path.endsWith('.md'));

/** Addresses in a page, a script or a text. */
const addressesIn = (text: string): readonly string[] =>
  [...text.matchAll(/\b(?:https?:)?\/\/[\w.:-]+/g)].map(([one]) => one);

suite('the reference', (t) => {
  let world: World;
  t.before(async () => {
    world = await startWorld();
  });
  t.after(() => world.close());

  const get = (path: string, headers: Readonly<Record<string, string>> = {}, method = 'GET') =>
    fetch(`${world.origin()}${path}`, { method, headers, redirect: 'manual' });
  const textOf = async (path: string): Promise<string> => (await get(path)).text();
  const shown = async (): Promise<Shown> => JSON.parse(await textOf('/docs/reference.json'));
  const samples = async () =>
    Object.values((await shown()).paths).flatMap((path) =>
      Object.values(path).map((one) => ({ id: one.operationId, samples: one['x-codeSamples'] })),
    );
  const inLanguage = async (label: string) =>
    (await samples()).map(({ id, samples: all }) => ({
      id,
      source: all.find((one) => one.label === label)?.source ?? '',
    }));

  t('is served without a token and lets no other origin in', async () => {
    for (const [path, type] of files) {
      const answer = await get(path);
      assert.equal(answer.status, 200, path);
      assert.equal(answer.headers.get('content-type'), type);
      assert.equal(
        answer.headers.get('content-security-policy'),
        "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; img-src 'self' data:; font-src 'self' data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
      );
      assert.equal(answer.headers.get('x-content-type-options'), 'nosniff');
      assert.equal(answer.headers.get('referrer-policy'), 'no-referrer');
      assert.equal(answer.headers.get('x-frame-options'), 'DENY');
      assert.equal(answer.headers.get('set-cookie'), null);
      assert.ok(answer.headers.get('x-correlation-id'));
    }
    for (const path of ['/docs', '/docs/start.js']) assert.deepEqual(addressesIn(await textOf(path)), [], path);
  });

  t('turns off what the viewer would send to its maker, and asks for no token', async () => {
    const start = await textOf('/docs/start.js');
    for (const setting of [
      '"agent":{"disabled":true}',
      '"mcp":{"disabled":true}',
      '"telemetry":false',
      '"withDefaultFonts":false',
      '"showDeveloperTools":"never"',
      '"hideClientButton":true',
      '"hideTestRequestButton":true',
      '"persistAuth":false',
    ]) {
      assert.ok(start.includes(setting), setting);
    }
    assert.doesNotMatch(start, /proxyUrl/);
  });

  t('every file is kept, asked for again, and compressed', async () => {
    for (const [path] of files) {
      const first = await get(path, { 'accept-encoding': 'identity' });
      const tag = first.headers.get('etag') ?? '';
      const text = Buffer.from(await first.arrayBuffer());
      assert.match(tag, /^W\/"[\w-]{22}"$/);
      assert.equal(first.headers.get('cache-control'), 'no-cache');
      assert.equal(first.headers.get('vary'), 'Accept-Encoding');
      assert.equal(first.headers.get('content-encoding'), null);
      // NOTE: without a Cache-Control of its own, fetch adds `no-cache`, which asks for the whole file.
      const again = await get(path, { 'if-none-match': tag, 'cache-control': 'max-age=0' });
      assert.equal(again.status, 304);
      assert.equal(await again.text(), '');
      const named = await get(`${path}?v=${tag.slice(3, -1)}`);
      assert.equal(named.headers.get('cache-control'), 'public, max-age=31536000, immutable');
      assert.equal((await get(`${path}?v=other`)).headers.get('cache-control'), 'no-cache');
      const head = await get(path, { 'accept-encoding': 'identity' }, 'HEAD');
      assert.equal(head.headers.get('content-length'), String(text.length));
      assert.equal(await head.text(), '');
      for (const encoding of ['gzip', 'br'] as const) {
        const packed = await get(path, { 'accept-encoding': encoding });
        assert.equal(packed.headers.get('content-encoding'), encoding);
        assert.ok(Number(packed.headers.get('content-length')) < text.length, path);
        assert.ok(Buffer.from(await packed.arrayBuffer()).equals(text), `${path} ${encoding}`);
      }
    }
  });

  t('a browser gets the smallest encoding that it takes', async () => {
    for (const [accepted, encoding] of [
      ['gzip, deflate, br, zstd', 'br'],
      ['gzip, br;q=0', 'gzip'],
      ['*', 'br'],
      ['gzip;q=0, br;q=0, identity', null],
    ] as const) {
      const { headers } = await get('/docs/start.js', { 'accept-encoding': accepted });
      assert.equal(headers.get('content-encoding'), encoding, accepted);
    }
  });

  t('the page names its files by their versions', async () => {
    const page = await textOf('/docs');
    const loaded = [...page.matchAll(/src="([^"]+)"/g)].map(([, path = '']) => path);
    assert.equal(loaded.length, 2);
    const reference = /"(\/docs\/reference\.json\?v=[^"]+)"/.exec(await textOf('/docs/start.js'))?.[1] ?? '';
    for (const path of [...loaded, reference]) {
      assert.match((await get(path)).headers.get('cache-control') ?? '', /immutable/, path);
    }
  });

  t('the viewer is a script that makes no code from text', async () => {
    const viewer = await textOf('/docs/viewer.js');
    assert.ok(viewer.length > 1_000_000);
    assert.doesNotThrow(() => new Script(viewer));
    assert.match(viewer, /createApiReference/);
    assert.doesNotMatch(viewer, /\bnew Function\(|[^.\w]eval\(/);
    assert.doesNotMatch(viewer, /sourceMappingURL/);
  });

  t('without scripts the page links the guides and the contracts', async () => {
    const page = await textOf('/docs');
    const links = [...page.matchAll(/<a href="([^"]+)"/g)].map(([, path = '']) => path);
    assert.deepEqual(links, [...guides, '/v1/openapi.json', '/v1/asyncapi.json', '/v1/errors']);
    for (const path of links) assert.equal((await get(path)).status, 200, path);
  });

  t('answers 404 to other paths below it and 405 to other methods', async () => {
    for (const path of ['/docs/', '/docs/nothing', '/docs/guides/nothing.md', '/docs/../docs/x']) {
      assert.equal((await get(path)).status, 404, path);
    }
    const refused = await get('/docs', {}, 'POST');
    assert.equal(refused.status, 405);
    assert.match(refused.headers.get('allow') ?? '', /GET/);
  });

  t('counts against the allowance of the address', async () => {
    const small = await startWorld({ rate: { perMinute: 60, burst: 3 } });
    try {
      const statuses: number[] = [];
      for (let n = 0; n < 4; n += 1) statuses.push((await fetch(`${small.origin()}/docs/start.js`)).status);
      assert.deepEqual(statuses, [200, 200, 200, 429]);
    } finally {
      await small.close();
    }
  });

  t('shows the contract unchanged, with the address of this server', async () => {
    const { servers, webhooks, ...document } = await shown();
    assert.deepEqual(servers, [{ url: `${world.origin()}/v1` }]);
    const here = JSON.parse(
      JSON.stringify(contract).replaceAll(contract.servers[0].url, `${world.origin()}/v1`),
    ) as Record<string, unknown>;
    const without = Object.fromEntries(
      Object.entries(document.paths).map(([path, all]) => [
        path,
        Object.fromEntries(Object.entries(all).map(([method, { 'x-codeSamples': _samples, ...one }]) => [method, one])),
      ]),
    );
    assert.deepEqual(without, here.paths);
    assert.deepEqual((document as unknown as Record<string, unknown>).components, here.components);
    assert.deepEqual(Object.keys(webhooks), eventTypes);
    for (const [type, { post }] of Object.entries(webhooks)) assert.equal(post.summary, type);
    assert.doesNotMatch(JSON.stringify(contract), /x-codeSamples|x-tagGroups/);
  });

  t('every tag is in one group, the guides first', async () => {
    const { tags, 'x-tagGroups': groups } = await shown();
    assert.deepEqual(
      groups.flatMap((group) => group.tags),
      tags.map(({ name }) => name),
    );
    assert.deepEqual(
      groups.map(({ name }) => name),
      ['Guides', 'Operations', 'Webhooks'],
    );
    for (const { name, description } of tags) assert.ok(description.length > 10, name);
  });

  t('every operation has a sample in three languages', async () => {
    const all = await samples();
    assert.equal(all.length, operations.length);
    for (const { id, samples: own } of all) {
      assert.deepEqual(
        own.map(({ label }) => label),
        ['curl', 'TypeScript', 'Python'],
        id,
      );
    }
  });

  t('every sample in curl is a call that the server understands', async () => {
    const misread = /invalid_json|invalid_parameter|idempotency_key|missing_token|method_not|media_type|not_acceptable/;
    const secret = world.testKey.secret;
    for (const { id, source } of await inLanguage('curl')) {
      const { method, url, headers, body } = curlCall(source, { POSTLINE_KEY: secret });
      const { authorization, ...others } = headers;
      const { scope, path } = operations.find((one) => one.id === id) ?? assert.fail(id);
      assert.equal(authorization, scope === null ? undefined : `Bearer ${secret}`, id);
      assert.ok(url.startsWith(`${world.origin()}/v1`), url);
      const asked = url.slice(`${world.origin()}/v1`.length);
      assert.match(asked.split('?')[0] ?? '', new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/{}]+')}$`));
      const caller = scope === null ? world.anonymous : world.tester;
      const answer = await caller.request(method, asked, {
        key: null,
        headers: others,
        ...(body === null ? {} : { raw: body, body: JSON.parse(body) }),
      });
      assert.doesNotMatch(String(answer.body.code ?? ''), misread, `${id}: ${answer.text}`);
      if (answer.status === 404) assert.match(path, /\{/, id);
    }
  });

  t('bodies of samples fit the contract', () => {
    for (const { operationId, body, bodySchema } of sampleCallsOf(contract)) {
      if (body !== undefined) assert.ok(contract.components.schemas[bodySchema ?? ''], `${operationId}: ${bodySchema}`);
    }
  });

  const hasPython = spawnSync('python3', ['--version']).status === 0;
  if (!hasPython) t.skip('every sample in Python parses', 'there is no python3 here');
  else {
    t('every sample in Python parses', async () => {
      const parse = 'import ast, json, sys\nfor one in json.load(sys.stdin): ast.parse(one["source"], one["id"])';
      const input = JSON.stringify(await inLanguage('Python'));
      const { status, stderr } = spawnSync('python3', ['-c', parse], { input, encoding: 'utf8' });
      assert.equal(status, 0, stderr);
    });
  }

  t('values are written as each language reads them', () => {
    const value = { 'a-b': [true, null, 1.5, "it's", 'a "b" \\'], ok: { n: [] } };
    assert.equal(
      typescriptLiteral(value),
      `{\n  'a-b': [true, null, 1.5, 'it\\'s', 'a "b" \\\\'],\n  ok: { n: [] },\n}`,
    );
    assert.equal(
      pythonLiteral(value),
      `{\n    "a-b": [True, None, 1.5, "it's", "a \\"b\\" \\\\"],\n    "ok": {"n": []},\n}`,
    );
  });

  t('every link of a guide leads somewhere', async () => {
    const { tags, paths } = await shown();
    const anchors = new Set([
      ...tags.map(({ name }) => `tag/${name}`),
      ...Object.entries(contract.paths as Shown['paths']).flatMap(([path, all]) =>
        Object.entries(all).map(
          ([method, one]) => `tag/${(one as unknown as { tags: string[] }).tags[0]}/${method.toUpperCase()}${path}`,
        ),
      ),
    ]);
    assert.ok(Object.keys(paths).length > 30);
    let count = 0;
    for (const guide of guides) {
      for (const [, to = ''] of (await textOf(guide)).matchAll(/\]\(([^)]+)\)/g)) {
        count += 1;
        const [path = '', anchor] = to.split('#');
        assert.ok(path.startsWith('/'), `${guide}: ${to}`);
        assert.equal((await get(path)).status, 200, `${guide}: ${to}`);
        if (anchor !== undefined) assert.ok(anchors.has(anchor), `${guide}: ${to}`);
      }
    }
    assert.ok(count > 15, `only ${count} links were found`);
  });

  /** Names of OAuth 2: RFC 6749, 7636, 8414. */
  const protocol = [
    ...['response_type', 'client_id', 'redirect_uri', 'code_challenge', 'code_challenge_method'],
    ...['authorization_endpoint', 'token_endpoint'],
  ];

  t('guides name codes, events, members and tools that exist', async () => {
    const codes = [...errorPages.map(({ code }) => code), ...tools.map(({ name }) => name), ...protocol, ...faultNames];
    const known = `${JSON.stringify(contract)}${codes.map((code) => `"${code}"`).join()}`;
    for (const guide of guides) {
      const prose = (await textOf(guide)).replaceAll(/```[\s\S]*?```/g, '');
      for (const [, word = ''] of prose.matchAll(/`(?!data\.|failure\.)([a-z]+(?:[_.][a-z]+)+)`/g)) {
        assert.ok(known.includes(`"${word}"`) || known.includes(`.${word}`), `${guide}: ${word}`);
      }
    }
  });

  t('the guide on idempotency lists the operations as they are', async () => {
    const guide = await textOf('/docs/guides/idempotency.md');
    const row = /\| POST (.+?) \| required \|/.exec(guide)?.[1]?.split(', ') ?? [];
    const required = operations.filter((one) => one.idempotent === 'required').map(({ path }) => path);
    assert.deepEqual([...row].sort(), [...required].sort());
    for (const { id, method, path, idempotent } of operations) {
      if (method !== 'POST' || guide.includes(`POST ${path} | ignored`)) assert.equal(idempotent, 'none', id);
      else assert.notEqual(idempotent, 'none', id);
    }
  });
});

suite('the root', (t) => {
  let world: World;
  t.before(async () => {
    world = await startWorld();
  });
  t.after(() => world.close());
  const get = (headers: Readonly<Record<string, string>> = {}, method = 'GET') =>
    fetch(`${world.origin()}/`, { method, headers });

  t('says what is where, to programs', async () => {
    const answer = await get();
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8');
    assert.equal(answer.headers.get('vary'), 'Accept');
    const places = (await answer.json()) as Record<string, string>;
    assert.deepEqual(places, {
      name: 'Postline',
      docs: '/docs',
      openapi: '/v1/openapi.json',
      asyncapi: '/v1/asyncapi.json',
      errors: '/v1/errors',
      live: '/livez',
      ready: '/readyz',
    });
    for (const path of ['/docs', '/v1/openapi.json', '/v1/asyncapi.json', '/v1/errors']) {
      assert.equal((await fetch(`${world.origin()}${path}`)).status, 200, path);
    }
  });

  t('says it to people, without a script', async () => {
    const answer = await get({ accept: 'text/html,application/xhtml+xml,*/*;q=0.8' });
    const html = await answer.text();
    assert.equal(answer.headers.get('content-type'), 'text/html; charset=utf-8');
    assert.match(answer.headers.get('content-security-policy') ?? '', /default-src 'none'/);
    assert.match(html, /<a href="\/docs">/);
    assert.doesNotMatch(html, /<script|https?:\/\//);
  });

  t('answers HEAD, and 405 to other methods', async () => {
    const head = await get({}, 'HEAD');
    assert.equal(head.status, 200);
    assert.equal(await head.text(), '');
    assert.equal((await get({}, 'POST')).status, 405);
  });

  t('the README names the reference', () => {
    assert.ok(readFileSync(new URL('README.md', root), 'utf8').includes('http://127.0.0.1:8080/docs`'));
  });
});
