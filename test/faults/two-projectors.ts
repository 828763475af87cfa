/**
 * `node two-projectors.ts <database url>`: projects two accounts of one client in two transactions at once, as two
 * partitions do. Prints as JSON where the read models then differ from a replay of the streams.
 */
import { randomUUID } from 'node:crypto';
import type { PoolClient } from 'pg';
import { account } from '#domain/account.ts';
import { client } from '#domain/client.ts';
import { accountIdOf } from '#domain/ids.ts';
import { Projector } from '#projections/engine/apply.ts';
import { migrate } from '#projections/engine/tables.ts';
import { projectionOf } from '#projections/index.ts';
import { type CommandContext, uuidv7 } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { compareWithReplay } from '#test/support/compare-with-replay.ts';
import { openPublishing } from '#test/support/publishing.ts';
import { clientFields } from '#test/support/samples.ts';
import { until } from '#test/support/until.ts';

const { eventStore, codec, store, pool, close } = await openPublishing(process.argv[2] ?? '');
await migrate(pool);
const projection = projectionOf('clients');
const projector = new Projector(projection, 1);

const commandId = uuidv7();
const context: CommandContext = {
  workspaceId: randomUUID(),
  actor: { type: 'admin', id: 'test' },
  correlationId: commandId,
  causationId: commandId,
  commandId,
  now: new Date().toISOString(),
};
const clientId = randomUUID();
await execute(store, client, clientId, { type: 'Create', fields: clientFields }, context);
const connected = async (platform: 'x' | 'threads'): Promise<string> => {
  const id = accountIdOf(clientId, platform, 'ann');
  const profile = {
    externalId: 'ann',
    username: 'ann',
    displayName: 'Ann',
    avatarUrl: null,
    scopes: [],
    expiresAt: null,
  };
  const grant = { ...profile, clientId, platform, network: 'sandbox', timezone: null, inviteId: null } as const;
  await execute(store, account, id, { type: 'Connect', ...grant }, context);
  return `account-${id}`;
};
const streams = [await connected('x'), await connected('threads')] as const;

const apply = async (tx: PoolClient, stream: string): Promise<void> => {
  const failure = await projector.apply(tx, await codec.decodeAll(await eventStore.read(stream)));
  if (failure !== null) throw new Error(failure.reason);
};
const [first, second] = [await pool.connect(), await pool.connect()];
await first.query('begin');
await apply(first, `client-${clientId}`);
await first.query('commit');
await first.query('begin');
await second.query('begin');
await apply(first, streams[0]);
const waiter = (await second.query('select pg_backend_pid() as pid')).rows[0].pid;
let isDone = false;
const applying = apply(second, streams[1]).finally(() => {
  isDone = true;
});
const waitsForLock = async (): Promise<boolean> =>
  (await pool.query(`select 1 from pg_stat_activity where pid = $1 and wait_event_type = 'Lock'`, [waiter]))
    .rowCount === 1;
// It waits for the client's row; without a lock it has counted before the first one commits.
await Promise.race([applying, until('it waits for a lock', async () => isDone || waitsForLock())]);
await first.query('commit');
await applying;
await second.query('commit');
first.release();
second.release();
const { differences } = await compareWithReplay({ pool, store: eventStore, codec, only: [projection] });
process.stdout.write(`${JSON.stringify(differences)}\n`);
await close();
