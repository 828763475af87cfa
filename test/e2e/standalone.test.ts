/** Standalone as a person meets it: starts, second starts, Ctrl-C, kill -9, wrong words. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { hash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { livePostmaster } from '#infra/postgres/embedded.ts';
import { joinEmbedded } from '#infra/postgres/join.ts';
import { processFacts } from '#infra/postgres/process-facts.ts';
import { locate } from '#infra/postgres/server-files.ts';
import { platforms } from '#schemas/common.ts';
import { rowsOfRun, withoutTests } from '#test/support/drawing.ts';
import { callerOf } from '#test/support/http.ts';
import { compose, prepare, published, targetsOf, upload } from '#test/support/main-job.ts';
import { slowness } from '#test/support/patience.ts';
import { freePort } from '#test/support/port.ts';
import { dataFolder } from '#test/support/postgres.ts';
import { type Process, printedUrl, run, type StartOptions, start } from '#test/support/processes.ts';
import { afterFile, type Declare, suite } from '#test/support/suite.ts';
import { sparing, until } from '#test/support/until.ts';

const main = 'services/standalone/main.ts';
const folder = dataFolder();
const { dataDir } = folder;

const readyAt = /^Serving/m;
/** From its sources, where how and how fast it starts is looked at. */
const asShipped: StartOptions = { sources: true, readyAt };
const standalone = (options: StartOptions = {}) =>
  start(main, { readyAt, args: ['--data', dataDir, '--port', '0'], ...options });
const baseUrl = (one: Process): string => printedUrl(one.output());
const readySeconds = (one: Process): number => Number(/Ready in ([\d.]+) s/.exec(one.output())?.[1]);
const postmaster = () => livePostmaster(locate(dataDir).cluster)?.pid;
/** Of the analytics engine's process, as long as there is one. */
const enginePid = (): number | undefined => {
  const status = path.join(dataDir, 'analytics/status');
  const pid = existsSync(status) ? Number(/^PID: (\d+)$/m.exec(readFileSync(status, 'utf8'))?.[1]) : Number.NaN;
  return Number.isNaN(pid) || processFacts(pid) === undefined ? undefined : pid;
};
/**
 * Main of a copy of ours where npm found no build of these optional packages for the machine. In the user's cache, and
 * there by our own path: Node's compile cache goes by path, and without it the start takes twice the processor time.
 */
const copyWithout = (...missing: readonly string[]): string => {
  const root = path.resolve(import.meta.dirname, '../..');
  const cache = path.join(process.env.XDG_CACHE_HOME ?? path.join(homedir(), '.cache'), 'postline', 'without');
  const app = path.join(cache, hash('sha256', [root, ...missing].join('\n'), 'hex').slice(0, 16));
  rmSync(app, { recursive: true, force: true });
  mkdirSync(app, { recursive: true });
  afterFile(() => rmSync(app, { recursive: true }));
  for (const one of ['package.json', 'schemas', 'contracts', 'services', 'projections', 'infra'])
    cpSync(path.join(root, one), path.join(app, one), { recursive: true });
  mkdirSync(path.join(app, 'node_modules'));
  for (const one of readdirSync(path.join(root, 'node_modules'))) {
    const [from, to] = [root, app].map((folder) => path.join(folder, 'node_modules', one));
    if (from !== undefined && to !== undefined && !missing.includes(one)) symlinkSync(from, to);
  }
  return path.relative(root, path.join(app, main));
};
const opsUrl = (one: Process, of: string): string =>
  `${/^Health and metrics, for you alone: (\S+)\/readyz/m.exec(one.output())?.[1]}${of}`;
const ready = async (one: Process) => {
  const answer = await fetch(opsUrl(one, '/readyz'));
  return { status: answer.status, body: (await answer.json()) as { checks: { name: string; ok: boolean }[] } };
};

type Figures = Readonly<Record<'followerCount' | 'impressions', number | null>>;
interface Overview {
  readonly totals: Figures;
  readonly byPlatform: readonly Figures[];
}

/** A second, of all processes together: looks that a notification makes needless are few. */
const restingStatements = 15;

