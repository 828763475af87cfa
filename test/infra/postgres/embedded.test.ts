/** The embedded server through every way it can be found: absent, running under a dead starter, killed, half made. */

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import pg from 'pg';
import { isStalled, livePostmaster, startEmbedded } from '#infra/postgres/embedded.ts';
import { formerClusters } from '#infra/postgres/former-clusters.ts';
import { childrenOf } from '#infra/postgres/process-facts.ts';
import { serverFolder } from '#test/support/postgres.ts';
import { run } from '#test/support/processes.ts';
import { afterFile, suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

function newFolder(): string {
  const { dataDir, drop } = serverFolder();
  afterFile(drop);
  return dataDir;
}

const clusterOf = (dataDir: string) => {
  const note = path.join(dataDir, 'pg.location');
  return path.join(existsSync(note) ? readFileSync(note, 'utf8').trim() : dataDir, 'cluster');
};

async function ask(url: string, statement: string): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await client.query(statement);
  } finally {
    await client.end();
  }
}

const answers = (url: string): Promise<boolean> =>
  ask(url, 'SELECT 1').then(
    () => true,
    () => false,
  );

/** Another process that starts the server of the folder, holds a lock in an open transaction, and waits. */
async function starter(dataDir: string): Promise<{ child: ChildProcess; url: string; pid: number }> {
  const program = `
    import pg from 'pg';
    const { startEmbedded } = await import('#infra/postgres/embedded.ts');
    const server = await startEmbedded({ dataDir: process.argv[1] });
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    await client.query('CREATE TABLE IF NOT EXISTS kept (n int); INSERT INTO kept VALUES (1)');
    await client.query('BEGIN; LOCK TABLE kept IN ACCESS EXCLUSIVE MODE');
    console.log(JSON.stringify({ url: server.url, pid: server.pid }));
    process.stdin.resume().on('end', () => process.exit());`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program, dataDir], {
    cwd: import.meta.dirname,
    // A group of its own, for Ctrl-C; it ends with its input, so it never outlives us.
    detached: true,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const line = await new Promise<string>((resolve, reject) => {
    child.stdout?.once('data', (chunk) => resolve(String(chunk)));
    child.once('exit', (code) => reject(new Error(`the starter ended with ${code}`)));
  });
  return { child, ...JSON.parse(line) };
}

const ended = (child: ChildProcess) => new Promise<void>((resolve) => child.once('exit', () => resolve()));

