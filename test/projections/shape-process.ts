/** The projections of a build, until SIGTERM. Arguments: URL, build. */
import { Pool } from 'pg';
import { PostgresEventStore } from '#infra/postgres/event-store.ts';
import { openPostgresLog } from '#infra/postgres/log.ts';
import { runProjections } from '#projections/engine/run.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { createLogger } from '#runtime/process/telemetry.ts';
import { TestKeys } from '#test/support/projecting.ts';
import { type Build, builds, dropAfterMs } from './shape-builds.ts';

const [url = '', build] = process.argv.slice(2);
const stop = new AbortController();
process.once('SIGTERM', () => stop.abort());
const pool = new Pool({ connectionString: url, max: 6 });
pool.on('error', () => undefined);
const store = await PostgresEventStore.open({ url });
const log = await openPostgresLog({ url, store });
const { done } = runProjections({
  ...{ pool, store, log, codec: new EventCodec(new TestKeys()), logger: createLogger('test', 'silent') },
  ...{ names: [], of: builds[build as Build], dropAfterMs, signal: stop.signal },
});
await done;
await log.close();
await store.close();
await pool.end();
