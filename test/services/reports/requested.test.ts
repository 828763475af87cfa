import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { testTwinIdOf } from '#domain/ids.ts';
import { type ReportCommand, report } from '#domain/report.ts';
import { runAnalytics } from '#projections/analytics/run.ts';
import { startDispatcher } from '#projections/webhooks/dispatcher.ts';
import { ensureMint } from '#projections/webhooks/mint.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { startReports } from '#services/reports/reports.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { testClickHouse } from '#test/support/clickhouse.ts';
import type { World } from '#test/support/http.ts';
import { connect, mcpWorld, worked } from '#test/support/mcp.ts';
import { noSender } from '#test/support/no-sender.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { definition, workerOf } from './world.ts';

/** A run that a caller asks for, from the request to the bytes of its file: the api and the worker on one database. */

suite('a report that a caller runs', (t) => {
  let world: World;
  let id = '';
  const stop = new AbortController();
  const closers: (() => Promise<unknown>)[] = [];
  t.before(async () => {
    const house = await testClickHouse();
    world = await mcpWorld({ deps: { analytics: house.client } });
    const { pool, log, eventStore, store, codec, logger, deps } = world;
    const { signal } = stop;
    const counting = runAnalytics({ log, store: eventStore, pool, codec, client: house.client, logger, signal });
    await ensureMint(pool);
    const dispatcher = startDispatcher({ log, eventStore, store, codec, pool, handover: noSender, logger }, signal);
    closers.push(() => dispatcher.done);
    const made = workerOf({ eventStore, store, codec, pool, blobs: deps.blobs }, log, house.url);
    const worker = startReports(made.deps, signal);
    closers.push(
      () => counting.done,
      () => worker.done,
      made.close,
    );
    id = randomUUID();
    const define: ReportCommand = { type: 'Define', definition: { ...definition, name: 'Figures', formats: ['csv'] } };
    await execute(store, report, id, define, contextOf(world.operator, testTwinIdOf(world.workspaceId)));
    await world.settled();
  });
  t.after(async () => {
    stop.abort();
    for (const close of closers) await close();
    await world?.close();
  });

  t('over REST: started, made, and downloaded as it is described', async () => {
    const endpoint = { url: 'https://receiver.example/hook', events: ['report.run.completed'] };
    const { data: hook } = await world.tester.post('/webhooks', endpoint);
    const { data: run } = await world.tester.post(`/reports/${id}/runs`, { formats: ['json', 'csv'] });
    const path = `/reports/${id}/exports/${run.runId}`;
    await until('the run is completed', async () => (await world.tester.get(path)).status === 200);
    for (const format of ['json', 'csv'] as const) {
      const { data } = await world.tester.get(`${path}?format=${format}`);
      const bytes = Buffer.from(await (await fetch(String(data.url))).arrayBuffer());
      assert.deepEqual([data.format, data.bytes], [format, bytes.length]);
      assert.equal(createHash('sha256').update(bytes).digest('hex'), data.sha256);
    }
    const shown = (await world.tester.get(`/reports/${id}`)).data.runs as {
      runId: string;
      status: string;
      by: string;
    }[];
    assert.deepEqual(
      shown.map((one) => [one.runId, one.status, one.by]),
      [[run.runId, 'completed', 'request']],
    );
    const reported = async () => (await world.tester.get(`/webhooks/${hook.id}/deliveries`)).rows;
    await until('the webhook has a delivery', async () => (await reported()).length > 0);
    assert.deepEqual(
      (await reported()).map(({ eventType }) => eventType),
      ['report.run.completed'],
    );
  });

  t('over MCP: a name, one call, and the file', async () => {
    const mcp = await connect(world, world.testKey.secret);
    const first = worked(await mcp.call('run_report', { name: 'the figures report', format: 'csv' }));
    // A machine that is busy makes it later than the tool looks.
    const download = async () =>
      (worked(await mcp.call('list_reports', { reportId: id })) as { download: { runId: string; url: string } })
        .download;
    await until('the file is there', async () => (await download()).runId === first.runId);
    const text = await (await fetch((await download()).url)).text();
    assert.match(text, /^\uFEFF?\w+.*,/);
    await mcp.close();
  });
});
