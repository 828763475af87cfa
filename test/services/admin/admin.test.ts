import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { account } from '#domain/account.ts';
import { testTwinIdOf } from '#domain/ids.ts';
import { post } from '#domain/post/post.ts';
import { type TargetCommand, target } from '#domain/post-target/target.ts';
import { type Adapters, openAdapters } from '#infra/adapters.ts';
import { SandboxNetwork, sandboxCall } from '#infra/platforms/sandbox/index.ts';
import { eventSchema } from '#infra/postgres/event-store.ts';
import { operationalSchema } from '#infra/postgres/schema.ts';
import { view } from '#projections/shapes.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { readConfig } from '#runtime/process/config.ts';
import { createLogger } from '#runtime/process/telemetry.ts';
import { UsageError } from '#runtime/process/usage-error.ts';
import { PublishingHold } from '#runtime/work/publishing-hold.ts';
import type { Variant } from '#schemas/post.ts';
import { printed } from '#services/admin/print.ts';
import { readCommand } from '#services/admin/usage.ts';
import { Warnings } from '#services/api/call/warnings.ts';
import { contextOf, mintKey, type Operator } from '#services/workflows/provision.ts';
import { callerOf } from '#test/support/http.ts';
import { testDatabase } from '#test/support/postgres.ts';
import { type Process, run, start } from '#test/support/processes.ts';
import { planned, postBody } from '#test/support/samples.ts';
import { afterFile, suite } from '#test/support/suite.ts';
import { sparing, until } from '#test/support/until.ts';

type Row = Readonly<Record<string, string>>;

const v1 = `v1:${randomBytes(32).toString('base64')}`;
const ofSandbox = new Secrets(v1).subKey('sandbox-calls').toString('hex');

