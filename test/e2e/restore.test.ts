/**
 * Walks infra/RESTORE.md from the copy to the last post, with its own commands, over Postgres, Kafka and the double of the
 * store. The networks are outside of what is restored.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { openAdapters } from '#infra/adapters.ts';
import { SandboxNetwork } from '#infra/platforms/sandbox/index.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { wallClock } from '#runtime/postgres/database-clock.ts';
import { readConfig } from '#runtime/process/config.ts';
import { createLogger } from '#runtime/process/telemetry.ts';
import { newestRestore } from '#runtime/work/restores.ts';
import { runPublisher } from '#services/publisher/publisher.ts';
import { type DoubleProcess, doubleProcess } from '#test/support/eventstoredb/server-handle.ts';
import { type Caller, callerOf } from '#test/support/http.ts';
import { type Broker, kafkaBroker, kafkaMissing } from '#test/support/kafka.ts';
import { dataFolder, preparedDatabase, testDatabase } from '#test/support/postgres.ts';
import { type Process, run, start } from '#test/support/processes.ts';
import { quick, quickNetwork } from '#test/support/publishing.ts';
import { afterFile, suite } from '#test/support/suite.ts';
import { timesEnv } from '#test/support/times.ts';
import { sparing, until } from '#test/support/until.ts';

interface Ready {
  readonly publishing?: string;
  readonly checks: readonly { readonly name: string; readonly detail?: string }[];
}

const missing = await kafkaMissing();
const page = readFileSync(new URL('../../infra/RESTORE.md', import.meta.url), 'utf8');
/** The commands of the page, in its order. */
const commands = [...page.matchAll(/^ *npm run admin -- (.+)$/gm)].map(([, line = '']) => line);
const mains = ['relay', 'outcomes', 'api'].map((name) => `services/${name}/main.ts`);

