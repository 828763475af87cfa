import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import pg from 'pg';
import { createLogger, createRegistry, opsAnswer, Readiness, serveOps } from '#runtime/process/telemetry.ts';
import { patience } from '#test/support/patience.ts';
import { testDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';

const canary = 'canary-4711';
/** In a stack: this file, or the bundle of a run that has it. */
const thisFile = /(telemetry\.test|tests)\.m?[jt]s:\d+/;
const anyPort = { host: '127.0.0.1', port: 0, setting: 'OPS_PORT' };

suite('log', (t) => {
  let dir = '';
  t.before(() => {
    dir = mkdtempSync(path.join(tmpdir(), 'postline-log-'));
  });
  t.after(() => rmSync(dir, { recursive: true, force: true }));

  const logged = (write: (logger: ReturnType<typeof createLogger>) => void): Record<string, unknown>[] => {
    const file = path.join(dir, `${Math.random()}.log`);
    const logger = createLogger('api', 'info', file);
    write(logger);
    logger.flush();
    const text = readFileSync(file, 'utf8');
    return text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
  };

  t('has lines of JSON with time, process and message', () => {
    const at = new Date();
    const [line] = logged((logger) => {
      logger.debug('not this');
      logger.info({ correlationId: 'c1', at, nothing: null, list: [1, { two: 2 }] }, 'ready');
    });
    match(String(line?.time), /^\d{4}-\d\d-\d\dT.*Z$/);
    const { time: _time, level: _level, ...rest } = line ?? {};
    deepEqual(rest, {
      name: 'api',
      correlationId: 'c1',
      at: at.toISOString(),
      nothing: null,
      list: [1, { two: 2 }],
      msg: 'ready',
    });
  });

  t(
    'shows no member that could hold a secret, at any depth, in any spelling, in lists, errors and their causes',
    () => {
      const names = [
        'authorization',
        'Authorization',
        'token',
        'accessToken',
        'refresh_token',
        'secret',
        'webhookSecret',
        'password',
        'key',
        'apiKey',
        'api-key',
        'secretKey',
        'clickhouseUrl',
        'ESDB_URL',
        's3SecretAccessKey',
        'S3_ACCESS_KEY_ID',
        'credentials',
        'cookie',
        'Set-Cookie',
        'databaseUrl',
      ];
      const secrets = Object.fromEntries(names.map((name) => [name, canary]));
      const error = Object.assign(new Error('refused'), { request: { headers: { ...secrets } }, ...secrets });
      const lines = logged((logger) => {
        logger.info(secrets, 'flat');
        logger.info({ a: { b: { c: { d: { ...secrets } } } } }, 'deep');
        logger.info({ list: [[{ ...secrets }]] }, 'list');
        logger.info({ token: { inside: canary } }, 'whole');
        logger.error({ err: error }, 'error');
        logger.error(error);
        logger.error({ err: new AggregateError([error], 'many', { cause: error }) }, 'many');
        logger.child({ ...secrets, requestId: 'r' }).info('child');
        logger.info({ config: { secretKey: `v1:${canary}` } }, 'config');
      });
      equal(lines.length, 9);
      ok(!JSON.stringify(lines).includes(canary), JSON.stringify(lines, null, 1));
      equal(lines[7]?.requestId, 'r');
      const shown = lines[4]?.err as Record<string, unknown>;
      equal(shown.message, 'refused');
      match(String(shown.stack), thisFile);
    },
  );

  t('shows code and constraint of a Postgres error, but no value of the row, however deep in causes', async () => {
    const { url, drop } = await testDatabase();
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const refused = (statement: string): Promise<Error> =>
      client.query(statement).then(
        () => Promise.reject(new Error('it was taken')),
        (error: Error) => error,
      );
    try {
      await client.query('create table people (name text unique, age int check (age > 0))');
      await client.query(`insert into people values ('${canary}', 1)`);
      const errors = [
        await refused(`insert into people values ('${canary}', 1)`),
        await refused(`insert into people values ('${canary}-2', -1)`),
        await refused(`select '${canary}'::uuid`),
        await refused(`select 'a"${canary}"b'::json`),
        await refused(`do $$ begin execute 'select ''${canary}''::int'; end $$`),
      ];
      const lines = logged((logger) => {
        for (const error of errors) {
          logger.error({ err: error }, 'failed');
          logger.error({ err: new Error('outer', { cause: new Error('inner', { cause: error }) }) }, 'wrapped');
          logger.error({ err: new AggregateError([error, new Error('other', { cause: error })], 'many') }, 'many');
          logger.error({ failure: { ...error } }, 'spread');
          logger.child({ err: error }).error('bound');
          logger.error(error);
        }
      });
      equal(lines.length, 6 * errors.length);
      ok(!JSON.stringify(lines).includes(canary), JSON.stringify(lines, null, 1));
      const [first, third] = [lines[0], lines[12]].map((line) => line?.err as Record<string, unknown> | undefined);
      deepEqual([first?.code, first?.constraint, first?.detail], ['23505', 'people_name_key', '…']);
      match(String(first?.message), /duplicate key value violates unique constraint "people_name_key"/);
      match(String(third?.message), /invalid input syntax for type uuid: "…"/);
      match(String(third?.stack), thisFile);
    } finally {
      await client.end();
      await drop();
    }
  });

  t('logs circular values', () => {
    const self: Record<string, unknown> = { name: 'loop' };
    self.self = self;
    equal(logged((logger) => logger.info({ self }, 'round'))[0]?.msg, 'round');
  });
});

suite('readiness', (t) => {
  t('runs every check at each request', async () => {
    const readiness = new Readiness();
    deepEqual(await readiness.ask(), []);
    let well = false;
    readiness.add('store', async () => null);
    readiness.add('log', async () => {
      if (!well) throw new Error('no broker');
      return 'lag 3';
    });
    deepEqual(await readiness.ask(), [
      { name: 'store', ok: true },
      { name: 'log', ok: false, detail: 'no broker' },
    ]);
    well = true;
    deepEqual((await readiness.ask())[1], { name: 'log', ok: true, detail: 'lag 3' });
  });

  t('does not wait for a check that does not answer', async () => {
    const readiness = new Readiness();
    readiness.add('stuck', () => new Promise(() => {}));
    const [check] = await readiness.ask();
    equal(check?.ok, false);
    match(check?.detail ?? '', /no answer within/);
  });
});

/** Status of a request with exactly this target. */
const statusOf = (port: number, target: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(`GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`));
    socket.once('data', (text) => {
      resolve(Number(String(text).split(' ')[1]));
      socket.destroy();
    });
    socket.once('close', () => reject(new Error(`no answer to ${target}`)));
    socket.once('error', reject);
  });

