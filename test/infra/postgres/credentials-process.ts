/**
 * One step of the store of credentials in a process, to be killed: `node credentials-process.ts <database url>
 * <SECRET_KEY> <step> <owner and credentials as JSON>`.
 */
import type { CredentialOwner, NewCredential, Refresh } from '#contracts/ports/credentials.ts';
import { PostgresCredentials } from '#infra/postgres/credentials.ts';
import { PostgresDataKeys } from '#infra/postgres/data-keys.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';

interface Given {
  readonly owner: CredentialOwner;
  readonly credential: NewCredential;
  readonly answer: Refresh;
  readonly leaseMs: number;
}

const [url = '', key = '', step = '', text = ''] = process.argv.slice(2);
const { owner, credential, answer, leaseMs } = JSON.parse(text) as Given;
const pool = openPool({ url, max: 2 });
const keys = new PostgresDataKeys({ pool, secrets: new Secrets(key) });
const store = new PostgresCredentials({ pool, keys, faultPoint, limits: { leaseMs, callMs: leaseMs } });
if (step === 'keep') await store.keep(owner, credential);
if (step === 'destroy') await store.destroy(owner.accountId);
if (step === 'refresh') await store.refresh(owner.accountId, 1, async () => answer, new AbortController().signal);
await pool.end();
