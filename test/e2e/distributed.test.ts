/**
 * The main job over separate processes: EventStoreDB (real where it can be had, else the double), Kafka, Postgres; two of
 * each that shares its work, and three of them killed half way.
 */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import pg from 'pg';
import { platforms } from '#schemas/common.ts';
import { type Receiver, startReceiver } from '#services/standalone/receiver.ts';
import { type EventStoreServer, eventStoreServer } from '#test/support/eventstoredb/server-handle.ts';
import { type Caller, callerOf } from '#test/support/http.ts';
import { type Broker, kafkaBroker, kafkaMissing } from '#test/support/kafka.ts';
import { compose, prepare, published, targetsOf, upload } from '#test/support/main-job.ts';
import { dataFolder, testDatabase } from '#test/support/postgres.ts';
import { type Process, run, start, until } from '#test/support/processes.ts';
import { suite } from '#test/support/suite.ts';

const missing = await kafkaMissing();

const mains = {
  relay: 'services/relay/main.ts',
  projections: 'projections/main.ts',
  outcomes: 'services/outcomes/main.ts',
  publisher: 'services/publisher/main.ts',
  webhooks: 'services/webhooks/main.ts',
  media: 'services/media/main.ts',
  metrics: 'services/metrics/main.ts',
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
  'metrics',
  'metrics',
  'reports',
  'api',
  'api',
];

interface Ready {
  readonly status: string;
  readonly checks: readonly { readonly name: string; readonly ok: boolean; readonly detail?: string }[];
}

suite('the main job over separate processes', { timeoutMs: 180_000 }, (t) => {
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
  let here: Caller;
  let there: Caller;
  let receiver: Receiver;

  const of = (role: Role): readonly Process[] => running.get(role) ?? [];
  const all = (): readonly Process[] => [...running.values()].flat();
  const readiness = async (one: Process): Promise<Ready> => (await (await fetch(one.url('/readyz'))).json()) as Ready;
  const isActive = async (one: Process) => {
    if (!one.running) return false;
    const { checks } = await readiness(one);
    return checks.some(({ name, detail }) => name === 'relay' && detail?.startsWith('active') === true);
  };

  t.before(async () => {
    const begun = performance.now();
    receiver = await startReceiver();
    const [db, found, store] = await Promise.all([testDatabase(), kafkaBroker(), eventStoreServer()]);
    if ('skip' in found) throw new Error(found.skip);
    broker = found;
    events = store;
    process.stdout.write(`  Kafka: ${broker.source}, event store: ${events.source}\n`);
    env = {
      DATABASE_URL: db.url,
      EVENTSTORE_URL: events.url,
      KAFKA_BROKERS: broker.brokers.join(','),
      KAFKA_TOPIC_PREFIX: `e2e-${randomBytes(4).toString('hex')}-`,
      SECRET_KEY: `v1:${randomBytes(32).toString('base64')}`,
      PORT: '0',
      DATA_DIR: dataFolder().dataDir,
      DATABASE_POOL: '4',
      LEASE_TTL_MS: '2000',
      PRIVATE_TARGETS: receiver.host,
      WEBHOOK_EXCHANGE_MS: '1000',
      WEBHOOK_LEASE_MS: '2500',
    };
    pool = new pg.Pool({ connectionString: db.url, max: 2 });
    // All at once, as an orchestrator does it: each makes what it needs where it is missing.
    const started = await Promise.all(
      roles.map(async (role) => ({ role, process: await start(mains[role], { env }) })),
    );
    for (const { role, process } of started) running.set(role, [...(running.get(role) ?? []), process]);
    const args = ['workspace', 'create', '--name', 'Distributed', '--json'];
    const made = await run('services/admin/main.ts', { env, args });
    assert.equal(made.code, 0, made.output);
    const key = await run('services/admin/main.ts', { env, args: ['key', 'create', '--mode', 'test', '--json'] });
    assert.equal(key.code, 0, key.output);
    secret = JSON.parse(key.output.split('\n').at(-1) ?? '').secret;
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

  t('every process is alive, ready and measured; one relay of two is active', async () => {
    for (const one of all()) {
      assert.equal((await fetch(one.url('/livez'))).status, 200, one.main);
      const ready = await until(`${one.main} is ready`, async () => {
        const answer = await readiness(one);
        return answer.status === 'ready' ? answer : null;
      });
      assert.ok(ready.checks.length > 0, one.main);
      const metrics = await (await fetch(one.url('/metrics'))).text();
      assert.match(metrics, /nodejs_eventloop_lag/, one.main);
    }
    const active = await Promise.all(of('relay').map(isActive));
    assert.deepEqual([...active].sort(), [false, true]);
  });

  t('what one api stored is read through the other with its consistency token', async () => {
    for (let n = 0; n < 10; n += 1) {
      const made = await here.post('/clients', { name: `Read my write ${n}`, type: 'brand' });
      assert.equal(made.status, 200, made.text);
      const headers = { 'x-consistency-token': made.headers.get('x-consistency-token') ?? '' };
      const list = await there.get('/clients?limit=1', { headers });
      assert.equal(list.rows[0]?.id, made.data.id, 'the newest of the list');
      assert.deepEqual((await there.get(`/clients/${made.data.id}`, { headers })).data, made.data);
    }
  });

  t('the same key through two apis at once is one client', async () => {
    const key = randomUUID();
    const body = { name: 'Raced', type: 'brand' };
    const answers = await Promise.all([here, there, here, there].map((http) => http.post('/clients', body, { key })));
    for (const one of answers) assert.equal(one.status, 200, one.text);
    assert.equal(new Set(answers.map(({ data }) => data.id)).size, 1);
  });

  t('ten targets are published though the active relay, a projector and a sender are killed half way', async () => {
    const hook = await here.post('/webhooks', { url: `http://${receiver.host}/`, events: ['post.*', 'target.*'] });
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

  t('every event of the post reaches the webhook, signed twice, under one id each', async () => {
    const { rows } = await pool.query("select id::text as id from read.posts where status = 'published'");
    const postId = rows[0]?.id;
    const wanted = (type: string) => (type.startsWith('target.') ? platforms.length : 1);
    const types = ['post.created', 'post.scheduled', 'target.scheduled', 'target.published', 'post.published'];
    const own = () => receiver.received.filter(({ data }) => data.postId === postId);
    const idsOf = (type: string) => new Set(own().flatMap((one) => (one.type === type ? [one.id] : [])));
    await until('all of them', async () => types.every((type) => idsOf(type).size >= wanted(type)), 60_000);
    for (const type of types) assert.equal(idsOf(type).size, wanted(type), type);
    assert.ok(own().every(({ standard, service }) => standard && service));
    const { rows: queued } = await until('nothing is queued', async () => {
      const left = await pool.query('select 1 from ops.webhook_queue');
      return left.rowCount === 0 ? left : null;
    });
    assert.deepEqual(queued, []);
  });

  t('those who are left are ready, and the standby relays', async () => {
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
    const read = await until('it is read', async () => {
      const answer = await there.get(`/clients/${made.data.id}`, { headers });
      if (answer.status === 200) return answer;
      assert.equal(answer.body.code, 'unavailable', answer.text);
      assert.match(answer.headers.get('retry-after') ?? '', /^\d+$/);
      return null;
    });
    assert.deepEqual(read.data, made.data);
  });

  t('each drains on SIGTERM within seconds, with exit code 0', async () => {
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
});
