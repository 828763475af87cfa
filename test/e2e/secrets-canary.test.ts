/**
 * Nothing that is secret is ever written down: a day in the life of an installation, then every log line, stored byte,
 * row and answer is searched for what must not be there.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { testTwinIdOf } from '#domain/ids.ts';
import { mintSession } from '#runtime/identity/sessions.ts';
import { rotateApiKey } from '#services/workflows/provision.ts';
import { readyAsset } from '#test/support/assets.ts';
import { callerOf, startWorld, type World } from '#test/support/http.ts';
import { compose, prepare } from '#test/support/main-job.ts';
import { testServer } from '#test/support/postgres.ts';
import { run, start } from '#test/support/processes.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { type Dispatching, dispatching } from '#test/support/webhooks.ts';

const random = (): string => randomBytes(24).toString('base64url');

suite('secrets and personal data are absent from', { timeoutMs: 180_000 }, (t) => {
  let world: World;
  let dispatcher: Dispatching;
  const answers: { readonly of: string; readonly text: string; readonly headers: string }[] = [];
  /** What it is → its text. */
  const secrets = new Map<string, string>();
  const personal = new Map<string, string>();
  /** What a caller put where it does not belong: it comes back to them at most, and is kept nowhere. */
  const strays = new Map<string, string>();

  const stray = (what: string): string => {
    const value = `stray-${random()}`;
    strays.set(what, value);
    return value;
  };
  const call = async (of: string, path: string, init: RequestInit & { token?: string } = {}): Promise<Response> => {
    const { token, ...rest } = init;
    const headers = {
      'content-type': 'application/json',
      ...(token ? { authorization: `Bearer ${token}` } : {}),
      ...rest.headers,
    };
    const answer = await fetch(`${world.origin()}${path}`, { redirect: 'manual', ...rest, headers });
    const copy = answer.clone();
    answers.push({ of, text: await copy.text(), headers: JSON.stringify([...copy.headers]) });
    return answer;
  };

  t.before(async () => {
    world = await startWorld();
    dispatcher = await dispatching(world);
    const { liveKey, testKey, workspaceId, memberId, operator } = world;
    secrets.set('live key', liveKey.secret);
    secrets.set('test key', testKey.secret);
    const { secret: rotated } = await rotateApiKey(operator, workspaceId, liveKey.id);
    secrets.set('rotated key', rotated);
    const { token: session } = await mintSession(
      { store: world.store, secrets: world.secrets, clock: Date.now },
      { workspaceId, memberId, mode: 'live' },
    );
    secrets.set('session', session);
    await world.settled();

    // Reads, under every kind of credential.
    for (const token of [liveKey.secret, testKey.secret, rotated, session]) {
      for (const path of ['/v1/agency', '/v1/clients', '/v1/accounts', '/v1/posts', '/v1/post-targets'])
        await call('read', path, { token });
    }
    // The main job, with people in it.
    const usernames = {
      x: `person${randomBytes(6).toString('hex')}`,
      bluesky: `human${randomBytes(6).toString('hex')}`,
    };
    const { clientId, token: invite } = await prepare(
      callerOf(() => `${world.origin()}/v1`, testKey.secret),
      { usernames },
    );
    secrets.set('invite token', invite);
    for (const [platform, name] of Object.entries(usernames)) personal.set(`username on ${platform}`, name);
    const email = `recipient-${randomBytes(6).toString('hex')}@people.example`;
    personal.set('e-mail', email);
    const key = `caller-${random()}`;
    secrets.set('Idempotency-Key', key);
    for (let n = 0; n < 2; n += 1) {
      await call('mint', `/v1/clients/${clientId}/connect-invites`, {
        token: testKey.secret,
        method: 'POST',
        headers: { 'idempotency-key': key },
        body: JSON.stringify({ platforms: ['x'], recipientEmail: email }),
      });
    }
    const { id: mediaId } = await readyAsset(world.store, testTwinIdOf(workspaceId), 'video');
    await compose(
      callerOf(() => `${world.origin()}/v1`, testKey.secret),
      clientId,
      { type: 'now' },
      {},
      mediaId,
    );
    // Endpoints: each secret is shown by the call that makes it, and by its repeat.
    const keyed = async (of: string, path: string, body: object, idempotencyKey = random()): Promise<Response> =>
      call(of, path, {
        token: testKey.secret,
        method: 'POST',
        headers: { 'idempotency-key': idempotencyKey },
        body: JSON.stringify(body),
      });
    const endpoint = { url: 'https://hooks.people.example/in', events: ['*'] };
    const made = async (answer: Promise<Response>): Promise<{ readonly id: string; readonly secret: string }> =>
      ((await (await answer).json()) as { readonly data: { readonly id: string; readonly secret: string } }).data;
    const registered = await made(keyed('register', '/v1/webhooks', endpoint));
    secrets.set('webhook secret', registered.secret.slice('whsec_'.length));
    const hook = `/v1/webhooks/${registered.id}`;
    const rotation = random();
    for (let n = 0; n < 2; n += 1) {
      const { secret } = await made(keyed('rotate webhook', `${hook}/rotate-secret`, {}, rotation));
      secrets.set('second webhook secret', secret.slice('whsec_'.length));
    }
    const tested = await made(keyed('test webhook', `${hook}/test`, {}));
    await keyed('replay', `${hook}/replays`, { from: '2026-01-31T08:00:00Z', types: ['client.*'] });
    await keyed('bad webhook', '/v1/webhooks', {
      ...endpoint,
      url: `https://me:${stray('password in a url')}@a.example/`,
    });
    await keyed('bad webhook', '/v1/webhooks', {
      ...endpoint,
      url: `https://10.0.0.1/${stray('path of a refused url')}`,
    });
    await keyed('bad webhook', '/v1/webhooks', { ...endpoint, events: [stray('event type')] });
    await keyed('bad webhook', '/v1/webhooks', { ...endpoint, secret: stray('secret of their own') });
    await world.settled('dispatcher');
    for (const path of ['/v1/webhooks', hook, `${hook}/deliveries`, `${hook}/deliveries/${tested.id}`])
      await call('read webhook', path, { token: testKey.secret });
    await call('change webhook', hook, {
      token: testKey.secret,
      method: 'PATCH',
      body: JSON.stringify({ description: 'another' }),
    });
    await world.settled();
    for (const path of [
      `/v1/clients/${clientId}`,
      `/v1/accounts?clientId=${clientId}`,
      '/v1/posts',
      '/v1/post-targets?limit=100',
    ]) {
      await call('second read', path, { token: testKey.secret });
    }

    // Tokens that are wrong, and good ones in the wrong place.
    const wrong = [
      `sk_live_${stray('unknown key')}${random()}`,
      stray('no key at all'),
      `${session}x`,
      `sess_${stray('forged session')}`,
    ];
    for (const token of wrong) await call('wrong token', '/v1/clients', { token });
    await call('basic', '/v1/clients', {
      headers: { authorization: `Basic ${Buffer.from(stray('basic')).toString('base64')}` },
    });
    await call('cookie', '/v1/clients', {
      headers: { cookie: `token=${stray('cookie')}`, 'x-api-key': liveKey.secret },
    });
    await call('query', `/v1/clients?token=${liveKey.secret}&access_token=${stray('query')}`, { token: session });
    await call('query value', `/v1/clients?limit=${stray('limit')}`, { token: session });
    await call('query cursor', `/v1/clients?cursor=${stray('cursor')}`, { token: session });
    await call('path', `/v1/clients/${liveKey.secret}`, { token: session });
    await call('invite', `/invite/${stray('invite path')}`, {});
    await call('invite below', `/invite/${invite}/more`, {});
    await call('invite slash', `/invite/${invite}/`, {});
    await call('invite case', `/Invite/${invite}`, {});
    await call('invite method', `/invite/${invite}`, { method: 'DELETE' });
    await call('invite form', `/invite/${invite}`, { method: 'POST', body: `platform=${stray('form')}` });
    await call('idempotency key', '/v1/clients', {
      token: session,
      method: 'POST',
      headers: { 'idempotency-key': `${stray('bad idempotency key')} with blanks` },
      body: '{}',
    });

    // Bodies that break, with a secret inside.
    const bodies = [
      `{"secret":"${stray('half body')}"`,
      `{"name":${stray('bare word')}}`,
      JSON.stringify({ name: 1, type: stray('enum'), password: stray('extra member') }),
      JSON.stringify({ name: 'A', type: 'brand', timezone: stray('timezone') }),
      JSON.stringify({ name: 'Extra', type: 'brand', apiKey: stray('dropped member') }),
      `\u0000${stray('NUL')}`,
      JSON.stringify({ rules: { [stray('member name')]: '\u0000' }, name: 'A', type: 'brand' }),
    ];
    for (const body of bodies) {
      await call('bad body', '/v1/clients', {
        token: session,
        method: 'POST',
        headers: { 'idempotency-key': random() },
        body,
      });
    }
    await call('bad media type', '/v1/clients', {
      token: session,
      method: 'POST',
      headers: { 'idempotency-key': random(), 'content-type': `text/${stray('media type')}` },
      body: stray('text body'),
    });
    await world.settled();
  });
  t.after(async () => {
    await dispatcher?.stop();
    await world?.close();
  });

  const assertAbsent = (where: string, text: string, ...of: readonly ReadonlyMap<string, string>[]): void => {
    // A search is compared without case, and may be written down as it is compared.
    const low = text.toLowerCase();
    for (const canaries of of) {
      for (const [what, canary] of canaries) {
        const at = low.indexOf(canary.toLowerCase());
        assert.ok(at < 0, `the ${what} is in ${where}: …${text.slice(Math.max(0, at - 200), at)}<here>`);
      }
    }
  };

  t('every log line', () => {
    assert.ok(world.lines.length > 60, `${world.lines.length} lines`);
    assert.ok([...secrets.values(), ...personal.values(), ...strays.values()].every((one) => one.length >= 10));
    assertAbsent('a log line', world.lines.join(''), secrets, personal, strays);
  });

  t('every stored byte: data, metadata, names and keys', async () => {
    const { rows } = await world.pool.query<{ text: string; n: number }>(
      `select string_agg(e::text || convert_from(data, 'utf8') || convert_from(metadata, 'utf8'), e'\\n') as text,
         count(*)::int as n from es.events e`,
    );
    assert.ok((rows[0]?.n ?? 0) > 30);
    assertAbsent('the store', rows[0]?.text ?? '', secrets, personal, strays);
  });

  t('every row of every table; personal data stand in the accounts alone', async () => {
    const { rows: tables } = await world.pool.query<{ name: string }>(
      `select format('%I.%I', table_schema, table_name) as name from information_schema.tables
       where table_schema not in ('pg_catalog', 'information_schema') and table_type = 'BASE TABLE'`,
    );
    assert.ok(tables.length > 8);
    for (const { name } of tables) {
      const { rows } = await world.pool.query(`select string_agg(t::text, e'\\n') as text from ${name} t`);
      const text = String(rows[0].text ?? '');
      assertAbsent(name, text, secrets, strays, ...(/^read\.accounts/.test(name) ? [] : [personal]));
    }
  });

  t('every answer, except the one that creates the secret', () => {
    const shownBy: Readonly<Record<string, readonly string[]>> = {
      register: ['webhook secret'],
      'rotate webhook': ['second webhook secret'],
    };
    const keys = [...secrets].filter(([what]) => what !== 'invite token');
    for (const { of, text, headers } of answers) {
      const others = new Map(keys.filter(([what]) => shownBy[of]?.includes(what) !== true));
      assertAbsent(`the answer to ${of}`, text + headers, others);
      if (!of.startsWith('mint') && !of.startsWith('invite'))
        assertAbsent(
          `the answer to ${of}`,
          text + headers,
          new Map([['invite token', secrets.get('invite token') ?? '']]),
        );
      if (of === 'wrong token' || of === 'basic' || of === 'cookie')
        assertAbsent(`the answer to ${of}`, text + headers, strays);
    }
    for (const code of ['url_not_allowed', 'unknown_event_type', 'validation_failed'])
      assert.ok(answers.some(({ text }) => text.includes(code)));
    assert.equal(answers.filter(({ of, text }) => of === 'read webhook' && text.includes('secretHint')).length, 2);
    assert.ok(answers.some(({ text }) => text.includes('invalid_json')));
    assert.ok(answers.some(({ text }) => text.includes('invalid_token')));
  });

  t('errors and log lines of internal faults', async () => {
    const from = world.lines.length;
    const searched = stray('search of a broken table');
    const before = answers.length;
    await world.pool.query('alter view read.clients rename to was_clients');
    try {
      const token = secrets.get('rotated key') ?? '';
      const answer = await call('broken', `/v1/clients?search=${searched}`, { token });
      assert.equal(answer.status, 500);
      await call('broken', '/v1/clients', {
        token,
        method: 'POST',
        headers: { 'idempotency-key': random() },
        body: JSON.stringify({ name: stray('name in a broken call'), type: 'brand' }),
      });
    } finally {
      await world.pool.query('alter view read.was_clients rename to clients');
    }
    const lines = world.lines.slice(from).join('');
    assert.match(lines, /"level":50/);
    assertAbsent('a log line', lines, secrets, personal, strays);
    for (const { text } of answers.slice(before)) {
      assert.ok(!/relation "|select |was_clients|\.ts:/.test(text), text);
    }
  });
});