suite('ops server', (t) => {
  t('answers /livez, /readyz and /metrics, and nothing else', async () => {
    const readiness = new Readiness();
    let well = true;
    readiness.add('store', async () => {
      if (!well) throw new Error('away');
      return null;
    });
    const registry = createRegistry('worker');
    const report = { checks: () => readiness.ask(), metrics: async () => [await registry.getMetricsAsJSON()] };
    const { port, server } = await serveOps(anyPort, report);
    const get = async (url: string) => {
      const response = await fetch(`http://127.0.0.1:${port}${url}`, { headers: { connection: 'close' } });
      return { status: response.status, type: response.headers.get('content-type'), body: await response.text() };
    };
    try {
      equal((await get('/livez')).status, 200);
      const ready = await get('/readyz?verbose');
      equal(ready.status, 200);
      deepEqual(JSON.parse(ready.body), {
        ...{ status: 'ready', version: '1.0.0' },
        checks: [{ name: 'store', ok: true }],
      });
      well = false;
      const not = await get('/readyz');
      equal(not.status, 503);
      deepEqual(JSON.parse(not.body), {
        ...{ status: 'not_ready', version: '1.0.0' },
        checks: [{ name: 'store', ok: false, detail: 'away' }],
      });
      equal((await get('/livez')).status, 200);
      const metrics = await get('/metrics');
      match(metrics.type ?? '', /^text\/plain/);
      match(metrics.body, /^nodejs_eventloop_lag_p99_seconds\{thread="worker"\}/m);
      equal((await get('/')).status, 404);
      equal((await get('/metrics/x')).status, 404);
      // Targets that are no path: one of them must not end the process.
      for (const target of ['//', 'http://[', '*', '/\\']) equal(await statusOf(port, target), 404, target);
      equal((await get('/livez')).status, 200);
    } finally {
      await new Promise((resolve) => server.close(resolve));
      registry.clear();
    }
  });

  t('disconnects a caller that reads no answer', async () => {
    const body = 'x'.repeat(100_000);
    const report = { checks: async () => [{ name: body, ok: true }], metrics: async () => [] };
    const { port, server } = await serveOps(anyPort, report, 200);
    const deaf = connect(port, '127.0.0.1');
    deaf.on('error', () => undefined).pause();
    deaf.write('GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(500));
    try {
      const [held] = (await once(server, 'connection')) as [Socket];
      const deadline = performance.now() + 5_000 * patience;
      while (!held.destroyed && performance.now() < deadline) await turn();
      ok(held.destroyed, 'it is held for good');
    } finally {
      deaf.destroy();
      await new Promise((resolve) => server.close(resolve));
    }
  });

  t('close answers running requests and does not wait for idle connections', async () => {
    const asked = Promise.withResolvers<void>();
    const closed = Promise.withResolvers<[]>();
    const { port, server } = await serveOps(anyPort, {
      checks: () => {
        asked.resolve();
        return closed.promise;
      },
      metrics: async () => [],
    });
    const prober = connect(port, '127.0.0.1');
    prober.write('GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n');
    prober.setEncoding('utf8');
    try {
      await asked.promise;
      const ended = once(server, 'close', { signal: AbortSignal.timeout(5_000) });
      server.close();
      closed.resolve([]);
      const [answer] = await once(prober, 'data');
      match(String(answer), /^HTTP\/1\.1 200 /);
      await ended;
    } finally {
      prober.destroy();
      server.close();
    }
  });

  t('merges the metrics of several threads', async () => {
    const registries = [createRegistry('one'), createRegistry('two')];
    const answer = await opsAnswer('/metrics', {
      checks: async () => [],
      metrics: () => Promise.all(registries.map((one) => one.getMetricsAsJSON())),
    });
    match(answer?.body ?? '', /thread="one"/);
    match(answer?.body ?? '', /thread="two"/);
    for (const one of registries) one.clear();
  });

  t('answers 500 when the report fails, and continues', async () => {
    const { port, server } = await serveOps(anyPort, {
      checks: () => Promise.reject(new Error(canary)),
      metrics: async () => [],
    });
    try {
      const response = await fetch(`http://127.0.0.1:${port}/readyz`, { headers: { connection: 'close' } });
      equal(response.status, 500);
      equal(await response.text(), 'failed');
      const live = await fetch(`http://127.0.0.1:${port}/livez`, { headers: { connection: 'close' } });
      equal(live.status, 200);
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });
});
