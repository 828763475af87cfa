import { deepEqual, equal } from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Koa from 'koa';
import type { Check } from '#runtime/process/telemetry.ts';
import { health } from '#services/api/start.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

suite('health as callers see it', (t) => {
  let asked = 0;
  let checks: () => Promise<readonly Check[]> = async () => [];
  const report = {
    checks: () => {
      asked += 1;
      return checks();
    },
    metrics: async () => [],
  };
  const app = new Koa().use(health(report));
  const server = createServer(app.callback());
  const get = async (path: string, method = 'GET') => {
    const { port } = server.address() as AddressInfo;
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method });
    return [answer.status, await answer.text()];
  };
  t.before(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)));
  t.after(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const notReady = [503, '{"status":"not_ready"}'];
  const ready = [200, '{"status":"ready"}'];

  t('answers ready or not, without the reason; however many callers ask, each dependency is checked once', async () => {
    const { promise: answered, resolve: answer } = Promise.withResolvers<readonly Check[]>();
    checks = () => answered;
    const waiting = Array.from({ length: 50 }, () => get('/readyz'));
    await until('the parts are asked', async () => asked > 0);
    // Alive while its parts are silent.
    deepEqual(await get('/livez'), [200, '{"status":"alive"}']);
    answer([{ name: 'database', ok: false, detail: 'connect ECONNREFUSED 10.1.2.3:5432' }]);
    for (const reported of await Promise.all(waiting)) deepEqual(reported, notReady);
    equal(asked, 1);
    checks = async () => [{ name: 'database', ok: true }];
    deepEqual(await get('/readyz'), notReady, 'the answer stands for a second');
    equal(asked, 1);
    await until('it asks again', async () => (await get('/readyz'))[0] === 200, { withinMs: 5_000 });
    equal(asked, 2);
    deepEqual(await get('/readyz?verbose'), ready);
    deepEqual(await get('/readyz', 'HEAD'), [200, '']);
  });

  t('held publishing is no fault, and is told', async () => {
    checks = async () => [{ name: 'publishing', ok: true, detail: 'hold, by ann' }];
    await until('it asks again', async () => (await get('/readyz'))[1] === '{"status":"ready","publishing":"hold"}', {
      withinMs: 5_000,
    });
    equal((await get('/readyz'))[0], 200);
  });

  t('a report that fails is not ready, and no figures are for callers', async () => {
    checks = () => Promise.reject(new Error('canary'));
    await until('it asks again', async () => (await get('/readyz'))[0] === 503, { withinMs: 5_000 });
    deepEqual(await get('/readyz'), notReady);
    equal((await get('/metrics'))[0], 404);
    equal((await get('/readyz', 'POST'))[0], 404);
  });
});
