import assert from 'node:assert/strict';
import knexFor, { type Knex } from 'knex';
import { toProblem } from '#services/api/call/problems.ts';
import { testDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';
import { type TcpProxy, tcpProxy } from '#test/support/tcp-proxy.ts';
import { until } from '#test/support/until.ts';

/** What a database that goes away makes of a query under way: never an error of ours. */
suite('a database that fails', (t) => {
  let proxy: TcpProxy;
  let knex: Knex;
  t.before(async () => {
    const url = new URL((await testDatabase()).url);
    proxy = await tcpProxy({ host: url.hostname, port: Number(url.port) });
    url.port = String(proxy.port);
    knex = knexFor({ client: 'pg', connection: url.href, pool: { min: 0, max: 2 } });
  });
  t.after(async () => {
    await knex?.destroy();
    await proxy?.close();
  });

  const failure = (query: Promise<unknown>): Promise<unknown> =>
    query.then(
      () => null,
      (error: unknown) => error,
    );

  t('in the middle of a query, in silence, and at the next query', async () => {
    await knex.raw('select 1');
    let error: unknown;
    const asking = failure(knex.raw('select pg_sleep(30)').then()).then((one) => {
      error = one;
    });
    await until('the query is under way', async () => {
      const { rows } = await knex.raw(
        `select 1 from pg_stat_activity where query = 'select pg_sleep(30)' and state = 'active' limit 1`,
      );
      return rows.length > 0;
    });
    proxy.cut();
    await asking;
    assert.equal(toProblem(error).code, 'unavailable', String(error));
    const again = await failure(knex.raw('select 1').then());
    assert.equal(toProblem(again).code, 'unavailable', String(again));
    proxy.heal();
    assert.equal((await knex.raw('select 1 as one')).rows[0].one, 1);
  });

  t('… and a wrong query stays a fault of the service', async () => {
    const wrong = await failure(knex.raw(`select 'Connection terminated' from nothing_there`).then());
    assert.equal(toProblem(wrong).code, 'internal', String(wrong));
  });
});