suite('secrets of the processes', { timeoutMs: 180_000 }, (t) => {
  t('neither SECRET_KEY nor the password of the database is in a log, an error or an answer', async () => {
    const server = await testServer();
    const password = new URL(server.url).password;
    assert.ok(password.length > 10);
    const secretKey = randomBytes(32).toString('base64');
    const env = { DATABASE_URL: server.url, SECRET_KEY: `v1:${secretKey}`, PORT: '0', LOG_LEVEL: 'trace' };
    const mains = [
      'services/api/main.ts',
      'projections/main.ts',
      'services/outcomes/main.ts',
      'services/publisher/main.ts',
    ];
    const running = await Promise.all(mains.map((main) => start(main, { env })));
    const said: string[] = [];
    const ask = async () => {
      for (const one of running) {
        for (const path of ['/readyz', '/livez', '/metrics']) said.push(await (await fetch(one.opsUrl(path))).text());
      }
    };
    await ask();
    // What the api tells operators it tells no caller.
    const outside = (of: string) => fetch(running[0]?.url(of) ?? '');
    assert.deepEqual(await (await outside('/readyz')).json(), { status: 'ready' });
    assert.equal((await outside('/metrics')).status, 404);
    // Whatever a lost database makes them say.
    await server.stop();
    await until('they notice', async () => (await fetch(running[0]?.opsUrl('/readyz') ?? '')).status === 503);
    await ask();
    const api = running[0];
    said.push(
      await (
        await fetch(api?.url('/v1/agency') ?? '', { headers: { authorization: `Bearer sk_live_${random()}` } })
      ).text(),
    );
    await server.start();
    await until('they recover', async () => (await fetch(api?.opsUrl('/readyz') ?? '')).status === 200);
    for (const one of running) assert.equal((await one.stop()).code, 0, one.output().slice(-3_000));
    said.push(...running.map((one) => one.output()));
    // Refused starts.
    for (const [name, value] of [
      ['SECRET_KEY', `v1:${secretKey}==,v2:${secretKey.slice(4)}`],
      ['DATABASE_URL', server.url.replace('postgresql', 'mysql')],
      ['DATABASE_URL', server.url.replace(password, 'x')],
    ] as const) {
      const refused = await run('services/api/main.ts', { env: { ...env, [name]: value } });
      assert.notEqual(refused.code, 0);
      said.push(refused.output);
    }
    await server.drop();
    const all = said.join('\n');
    assert.ok(all.length > 10_000);
    for (const [what, canary] of [
      ['password', password],
      ['secret key', secretKey.slice(6, -2)],
    ] as const) {
      const at = all.indexOf(canary);
      assert.ok(at < 0, `the ${what}: …${all.slice(Math.max(0, at - 300), at)}<here>`);
    }
  });
});
