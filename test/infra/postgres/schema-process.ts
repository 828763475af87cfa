/** Brings the tables of a database to this build, as a start does. Argument: URL. */
import { PostgresEventStore } from '#infra/postgres/event-store.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { migrateSchema } from '#infra/postgres/schema.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';

const [url = ''] = process.argv.slice(2);
const pool = openPool({ url, max: 2 });
await migrateSchema(pool, { faultPoint });
const store = await PostgresEventStore.open({ url });
await store.close();
await pool.end();
