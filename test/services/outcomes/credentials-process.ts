/** The watch over credentials alone in a process, to be killed: `node credentials-process.ts <database url> <SECRET_KEY>`. */
import { PostgresCredentials } from '#infra/postgres/credentials.ts';
import { PostgresDataKeys } from '#infra/postgres/data-keys.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { createLogger } from '#runtime/process/telemetry.ts';
import { watchCredentials } from '#services/outcomes/credentials.ts';
import { drainSignal } from '#test/support/drain-signal.ts';
import { openPublishing } from '#test/support/publishing.ts';

const [url = '', key = ''] = process.argv.slice(2);
const { pool, store, close } = await openPublishing(url);
const credentials = new PostgresCredentials({ pool, keys: new PostgresDataKeys({ pool, secrets: new Secrets(key) }) });
const draining = drainSignal();
process.stdout.write('ready\n');
await watchCredentials(
  {
    ...{ credentials, pool, store, now: Date.now },
    refreshers: { pinterest: async () => ({ kind: 'refused', reason: 'revoked' }) },
    config: { sweepIntervalMs: 200, leaseTtlMs: 900 },
    logger: createLogger('child', process.env.LOG_LEVEL ?? 'silent'),
  },
  draining,
);
await close();
process.stdin.destroy();
