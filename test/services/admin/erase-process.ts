/** A process that erases what is due over EventStoreDB, so that a test can kill it: `<Postgres> <EventStoreDB> <SECRET_KEY> <files>`. */
import pg from 'pg';
import { DiskBlobs } from '#infra/blob/disk.ts';
import { EventStoreDbStore } from '#infra/eventstoredb/event-store.ts';
import { PostgresDataKeys } from '#infra/postgres/data-keys.ts';
import { WorkspacePositions } from '#infra/postgres/workspace-positions.ts';
import { eraseDue } from '#projections/feed/erasure.ts';
import { Secrets } from '#runtime/identity/secrets.ts';

const [databaseUrl = '', url = '', key = '', root = ''] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: databaseUrl, max: 3 });
const secrets = new Secrets(key);
const eventStore = new EventStoreDbStore({ url, index: new WorkspacePositions(pool) });
let failures = 0;
await eraseDue(
  {
    ...{ pool, eventStore, eraser: eventStore, secrets, analytics: null, clock: Date.now },
    dataKeys: new PostgresDataKeys({ pool, secrets }),
    blobs: new DiskBlobs({ root, secrets, origin: () => '' }),
    ...{ signal: new AbortController().signal, note: (text: string) => void process.stdout.write(`${text}\n`) },
  },
  (_workspaceId, error) => {
    failures += 1;
    process.stderr.write(`${error}\n`);
  },
);
await eventStore.close();
await pool.end();
process.exitCode = failures;
