import { createHash } from 'node:crypto';
import type { Pool } from 'pg';
import { apikey } from '#domain/apikey.ts';
import { client } from '#domain/client.ts';
import { Rejection } from '#domain/decider.ts';
import { tenantIdOf, testTwinIdOf } from '#domain/ids.ts';
import { type WorkspaceState, workspace } from '#domain/workspace.ts';
import { isTimezone } from '#domain/zones.ts';
import { type CommandContext, type DomainStore, type Positions, uuidv7 } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { mintSecret } from '#runtime/identity/key-form.ts';
import { noteWithdrawal } from '#runtime/identity/withdrawals.ts';
import type { Actor, Mode } from '#schemas/common.ts';

/** Workspaces, members and keys as an operator makes them, until the console exists. */

export interface Operator {
  readonly store: DomainStore;
  /** Of the database with the rows of withdrawals. */
  readonly pool: Pick<Pool, 'query'>;
  readonly actor: Actor;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  readonly positions: Positions;
}

export const contextOf = ({ actor, clock }: Operator, workspaceId: string): CommandContext => {
  const id = uuidv7();
  return {
    workspaceId,
    actor,
    correlationId: id,
    causationId: id,
    commandId: id,
    now: new Date(clock()).toISOString(),
  };
};

export interface NewWorkspace {
  readonly name: string;
  readonly timezone: string;
  readonly ownerName: string;
}

/**
 * Creates a workspace with its Owner, then its sandbox twin. If we die in between, the twin is missing: `ensureTwin`
 * creates it with the next test key. @throws Rejection validation_failed for an unknown zone.
 */
/** Name of the workspaces in which standalone takes its tours. An operator's command means none of them unless it names it. */
export const tourName = 'Tour of the sandbox';

export const createWorkspace = async (
  operator: Operator,
  { name, timezone, ownerName }: NewWorkspace,
): Promise<{ readonly workspaceId: string; readonly memberId: string }> => {
  if (!isTimezone(timezone)) {
    throw new Rejection('validation_failed', 'A workspace needs a zone of the IANA database.', {
      errors: [{ path: '/timezone', code: 'unknown_timezone', message: 'must be an IANA timezone' }],
    });
  }
  const workspaceId = uuidv7();
  const memberId = uuidv7();
  const command = { type: 'Create', name, timezone, owner: { memberId, name: ownerName } } as const;
  const { positions, store } = operator;
  await execute(store, workspace, workspaceId, command, contextOf(operator, workspaceId), { positions });
  await ensureTwin(operator, workspaceId);
  return { workspaceId, memberId };
};

type Created = Extract<WorkspaceState, { status: 'created' }>;

/** @throws Rejection not_found */
export const loadWorkspace = async ({ store }: Operator, workspaceId: string): Promise<Created> => {
  const { state } = await store.load(workspace, workspaceId);
  if (state.status === 'none' || state.twinOf !== null) throw new Rejection('not_found', 'There is no such workspace.');
  return state;
};

/** Makes the sandbox twin of a live workspace, where it is not there yet. */
export const ensureTwin = async (operator: Operator, workspaceId: string): Promise<void> => {
  const { name, timezone } = await loadWorkspace(operator, workspaceId);
  const twinId = testTwinIdOf(workspaceId);
  const command = { type: 'CreateTwin', name, timezone, twinOf: workspaceId } as const;
  const { positions, store } = operator;
  await execute(store, workspace, twinId, command, contextOf(operator, twinId), { positions });
};

export interface MintedKey {
  /** Shown once and not stored. */
  readonly secret: string;
  readonly hash: string;
  readonly prefix: string;
}

/** Only the SHA-256 is kept. */
export const mintKey = (mode: Mode): MintedKey => {
  const secret = mintSecret(mode);
  return { secret, hash: hashKey(secret), prefix: secret.slice(0, `sk_${mode}_`.length + 4) };
};

export const hashKey = (secret: string): string => createHash('sha256').update(secret, 'utf8').digest('hex');

export interface NewKey {
  readonly workspaceId: string;
  readonly memberId: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly mode: Mode;
  /** ISO 8601 instant. */
  readonly expiresAt: string;
  /** The clients to which it is limited; absent or null: all of the workspace. */
  readonly clientIds?: readonly string[] | null;
}

/** The clients of a key belong to the workspace in which it acts. @throws Rejection not_found */
const requireOwnClients = async (
  { store }: Operator,
  { workspaceId, mode, clientIds }: Pick<NewKey, 'workspaceId' | 'mode' | 'clientIds'>,
): Promise<void> => {
  const owner = tenantIdOf(workspaceId, mode);
  for (const clientId of clientIds ?? []) {
    const { state, events } = await store.load(client, clientId);
    if (state.status === 'none' || events[0]?.metadata.workspaceId !== owner) {
      throw new Rejection('not_found', `There is no client ${clientId} in the ${mode} workspace.`);
    }
  }
};

export const createApiKey = async (
  operator: Operator,
  input: NewKey,
  id = uuidv7(),
): Promise<{ readonly id: string; readonly secret: string; readonly prefix: string }> => {
  const { members } = await loadWorkspace(operator, input.workspaceId);
  if (members[input.memberId] === undefined) throw new Rejection('not_found', 'There is no such member.');
  if (input.mode === 'test') await ensureTwin(operator, input.workspaceId);
  await requireOwnClients(operator, input);
  const { secret, hash, prefix } = mintKey(input.mode);
  const { workspaceId: _workspace, clientIds = null, ...key } = input;
  const context = contextOf(operator, input.workspaceId);
  const command = { type: 'Create', now: context.now, ...key, clientIds, hash, prefix } as const;
  await execute(operator.store, apikey, id, command, context, { positions: operator.positions });
  return { id, secret, prefix };
};

const ofWorkspace =
  (workspaceId: string) =>
  (loaded: { readonly events: readonly { readonly metadata: { readonly workspaceId: string } }[] }) => {
    if (loaded.events[0]?.metadata.workspaceId !== workspaceId)
      throw new Rejection('not_found', 'There is no such key.');
  };

/** The former secret works for another 24 hours, at most until the key expires. */
export const rotateApiKey = async (
  operator: Operator,
  workspaceId: string,
  id: string,
): Promise<{ readonly secret: string; readonly prefix: string; readonly previousUntil: string }> => {
  const { state } = await operator.store.load(apikey, id);
  if (state.status === 'none') throw new Rejection('not_found', 'There is no such key.');
  const { secret, hash, prefix } = mintKey(state.mode);
  const context = contextOf(operator, workspaceId);
  // The secret before the last two rotations loses its power.
  await noteWithdrawal(operator.pool, id);
  const rotate = { type: 'Rotate', now: context.now, hash, prefix } as const;
  const { appended } = await execute(operator.store, apikey, id, rotate, context, {
    positions: operator.positions,
    guard: ofWorkspace(workspaceId),
  });
  return { secret, prefix, previousUntil: String(appended[0]?.data.previousUntil) };
};

export const revokeApiKey = async (operator: Operator, workspaceId: string, id: string): Promise<void> => {
  await noteWithdrawal(operator.pool, id);
  await execute(operator.store, apikey, id, { type: 'Revoke' }, contextOf(operator, workspaceId), {
    positions: operator.positions,
    guard: ofWorkspace(workspaceId),
  });
};
