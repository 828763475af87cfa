import type { Pool } from 'pg';
import { grant } from '#domain/grant.ts';
import { type DomainStore, uuidv7 } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { Actor } from '#schemas/common.ts';
import type { GrantEnder } from '#schemas/grant.ts';

/** The grant with its codes and refresh tokens: they end together. */

/** Milliseconds that a request waits for an append. */
const appendMs = 10_000;

export interface RevokeDeps {
  readonly store: DomainStore;
  readonly clock: () => number;
}

/** The authorization server itself, where no person acts. */
export const oauthActor: Actor = { type: 'service', id: 'oauth' };

/**
 * Ends a grant: its access tokens lose their power within a second, and no refresh succeeds from now on, because each
 * refresh reads the stream. A repeat does nothing, and neither does an id that no grant has.
 * @param workspaceId where it is given, a grant of another workspace counts as none
 * @returns whether this call ended it
 */
export const revokeGrant = async (
  { store, clock }: RevokeDeps,
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
  const { appended } = await execute(store, grant, grantId, { type: 'Revoke', by }, context, { loaded });
  return appended.length > 0;
};

export class Families {
  readonly #deps: RevokeDeps & { readonly pool: Pool };
  readonly #ending = new Map<string, Promise<void>>();
  readonly #onReuse: (grantId: string) => void;

  /** @param onReuse called when a code or a token that was spent already has ended a grant */
  constructor(deps: RevokeDeps & { readonly pool: Pool }, onReuse: (grantId: string) => void) {
    this.#deps = deps;
    this.#onReuse = onReuse;
  }

  /** oidc-provider ends every part of a family at once: the first call does all of it, and the others wait for it. */
  end(grantId: string, by: GrantEnder): Promise<void> {
    const known = this.#ending.get(grantId);
    if (known !== undefined) return known;
    const ending = this.#end(grantId, by).finally(() => this.#ending.delete(grantId));
    this.#ending.set(grantId, ending);
    return ending;
  }

  async #end(grantId: string, by: GrantEnder): Promise<void> {
    const ended = await revokeGrant(this.#deps, grantId, by);
    if (ended && by === 'reuse') this.#onReuse(grantId);
    // If we die here, the rows of the family stay: each refresh reads the stream and refuses, and the sweep deletes them.
    faultPoint('oauth:after-revoked');
    await this.#deps.pool.query('delete from auth.oauth_artifacts where grant_id = $1', [grantId]);
  }
}
