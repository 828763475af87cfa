import { setTimeout as delay } from 'node:timers/promises';
import { client } from '#domain/client.ts';
import { type ClientRow, getClient } from '#projections/models/clients.ts';
import type { Claimant } from '#services/workflows/clients/names.ts';
import type { Call } from './operation.ts';
import { Refusal } from './refusal.ts';
import { ownStream } from './rows.ts';

/** The caller, in the form that the workflows of clients take. */
export const claimantOf = ({ deps, context, positions }: Pick<Call, 'deps' | 'context' | 'positions'>): Claimant => ({
  store: deps.store,
  context,
  positions,
  clock: deps.clock,
  wait: (ms) => delay(ms),
});

/** Adds the number of accounts, which a row made from the client's own events lacks. */
export const withAccounts = async (call: Pick<Call, 'deps' | 'workspaceId'>, row: ClientRow): Promise<ClientRow> => {
  const counted = await getClient(call.deps.knex, call.workspaceId, row.id);
  return { ...row, account_count: counted?.account_count ?? 0 };
};

/** Reads the client's own stream, which shows an archive as soon as it is acknowledged. @throws Refusal 404, 422 */
export const requireUnarchived = async (
  call: Pick<Call, 'deps' | 'workspaceId' | 'guard'>,
  id: string,
): Promise<void> => {
  const loaded = await call.deps.store.load(client, id);
  ownStream(call, 'client')(loaded);
  if (loaded.state.status === 'archived') {
    throw new Refusal('client_archived', 'An archived client takes no new accounts.');
  }
};
