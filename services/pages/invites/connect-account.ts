import type { Context } from 'koa';
import { within } from '#contracts/base/pause.ts';
import type { ConnectedProfile } from '#contracts/ports/connector.ts';
import type { NewCredential } from '#contracts/ports/credentials.ts';
import { account } from '#domain/account.ts';
import { accountIdOf } from '#domain/ids.ts';
import { invite } from '#domain/invite.ts';
import { type CommandContext, uuidv7 } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { wellFormedText } from '#runtime/eventing/well-formed.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { Platform } from '#schemas/common.ts';
import { notFound } from '#services/api/call/refusal.ts';
import { stateOf } from '#services/api/http/every-request.ts';
import { shownProfile } from '#services/workflows/accounts/shown-profile.ts';
import { tooLate } from '../links.ts';
import { nowOf, type OpenInvite } from './open-invite.ts';
import type { InviteTools } from './tools.ts';

/** A network may be anybody's server: of the permissions that it names, so many are kept, and so much of each. */
const maxScopes = 50;
const maxScope = 100;

/** An account that its owner has just given us. */
export interface Consented {
  readonly platform: Platform;
  readonly timezone: string | null;
  readonly profile: ConnectedProfile;
  /** Null: an account of the sandbox, which gives none. */
  readonly credential: NewCredential | null;
}

/**
 * Use → credentials → connect. The stream of the invite decides first, so that an earlier revocation or archive always
 * wins. If we die after the use, the invite names an account that is not connected: the page shows only those that are,
 * and the guest's next try finds the use done and connects. If we die after the credentials, an account that nobody
 * connected has some, which the next consent replaces; the other order would show an account that cannot publish.
 */
const connect = async (
  { deps, patience: { appendMs } }: InviteTools,
  ctx: Context,
  open: OpenInvite,
  consented: Consented,
) => {
  const { correlationId, positions } = stateOf(ctx);
  const { platform, timezone, profile, credential } = consented;
  const { workspaceId, clientId } = open;
  const accountId = accountIdOf(clientId, platform, profile.externalId);
  const now = nowOf(deps);
  const context: CommandContext = {
    workspaceId,
    actor: { type: 'guest', id: open.id },
    correlationId,
    causationId: correlationId,
    commandId: uuidv7(),
    now,
    giveUpAt: performance.now() + appendMs,
  };
  await execute(deps.store, invite, open.id, { type: 'Use', now, accountId, platform }, context, { positions });
  faultPoint('invite:between-use-and-connect');
  if (credential !== null) {
    const kept = await deps.live?.credentials.keep({ accountId, workspaceId, clientId, platform }, credential);
    if (kept === null || kept === undefined) throw notFound('link');
    faultPoint('invite:between-credentials-and-connect');
  }
  const network = credential === null ? 'sandbox' : 'live';
  const { externalId, consentEndsAt: expiresAt } = profile;
  const scopes = profile.scopes.slice(0, maxScopes).map((one) => wellFormedText(one, maxScope));
  await execute(
    deps.store,
    account,
    accountId,
    {
      ...{ type: 'Connect', clientId, platform, externalId, network, ...shownProfile(profile) },
      ...{ scopes, expiresAt, timezone, inviteId: open.id },
    },
    context,
    { positions },
  );
};

/** A repeat with the same account stores no further event. */
export const connectAccount = (
  tools: InviteTools,
  ctx: Context,
  open: OpenInvite,
  consented: Consented,
): Promise<void> => within(tools.patience.callMs, connect(tools, ctx, open, consented), tooLate);
