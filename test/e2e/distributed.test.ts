/**
 * The main job over separate processes: EventStoreDB (real where it can be had, else the double), Kafka, Postgres,
 * ClickHouse; two of each that shares its work, and three of them killed half way. Then its figures, and a report.
 */
import assert from 'node:assert/strict';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import path from 'node:path';
import pg from 'pg';
import { SandboxNetwork } from '#infra/platforms/sandbox/index.ts';
import { view } from '#projections/shapes.ts';
import { platforms } from '#schemas/common.ts';
import { type Receiver, startReceiver } from '#services/standalone/receiver.ts';
import { testClickHouse } from '#test/support/clickhouse.ts';
import { type EventStoreServer, eventStoreServer } from '#test/support/eventstoredb/server-handle.ts';
import { type Caller, callerOf } from '#test/support/http.ts';
import { type Broker, kafkaBroker, kafkaMissing } from '#test/support/kafka.ts';
import { compose, prepare, published, targetsOf, upload } from '#test/support/main-job.ts';
import { dataFolder, testDatabase } from '#test/support/postgres.ts';
import { type Process, run, start } from '#test/support/processes.ts';
import { suite } from '#test/support/suite.ts';
import { timesEnv } from '#test/support/times.ts';
import { sparing, until } from '#test/support/until.ts';

const missing = await kafkaMissing();

const mains = {
  relay: 'services/relay/main.ts',
  projections: 'projections/main.ts',
  outcomes: 'services/outcomes/main.ts',
  publisher: 'services/publisher/main.ts',
  webhooks: 'services/webhooks/main.ts',
  media: 'services/media/main.ts',
  insights: 'services/insights/main.ts',
  reports: 'services/reports/main.ts',
  api: 'services/api/main.ts',
} as const;
type Role = keyof typeof mains;
const roles: readonly Role[] = [
  'relay',
  'relay',
  'projections',
  'projections',
  'outcomes',
  'publisher',
  'publisher',
  'webhooks',
  'webhooks',
  'media',
  'insights',
  'insights',
  'reports',
  'api',
  'api',
];

interface Ready {
  readonly status: string;
  readonly checks: readonly { readonly name: string; readonly ok: boolean; readonly detail?: string }[];
}