suite('standalone', { timeoutMs: 300_000 }, (t) => {
  let first: Process;
  /** Left running for the next test, as a start takes seconds of all processors. */
  let last: Process | undefined;
  /** Of the workspace that the first start made. */
  let testKey = '';
  let liveKey = '';
  /** Token of its Owner. */
  let session = '';
  /** A clip that every network takes. */
  let mediaId = '';
  let before: unknown;

  const get = async (one: Process, key: string, of: string) => callerOf(() => baseUrl(one), key).get(of);
  const publishedCount = async (one: Process): Promise<number> =>
    (await get(one, testKey, '/post-targets?status=published&limit=100')).rows.length;

  const overview = (one: Process) => get(one, testKey, '/analytics/overview');
  const overviewShown = (one: Process, what: string, wanted: (asOf: string | null) => boolean) =>
    until(
      what,
      async () => {
        const answer = await overview(one);
        return answer.status === 200 && wanted(answer.data.asOf as string | null) ? answer.data : null;
      },
      sparing,
    );
  const signIn = async (): Promise<string> => {
    const admin = async (...args: string[]) => {
      const { code, output } = await run('services/admin/main.ts', { args: [...args, '--data', dataDir, '--json'] });
      assert.equal(code, 0, output);
      return JSON.parse(output.split('\n').at(-1) ?? '');
    };
    const all = await admin('workspace', 'list');
    const [owner] = await admin('member', 'list', '--workspace', all[0].workspaceId);
    return (await admin('session', owner.id ?? owner.memberId, '--mode', 'test')).secret;
  };
  /** The Owner asks for fresh figures. */
  const refresh = async (one: Process): Promise<void> => {
    session ||= await signIn();
    const answer = await callerOf(() => baseUrl(one), session).post('/analytics/refresh', {});
    assert.equal(answer.status, 200, answer.text);
  };

  const running = async (): Promise<Process> => {
    if (!last?.running) last = await standalone({ group: true });
    return last;
  };
  const rest = async (): Promise<void> => {
    if (last?.running) assert.equal((await last.stop()).code, 0);
  };
  /** Each takes two or three starts. */
  const drawn = rowsOfRun('troubles of standalone', ['package', 'group', 'npm', 'tour'], String);
  const of = (trouble: string): Declare => (drawn.includes(trouble) ? t : withoutTests(t));

  t.after(() => folder.drop());

  t('--help lists all options; a wrong flag, port or variable is named and ends it with code 2', async () => {
    const help = await run(main, { args: ['--help'] });
    assert.equal(help.code, 0);
    for (const word of ['--port', '--data', '--tour-only', 'DATABASE_URL', 'SECRET_KEY']) {
      assert.ok(help.output.includes(word), word);
    }
    const wrong: readonly (readonly [readonly string[], Record<string, string>, RegExp])[] = [
      [['--prot', '1'], {}, /--prot/],
      [['--port', 'x'], {}, /--port must be a number from 0 to 65535, not "x"/],
      [['--port', '70000'], {}, /--port/],
      [['extra'], {}, /extra/],
      [['--data', dataDir], { LEASE_TTL_MS: 'soon' }, /LEASE_TTL_MS/],
      [['--data', dataDir], { DATABASE_URL: 'mysql://x' }, /DATABASE_URL/],
    ];
    for (const [args, env, words] of rowsOfRun('wrong words', wrong, ([args]) => args.join(' '))) {
      const { code, output } = await run(main, { args, env });
      assert.equal(code, 2, output);
      assert.match(output, words);
      assert.match(output, /--help/);
    }
  });

  t('a first start with --no-tour is empty, serves, and does the main job when it is called', async () => {
    first = await standalone({ ...asShipped, args: ['--data', dataDir, '--port', '0', '--no-tour'], within: 60_000 });
    const output = first.output();
    assert.doesNotMatch(output, /main job/);
    testKey = /sk_test_\S+/.exec(output)?.[0] ?? '';
    liveKey = /sk_live_\S+/.exec(output)?.[0] ?? '';
    assert.deepEqual((await get(first, testKey, '/clients')).rows, []);
    const http = callerOf(() => baseUrl(first), testKey);
    const { clientId } = await prepare(http);
    mediaId = await upload(http);
    await published(http, (await compose(http, clientId, { type: 'now' }, {}, mediaId)).data.id);
    assert.equal(await publishedCount(first), 10);
    before = (await get(first, testKey, '/posts?limit=100')).rows.at(-1);
  });

  t('for operators /readyz names every check and /metrics each thread; callers see neither', async () => {
    const { status, body } = await ready(first);
    assert.equal(status, 200, JSON.stringify(body));
    const names = new Set(body.checks.map(({ name }) => name));
    for (const name of ['store', 'database', 'log', 'projections', 'outcomes']) assert.ok(names.has(name), name);
    const metrics = await (await fetch(opsUrl(first, '/metrics'))).text();
    for (const thread of ['standalone', 'projections', 'outcomes', 'publisher']) {
      assert.match(metrics, new RegExp(`nodejs_eventloop_lag_p99_seconds\\{[^}]*thread="${thread}"`));
    }
    assert.equal(new URL(opsUrl(first, '/')).hostname, '127.0.0.1');
    const ofProxies = body.checks.find(({ name }) => name === 'proxies');
    assert.deepEqual(ofProxies, { name: 'proxies', ok: true });
    await fetch(baseUrl(first), { headers: { 'x-forwarded-for': '203.0.113.9' } });
    const after = (await ready(first)).body.checks.find(({ name }) => name === 'proxies');
    assert.match(JSON.stringify(after), /"ok":true,"detail":"X-Forwarded-For came from .*TRUSTED_PROXIES/);
    const reported = await fetch(baseUrl(first).replace('/v1', '/readyz'));
    assert.deepEqual([reported.status, await reported.json()], [200, { status: 'ready' }]);
    assert.equal((await fetch(baseUrl(first).replace('/v1', '/metrics'))).status, 404);
  });

  t('the embedded engine serves figures, and its death costs at most one answer', async () => {
    await refresh(first);
    // An account that is counted later would take the time back: `asOf` is that of the one whose figures are the oldest.
    const before = await until(
      'figures of each account and of its post',
      async () => {
        const { data, status } = await overview(first);
        if (status !== 200) return null;
        const { byPlatform, totals } = data as unknown as Overview;
        const isSeen = ({ followerCount }: Figures): boolean => followerCount !== null;
        return (
          byPlatform.length === platforms.length && byPlatform.every(isSeen) && totals.impressions !== null && data
        );
      },
      sparing,
    );
    for (let death = 0; death < 2; death += 1) {
      const pid = enginePid();
      assert.ok(pid !== undefined);
      process.kill(pid, 'SIGKILL');
      await until('it died', async () => enginePid() === undefined);
      assert.equal((await get(first, testKey, '/posts?limit=1')).status, 200);
      assert.equal((await ready(first)).status, 200);
      const after = await overviewShown(first, 'figures again', (asOf) => asOf !== null && asOf >= String(before.asOf));
      assert.equal((after.series as unknown[]).length, (before.series as unknown[]).length);
      assert.notEqual(enginePid(), pid);
    }
    assert.ok(first.running);
  });

  t('a second process on the same folder is refused with a message', async () => {
    const second = await run(main, { args: ['--data', dataDir, '--port', '0'] });
    assert.equal(second.code, 1);
    assert.match(second.output, new RegExp(`in use by process ${first.pid}`));
    assert.equal((await ready(first)).status, 200, 'and the first is unharmed');
  });

  t('admin joins the running process and does not stop it', async () => {
    const pid = postmaster();
    const { code, output } = await run('services/admin/main.ts', {
      args: ['key', 'create', '--mode', 'test', '--data', dataDir],
    });
    assert.equal(code, 0, output);
    const key = /sk_test_\S+/.exec(output)?.[0] ?? '';
    assert.equal((await get(first, key, '/agency')).status, 200);
    const before = await overview(first);
    const engine = enginePid();
    const rebuilt = await run('services/admin/main.ts', {
      args: ['rebuild', 'analytics', '--data', dataDir, '--json'],
    });
    assert.equal(rebuilt.code, 0, rebuilt.output);
    const { version, events, observationsBefore, formerTables } = JSON.parse(rebuilt.output.split('\n').at(-1) ?? '');
    assert.deepEqual([version, formerTables], [2, 'dropped']);
    // What a network told last may have been stored and not yet counted when it began.
    assert.ok(observationsBefore > 0 && events >= observationsBefore, rebuilt.output);
    const { asOf, totals } = (await overview(first)).data as unknown as {
      asOf: string;
      totals: { impressions: number };
    };
    const old = before.data as unknown as { asOf: string; totals: { impressions: number } };
    assert.ok(asOf >= old.asOf && totals.impressions >= old.totals.impressions, `${asOf} ${old.asOf}`);
    assert.equal(enginePid(), engine, 'in the engine that is there');
    assert.equal(postmaster(), pid);
    assert.equal((await ready(first)).status, 200);
  });

  t('SIGTERM drains, then stops Postgres, with exit code 0', async () => {
    const ended = await first.stop();
    const log = readFileSync(path.join(dataDir, 'standalone.log'), 'utf8').split('\n').slice(-30).join('\n');
    assert.equal(ended.code, 0, log);
    assert.ok(ended.ms < 10_000, `${ended.ms} ms`);
    assert.equal(postmaster(), undefined);
    assert.equal(enginePid(), undefined);
    assert.equal(existsSync(path.join(dataDir, 'pg.owner')), false);
  });

  t('admin works on the folder without a running process and leaves none running', async () => {
    const { code, output } = await run('services/admin/main.ts', { args: ['workspace', 'list', '--data', dataDir] });
    assert.equal(code, 0, output);
    assert.match(output, /My agency/);
    const rebuilt = await run('services/admin/main.ts', { args: ['rebuild', 'analytics', '--data', dataDir] });
    assert.equal(rebuilt.code, 0, rebuilt.output);
    assert.match(rebuilt.output, /version +3/);
    assert.equal(enginePid(), undefined);
    assert.equal(postmaster(), undefined);
  });

  t('without its secret key or with another one it does not start, and names the file to restore', async () => {
    const file = path.join(dataDir, 'secret.key');
    const key = readFileSync(file, 'utf8');
    const args = ['--data', dataDir, '--port', '0'];
    try {
      rmSync(file);
      for (const [program, words] of [
        [main, args],
        ['services/admin/main.ts', ['secrets', '--data', dataDir]],
      ] as const) {
        const lost = await run(program, { args: words });
        assert.equal(lost.code, 2, lost.output);
        assert.match(lost.output, /secret\.key is gone, and \S+ was made with it: restore the file/);
        assert.equal(existsSync(file), false, 'no new one is made in silence');
      }
      writeFileSync(file, `v1:${randomBytes(32).toString('base64')}\n`);
      const wrong = await run(main, { args });
      assert.equal(wrong.code, 2, wrong.output);
      assert.match(wrong.output, /SECRET_KEY: v1 of \S+secret\.key is not the key v1/);
      assert.equal(postmaster(), undefined);
    } finally {
      writeFileSync(file, key, { mode: 0o600 });
    }
  });

  t('the second start is ready in 3 s, shows no key and keeps everything', async () => {
    const port = await freePort();
    const args = ['--data', dataDir, '--port', String(port)];
    let second = await start(main, { ...asShipped, args });
    const seconds = [readySeconds(second)];
    // One of three: other files have the two cores as well.
    const most = (): number => 3 * slowness();
    let inTime = readySeconds(second) < most();
    while (!inTime && seconds.length < 3) {
      assert.equal((await second.stop()).code, 0);
      second = await start(main, { ...asShipped, args });
      seconds.push(readySeconds(second));
      inTime = readySeconds(second) < most();
    }
    assert.equal(new URL(baseUrl(second)).port, String(port));
    process.stdout.write(`  second start ready in ${seconds.join(', then ')} s\n`);
    assert.ok(!/sk_(test|live)_/.test(second.output()), 'no key is shown again');
    assert.ok(!/main job/.test(second.output()), 'no tour');
    assert.deepEqual((await get(second, testKey, '/posts?limit=100')).rows.at(-1), before);
    assert.equal((await get(second, liveKey, '/agency')).status, 200);
    assert.equal(opsUrl(second, ''), `http://127.0.0.1:${port + 1}`);
    const taken = dataFolder();
    for (const [env, wanted, setting] of [
      [{}, String(port), '--port'],
      [{ OPS_PORT: String(port) }, '0', 'OPS_PORT'],
    ] as const) {
      const refused = await run(main, { env, args: ['--data', taken.dataDir, '--port', wanted] });
      assert.equal(refused.code, 2);
      const words = `Port ${port} of 127.0.0.1 is in use by another program: choose another port with ${setting}`;
      assert.ok(refused.output.includes(words), refused.output);
      assert.doesNotMatch(refused.output, /EADDRINUSE/);
      assert.equal(existsSync(path.join(taken.dataDir, 'pg.password')), false, 'nothing was begun');
    }
    await taken.drop();
    // Its projections run and have looked for what is to be counted; nobody has asked for figures.
    const { status, body } = await ready(second);
    assert.equal(status, 200, JSON.stringify(body));
    assert.ok(body.checks.some(({ name, ok }) => name === 'analytics' && ok));
    assert.equal(enginePid(), undefined, 'an idle one needs no engine, and its memory');
    const joined = await joinEmbedded(dataDir);
    const pool = new pg.Pool({ connectionString: joined.url, max: 1 });
    // One transaction each, ours too. They are counted as they are flushed, so over some seconds.
    const counted = async (): Promise<number> => {
      const { rows } = await pool.query(
        'select xact_commit::int as n from pg_stat_database where datname = current_database()',
      );
      return rows[0].n;
    };
    let perSecond = Number.NaN;
    await until(
      'it asks Postgres little while nothing comes',
      async () => {
        const [from, begun] = [await counted(), performance.now()];
        await new Promise((resolve) => setTimeout(resolve, 5_000));
        perSecond = ((await counted()) - from) / ((performance.now() - begun) / 1_000);
        return perSecond <= restingStatements;
      },
      { withinMs: 40_000 },
    ).finally(() => process.stdout.write(`  ${perSecond.toFixed(1)} statements a second at rest\n`));
    await pool.end();
    await joined.stop();
    assert.equal((await second.stop()).code, 0);
    assert.ok(inTime, `ready in ${seconds.join(', then ')} s`);
  });

  of('package')(
    'without the engine’s package figures answer 503 and the rest works; with it they catch up',
    async () => {
      const copy = copyWithout('chdb', '@chdb');
      const args = ['--data', dataDir, '--port', '0'];
      const lacking = await start(copy, { ...asShipped, args });
      const http = callerOf(() => baseUrl(lacking), testKey);
      const refused = await overview(lacking);
      assert.deepEqual([refused.status, refused.body.code], [503, 'unavailable']);
      assert.ok(Number(refused.headers.get('retry-after')) > 0);
      const { clientId } = await prepare(http, { name: 'No figures', usernames: {} });
      const post = await compose(http, clientId, { type: 'now' }, {}, mediaId);
      await published(http, post.data.id);
      await refresh(lacking);
      assert.equal((await overview(lacking)).status, 503);
      const { status, body } = await ready(lacking);
      assert.equal(status, 200, JSON.stringify(body));
      assert.equal((await lacking.stop()).code, 0);
      assert.match(readFileSync(path.join(dataDir, 'standalone.log'), 'utf8'), /engine does not start: .*'chdb'/);
      const complete = await running();
      await until(
        'its figures',
        async () => {
          const { data } = await get(complete, testKey, `/analytics/posts/${post.data.id}`);
          return data?.fetchedAt !== null && data?.fetchedAt !== undefined;
        },
        sparing,
      );
    },
  );

  t('after kill -9 the next start adopts Postgres and keeps everything', async () => {
    const killed = await running();
    const pid = postmaster();
    assert.ok(pid !== undefined);
    await killed.kill();
    assert.equal(postmaster(), pid, 'Postgres outlives us');
    const next = await standalone({ group: true });
    assert.equal(postmaster(), pid, 'the same Postgres');
    assert.deepEqual((await get(next, testKey, '/posts?limit=100')).rows.at(-1), before);
    assert.ok((await publishedCount(next)) >= 10);
    last = next;
  });

  of('group')('Ctrl-C on the whole group drains before Postgres ends, also one that it has adopted', async () => {
    const one = await running();
    const pid = postmaster() ?? 0;
    // Work in flight: a post whose targets are being published when the signal comes.
    const http = callerOf(() => baseUrl(one), testKey);
    const { clientId } = await prepare(http, { name: 'In flight', usernames: {} });
    const post = await compose(http, clientId, { type: 'now' }, {}, mediaId);
    one.signal('SIGINT');
    one.signal('SIGINT');
    const { code, ms } = await one.exited();
    assert.equal(code, 0, one.output());
    assert.ok(ms < 10_000, `${ms} ms`);
    assert.equal(processFacts(pid), undefined, 'Postgres is stopped');
    const log = readFileSync(path.join(dataDir, 'standalone.log'), 'utf8').trim().split('\n').slice(-40).join('\n');
    assert.ok(!/"level":(50|60)/.test(log), log);
    assert.ok(!/terminating connection|Connection terminated/.test(log), log);
    const server = readFileSync(path.join(dataDir, 'pg.log'), 'utf8').trim().split('\n').slice(-12).join('\n');
    assert.match(server, /database system is shut down/);
    assert.ok(!/was not properly shut down/.test(server), server);
    const next = await running();
    const after = callerOf(() => baseUrl(next), testKey);
    await published(after, post.data.id);
    // The post's own row may be shown before the rows of its targets.
    await until(
      'all ten are shown',
      async () =>
        targetsOf(await after.get(`/posts/${post.data.id}`)).filter(({ status }) => status === 'published').length ===
        10,
    );
    assert.equal((await next.stop()).code, 0);
  });

  of('npm')('after kill -9 of npm start standalone drains and ends, Postgres too', async () => {
    await rest();
    const npm = spawn('npm', ['start', '--silent', '--', '--data', dataDir, '--port', '0'], {
      cwd: path.resolve(import.meta.dirname, '../..'),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    npm.stdout.on('data', (text) => {
      output += String(text);
    });
    const ended = once(npm, 'close');
    await until('it serves', async () => /^Serving/m.test(output), { withinMs: 60_000 });
    const pid = postmaster() ?? 0;
    assert.ok(processFacts(pid) !== undefined);
    npm.kill('SIGKILL');
    // Its output ends with the last of them.
    await ended;
    assert.match(output, /Draining/);
    assert.equal(processFacts(pid), undefined, 'Postgres is stopped');
    assert.equal(existsSync(path.join(dataDir, 'pg.owner')), false);
    const log = readFileSync(path.join(dataDir, 'standalone.log'), 'utf8').trim().split('\n');
    assert.match(log.at(-1) ?? '', /"msg":"stopped"/);
  });

  of('tour')('Ctrl-C in the middle of a tour drains: of the first one, and of one that --tour asks for', async () => {
    await rest();
    const fresh = dataFolder();
    for (const args of [
      ['--data', fresh.dataDir],
      ['--data', dataDir, '--tour'],
    ]) {
      const one = await start(main, { args: [...args, '--port', '0'], readyAt: /client created/, group: true });
      one.signal('SIGINT');
      const { code } = await one.exited();
      assert.equal(code, 0, one.output());
      assert.match(one.output(), /Draining/);
      assert.ok(!/aborted|The log says more|Serving/.test(one.output()), one.output());
      assert.equal(livePostmaster(locate(args[1] ?? '').cluster), undefined);
    }
    await fresh.drop();
  });

  t('the log has no secret', async () => {
    await rest();
    const log = readFileSync(path.join(dataDir, 'standalone.log'), 'utf8');
    const secrets = [
      testKey,
      liveKey,
      readFileSync(path.join(dataDir, 'secret.key'), 'utf8').trim().slice(3),
      readFileSync(path.join(dataDir, 'pg.password'), 'utf8').trim(),
    ];
    for (const secret of secrets) {
      assert.ok(secret.length > 20);
      assert.ok(!log.includes(secret), 'a secret is in the log');
    }
    await until('the log has lines', async () => log.split('\n').length > 50);
  });
});