suite('admin', { timeoutMs: 180_000 }, (t) => {
  let env: Record<string, string>;
  let projections: Process;
  let api: Process;
  let pool: pg.Pool;
  let workspaceId = '';
  let owner = '';

  let adapters: Adapters;

  /** As an operator types it. */
  const typed = (args: string, more: Record<string, string> = {}) =>
    run('services/admin/main.ts', { env: { ...env, ...more }, args: args === '' ? [] : args.split(' ') });

  /** The same without a process for each: what it answers and notes, or the error it ends with. */
  const operatorOf = (store: DomainStore): Operator => ({
    ...{ store, pool: adapters.pool, clock: Date.now, positions: new Map() },
    actor: { type: 'admin', id: 'test' },
  });
  const admin = async (args: string): Promise<{ code: number; output: string; answer: unknown }> => {
    const store = new DomainStore(adapters.store, new EventCodec(adapters.dataKeys), 12);
    const notes: string[] = [];
    try {
      const asked = readCommand(args.split(' '));
      const command = asked?.command;
      if (asked === null || command === undefined || !('run' in command)) throw new Error('it needs no database');
      const answer = await command.run(
        {
          operator: operatorOf(store),
          store,
          pool: adapters.pool,
          log: adapters.log,
          codec: new EventCodec(adapters.dataKeys),
          secrets: new Secrets(v1),
          dataKeys: adapters.dataKeys,
          credentials: adapters.credentials,
          attempts: adapters.attempts,
          analytics: adapters.analytics,
          blobs: adapters.blobs,
          adapterOf: () => null,
          sandbox: new SandboxNetwork({ database: { pool: adapters.pool } }),
          sandboxCall: (platform, said) => sandboxCall(platform, ofSandbox, said),
          publishing: new PublishingHold(adapters.pool, 'on'),
          confirm: null,
          consoleUrl: args.startsWith('network call') ? api.url('') : 'http://console.test',
          mediaQuota: 1_000,
          eventStore: adapters.store,
          eraser: adapters.eraser,
          logger: createLogger('admin', 'silent'),
          signal: new AbortController().signal,
          line: async (text) => void notes.push(text),
          note: (text) => void notes.push(text),
        },
        asked.given,
      );
      return { code: 0, output: [...notes, printed(answer ?? [], false)].join('\n'), answer };
    } catch (error) {
      const { message } = error as Error;
      return { code: error instanceof UsageError ? 2 : 1, output: message, answer: null };
    }
  };
  const did = async (args: string): Promise<Row> => {
    const { code, output, answer } = await admin(args);
    assert.equal(code, 0, output);
    return answer as Row;
  };
  const listed = async (args: string) => (await did(args)) as unknown as readonly Row[];
  const caller = (token: string) => callerOf(() => api.url('/v1'), token);
  /** What was found of a token is believed for less than a second. */
  const answers = (token: string, status: number) =>
    until(
      `an answer ${status}`,
      async () => {
        const answered = await caller(token).get('/agency');
        return answered.status === status ? answered : null;
      },
      sparing,
    );

  t.before(async () => {
    const db = await testDatabase();
    env = { DATABASE_URL: db.url, SECRET_KEY: v1, PORT: '0' };
    pool = new pg.Pool({ connectionString: db.url, max: 2 });
    [projections, api] = await Promise.all([
      start('projections/main.ts', { env }),
      start('services/api/main.ts', { env }),
    ]);
    const config = { ...readConfig(env), poolSize: 4 };
    adapters = await openAdapters({ name: 'admin', config, secrets: new Secrets(v1) });
  });
  t.after(async () => {
    await Promise.all([api?.stop(), projections?.stop()]);
    await adapters?.close();
    await pool?.end();
  });

  t('lists its commands, and names an argument that it does not understand', async () => {
    for (const args of ['', 'key --help']) {
      const { code, output } = await typed(args);
      assert.equal(code, 0);
      assert.match(output, /key rotate <key>/);
    }
    const wrong: readonly (readonly [string, RegExp])[] = [
      ['frobnicate', /no command "frobnicate"/],
      ['key', /key rotate <key>/],
      ['key create', /Missing: --mode/],
      ['key create --mode staging', /test or live/],
      ['log reset --yes', /the event table is the log/],
      ['key create --mode test --scope x', /--scope/],
      ['key create --mode test --scopes posts.write', /No scope: posts.write/],
      ['key create --mode test --clients acme', /client/],
      ['key rotate nonsense', /no id of a key/],
      ['target settle', /Missing: <target>, <outcome>/],
      ['member add --name A --role boss', /no role: owner, manager/],
      ['workspace create --name A --timezone Mars', /no timezone/],
      ['secrets more', /Too much: more/],
      ['quota set', /Missing: <limit>/],
      ['quota set some', /whole number of targets/],
      ['quota set 1000001', /at most 1000000/],
      ['quota set 5 --mode staging', /test or live/],
      ['cadence set --interval 0', /--interval is a whole number from 1 to 1440/],
      ['cadence set --per-day many', /--per-day/],
      ['cadence set --platform myspace', /--platform is one of x, instagram/],
      ['rebuild nothing', /workspaces, clients, posts/],
    ];
    for (const [args, words] of wrong) {
      const { code, output } = await admin(args);
      assert.equal(code, 2, `${args}: ${output}`);
      assert.match(output, words);
    }
    const strange = await typed('frobnicate');
    assert.equal(strange.code, 2);
    assert.match(strange.output, /--help/);
    const none = await admin('member list');
    assert.equal(none.code, 1);
    assert.match(none.output, /workspace create --name/);
    const keyless = await typed('workspace list', { SECRET_KEY: 'v1:short' });
    assert.match(keyless.output, /SECRET_KEY/);
    assert.notEqual(keyless.code, 0);
    const away = await typed('workspace list', { DATABASE_URL: 'postgresql://127.0.0.1:1/x' });
    assert.equal(away.code, 2);
    assert.match(
      away.output,
      /^DATABASE_URL: Postgres at \S+:1\/\S* takes no connection.*ECONNREFUSED.*\n.*data folder/m,
    );
    const bad = await typed('workspace list', { DATABASE_POOL: 'many' });
    assert.equal(bad.code, 2);
    assert.match(bad.output, /DATABASE_POOL/);
  });

  t('shows the files of tables that would run, and carries them out', async () => {
    const { url } = await testDatabase();
    const empty = { DATABASE_URL: url };
    const files = [operationalSchema(), eventSchema('es')].flatMap(({ schema, files: all }) =>
      all.map(({ name }) => ({ schema, file: name })),
    );
    const fresh = new pg.Pool({ connectionString: url, max: 1 });
    try {
      const shown = await typed('migrate --dry-run --json', empty);
      assert.equal(shown.code, 0, shown.output);
      assert.deepEqual(JSON.parse(shown.output), files);
      const schemas = await fresh.query("select to_regnamespace('ops') as ops, to_regnamespace('es') as es");
      assert.deepEqual(schemas.rows, [{ ops: null, es: null }], 'nothing was made');
      const done = await typed('migrate --json', empty);
      assert.deepEqual(JSON.parse(done.output), files);
      const again = await typed('migrate --dry-run', empty);
      assert.equal(again.output.trim(), 'none');
      const { rows } = await fresh.query('select to_regclass($1)::text as posts', [view('posts')]);
      assert.deepEqual(rows, [{ posts: view('posts') }]);
    } finally {
      await fresh.end();
    }
  });

  t('makes a workspace with an Owner and a twin, and renames both', async () => {
    const asked = await typed('workspace create --name Acme --timezone Europe/Berlin --owner Olga --json');
    assert.equal(asked.code, 0, asked.output);
    const made = JSON.parse(asked.output) as Row;
    workspaceId = made.workspaceId ?? '';
    owner = made.memberId ?? '';
    const [only] = await listed('workspace list');
    assert.deepEqual(only, {
      workspaceId,
      name: 'Acme',
      timezone: 'Europe/Berlin',
      members: 1,
      testTwinId: testTwinIdOf(workspaceId),
    });
    await did(`workspace rename ${workspaceId} --name Acme2`);
    const { rows } = await pool.query('select name, timezone, mode from read.workspaces order by mode');
    assert.deepEqual(rows, [
      { name: 'Acme2', timezone: 'Europe/Berlin', mode: 'live' },
      { name: 'Acme2', timezone: 'Europe/Berlin', mode: 'test' },
    ]);
  });

  t('makes keys that work at once; rotated ones overlap; revoked ones end', async () => {
    const first = await typed('key create --mode live --name main');
    assert.match(first.output, /secret +sk_live_\S+ +\(shown this once\)/);
    const live = Object.fromEntries(first.output.split('\n').map((line) => line.split(/ +/))) as Row;
    const test = await did('key create --mode test --scopes agency.read,posts.read --days 30');
    const secret = live.secret ?? '';
    assert.equal((await answers(secret, 200)).data.mode, 'live');
    assert.equal((await answers(test.secret ?? '', 200)).data.mode, 'test');
    assert.equal((await caller(test.secret ?? '').get('/clients')).body.code, 'insufficient_scope');
    const rotated = await did(`key rotate ${live.keyId}`);
    await answers(rotated.secret ?? '', 200);
    await answers(secret, 200);
    await did(`key revoke ${live.keyId}`);
    assert.equal((await answers(rotated.secret ?? '', 401)).body.code, 'token_revoked');
    const unknown = await admin(`key create --mode live --clients ${randomUUID()}`);
    assert.equal(unknown.code, 1);
    assert.match(unknown.output, /There is no client/);
    const keys = await listed('key list');
    assert.deepEqual(
      keys.map(({ clients }) => clients),
      ['all', 'all'],
    );
    assert.deepEqual(
      keys.map(({ name, mode, begins, member, revokedAt }) => ({
        name,
        mode,
        begins,
        member,
        revoked: revokedAt !== null,
      })),
      [
        { name: 'main', mode: 'live', begins: rotated.secret?.slice(0, 12), member: 'Olga', revoked: true },
        { name: 'test key', mode: 'test', begins: test.secret?.slice(0, 12), member: 'Olga', revoked: false },
      ],
    );
    const shown = await admin('key list');
    assert.ok(!shown.output.includes(test.secret ?? '-'));
    const gone = await admin(`key rotate ${live.keyId}`);
    assert.equal(gone.code, 1);
    assert.match(gone.output, /create a new one/);
    assert.match((await admin(`key revoke ${randomUUID()}`)).output, /key list shows them/);
  });

  t('ends the keys that a scanner found in the wild, and tells each', async () => {
    const make = async () => (await did('key create --mode test --scopes agency.read')) as Row;
    const [one, two, kept, former] = [await make(), await make(), await make(), await make()];
    // As a key, but for the checksum.
    const unchecked = `sk_test_${randomBytes(32).toString('base64url')}`;
    const { secret: next = '' } = await did(`key rotate ${former.keyId}`);
    await did(`key revoke ${two.keyId}`);
    const unknown = mintKey('live').secret;
    const altered = `${one.secret?.slice(0, -1)}${one.secret?.endsWith('A') ? 'B' : 'A'}`;
    const file = path.join(mkdtempSync(path.join(tmpdir(), 'leaked-')), 'report.json');
    const found = [one, two, former].map(({ secret }) => ({
      secret,
      url: `https://host/blob#${secret}`,
    }));
    writeFileSync(
      file,
      JSON.stringify([
        ...found,
        { secret: unknown },
        { secret: altered },
        { secret: unchecked },
        { secret: 'sk_live_short' },
      ]),
    );
    const { output, answer } = await admin(`key revoke-leaked ${file}`);
    rmSync(path.dirname(file), { recursive: true });
    const rows = answer as readonly Row[];
    assert.deepEqual(
      rows.map(({ result, keyId }) => [result, keyId]),
      [
        ['revoked now', one.keyId],
        ['revoked before', two.keyId],
        ['revoked now', former.keyId],
        ['unknown', null],
      ],
    );
    for (const secret of [one.secret ?? '', unknown]) assert.ok(!output.includes(secret));
    for (const secret of [one.secret ?? '', former.secret ?? '', next]) {
      assert.equal((await answers(secret, 401)).body.code, 'token_revoked');
    }
    await answers(kept.secret ?? '', 200);
    assert.match((await admin(`key revoke-leaked ${file}`)).output, /There is no file/);
  });

  t('members: a role counts from the next call on, a removed member has no power, an Owner stays', async () => {
    const { memberId = '' } = await did('member add --name Vera --role viewer');
    const { secret = '' } = await did(`key create --mode live --member ${memberId}`);
    const body = { name: 'By Vera', type: 'brand' };
    assert.equal((await caller(secret).post('/clients', body)).body.code, 'role_required');
    await did(`member role ${memberId} manager`);
    await until('the role counts', async () => (await caller(secret).post('/clients', body)).status === 200, sparing);
    assert.equal((await listed('member list')).length, 2);
    const hook = await caller(secret).post('/webhooks', {
      url: 'https://93.184.215.14/left',
      events: ['post.published'],
    });
    assert.equal(hook.status, 200, hook.text);
    const { answer, output } = await admin(`member remove ${memberId}`);
    const { left } = answer as unknown as { left: readonly { kind: string; id: string; name: string }[] };
    assert.deepEqual(left.map(({ kind }) => kind).toSorted(), ['api_key', 'webhook']);
    assert.ok(left.some(({ id }) => id === hook.data.id));
    assert.doesNotMatch(output, /object Object/);
    assert.equal((await answers(secret, 401)).body.code, 'token_revoked');
    const last = await admin(`member role ${owner} viewer`);
    assert.equal(last.code, 1);
    assert.match(last.output, /at least one Owner/);
  });

  t('a workspace may have more media, or less, than others', async () => {
    const quota = async (args = ''): Promise<Row> => (await admin(`media quota${args}`)).answer as Row;
    const before = await quota();
    assert.deepEqual([Number(before.usedBytes), Number(before.quotaBytes)], [0, 1_000]);
    assert.equal(Number((await quota(' --bytes 5000')).quotaBytes), 5_000);
    assert.equal(Number((await quota()).quotaBytes), 5_000);
    assert.equal(Number((await quota(' --bytes default')).quotaBytes), 1_000);
    assert.notEqual((await admin('media quota --bytes 1GiB')).code, 0);
  });

  t(
    'a session acts as its member for 15 minutes, on the live workspace or its twin, with the current role',
    async () => {
      const { memberId = '' } = await did('member add --name Sam --role manager');
      const { secret = '', expiresAt = '' } = await did(`session ${memberId}`);
      assert.match(secret, /^sess_/);
      const left = Date.parse(expiresAt) - Date.now();
      assert.ok(left > 13 * 60_000 && left <= 15 * 60_000, `${left} ms`);
      assert.equal((await answers(secret, 200)).data.mode, 'live');
      const made = await caller(secret).post('/clients', { name: 'By Sam', type: 'brand' });
      assert.equal(made.status, 200, made.text);
      const { rows } = await pool.query('select metadata from es.events where stream = $1', [`client-${made.data.id}`]);
      assert.deepEqual(JSON.parse(rows[0].metadata).actor, { type: 'member', id: memberId });
      const { secret: sandbox = '' } = await did(`session ${memberId} --mode test`);
      const { data: twin } = await answers(sandbox, 200);
      assert.equal(twin.mode, 'test');
      assert.equal((await caller(sandbox).get(`/clients/${made.data.id}`)).status, 404, 'the live client is not there');
      assert.match((await admin(`session ${memberId} --mode both`)).output, /--mode is test or live/);
      await did(`member role ${memberId} viewer`);
      await until(
        'the role counts',
        async () => {
          const refused = await caller(secret).post('/clients', { name: 'No', type: 'brand' });
          return refused.body.code === 'role_required';
        },
        sparing,
      );
      assert.equal((await caller(secret).get('/clients')).status, 200);
      const forged = `${secret.slice(0, -2)}xx`;
      assert.equal((await caller(forged).get('/agency')).body.code, 'invalid_token');
      assert.equal((await caller('sess_').get('/agency')).body.code, 'invalid_token');
      const old = { id: randomUUID(), memberId: owner, workspaceId, expiresAt: '2020-01-01T00:00:00.000Z' };
      const stale = `sess_${new Secrets(v1).seal('sessions', JSON.stringify(old))}`;
      assert.equal((await caller(stale).get('/agency')).body.code, 'token_expired');
      const cursor = `sess_${new Secrets(v1).seal('cursors', JSON.stringify({ ...old, expiresAt }))}`;
      assert.equal((await caller(cursor).get('/agency')).body.code, 'invalid_token');
      await did(`member remove ${memberId}`);
      assert.equal((await answers(secret, 401)).body.code, 'token_revoked');
      assert.match((await admin(`session ${randomUUID()}`)).output, /member list shows them/);
    },
  );

  t('erases the personal data of a client from every read', async () => {
    const { secret = '' } = await did('key create --mode test');
    await answers(secret, 200);
    const http = caller(secret);
    const { data: client } = await http.post('/clients', { name: 'Erase me', type: 'influencer' });
    const { data: invite } = await http.post(`/clients/${client.id}/connect-invites`, {
      platforms: ['bluesky'],
      recipientEmail: 'erase@example.com',
    });
    const form = new URLSearchParams({ platform: 'bluesky', username: 'erasable', timezone: '' });
    assert.equal((await fetch(String(invite.url), { method: 'POST', body: form })).status, 200);
    const account = async () =>
      until('the account', async () => (await http.get(`/accounts?clientId=${client.id}`)).rows[0], sparing);
    const { id: accountId, username: shown } = await account();
    assert.equal(shown, 'erasable');
    const { id: workspaceId } = (await pool.query('select workspace_id::text as id from read.accounts limit 1'))
      .rows[0];
    const owner = { accountId, workspaceId, clientId: client.id, platform: 'bluesky' } as const;
    const credential = { secret: { token: 'to be erased' }, expiresAt: null };
    assert.equal(await adapters.credentials.keep(owner, credential), 1);
    const attempt = { kind: 'consent', inviteId: randomUUID(), ...owner, kept: { verifier: 'to be erased' } } as const;
    assert.ok(await adapters.attempts.keep({ token: randomUUID(), browser: 'b' }, attempt));
    await did(`client erase ${client.id}`);
    const { username, displayName, avatarUrl, platform } = await account();
    assert.deepEqual(
      { username, displayName, avatarUrl, platform },
      { username: null, displayName: null, avatarUrl: null, platform: 'bluesky' },
    );
    const credentials = await pool.query('select 1 from ops.network_credentials where client_id = $1', [client.id]);
    assert.equal(credentials.rowCount, 0, 'what networks gave ends with the key');
    const attempts = await pool.query('select 1 from ops.connect_attempts where client_id = $1', [client.id]);
    assert.equal(attempts.rowCount, 0, 'and so do attempts to connect');
    assert.equal(await adapters.credentials.keep(owner, credential), null);
    assert.equal((await admin(`client erase ${client.id}`)).code, 0, 'again is no harm');
    await did('rebuild clients');
    assert.equal((await account()).username, null);
    // Made from the streams; a process believes a key it holds for at most a second.
    const pageShows = async (text: string) => (await (await fetch(String(invite.url))).text()).includes(text);
    await until('the invite page forgets', async () => !(await pageShows('erasable')), { ...sparing, withinMs: 5_000 });
    assert.equal((await admin(`client erase ${randomUUID()}`)).code, 1);
  });

  t(
    'rebuilds all beside live traffic; after a death at any gap the same command goes on with what is left',
    async () => {
      const rowsOf = async () => {
        const found: unknown[] = [];
        for (const name of ['workspaces', 'clients', 'posts', 'post_targets', 'accounts', 'reports'])
          found.push((await pool.query(`select * from ${view(name)} order by id`)).rows);
        return found;
      };
      const { secret = '' } = await did(`key create --mode live --name Auditor --workspace ${workspaceId}`);
      await answers(secret, 200);
      const shown = async () => {
        const answer = await caller(secret).get('/projections');
        assert.equal(answer.status, 200, answer.text);
        return new Map(answer.rows.map((row) => [row.name, row.rebuilding as Row | null]));
      };
      const before = await rowsOf();
      const generations = async () => (await pool.query('select name, live from ops.projections order by name')).rows;
      const former = await generations();
      const dies = (point: string) => typed('rebuild all', { POSTLINE_FAULT: point });
      for (const point of [
        ...['rebuild:all-noted', 'rebuild:all-opened', 'rebuild:all-read'],
        ...['rebuild:indexed', 'rebuild:before-consume', 'rebuild:before-switch'],
      ]) {
        const died = await dies(point);
        assert.equal(died.signal, 'SIGKILL', died.output);
        assert.deepEqual(
          [await rowsOf(), await generations()],
          [before, former],
          `dead at ${point}: nothing has changed`,
        );
        // The server ends the session of the dead process, and its lock with it, when it finds the connection closed.
        const left = await until('it is shown', async () => {
          const now = await shown();
          return now.get('posts')?.phase === 'interrupted' ? now : null;
        });
        assert.equal([...left.values()].filter((one) => one !== null).length, 8);
      }
      const switched = await typed('rebuild all', { POSTLINE_FAULT: 'rebuild:before-drop' });
      assert.equal(switched.signal, 'SIGKILL', switched.output);
      const open = await until('its lock is free', async () => {
        const now = [...(await shown()).values()].filter((one) => one !== null);
        return now.every(({ phase }) => phase === 'interrupted') ? now : null;
      });
      assert.ok(open.length < 8, 'one at least has switched');
      const rest = await typed('rebuild all --json');
      assert.equal(rest.code, 0, rest.output);
      const parts = JSON.parse(rest.output.split('\n').at(-1) ?? '') as readonly Row[];
      assert.equal(parts.length, open.length === 0 ? 8 : open.length, 'it went on with those alone that had not');
      assert.deepEqual(await rowsOf(), before);
      assert.ok([...(await shown()).values()].every((one) => one === null));
      assert.equal((await admin('rebuild posts --anew')).code, 2);
    },
  );

  t('parked events are listed, retried and skipped; meanwhile answers warn their own workspace', async () => {
    const { secret: token = '' } = await did(`key create --mode live --workspace ${workspaceId}`);
    const http = caller(token);
    const { data: client } = await http.post('/clients', { name: 'Poisoned', type: 'brand' });
    const stream = `client-${client.id}`;
    const codec = new EventCodec(adapters.dataKeys);
    const append = async (revision: bigint, data: object, name?: string): Promise<string> => {
      const id = randomUUID();
      const metadata = {
        ...{ workspaceId, partitionKey: stream, actor: { type: 'service', id: 'test' } as const },
        ...{ $correlationId: id, $causationId: id, commandId: id, occurredAt: new Date().toISOString() },
      };
      const bytes = await codec.encode(stream, { type: 'ClientUpdated', data }, metadata);
      const poison = name === undefined ? {} : { data: Buffer.from(JSON.stringify({ name: 7 })) };
      const event = { id, type: 'ClientUpdated', ...bytes, ...poison, partitionKey: stream };
      await adapters.store.append(stream, revision, [event]);
      return id;
    };
    const read = async () => (await http.get(`/clients/${client.id}`)).body as unknown as Shown;
    interface Shown {
      readonly data: { readonly name: string };
      readonly meta: { readonly warnings?: readonly { readonly code: string; readonly id: string }[] };
    }
    assert.equal((await read()).meta.warnings, undefined);
    const poison = await append(0n, { name: 'never' }, 'poison');
    await append(1n, { name: 'Mended' });
    const [row] = await until('it is parked', async () => {
      const rows = await listed('parked list');
      return rows[0]?.events === (2 as unknown) ? rows : null;
    });
    const { group = '', event } = row ?? {};
    assert.deepEqual([row?.stream, event, row?.state], [stream, poison, 'parked']);
    assert.match(row?.reason ?? '', /ClientUpdated/);
    const warned = await until(
      'the answer says so',
      async () => {
        const shown = await read();
        return shown.meta.warnings === undefined ? null : shown;
      },
      sparing,
    );
    assert.equal(warned.data.name, 'Poisoned');
    assert.deepEqual(
      warned.meta.warnings?.map(({ code, id }) => ({ code, id })),
      [{ code: 'stands_still', id: client.id }],
    );
    const all = (await http.get('/clients')).body as unknown as Shown;
    assert.deepEqual(
      all.meta.warnings?.map(({ id }) => id),
      [client.id],
    );
    const strangers = new Warnings(pool);
    assert.deepEqual(
      await strangers.of(randomUUID(), () => ({ id: client.id })),
      [],
      'another workspace hears of nothing',
    );
    assert.equal((await strangers.of(workspaceId, () => ({ targets: [{ id: client.id }] }))).length, 1);
    const ready = await (await fetch(projections.opsUrl('/readyz'))).json();
    const { checks } = ready as { checks: readonly { name: string; ok: boolean; detail?: string }[] };
    const reported = checks.find(({ name }) => name === 'projections: parked');
    assert.equal(reported?.ok, true);
    assert.match(reported?.detail ?? '', /projection-clients-v\d+ 1, the oldest for 1 min/);
    const metrics = await (await fetch(projections.opsUrl('/metrics'))).text();
    assert.match(metrics, /parked_streams\{group="projection-clients-v\d+",thread="projections"\} 1/);
    // The event still cannot be applied: the command reports it as parked.
    const still = await listed(`parked retry ${group}`);
    assert.deepEqual(
      still.map(({ event: first, state }) => ({ first, state })),
      [{ first: poison, state: 'parked' }],
    );
    for (const [args, words] of [
      ['parked retry nobody', /nobody has nothing parked; those that have: projection-clients/],
      [`parked retry ${group} --stream client-x`, /nothing of client-x parked/],
      [`parked skip ${group} ${randomUUID()}`, /not the first event/],
      [`parked skip ${group} nonsense`, /not the first event|no id/],
    ] as const) {
      const { code, output } = await admin(args);
      assert.equal(code, 2, output);
      assert.match(output, words);
    }
    assert.deepEqual(await listed(`parked skip ${group} ${poison}`), []);
    await until('it goes on', async () => (await read()).data.name === 'Mended', sparing);
    await until('nothing is said any more', async () => (await read()).meta.warnings === undefined, sparing);
    assert.deepEqual(await listed('parked list'), []);
  });

  t('reports: defined, changed, listed, run and removed; nothing of the twin', async () => {
    const wrong: readonly (readonly [string, number, RegExp])[] = [
      ['--window last_year', 2, /--window is one of last_7_days/],
      ['--formats pdf,docx', 2, /--formats is one of csv, json, pdf/],
      ['--hour 6', 2, /has --every/],
      ['--every day --weekday 2', 2, /--weekday goes with --every week/],
      ['--every day --hour 24', 2, /--hour is a whole number from 0 to 23/],
      ['--kind client', 1, /filters\/clientId must name the client/],
      [`--client ${randomUUID()}`, 1, /no such client in this workspace/],
      [`--account ${randomUUID()}`, 1, /no such account in this workspace/],
      [`--report ${randomUUID()}`, 1, /no such report/],
    ];
    for (const [args, code, words] of wrong) {
      const refused = await admin(`report define --name X ${args}`);
      assert.equal(refused.code, code, refused.output);
      assert.match(refused.output, words);
    }
    const { reportId = '' } = await did(
      `report define --name Monthly --formats pdf,json --every month --day 31 --hour 6`,
    );
    const [row] = await listed('report list');
    assert.deepEqual(
      [row?.reportId, row?.name, row?.kind, row?.window, row?.runs, row?.lastRun],
      [reportId, 'Monthly', 'workspace', 'last_30_days', 'every month on the 31. at 6:00', null],
    );
    await did(`report define --report ${reportId} --name Weekly --window last_week`);
    assert.deepEqual(
      (await listed('report list')).map(({ name, window, runs }) => [name, window, runs]),
      [['Weekly', 'last_week', 'on request']],
    );
    const bare = await did(`report define --report ${reportId} --name Weekly --window last_week --no-bom`);
    assert.equal(bare.bom as unknown, false);
    assert.deepEqual(await listed('report list --mode test'), []);
    const stolen = await admin(`report define --report ${reportId} --name Mine --mode test`);
    assert.equal(stolen.code, 1);
    assert.match(stolen.output, /no such report in this workspace/);
    const { runId, formats } = await did(`report run ${reportId} --formats csv`);
    assert.deepEqual(formats as unknown, ['csv']);
    const [after] = await listed('report list');
    assert.deepEqual([after?.lastRunId, after?.lastRun], [runId, 'running']);
    for (const _ of [1, 2]) assert.equal((await did(`report remove ${reportId}`)).removed, true);
    assert.deepEqual(await listed('report list'), []);
    assert.match((await admin(`report run ${reportId}`)).output, /no such report/);
  });

  t('rebuilds a projection beside live traffic', async () => {
    const before = await pool.query('select * from read.workspaces order by id');
    const newest = await pool.query(`select newest from ops.projections where name = 'workspaces'`);
    const rebuilt = await typed('rebuild workspaces --json');
    assert.equal(rebuilt.code, 0, rebuilt.output);
    assert.equal(JSON.parse(rebuilt.output).generation, newest.rows[0].newest + 1);
    const after = await pool.query('select * from read.workspaces order by id');
    assert.deepEqual(after.rows, before.rows);
    assert.ok(projections.running);
    const none = await admin('rebuild analytics');
    assert.equal(none.code, 2);
    assert.match(none.output, /set CLICKHOUSE_URL/);
  });

  t('rebuilds analytics in the engine of a data folder, with an external Postgres', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'postline-admin-'));
    afterFile(() => rmSync(folder, { recursive: true }));
    const refused = await typed(`rebuild analytics --data ${folder}`);
    assert.equal(refused.code, 2, refused.output);
    assert.match(refused.output, /name with --data the folder of npm start that has the embedded engine/);
    mkdirSync(path.join(folder, 'analytics'));
    const rebuilt = await typed(`rebuild analytics --data ${folder} --json`);
    assert.equal(rebuilt.code, 0, rebuilt.output);
    const { projection, version } = JSON.parse(rebuilt.output.split('\n').at(-1) ?? '');
    assert.deepEqual([projection, version], ['analytics', 2]);
    assert.ok(existsSync(path.join(folder, 'analytics', 'data')), 'in the engine of the folder');
    assert.equal(existsSync(path.join(folder, 'pg.password')), false, 'and no Postgres was made beside it');
  });

  t('a restore is declared with an instant of the past, and a word is given for an account that is there', async () => {
    for (const asOf of ['yesterday', '2026-01-31', new Date(Date.now() + 3_600_000).toISOString()]) {
      const { code, output } = await admin(`restored --store-as-of ${asOf}`);
      assert.equal(code, 2, output);
    }
    assert.equal((await admin('restored')).code, 2);
    const strange = await admin(`restored trust ${randomUUID()}`);
    assert.deepEqual([strange.code, strange.output], [1, 'There is no such account.']);
    const declared = await did('restored --store-as-of 2026-01-31T08:00:00Z');
    assert.equal(declared.storeAsOf, '2026-01-31T08:00:00.000Z');
    assert.deepEqual(await did('restored --store-as-of 2026-01-31T09:00:00+01:00'), declared, 'the same instant');
    const { rows } = await pool.query('select declared_by from ops.restores');
    assert.deepEqual(rows, [{ declared_by: 'test' }]);
    await pool.query('delete from ops.restores');
    await did('publishing resume');
  });

  t('has the sandbox call the api about one of its accounts, and forgets the owner of any', async () => {
    const store = new DomainStore(adapters.store, new EventCodec(adapters.dataKeys), 12);
    const connect = (id: string, network: 'live' | 'sandbox', platform: 'linkedin' | 'threads' = 'threads') =>
      execute(
        store,
        account,
        id,
        {
          ...({ type: 'Connect', clientId: randomUUID(), platform, externalId: id, network, inviteId: null } as const),
          ...{ username: null, displayName: null, avatarUrl: null, scopes: [], expiresAt: null, timezone: null },
        },
        contextOf(operatorOf(store), workspaceId),
      );
    const [own, real, page] = [randomUUID(), randomUUID(), randomUUID()];
    await connect(own, 'sandbox');
    await connect(real, 'live');
    await connect(page, 'sandbox', 'linkedin');
    const answer = await did(`network call ${own} deauthorized`);
    assert.deepEqual(answer, { url: api.url('/network/sandbox/threads/deauthorize'), answer: '{}' });
    assert.match((await did(`network call ${own} delete_data`)).answer ?? '', /"confirmation_code":"[0-9a-f]{48}"/);
    assert.equal((await did(`network call ${page} post_state`)).url, api.url('/network/sandbox/linkedin'));
    const { rows } = await pool.query('select kind, network from ops.network_notices where person = $1 order by kind', [
      own,
    ]);
    assert.deepEqual(rows, [
      { kind: 'deauthorized', network: 'sandbox' },
      { kind: 'delete_data', network: 'sandbox' },
    ]);
    for (const [args, words] of [
      [`network call ${page} deauthorized`, /linkedin makes no such call/],
      [`network call ${own} post`, /<what> is one of/],
      [`network call ${real} deauthorized`, /its own accounts alone/],
      [`network call ${randomUUID()} deauthorized`, /no such account/],
      [`account forget ${randomUUID()}`, /no such account/],
    ] as const) {
      assert.match((await admin(args)).output, words);
    }
    const gone = { accountId: real, profile: 'deleted', status: 'disconnected' };
    for (const _ of [1, 2]) assert.deepEqual(await did(`account forget ${real}`), gone);
    const { state, events } = await store.load(account, real);
    assert.deepEqual([state.status, events.length], ['disconnected', 2]);
    assert.equal(events.at(-1)?.metadata.actor.type, 'admin');
  });

  t('holds publishing of all or of one workspace, and says who did since when; resumes it', async () => {
    const all = await admin('publishing hold');
    assert.equal(all.code, 0, all.output);
    const { since, ...reported } = all.answer as Row;
    assert.deepEqual(reported, { workspaces: 'all', publishing: 'hold', by: 'test', heldAlone: 0 });
    assert.ok(Date.parse(since ?? '') <= Date.now());
    assert.deepEqual((await admin('publishing hold')).answer, all.answer, 'the first one stands');
    const alone = (await admin(`publishing hold --workspace ${workspaceId}`)).answer as Row;
    assert.deepEqual([alone.workspaceId, alone.publishing, alone.heldAlone], [workspaceId, 'hold', 1]);
    const resumed = (await admin('publishing resume')).answer as Row;
    assert.deepEqual([resumed.publishing, resumed.heldAlone], ['on', 1]);
    assert.equal(((await admin(`publishing show --workspace ${workspaceId}`)).answer as Row).publishing, 'hold');
    const last = (await admin(`publishing resume --workspace ${workspaceId}`)).answer as Row;
    assert.deepEqual([last.publishing, last.heldAlone], ['on', 0]);
    const byHand = await typed('publishing show --json', { PUBLISHING: 'hold' });
    assert.match(byHand.output, /PUBLISHING=hold/);
  });

  t('settles a target whose outcome is unknown, and no other', async () => {
    const store = new DomainStore(adapters.store, new EventCodec(adapters.dataKeys), 12);
    const operator = operatorOf(store);
    const context = contextOf(operator, testTwinIdOf(workspaceId));
    const [postId, clientId, accountId] = [randomUUID(), randomUUID(), randomUUID()];
    const claim = { attempt: 1, takeover: 0 };
    const failure = {
      ...({ category: 'unknown', code: 'outcome_unknown', message: 'No answer.', platformCode: null } as const),
      ...({ platformMessage: null, retryable: true, actor: 'service', mediaId: null } as const),
    };
    const unknownTarget = async (of = postId): Promise<string> => {
      const targetId = randomUUID();
      const own = {
        ...({
          targetId,
          accountId,
          clientId,
          platform: 'x',
          dueAt: context.now,
          scheduledLocal: null,
          timezone: 'UTC',
        } as const),
        ...({ jitterSeconds: 0, scheduleMode: 'managed', scheduleModeReason: null } as const),
      };
      const commands: readonly TargetCommand[] = [
        { type: 'Schedule', planned: own, postId: of, postRevision: 0 },
        { type: 'Start', now: context.now },
        { type: 'Checkpoint', ...claim, step: 'boundary', data: {}, deadline: context.now },
        { type: 'RecordUnknown', ...claim, failure, reconcileAt: context.now },
      ];
      for (const command of commands) await execute(store, target, targetId, command, context, { partitionKey: of });
      return targetId;
    };
    const shownAs = async (id: string) =>
      (
        await pool.query(`select status, external_id, permalink, failure from ${view('post_targets')} where id = $1`, [
          id,
        ])
      ).rows[0];

    const seen = await unknownTarget();
    await did(`target settle ${seen} published --external-id 42 --permalink https://x.com/a/status/42`);
    assert.deepEqual(await shownAs(seen), {
      ...{ status: 'published', external_id: '42', permalink: 'https://x.com/a/status/42', failure: null },
    });
    const lost = await unknownTarget();
    await did(`target settle ${lost} failed --reason Nowhere`);
    const { status, failure: why } = await shownAs(lost);
    assert.deepEqual({ status, why: why.message }, { status: 'failed', why: 'Nowhere' });

    // The comment of a post that was found out follows it, where the id of the post is known.
    const commented = randomUUID();
    const overrides = { firstComment: 'hi' };
    const variant: Variant = { platform: 'x', contentOverride: null, mediaIdsOverride: null, overrides };
    const written = { clientId, createdBy: context.actor, body: postBody({ variants: [variant] }) };
    const plan = { number: 1, targets: [planned({ targetId: randomUUID(), accountId, clientId })] };
    const scheduled = { type: 'Schedule', commandId: context.commandId, ...written, plan } as const;
    await execute(store, post, commented, scheduled, context);
    const ends = async (id: string) => (await store.readStream(`target-${id}`)).slice(-2).map(({ type }) => type);
    const named = await unknownTarget(commented);
    await did(`target settle ${named} published --external-id 43`);
    assert.deepEqual(await ends(named), ['TargetOutcomeSettled', 'TargetFirstCommentScheduled']);
    const nameless = await unknownTarget(commented);
    await did(`target settle ${nameless} published`);
    assert.deepEqual(await ends(nameless), ['TargetOutcomeSettled', 'TargetFirstCommentFailed']);
    assert.equal((await ends(seen)).at(-1), 'TargetOutcomeSettled', 'it wants no comment');

    const again = await admin(`target settle ${seen} failed`);
    assert.equal(again.code, 1);
    assert.match(again.output, /published target has a known outcome/);
    const missing = await admin(`target settle ${randomUUID()} published`);
    assert.match(missing.output, /no such target/);
    assert.equal((await admin(`target settle ${await unknownTarget()} perhaps`)).code, 2);
    assert.equal((await admin(`target settle ${await unknownTarget()} published --permalink here`)).code, 2);
  });

  t('lists the versions of the secret that are in use; without one of them no process starts', async () => {
    const [first] = await listed('secrets');
    assert.equal(first?.version, 'v1');
    assert.equal(Number(first?.dataKeys), 0, 'the only client with personal data was erased');
    const { secret = '' } = await did('key create --mode test');
    await answers(secret, 200);
    const http = caller(secret);
    const { data: client } = await http.post('/clients', { name: 'Keeps its key', type: 'brand' });
    const ask = { platforms: ['x'], recipientEmail: 'someone@example.com' };
    await http.post(`/clients/${client.id}/connect-invites`, ask);
    // An address: no name server is asked.
    const endpoint = { url: 'https://93.184.215.14/hooks', events: ['*'] };
    const { data: signed } = await http.post('/webhooks', endpoint);
    await http.post(`/webhooks/${signed.id}/rotate-secret`, {});
    const { data: deleted } = await http.post('/webhooks', endpoint);
    await http.delete(`/webhooks/${deleted.id}`);
    const v2 = `v2:${randomBytes(32).toString('base64')}`;
    const both = { ...env, SECRET_KEY: `${v2},${v1}` };
    const { output } = await run('services/admin/main.ts', { env: both, args: ['secrets', '--json'] });
    assert.deepEqual(JSON.parse(output), [
      {
        version: 'v2',
        inSecretKey: true,
        current: true,
        // Nobody has started with it: to look at it decides nothing.
        checked: false,
        dataKeys: 0,
        openInvites: 0,
        webhookSecrets: 0,
        teamInvites: 0,
        signIn: 0,
        idempotencyKeys: 'none',
      },
      {
        version: 'v1',
        inSecretKey: true,
        current: false,
        checked: true,
        dataKeys: 1,
        openInvites: 2,
        // With that of the endpoint that a removed member left.
        webhookSecrets: 3,
        teamInvites: 0,
        signIn: 0,
        idempotencyKeys: 'all',
      },
    ]);
    for (const main of ['services/api/main.ts', 'services/publisher/main.ts', 'projections/main.ts']) {
      const refused = await run(main, { env: { ...env, SECRET_KEY: v2 } });
      assert.equal(refused.code, 2, main);
      assert.match(refused.output, /SECRET_KEY: version v1 is not in SECRET_KEY/);
    }
    const rotated = await start('services/api/main.ts', { env: both });
    assert.equal((await callerOf(() => rotated.url('/v1'), secret).get('/agency')).status, 200);
    assert.equal((await rotated.stop()).code, 0);
    const other = { ...env, SECRET_KEY: `v2:${randomBytes(32).toString('base64')},${v1}` };
    const changed = await run('services/admin/main.ts', { env: other, args: ['secrets'] });
    assert.equal(changed.code, 2, changed.output);
    assert.match(changed.output, /v2 of SECRET_KEY is not the key v2/);
  });

  t('sets the quota of a workspace and of its sandbox, each for itself, and takes it away again', async () => {
    const { secret: token = '' } = await did(`key create --mode test --workspace ${workspaceId}`);
    const { secret: liveToken = '' } = await did(`key create --mode live --workspace ${workspaceId}`);
    const limits = async () =>
      Promise.all(
        [liveToken, token].map(async (one) => (await caller(one).get('/quota')).data as unknown as { limit: unknown }),
      ).then((all) => all.map(({ limit }) => limit));
    assert.deepEqual(await limits(), [null, null]);
    assert.deepEqual(await did(`quota set 500 --mode test --workspace ${workspaceId}`), {
      workspaceId: testTwinIdOf(workspaceId),
      mode: 'test',
      limit: 500,
    });
    assert.deepEqual(await limits(), [null, 500]);
    await did(`quota set 0 --workspace ${workspaceId}`);
    assert.deepEqual(await limits(), [0, 500]);
    const { output } = await admin(`quota set none --workspace ${workspaceId}`);
    assert.match(output, /limit +none/);
    await did(`quota set none --mode test --workspace ${workspaceId}`);
    assert.deepEqual(await limits(), [null, null]);
    assert.equal((await admin(`quota set 5 --workspace ${randomUUID()}`)).code, 1);
  });

  t('sets how often accounts may publish, on all networks and on one', async () => {
    const { secret: token = '' } = await did(`key create --mode live --workspace ${workspaceId}`);
    const set = `cadence set --workspace ${workspaceId}`;
    assert.deepEqual(await did(`${set} --platform x --interval 30 --per-day 20`), {
      ...{ workspaceId, mode: 'live', platform: 'x', minIntervalMinutes: 30, perDay: 20 },
    });
    await did(`${set} --per-day 5`);
    const { rows } = await pool.query('select cadence from read.workspaces where id = $1', [workspaceId]);
    assert.deepEqual(rows[0].cadence, [
      { platform: 'x', minIntervalMinutes: 30, perDay: 20 },
      { platform: null, minIntervalMinutes: null, perDay: 5 },
    ]);
    assert.equal((await caller(token).get('/accounts/cadence')).status, 200);
    const { output } = await admin(`${set} --platform x`);
    assert.match(output, /perDay +none/);
    await did(set);
    const { rows: after } = await pool.query('select cadence from read.workspaces where id = $1', [workspaceId]);
    assert.deepEqual(after[0].cadence, []);
  });

  t('warns when the read models are behind', async () => {
    assert.equal((await projections.stop()).code, 0);
    const { code, output } = await admin('workspace create --name Later');
    assert.equal(code, 0, output);
    assert.match(output, /read models are behind/);
    projections = await start('projections/main.ts', { env });
    await until('it is there', async () => (await listed('workspace list')).length === 2);
    const several = await admin('key create --mode test');
    assert.equal(several.code, 2);
    assert.match(several.output, /Say which: --workspace ID/);
  });
});
