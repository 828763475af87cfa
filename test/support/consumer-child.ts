/**
 * A consumer in its own process, so that a test can kill it: one row per event into `effects`. Arguments: URL, group.
 */
import { Pool } from 'pg';
import { PostgresEventStore } from '#infra/postgres/event-store.ts';
import { openPostgresLog } from '#infra/postgres/log.ts';
import { consume } from '#runtime/consuming/consume.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { createLogger } from '#runtime/process/telemetry.ts';
import { effectsOf } from './effects.ts';
import { TestKeys } from './projecting.ts';

const [url = '', group = ''] = process.argv.slice(2);
const pool = new Pool({ connectionString: url, max: 3 });
const store = await PostgresEventStore.open({ url });
const log = await openPostgresLog({ url, store });
const stop = new AbortController();
process.on('SIGTERM', () => stop.abort());
const consumer = consume({
  log,
  store,
  pool,
  group,
  topics: ['workspace'],
  codec: new EventCodec(new TestKeys()),
  apply: effectsOf(group),
  requestLookMs: 20,
  signal: stop.signal,
  logger: createLogger('child', 'silent'),
});
process.stdout.write('ready\n');
await consumer.done;
await log.close();
await store.close();
await pool.end();
