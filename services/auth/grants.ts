import type { Pool } from 'pg';
import { grant } from '#domain/grant.ts';
import { openGrantsOfPerson } from '#projections/models/grants.ts';
import { type DomainStore, uuidv7 } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { noteWithdrawal } from '#runtime/identity/withdrawals.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { Actor } from '#schemas/common.ts';
import type { GrantEnder } from '#schemas/grant.ts';

/** Milliseconds that a request waits for an append. */
const appendMs = 10_000;

export interface RevokeDeps {
  readonly store: DomainStore;
  readonly pool: Pool;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
}

/** The authorization server itself, where no person acts. */
const oauthActor: Actor = { type: 'service', id: 'oauth' };

/**
 * Ends a grant: its access tokens lose their power within a second, and no refresh succeeds from now on, because each
 * refresh reads the stream. A repeat does nothing, and neither does an id that no grant has.
 * @param workspaceId where it is given, a grant of another workspace counts as none
 * @returns whether this call ended it
 */
export const revokeGrant = async (
  { store, pool, clock }: RevokeDeps,
  grantId: string,
  by: GrantEnder,
  { actor = oauthActor, workspaceId }: { readonly actor?: Actor; readonly workspaceId?: string } = {},
): Promise<boolean> => {
  const loaded = await store.load(grant, grantId);
  const owner = loaded.events[0]?.metadata.workspaceId;
  if (owner === undefined || (workspaceId !== undefined && owner !== workspaceId)) return false;
  const id = uuidv7();
  const now = new Date(clock()).toISOString();
  const cause = { workspaceId: owner, correlationId: id, causationId: id, commandId: id };
  const context = { ...cause, actor, now, giveUpAt: performance.now() + appendMs };
  await noteWithdrawal(pool, grantId);
  const { appended } = await execute(store, grant, grantId, { type: 'Revoke', by }, context, { loaded });
  // If we die here, the rows of its tokens stay: each refresh reads the stream and refuses, and the sweep deletes them.
  faultPoint('oauth:after-revoked');
  await pool.query('delete from auth.oauth_artifacts where grant_id = $1', [grantId]);
  return appended.length > 0;
};

/** Grants that are looked up at once. */
const pageSize = 500;

/** Ends every grant of a person, in every workspace, in the name of the member who gave it. */
export const revokeGrantsOfPerson = async (deps: RevokeDeps, personId: string): Promise<void> => {
  let after: string | null = null;
  for (let isEnd = false; !isEnd; ) {
    const page: readonly string[] = await openGrantsOfPerson(deps.pool, personId, { after, limit: pageSize });
    for (const grantId of page) {
      const { state } = await deps.store.load(grant, grantId);
      if (state.status !== 'active') continue;
      await revokeGrant(deps, grantId, 'person', { actor: { type: 'member', id: state.memberId } });
    }
    after = page.at(-1) ?? null;
    isEnd = page.length < pageSize;
  }
};
