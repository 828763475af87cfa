/**
 * Ingests and recounts until its standard input ends: `ingester-child.ts <Postgres> <ClickHouse>`. Prints a line when
 * it works.
 */
import { Pool } from 'pg';
import { openAnalytics } from '#infra/clickhouse/client.ts';
import { PostgresEventStore } from '#infra/postgres/event-store.ts';
import { openPostgresLog } from '#infra/postgres/log.ts';
import { runAnalytics } from '#projections/analytics/run.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { createLogger } from '#runtime/process/telemetry.ts';
import { TestKeys } from './projecting.ts';

const [url = '', clickhouseUrl = ''] = process.argv.slice(2);
const pool = new Pool({ connectionString: url, max: 4 });
pool.on('error', () => undefined);
const store = await PostgresEventStore.open({ url });
const log = await openPostgresLog({ url, store });
const client = openAnalytics({ url: clickhouseUrl });
const stop = new AbortController();
const logger = createLogger('ingester', 'silent');
const running = runAnalytics({
  client,
  log,
  store,
  pool,
  codec: new EventCodec(new TestKeys()),
  signal: stop.signal,
  logger,
});
process.stdin.resume().once('end', () => stop.abort());
process.stdout.write('ready\n');
await running.done;
await log.close();
await store.close();
await pool.end();
await client.close();