suite('embedded postgres', { drawn: true, costs: 17 }, (t) => {
  t('starts with durable settings on loopback alone; a second start has its data', async () => {
    const dataDir = newFolder();
    const steps: string[] = [];
    const first = await startEmbedded({ dataDir, onProgress: (step) => steps.push(step) });
    assert.equal(first.adopted, false);
    assert.match(steps.join(), /creating the database cluster/);
    const names = [
      ...['fsync', 'synchronous_commit', 'full_page_writes', 'listen_addresses', 'unix_socket_directories'],
      'scram_iterations',
    ];
    const { rows } = await ask(first.url, `SELECT ${names.map((name) => `current_setting('${name}') "${name}"`)}`);
    assert.deepEqual(Object.values(rows[0]), ['on', 'on', 'on', '127.0.0.1', '', '4096']);
    const { rows: roles } = await ask(first.url, "SELECT rolpassword FROM pg_authid WHERE rolname = 'postline'");
    assert.match(roles[0].rolpassword, /^SCRAM-SHA-256\$1:/);
    assert.equal(statSync(path.join(dataDir, 'pg.password')).mode & 0o777, 0o600);
    await assert.rejects(ask(first.url.replace(/:[0-9a-f]{48}@/, ':wrong@'), 'SELECT 1'), { code: '28P01' });
    await ask(first.url, 'CREATE TABLE kept AS SELECT 42 AS n');
    await first.stop();
    await first.stop();
    assert.equal(livePostmaster(clusterOf(dataDir)), undefined);

    const second = await startEmbedded({ dataDir });
    assert.deepEqual((await ask(second.url, 'SELECT n FROM kept')).rows, [{ n: 42 }]);
    await second.stop();
  });

  t('the log of the server is rotated by size and count, at a start and while it runs', async () => {
    const dataDir = newFolder();
    const log = path.join(dataDir, 'pg.log');
    writeFileSync(log, 'a long one of an earlier start\n'.repeat(100));
    const server = await startEmbedded({ dataDir, log: { bytes: 2_000, files: 2 }, logLookMs: 20 });
    const first = readFileSync(`${log}.1`, 'utf8');
    assert.match(first, /^a long one/);
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    const deadline = performance.now() + 20_000;
    for (let n = 0; !existsSync(`${log}.2`) || readFileSync(`${log}.2`, 'utf8') === first; n += 1) {
      assert.ok(performance.now() < deadline, 'it is not put aside');
      await client.query(`SELECT missing_${n}`).catch(() => undefined);
    }
    await client.query('SELECT missing_at_last').catch(() => undefined);
    const text = ['.2', '.1', ''].map((end) => (existsSync(log + end) ? readFileSync(log + end, 'utf8') : '')).join('');
    const seen = [...text.matchAll(/STATEMENT: +SELECT missing_(\d+)/g)].map(([, n]) => Number(n));
    // What the server writes in the very instant of a cut may be lost; three cuts are in what is kept.
    const whole = (seen.at(-1) ?? 0) - (seen[0] ?? 0) + 1;
    assert.ok(seen.length > 20 && whole - seen.length <= 6, `${whole - seen.length} of ${whole} are lost`);
    assert.equal(new Set(seen).size, seen.length, 'none is doubled');
    assert.match(text, /missing_at_last/);
    assert.ok(!readFileSync(log).includes(0), 'the server appends, it leaves no hole');
    assert.equal(existsSync(`${log}.3`), false);
    await client.end();
    await server.stop();
  });

  t('a second process is refused while the first runs, and the first continues', async () => {
    const dataDir = newFolder();
    const server = await startEmbedded({ dataDir });
    await assert.rejects(startEmbedded({ dataDir }), /in use by process/);
    assert.equal((await ask(server.url, 'SELECT 1')).rowCount, 1);
    await server.stop();
  });

  t('after kill -9 of the starter the next start adopts its server and frees the locks it held', async () => {
    const dataDir = newFolder();
    const dead = await starter(dataDir);
    dead.child.kill('SIGKILL');
    await ended(dead.child);
    const server = await startEmbedded({ dataDir });
    assert.equal(server.adopted, true);
    assert.equal(server.pid, dead.pid);
    await ask(server.url, `SET lock_timeout = '5s'; SELECT * FROM kept`);
    await server.stop();
    assert.equal(livePostmaster(clusterOf(dataDir)), undefined);
  });

  t('Ctrl-C on the group of the starter leaves the server up', async () => {
    const dataDir = newFolder();
    const { child, pid } = await starter(dataDir);
    assert.ok(child.pid);
    process.kill(-child.pid, 'SIGINT');
    await ended(child);
    // A server told to end would refuse a connection at once: adoption proves that it was not.
    const server = await startEmbedded({ dataDir });
    assert.deepEqual([server.adopted, server.pid], [true, pid]);
    await server.stop();
  });

  t('a server killed with -9 recovers what was committed', async () => {
    const dataDir = newFolder();
    const first = await startEmbedded({ dataDir });
    await ask(first.url, 'CREATE TABLE kept AS SELECT generate_series(1, 1000) AS n');
    process.kill(first.pid, 'SIGKILL');
    await first.stop();
    const second = await startEmbedded({ dataDir, port: first.port });
    assert.equal(second.port, first.port);
    assert.deepEqual((await ask(first.url, 'SELECT count(*)::int AS n FROM kept')).rows, [{ n: 1000 }]);
    await second.stop();
  });

  t('a server that ends by itself is started again as soon as possible; after stop it stays down', async () => {
    const dataDir = newFolder();
    const reported: string[] = [];
    const server = await startEmbedded({ dataDir, onTrouble: (line) => reported.push(line) });
    assert.equal(server.trouble(), null);
    const missing = path.join(clusterOf(dataDir), 'PG_VERSION');
    const endIt = async (): Promise<void> => {
      renameSync(missing, `${missing}.away`);
      process.kill(livePostmaster(clusterOf(dataDir))?.pid ?? assert.fail('it does not run'), 'SIGKILL');
      await until('it does not come up', async () => server.trouble()?.includes('does not come up'));
    };
    await endIt();
    assert.equal(reported.length, 2, 'the tries that follow are not told');
    assert.match(server.trouble() ?? '', /is tried again: "\S+" is not a valid data directory$/);
    renameSync(`${missing}.away`, missing);
    await until('it runs again', async () => server.trouble() === null);
    assert.equal(reported.at(-1), 'The embedded Postgres runs again.');
    assert.equal((await ask(server.url, 'SELECT 1')).rowCount, 1);
    await endIt();
    await server.stop();
    renameSync(`${missing}.away`, missing);
    assert.equal(livePostmaster(clusterOf(dataDir)), undefined);
    assert.equal(existsSync(path.join(dataDir, 'pg.owner')), false);
  });

  /** Its own way into a state in which it lives and takes no connection: it was asked to end when nobody is connected. */
  const stall = async (dataDir: string, url: string): Promise<pg.Client> => {
    const connected = new pg.Client({ connectionString: url });
    connected.on('error', () => undefined);
    await connected.connect();
    process.kill(livePostmaster(clusterOf(dataDir))?.pid ?? assert.fail('it does not run'), 'SIGTERM');
    const refused = async () => (await ask(url, 'SELECT 1').catch(({ code }) => code)) === '57P03';
    await until('it takes no connection', refused);
    return connected;
  };

  t('a server that lives, takes no connection and does not recover is ended and started again', async () => {
    const dataDir = newFolder();
    const reported: string[] = [];
    const server = await startEmbedded({ dataDir, onTrouble: (line) => reported.push(line) });
    const connected = await stall(dataDir, server.url);
    await until('it answers', () => answers(server.url));
    // It answers before its keeper has looked.
    await until('it is reported', () => reported.length > 1);
    assert.match(
      reported.join('\n'),
      /takes no connections and does not recover.*\nThe embedded Postgres runs again\.$/,
    );
    await connected.end().catch(() => undefined);
    await server.stop();
  });

  t('a start finds such a server of a process that is gone, and starts it again', async () => {
    const dataDir = newFolder();
    const first = await startEmbedded({ dataDir });
    const connected = await stall(dataDir, first.url);
    rmSync(path.join(dataDir, 'pg.owner'));
    const second = await startEmbedded({ dataDir });
    assert.equal(second.adopted, false);
    assert.equal((await ask(second.url, 'SELECT 1')).rowCount, 1);
    await connected.end().catch(() => undefined);
    await second.stop();
  });

  t('a server that recovers is not taken for one that does not, however long it takes', async () => {
    const dataDir = newFolder();
    const server = await startEmbedded({ dataDir });
    const pid = livePostmaster(clusterOf(dataDir))?.pid ?? assert.fail('it does not run');
    const child = (kind: string) =>
      childrenOf(pid)?.find(({ command }) => command.startsWith(`postgres: ${kind}`))?.pid ?? null;
    // Enough to redo that the process which does it is seen, and stopped in the middle.
    await ask(server.url, 'CREATE TABLE long AS SELECT generate_series(1, 2000000) AS n');
    process.kill(child('walwriter') ?? assert.fail('no writer'), 'SIGKILL');
    const recovering = await until('it recovers', () => child('startup'), { everyMs: 1 });
    process.kill(recovering, 'SIGSTOP');
    const refusal: unknown = await ask(server.url, 'SELECT 1').catch((error) => error);
    assert.deepEqual([(refusal as pg.DatabaseError).code, isStalled(pid, refusal)], ['57P03', false]);
    process.kill(recovering, 'SIGCONT');
    await until('it answers', () => answers(server.url));
    assert.equal(isStalled(pid, undefined), false);
    await server.stop();
  });

  t('a half-made cluster and the note of a dead process do not prevent a start', async () => {
    const dataDir = newFolder();
    mkdirSync(path.join(dataDir, 'cluster.half-made'));
    writeFileSync(path.join(dataDir, 'pg.owner'), '999999999 long ago\n');
    const server = await startEmbedded({ dataDir, durable: false });
    assert.equal(existsSync(path.join(dataDir, 'cluster.half-made')), false);
    // Not where data is thrown away either: who can connect can run programs as the user of the server.
    for (const wrong of [':wrong@', '@'])
      await assert.rejects(ask(server.url.replace(/:[0-9a-f]{48}@/, wrong), 'SELECT 1'));
    await server.stop();
    // After a reboot the number in the server's note may be anybody's, here our own.
    writeFileSync(path.join(clusterOf(dataDir), 'postmaster.pid'), `${process.pid}\n${clusterOf(dataDir)}\n0\n5432\n`);
    const again = await startEmbedded({ dataDir });
    assert.equal(again.adopted, false);
    await again.stop();
  });

  t('a start without the password file fails and names the file', async () => {
    const dataDir = newFolder();
    await (await startEmbedded({ dataDir })).stop();
    rmSync(path.join(dataDir, 'pg.password'));
    await assert.rejects(startEmbedded({ dataDir }), /pg\.password is gone/);
    assert.equal(existsSync(path.join(dataDir, 'pg.owner')), false);
  });

  if (process.getuid?.() === 0) {
    t('as root, under a closed folder, the cluster goes to /var/lib/postline and pg.location names it', async () => {
      const dataDir = newFolder();
      chmodSync(dataDir, 0o700);
      const server = await startEmbedded({ dataDir });
      const home = readFileSync(path.join(dataDir, 'pg.location'), 'utf8').trim();
      assert.match(home, /^\/var\/lib\/postline\/[0-9a-f]{16}$/);
      assert.equal((await ask(server.url, 'SHOW data_directory')).rows[0].data_directory, path.join(home, 'cluster'));
      await server.stop();
      const again = await startEmbedded({ dataDir });
      assert.equal(again.adopted, false);
      await again.stop();
    });

    t(
      'as root, a removed folder starts an empty cluster; the old one is kept, listed, and deleted on demand',
      async () => {
        const dataDir = newFolder();
        chmodSync(dataDir, 0o700);
        const first = await startEmbedded({ dataDir });
        const home = readFileSync(path.join(dataDir, 'pg.location'), 'utf8').trim();
        await ask(first.url, 'CREATE TABLE kept AS SELECT 42 AS n');
        // As after a kill -9: the server outlives its folder.
        rmSync(dataDir, { recursive: true });
        mkdirSync(dataDir, { mode: 0o700 });
        writeFileSync(path.join(dataDir, 'secret.key'), 'standalone makes it first');
        const steps: string[] = [];
        const second = await startEmbedded({ dataDir, onProgress: (step) => steps.push(step) });
        const mine = () => formerClusters().filter(({ dataFolder }) => dataFolder === dataDir);
        const [former, ...more] = mine();
        assert.ok(former !== undefined && more.length === 0);
        assert.ok(
          steps.some((step) => step.includes(former.path)),
          steps.join('\n'),
        );
        assert.equal(path.dirname(former.path), home);
        assert.ok(former.bytes > 1_000_000 && Math.abs(Date.now() - Date.parse(former.movedAt)) < 120_000);
        const { rows } = await ask(second.url, "SELECT to_regclass('kept') AS kept");
        assert.equal(rows[0].kept, null, 'it is another database');
        await ask(second.url, 'CREATE TABLE kept AS SELECT 43 AS n');
        await second.stop();

        const third = await startEmbedded({ dataDir });
        assert.deepEqual((await ask(third.url, 'SELECT n FROM kept')).rows, [{ n: 43 }]);
        assert.equal(mine().length, 1, 'a folder that is not new puts nothing aside');
        await third.stop();
        rmSync(path.join(dataDir, 'pg.password'));
        await assert.rejects(startEmbedded({ dataDir }), /pg\.password is gone/);

        const admin = (...args: string[]) => run('services/admin/main.ts', { args });
        const listed = await admin('data', 'list', '--json');
        assert.ok(listed.output.includes(former.name), listed.output);
        for (const wrong of ['../../etc', `${path.basename(home)}/cluster`, `${path.basename(home)}/former-1`]) {
          const refused = await admin('data', 'remove', wrong);
          assert.ok(refused.code === 1 || refused.code === 2, refused.output);
        }
        assert.ok(existsSync(former.path) && existsSync(path.join(home, 'cluster')));
        assert.equal((await admin('data', 'remove', former.name)).code, 0);
        assert.ok(!existsSync(former.path) && existsSync(path.join(home, 'cluster')));
      },
    );
  }

  t('without the optional package the error names DATABASE_URL', async () => {
    // A copy of the module where no node_modules is above it stands for an installation without the package.
    const bare = newFolder();
    const source = path.resolve(import.meta.dirname, '../../../infra/postgres/server-files.ts');
    writeFileSync(path.join(bare, 'package.json'), '{"type":"module"}');
    writeFileSync(path.join(bare, 'server-files.ts'), readFileSync(source));
    const program = `import(process.argv[1]).then((m) => m.locate(process.argv[2])).catch((e) => console.log(e.message))`;
    const child = spawn(process.execPath, ['-e', program, path.join(bare, 'server-files.ts'), bare], { stdio: 'pipe' });
    assert.match(await text(child.stdout), /not installed.*DATABASE_URL/);
  });
});
