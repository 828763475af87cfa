/**
 * A process, to be killed, that works on the quota of one workspace: `node quota-process.ts <database url> <workspace>`.
 * Its one task is named in QUOTA_TASK: `sweep` gives back what is old, `set <limit>` is the operator's command.
 */
import { openPostgresLog } from '#infra/postgres/log.ts';
import { createLogger } from '#runtime/process/telemetry.ts';
import type { Admin } from '#services/admin/context.ts';
import { setQuota } from '#services/admin/quota.ts';
import { sweepQuotas } from '#services/outcomes/quotas.ts';
import { abandonMs } from '#services/workflows/quota/give-back.ts';
import { openPublishing } from '#test/support/publishing.ts';

const [, , url = '', workspaceId = ''] = process.argv;
const [task, limit = ''] = (process.env.QUOTA_TASK ?? '').split(' ');
const parts = await openPublishing(url);
const { store, pool, eventStore } = parts;
const log = await openPostgresLog({ url, store: eventStore });
const { signal } = new AbortController();
process.stdout.write('ready\n');
if (task === 'sweep') {
  const now = () => Date.now() + abandonMs + 1_000;
  await sweepQuotas({ store, pool, now }, async (_id, work) => work(), signal);
} else {
  const actor = { type: 'admin', id: 'test' } as const;
  const operator = { store, pool, actor, clock: Date.now, positions: new Map() };
  const admin: Pick<Admin, 'operator' | 'store' | 'pool' | 'log' | 'signal' | 'note' | 'logger'> = {
    ...{ operator, store, pool, log, signal },
    note: () => undefined,
    logger: createLogger('child', 'silent'),
  };
  const flags: Readonly<Record<string, string>> = { workspace: workspaceId, mode: 'test' };
  await setQuota(admin as Admin, { at: () => limit, flag: (name) => flags[name], has: () => false });
}
await log.close();
await parts.close();
process.stdin.destroy();