suite('the main job over separate processes', { timeoutMs: 240_000 }, (t) => {
  if (missing !== null) {
    t.skip('with Kafka, EventStoreDB and Postgres', missing);
    return;
  }
  const running = new Map<Role, Process[]>();
  let broker: Broker;
  let events: EventStoreServer;
  let pool: pg.Pool;
  let env: Record<string, string>;
  let secret = '';
  let memberId = '';
  let here: Caller;
  let there: Caller;
  let receiver: Receiver;

  const of = (role: Role): readonly Process[] => running.get(role) ?? [];
  const all = (): readonly Process[] => [...running.values()].flat();
  const readiness = async (one: Process): Promise<Ready> =>
    (await (await fetch(one.opsUrl('/readyz'))).json()) as Ready;
  const admin = async (...args: string[]): Promise<Readonly<Record<string, string>>> => {
    const { code, output } = await run('services/admin/main.ts', { env, args: [...args, '--json'] });
    assert.equal(code, 0, output);
    return JSON.parse(output.split('\n').at(-1) ?? '');
  };
  const isActive = async (one: Process) => {
    if (!one.running) return false;
    const { checks } = await readiness(one);
    return checks.some(({ name, detail }) => name === 'relay' && detail?.startsWith('active') === true);
  };

  t.before(async () => {
    const begun = performance.now();
    receiver = await startReceiver();
    const [db, clickhouse, found, store] = await Promise.all([
      testDatabase(),
      testClickHouse(),
      kafkaBroker(),
      eventStoreServer(),
    ]);
    if ('skip' in found) throw new Error(found.skip);
    broker = found;
    events = store;
    process.stdout.write(`  Kafka: ${broker.source}, event store: ${events.source}\n`);
    env = {
      DATABASE_URL: db.url,
      ESDB_URL: events.url,
      CLICKHOUSE_URL: clickhouse.url,
      KAFKA_BROKERS: broker.brokers.join(','),
      KAFKA_TOPIC_PREFIX: `e2e-${randomBytes(4).toString('hex')}-`,
      SECRET_KEY: `v1:${randomBytes(32).toString('base64')}`,
      PORT: '0',
      DATA_DIR: dataFolder().dataDir,
      DATABASE_POOL: '4',
      OUTDATED_FFMPEG: 'take',
      LEASE_TTL_MS: '2000',
      PRIVATE_TARGETS: receiver.host,
      ...timesEnv({ webhookExchangeMs: 1_000, webhookLeaseMs: 2_500 }),
    };
    pool = new pg.Pool({ connectionString: db.url, max: 2 });
    // All at once, as an orchestrator does it: each makes what it needs where it is missing.
    const started = await Promise.all(
      roles.map(async (role) => ({ role, process: await start(mains[role], { env }) })),
    );
    for (const { role, process } of started) running.set(role, [...(running.get(role) ?? []), process]);
    memberId = (await admin('workspace', 'create', '--name', 'Distributed')).memberId ?? '';
    secret = (await admin('key', 'create', '--mode', 'test')).secret ?? '';
    const [first, second] = of('api');
    here = callerOf(() => first?.url('/v1') ?? '', secret);
    there = callerOf(() => second?.url('/v1') ?? '', secret);
    process.stdout.write(`  up in ${((performance.now() - begun) / 1000).toFixed(1)} s\n`);
  });
  t.after(async () => {
    await Promise.all(all().map((one) => one.kill()));
    await pool?.end();
    await events?.stop();
    await broker?.stop();
    await receiver?.close();
  });

  t('every process is alive, ready and has metrics; one relay of two is active', async () => {
    for (const one of all()) {
      assert.equal((await fetch(one.opsUrl('/livez'))).status, 200, one.main);
      const ready = await until(`${one.main} is ready`, async () => {
        const answer = await readiness(one);
        return answer.status === 'ready' ? answer : null;
      });
      assert.ok(ready.checks.length > 0, one.main);
      const metrics = await (await fetch(one.opsUrl('/metrics'))).text();
      assert.match(metrics, /nodejs_eventloop_lag/, one.main);
    }
    const active = await Promise.all(of('relay').map(isActive));
    assert.deepEqual([...active].sort(), [false, true]);
  });

  t('a write through one api is read through the other with its consistency token', async () => {
    for (let n = 0; n < 10; n += 1) {
      const made = await here.post('/clients', { name: `Read my write ${n}`, type: 'brand' });
      assert.equal(made.status, 200, made.text);
      const headers = { 'x-consistency-token': made.headers.get('x-consistency-token') ?? '' };
      const list = await there.get('/clients?limit=1', { headers });
      assert.equal(list.rows[0]?.id, made.data.id, 'the newest of the list');
      assert.deepEqual((await there.get(`/clients/${made.data.id}`, { headers })).data, made.data);
    }
  });

  t('the same key through two apis at once creates one client', async () => {
    const key = randomUUID();
    const body = { name: 'Raced', type: 'brand' };
    const answers = await Promise.all([here, there, here, there].map((http) => http.post('/clients', body, { key })));
    for (const one of answers) assert.equal(one.status, 200, one.text);
    assert.equal(new Set(answers.map(({ data }) => data.id)).size, 1);
  });

  t('ten targets are published while the active relay, a projector and a sender are killed', async () => {
    const hook = await here.post('/webhooks', {
      url: `http://${receiver.host}/`,
      events: ['post.*', 'target.*', 'analytics.*'],
    });
    assert.equal(hook.status, 200, hook.text);
    receiver.expect(String(hook.data.secret));
    const { clientId } = await prepare(here);
    const mediaId = await upload(here);
    const dueAt = new Date(Date.now() + 3_000).toISOString();
    const post = await compose(here, clientId, { type: 'at', scheduledAt: dueAt }, {}, mediaId);
    assert.equal(targetsOf(post).length, platforms.length);
    const [projector] = of('projections');
    await projector?.kill();
    await until('some are published', async () => {
      const { rows } = await pool.query(`select count(*)::int as n from sandbox.ledger where outcome = 'created'`);
      return rows[0].n >= 2;
    });
    await of('webhooks')[0]?.kill();
    for (const relay of of('relay')) if (await isActive(relay)) await relay.kill();
    const done = await published(there, post.data.id);
    assert.deepEqual(new Set(targetsOf(done).map(({ platform }) => platform)), new Set(platforms));
    for (const { platform, publishedAt, permalink, attempts } of targetsOf(done)) {
      assert.ok(publishedAt !== null && publishedAt >= dueAt, `${platform} was early: ${publishedAt}`);
      assert.match(permalink ?? '', /^https:\/\//, platform);
      assert.equal(attempts, platform === 'linkedin' ? 2 : 1, platform);
    }
    const { rows } = await pool.query(
      `select target_id, count(*) filter (where outcome = 'created')::int as posts, count(duplicate_of)::int as duplicates
       from sandbox.ledger group by 1`,
    );
    assert.equal(rows.length, platforms.length);
    for (const row of rows) assert.deepEqual({ ...row, target_id: '' }, { target_id: '', posts: 1, duplicates: 0 });
  });

  t('every event of the post reaches the webhook once, signed with both secrets', async () => {
    const { rows } = await pool.query(`select id::text as id from ${view('posts')} where status = 'published'`);
    const postId = rows[0]?.id;
    const wanted = (type: string) => (type.startsWith('target.') ? platforms.length : 1);
    const types = ['post.created', 'post.scheduled', 'target.scheduled', 'target.published', 'post.published'];
    const own = () => receiver.received.filter(({ data }) => data.postId === postId);
    const idsOf = (type: string) => new Set(own().flatMap((one) => (one.type === type ? [one.id] : [])));
    await until('all of them', async () => types.every((type) => idsOf(type).size >= wanted(type)), {
      withinMs: 60_000,
    });
    for (const type of types) assert.equal(idsOf(type).size, wanted(type), type);
    assert.ok(own().every(({ standard, service }) => standard && service));
    const { rows: queued } = await until('nothing is queued', async () => {
      const left = await pool.query('select 1 from ops.webhook_queue');
      return left.rowCount === 0 ? left : null;
    });
    assert.deepEqual(queued, []);
  });

  t('the remaining processes are ready, and the standby relay is active', async () => {
    const left = all().filter(({ running: alive }) => alive);
    assert.equal(left.length, roles.length - 3);
    await until('a relay is active', async () => (await Promise.all(of('relay').map(isActive))).some(Boolean));
    for (const one of left) {
      const ready = async () => (await readiness(one)).status === 'ready';
      await until(`${one.main} is ready`, ready).catch(async (error: unknown) => {
        // Which part is not, and what it said of it.
        const said = one
          .output()
          .split('\n')
          .filter((line) => /"level":[456]0/.test(line));
        throw new Error(`${JSON.stringify(await readiness(one))}\n${said.slice(-5).join('\n')}`, { cause: error });
      });
    }
    const made = await here.post('/clients', { name: 'After the deaths', type: 'brand' });
    const headers = { 'x-consistency-token': made.headers.get('x-consistency-token') ?? '' };
    // Kafka gives the dead projector's partitions away when its session lapses: until then 503, never 404.
    const read = await until(
      'it is read',
      async () => {
        const answer = await there.get(`/clients/${made.data.id}`, { headers });
        if (answer.status === 200) return answer;
        assert.equal(answer.body.code, 'unavailable', answer.text);
        assert.match(answer.headers.get('retry-after') ?? '', /^\d+$/);
        return null;
      },
      sparing,
    );
    assert.deepEqual(read.data, made.data);
  });

  /** Of three days around now: in the sandbox it may be tomorrow. */
  const figuresOf = async (http: Caller) => {
    const day = (shift: number) => new Date(Date.now() + shift * 86_400_000).toISOString().slice(0, 10);
    const window = `from=${day(-1)}&to=${day(1)}`;
    const { rows } = await pool.query(`select id::text as id from ${view('posts')} where status = 'published'`);
    const overview = await http.get(`/analytics/overview?${window}`);
    const post = await http.get(`/analytics/posts/${rows[0]?.id}?${window}`);
    assert.deepEqual([overview.status, post.status], [200, 200], `${overview.text}\n${post.text}`);
    const totals = overview.data.totals as Readonly<Record<string, number | null>>;
    const lifetime = post.data.metrics as Readonly<Record<string, number | null>>;
    const targets = post.data.targets as readonly { readonly fetchedAt: string | null }[];
    // Figures of accounts are counted apart from figures of posts.
    const complete = targets.every(({ fetchedAt }) => fetchedAt !== null) && totals.followerCount !== null;
    return { all: { overview: overview.data, post: post.data }, totals, lifetime, complete };
  };

  t('refreshed figures: fetched by one of two workers, counted once from Kafka, equal through either api', async () => {
    const sandbox = new SandboxNetwork({ database: { url: env.DATABASE_URL ?? '', connections: 1 } });
    await sandbox.advance(5 * 3_600_000);
    await sandbox.close();
    const session = (await admin('session', memberId, '--mode', 'test')).secret ?? '';
    const member = callerOf(() => of('api')[1]?.url('/v1') ?? '', session);
    const asked = await member.post('/analytics/refresh', {});
    assert.equal(asked.status, 200, asked.text);
    assert.equal(asked.data.requested, platforms.length);
    const reported = await until('the webhook tells', async () =>
      receiver.received.find(
        ({ type, data }) => type === 'analytics.refreshed' && data.refreshId === asked.data.refreshId,
      ),
    );
    assert.ok(reported.standard && reported.service);
    // A workspace with one post: what its days gained is what the post has. They are written one after the other.
    const same = ['impressions', 'likes', 'comments', 'videoViews'];
    const seen = await until(
      'the days hold what the post has',
      async () => {
        const { all: found, totals, lifetime, complete } = await figuresOf(here);
        return complete && same.every((name) => totals[name] === lifetime[name]) ? { found, totals } : null;
      },
      sparing,
    );
    for (const name of same) assert.ok(Number(seen.totals[name]) > 0, name);
    assert.deepEqual((await figuresOf(there)).all, seen.found);
    const fetched = await Promise.all(
      of('insights').map(async (one) => {
        const text = await (await fetch(one.opsUrl('/metrics'))).text();
        return [...text.matchAll(/^insights_fetched_total\{.*\} (\d+)$/gm)].reduce((sum, [, n]) => sum + Number(n), 0);
      }),
    );
    process.stdout.write(`  answers of networks, by process: ${fetched.join(' and ')}\n`);
    assert.ok(fetched.reduce((sum, n) => sum + n, 0) >= platforms.length);
  });

  t('a rebuild of analytics from EventStoreDB beside all processes gives the same figures', async () => {
    const before = await figuresOf(here);
    const rebuilt = (await admin('rebuild', 'analytics')) as unknown as Readonly<Record<string, number>>;
    assert.equal(rebuilt.version, 2);
    assert.ok(Number(rebuilt.observationsBefore) <= Number(rebuilt.events), JSON.stringify(rebuilt));
    assert.equal(rebuilt.differingDays, 0);
    for (const http of [here, there]) assert.deepEqual((await figuresOf(http)).all, before.all);
  });

  t('a report is defined, run and downloaded', async () => {
    const { reportId = '' } = await admin(
      'report',
      'define',
      '--name',
      'All',
      '--formats',
      'json,pdf',
      '--mode',
      'test',
    );
    const { runId = '' } = await admin('report', 'run', reportId);
    interface Run {
      readonly runId: string;
      readonly status: string;
    }
    const done = await until(
      'the run has ended',
      async () => {
        const answer = await here.get(`/reports/${reportId}`);
        const runs = (answer.status === 200 ? answer.data.runs : []) as readonly Run[];
        return runs.find((one) => one.runId === runId && one.status !== 'running');
      },
      sparing,
    );
    assert.equal(done.status, 'completed', JSON.stringify(done));
    for (const [format, begins] of [
      ['json', '{'],
      ['pdf', '%PDF-'],
    ] as const) {
      const { data, status, text } = await there.get(`/reports/${reportId}/exports/${runId}?format=${format}`);
      assert.equal(status, 200, text);
      const answer = await fetch(String(data.url));
      const bytes = Buffer.from(await answer.arrayBuffer());
      assert.equal(answer.status, 200, bytes.toString());
      assert.equal(createHash('sha256').update(bytes).digest('hex'), data.sha256);
      assert.ok(bytes.toString('latin1').startsWith(begins));
    }
  });

  t('each process drains on SIGTERM within seconds, with exit code 0', async () => {
    const left = all().filter(({ running: alive }) => alive);
    const ended = await Promise.all(left.map(async (one) => ({ main: one.main, ...(await one.stop()), one })));
    for (const { main, code, signal, ms, one } of ended) {
      assert.equal(
        code,
        0,
        `${main} ended with ${code ?? signal} after ${ms.toFixed(0)} ms:\n${one.output().slice(-2_000)}`,
      );
      assert.ok(ms < 10_000, `${main} took ${ms.toFixed(0)} ms`);
    }
    process.stdout.write(`  slowest drain ${Math.max(...ended.map(({ ms }) => ms)).toFixed(0)} ms\n`);
  });

  t('no line of any log names a secret', () => {
    const lines = all()
      .map((one) => one.output())
      .join('\n');
    assert.ok(lines.length > 1_000);
    const password = new URL(env.DATABASE_URL ?? '').password;
    for (const canary of [secret, env.SECRET_KEY?.slice(3) ?? '', password, 'northwind"']) {
      assert.ok(canary === '' || !lines.includes(canary), 'a secret is in a log');
    }
  });

  t('the feed over EventStoreDB has the order of the store, and all that follows from it is verified', async () => {
    await until('all events are numbered', async () => {
      const { rows } = await pool.query(
        'select (select position from ops.feed_position) >= (select max(position) from ops.consumer_positions) as done',
      );
      return rows[0]?.done === true;
    });
    const state = path.join(env.DATA_DIR ?? '', 'verify.json');
    const verified = await admin('audit', 'verify', '--test', '--state', state);
    assert.equal(String(verified.whole), 'true');
    for (const what of ['events', 'rows', 'boundaries', 'deliveries', 'files', 'figures', 'counts'])
      assert.ok(Number(verified[what]) > 0, `${what}: ${JSON.stringify(verified)}`);
  });
});
