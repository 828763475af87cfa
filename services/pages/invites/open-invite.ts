import { client } from '#domain/client.ts';
import { birthOf } from '#domain/decider.ts';
import { type InviteState, invite, isUsable } from '#domain/invite.ts';
import { workspace } from '#domain/workspace.ts';
import { claimedIds, isGenuine, linkToken } from '#runtime/identity/link-token.ts';
import type { Deps } from '#services/api/call/deps.ts';
import { mayStill } from '#services/workflows/authority.ts';

/** A connect link that works now. */
export interface OpenInvite {
  readonly id: string;
  readonly workspaceId: string;
  readonly state: Extract<InviteState, { readonly expiresAt: string }>;
  readonly clientName: string;
  readonly clientId: string;
  readonly mode: 'live' | 'test';
  /** Path of its page, with its token. */
  readonly path: string;
}

export const nowOf = ({ clock }: Deps): string => new Date(clock()).toISOString();

/**
 * Null where the invite is unknown, revoked or expired, where its client is archived, and while the member who made it may
 * not make one: these look alike to a guest.
 */
export const openInviteOf = async (deps: Deps, id: string): Promise<OpenInvite | null> => {
  const { state, events } = await deps.store.load(invite, id);
  const workspaceId = events[0]?.metadata.workspaceId;
  if (workspaceId === undefined || !isUsable(state, nowOf(deps)) || !deps.secrets.has(state.keyVersion)) return null;
  const made = birthOf(invite, events)?.metadata.actor;
  if (made !== undefined && !(await mayStill(deps.store, workspaceId, made, 'accounts.connect'))) return null;
  const owner = await deps.store.load(client, state.clientId);
  const home = await deps.store.load(workspace, workspaceId);
  if (owner.state.status !== 'live' || home.state.status !== 'created') return null;
  const { clientId, keyVersion } = state;
  const path = `/invite/${linkToken(deps.secrets, 'invite', [id], keyVersion)}`;
  return { id, workspaceId, state, clientName: owner.state.fields.name, clientId, mode: home.state.mode, path };
};

/** Null also for a forged token. */
export const openInvite = async (deps: Deps, token: string): Promise<OpenInvite | null> => {
  const [id] = claimedIds(token, 1) ?? [];
  const open = id === undefined ? null : await openInviteOf(deps, id);
  return open !== null && isGenuine(deps.secrets, 'invite', token, [open.id], open.state.keyVersion) ? open : null;
};
