import { birthOf } from '#domain/decider.ts';
import { type InviteState, invite } from '#domain/invite.ts';
import type { Loaded } from '#runtime/eventing/domain-store.ts';
import { linkToken } from '#runtime/identity/link-token.ts';
import type { Call } from '../operation.ts';
import { notFound } from '../refusal.ts';
import { makerOf } from '../rows.ts';

/** A connect link as its members see it. */

/** @param withAddress only in the answer to its creation: a list would hand every link to each of its readers */
export const showConnectInvite = (
  { deps, now }: Pick<Call, 'deps' | 'now'>,
  { state, events }: Pick<Loaded<InviteState>, 'state' | 'events'>,
  inviteId: string,
  withAddress: boolean,
) => {
  const born = birthOf(invite, events);
  if (state.status === 'none' || born === undefined) throw notFound('connect invite');
  const { clientId, platforms, maxAccounts, accountIds, expiresAt, keyVersion } = state;
  const isRevoked = state.status === 'revoked';
  const isShown = withAddress && !isRevoked && expiresAt > now;
  const token = isShown ? linkToken(deps.secrets, 'invite', [inviteId], keyVersion) : null;
  const { recipientEmail } = born.data as { readonly recipientEmail?: string | null };
  return {
    object: 'connect_invite' as const,
    inviteId,
    clientId,
    url: token === null ? null : `${deps.consoleUrl()}/invite/${token}`,
    token,
    platformsRequested: platforms,
    maxAccounts,
    recipientEmail: recipientEmail ?? null,
    accountIds,
    createdBy: makerOf(born),
    isRevoked,
    expiresAt,
    createdAt: born.metadata.occurredAt,
  };
};