suite('from a copy to the last post', { drawn: true, costs: 25, timeoutMs: 240_000 }, (t) => {
  if (missing !== null) {
    t.skip('with Kafka, EventStoreDB and Postgres', missing);
    return;
  }
  const folder = mkdtempSync(path.join(tmpdir(), 'postline-restore-'));
  afterFile(() => rmSync(folder, { recursive: true, force: true }));
  const journal = path.join(folder, 'journal');
  const { dataDir } = dataFolder();
  let broker: Broker;
  let store: DoubleProcess;
  let networks: SandboxNetwork;
  let env: Record<string, string>;
  let processes: readonly Process[] = [];
  let http: Caller;
  let secret = '';
  let publisher: { readonly stop: () => Promise<void> } | null = null;

  t.before(async () => {
    const [found, db, theirs] = await Promise.all([kafkaBroker(), testDatabase(), preparedDatabase()]);
    if ('skip' in found) throw new Error(found.skip);
    broker = found;
    store = await doubleProcess({ data: journal });
    networks = new SandboxNetwork({ database: { url: theirs.url }, ...quickNetwork });
    env = {
      DATABASE_URL: db.url,
      ESDB_URL: store.url,
      KAFKA_BROKERS: broker.brokers.join(','),
      KAFKA_TOPIC_PREFIX: `restore-${randomBytes(4).toString('hex')}-`,
      SECRET_KEY: `v1:${randomBytes(32).toString('base64')}`,
      ...{
        PORT: '0',
        DATA_DIR: dataDir,
        DATABASE_POOL: '4',
        OUTDATED_FFMPEG: 'take',
        LEASE_TTL_MS: '1000',
        ...timesEnv({ sweepIntervalMs: 300 }),
      },
    };
  });
  t.after(async () => {
    await publisher?.stop();
    await Promise.all(processes.map((one) => one.kill()));
    await networks?.close();
    await store?.stop();
    await broker?.stop();
  });

  const up = async () => {
    processes = await Promise.all([...mains, 'projections/main.ts'].map((main) => start(main, { env })));
    const api = processes[2];
    http = callerOf(() => api?.url('/v1') ?? '', secret);
  };
  const down = async () => {
    await publisher?.stop();
    publisher = null;
    await Promise.all(processes.map((one) => one.stop()));
    processes = [];
  };
  const admin = async (line: string): Promise<Readonly<Record<string, unknown>>> => {
    const { code, output } = await run('services/admin/main.ts', { env, args: [...line.split(' '), '--json'] });
    assert.equal(code, 0, output);
    return JSON.parse(output.split('\n').findLast((one) => /^[[{]/.test(one)) ?? '{}');
  };
  /** The n-th command of the page, with these words in the place of its own. */
  const step = (place: number, words: Readonly<Record<string, string>> = {}) =>
    admin(Object.entries(words).reduce((line, [mine, real]) => line.replace(mine, real), commands[place] ?? ''));
  const publish = async () => {
    const config = readConfig(env);
    const secrets = new Secrets(env.SECRET_KEY ?? '');
    const adapters = await openAdapters({ name: 'publisher', config, secrets });
    const controller = new AbortController();
    const { pool, blobs } = adapters;
    const done = runPublisher(
      {
        ...{
          store: new DomainStore(adapters.store, new EventCodec(adapters.dataKeys), config.partitions),
          pool,
          blobs,
        },
        ...{ workDir: path.join(folder, 'work'), adapterOf: () => networks, config: { ...config, ...quick } },
        ...{ clock: wallClock, logger: createLogger('publisher', 'silent') },
      },
      controller.signal,
    );
    publisher = {
      stop: async () => {
        controller.abort();
        await done;
        await adapters.close();
      },
    };
  };
  const becomes = (id: string, status: string) => {
    let last: unknown = null;
    return until(
      `${id} is ${status}`,
      async () => {
        const answered = await http.get(`/post-targets/${id}`).catch(() => null);
        last = answered?.data ?? answered?.text;
        return answered?.data?.status === status ? answered.data : null;
      },
      { ...sparing, withinMs: 60_000 },
    ).catch((error: Error) => {
      const said = processes.map((one) => `${one.main}: ${one.output().split('\n').slice(-12).join('\n  ')}`);
      throw new Error(`${error.message}, at last ${JSON.stringify(last)}\n${said.join('\n')}`, { cause: error });
    });
  };
  const ledger = async (id: string) =>
    (await networks.ledger({ targetIds: [id], limit: 10 })).filter(({ outcome }) => outcome === 'created');
  const posts = (ids: readonly string[]) => Promise.all(ids.map(async (id) => (await ledger(id)).length));
  const inPool = async <T>(use: (pool: pg.Pool) => Promise<T>): Promise<T> => {
    const pool = new pg.Pool({ connectionString: env.DATABASE_URL, max: 1 });
    return use(pool).finally(() => pool.end());
  };

  /** Of the end of the feed, as somebody keeps it who reads along. */
  const keptByAuditor = async () => {
    const { body, status, text } = await http.get('/events/checkpoints?limit=1');
    assert.equal(status, 200, text);
    const [checkpoint] = body.data as readonly {
      readonly size: number;
      readonly root: string;
      readonly note: string;
    }[];
    assert.ok(checkpoint !== undefined);
    return checkpoint;
  };
  /** What was kept of the lost time gets a clear answer at each door, and none of them takes it for what is there now. */
  const tellsAuditor = async (lost: { readonly size: number; readonly root: string; readonly note: string }) => {
    const refused = await http.get(`/events?after=1.${lost.size}`);
    const [, kept] = /after (\d+): read on after 2\.\1, and count/.exec(refused.text) ?? [];
    assert.deepEqual([refused.status, refused.body.code], [400, 'invalid_cursor'], refused.text);
    assert.ok(Number(kept) > 0 && Number(kept) < lost.size, refused.text);
    const onwards = await http.get(`/events?after=2.${kept}&limit=1`);
    assert.equal((onwards.rows[0] as { readonly cursor?: string } | undefined)?.cursor, `2.${Number(kept) + 1}`);
    const asked = '/clients?asOf=1.';
    const asOf = await http.get(`${asked}${lost.size}`);
    assert.match(asOf.text, new RegExp(`restore took back: of epoch 1 the events up to ${kept} were kept`));
    assert.deepEqual((await http.get(`${asked}${kept}`)).body.meta?.asOf?.event, `2.${kept}`);
    const now = await keptByAuditor();
    assert.match(now.note, new RegExp(`\nepoch 2\nkept ${kept}\nsigned `));
    const growth = await http.get(`/events/checkpoints/${lost.size}/growth`);
    const former = (growth.data as { readonly former?: { readonly root: string } } | undefined)?.former;
    assert.ok(growth.status === 404 || former?.root !== lost.root, growth.text);
    for (const path of [`1.${lost.size}/proof`, `checkpoints/1.${lost.size}/growth`]) {
      const gone = await http.get(`/events/${path}`);
      assert.deepEqual([gone.status, gone.body.code], [410, 'event_taken_back'], gone.text);
      assert.match(gone.text, new RegExp(`Of epoch 1 the events up to ${kept} were kept, in epoch 2`));
    }
    const proof = await http.get(`/events/1.${kept}/proof`);
    assert.equal((proof.data as { readonly cursor?: string }).cursor, `2.${kept}`, proof.text);
    const [{ id } = { id: null }] = (await http.get(`/events?after=2.${Number(kept) - 1}&limit=1`)).rows;
    assert.equal(proof.data.id, id);
    assert.equal((await http.get(`/events/checkpoints/1.${kept}/growth`)).status, 200);
    const to = path.join(folder, 'export');
    writeFileSync(path.join(folder, 'kept.txt'), lost.note);
    await admin(`audit export --test --to ${to}`);
    const verified = spawnSync(process.execPath, [
      `${to}/verify-export.mjs`,
      to,
      '--checkpoint',
      path.join(folder, 'kept.txt'),
    ]);
    assert.match(
      String(verified.stdout),
      new RegExp(
        `WRONG  a restore took back the events after ${kept}, and began epoch 2: the kept checkpoint has ${lost.size} of epoch 1`,
      ),
    );
    assert.equal(verified.status, 1);
  };

  t('each step of the page does what it says, and nothing goes out twice', async () => {
    assert.deepEqual(
      commands.map((line) => line.split(' ').slice(0, 2).join(' ')),
      [
        ...['log reset', 'restored --store-as-of', 'target settle', 'publishing resume', 'target settle'],
        ...['restored trust', 'account forget'],
      ],
    );
    await up();
    await admin('workspace create --name Restored');
    secret = String((await admin('key create --mode test')).secret);
    http = callerOf(() => processes[2]?.url('/v1') ?? '', secret);
    const client = await http.post('/clients', { name: 'Northwind', type: 'brand' });
    const invite = await http.post(`/clients/${client.data.id}/connect-invites`, {
      platforms: ['facebook', 'telegram'],
    });
    for (const platform of ['facebook', 'telegram']) {
      const body = new URLSearchParams({ platform, username: 'northwind', timezone: '' });
      await fetch(String(invite.data.url), { method: 'POST', body, redirect: 'manual' });
    }
    const accounts = await until('both are connected', async () => {
      const { rows } = await http.get('/accounts');
      return rows.length === 2 ? rows : null;
    });
    const accountIn = (platform: string) => String(accounts.find((one) => one.platform === platform)?.id);
    const compose = async (content: string, schedule: Readonly<Record<string, unknown>>) => {
      const accountIds = [accountIn('facebook'), accountIn('telegram')];
      const body = { clientId: client.data.id, content, schedule, targets: { mode: 'selection', accountIds } };
      const { status, data, text } = await http.post('/posts', body);
      assert.equal(status, 200, text);
      const made = data.targets as readonly { readonly id: string; readonly platform: string }[];
      return ['facebook', 'telegram'].map((name) => made.find((one) => one.platform === name)?.id ?? '');
    };
    const [lost, silent] = (await compose('Lost', { type: 'now' })) as [string, string];
    const day = new Date(Date.now() + 86_400_000).toISOString();
    const [moved, later] = (await compose('Later', { type: 'at', scheduledAt: day })) as [string, string];
    const [asked, trusted] = (await compose('Trusted', { type: 'at', scheduledAt: day })) as [string, string];
    const draft = {
      ...{ clientId: client.data.id, content: 'Drafted', saveDraft: true, schedule: { type: 'now' } },
      targets: { mode: 'selection', accountIds: [accountIn('telegram')] },
    };
    const drafted = String((await http.post('/posts', draft)).data.id);
    const all = [lost, silent, moved, later, asked, trusted];
    for (const id of all) await becomes(id, 'pending');

    // The copies: Postgres, then the store. No publisher has run yet.
    await down();
    const asOf = new Date().toISOString();
    const copy = await testDatabase(new URL(env.DATABASE_URL ?? '').pathname.slice(1));
    await store.stop();
    copyFileSync(journal, `${journal}.copy`);
    await store.start();

    // The time that is lost.
    await up();
    await publish();
    const move = async (id: string) => {
      const scheduledAt = new Date(Date.now() + 500).toISOString();
      const { status, text } = await http.post(`/post-targets/${id}/reschedule`, { scheduledAt });
      assert.equal(status, 200, text);
    };
    await move(moved);
    for (const id of [lost, silent, moved]) await becomes(id, 'published');
    const kept = await keptByAuditor();
    await down();
    assert.deepEqual(await posts(all), [1, 1, 1, 0, 0, 0]);

    await store.kill9();
    copyFileSync(`${journal}.copy`, journal);
    await store.start();
    env = { ...env, DATABASE_URL: copy.url };

    // Somebody starts a publisher too early.
    const early = await start('services/publisher/main.ts', { env });
    const found = await inPool(newestRestore);
    assert.match(
      found?.by ?? '',
      /^the start: the log has a record of position \d+, and the store ends at position \d+$/,
    );
    const reported = (await (await fetch(early.opsUrl('/readyz'))).json()) as Ready;
    assert.equal(reported.publishing, 'hold');
    const why = reported.checks.find(({ name }) => name === 'restore')?.detail ?? '';
    assert.ok(why.includes('the log has a record of position'), why);
    await early.stop();

    const reset = await step(0);
    assert.match(JSON.stringify(reset), /posts/);
    const said = await step(1, { '2026-01-31T08:00:00Z': asOf });
    assert.equal(said.recorded, 'under way');
    const again = await step(1, { '2026-01-31T08:00:00Z': asOf });
    assert.deepEqual(again, said);

    await up();
    await publish();
    const ready = await fetch(processes[2]?.opsUrl('/readyz') ?? '');
    assert.equal(ready.status, 200);
    const shown = (await ready.json()) as Ready;
    assert.equal(shown.publishing, 'hold');
    assert.ok(shown.checks.some(({ name, detail }) => name === 'restore' && detail?.includes(asOf)));

    await becomes(lost, 'published');
    await becomes(silent, 'outcome_unknown');
    await until('all is recorded', async () => (await inPool(newestRestore))?.completedAt !== null);
    assert.match(String((await step(1, { '2026-01-31T08:00:00Z': asOf })).recorded), /^\d{4}-/);
    const [out] = await ledger(silent);
    await step(2, { TARGET: silent, ID: out?.postId ?? '' });
    await becomes(silent, 'published');

    await tellsAuditor(kept);

    await step(3);
    await move(moved);
    await move(later);
    await becomes(moved, 'published');
    await becomes(later, 'outcome_unknown');
    assert.deepEqual(await posts(all), [1, 1, 1, 0, 0, 0]);
    assert.equal((await http.post(`/posts/${drafted}/publish`, {})).body.code, 'restore_unconfirmed');
    await step(4, { TARGET: later });
    await becomes(later, 'failed');
    assert.equal((await http.post(`/post-targets/${later}/retry`)).status, 200);
    await becomes(later, 'published');

    await step(5, { ACCOUNT: accountIn('telegram') });
    assert.equal((await http.post(`/accounts/${accountIn('facebook')}/confirm-restored`)).status, 200);
    assert.equal((await http.post(`/posts/${drafted}/publish`, {})).status, 200);
    await move(asked);
    await move(trusted);
    for (const id of [asked, trusted]) await becomes(id, 'published');
    assert.deepEqual(await posts(all), [1, 1, 1, 1, 1, 1]);

    await step(6, { ACCOUNT: accountIn('facebook') });
    const forgotten = await until('the account is disconnected', async () => {
      const { data } = await http.get(`/accounts/${accountIn('facebook')}`);
      return data.status === 'disconnected' ? data : null;
    });
    assert.deepEqual([forgotten.username, forgotten.displayName], [null, null]);
  });
});
