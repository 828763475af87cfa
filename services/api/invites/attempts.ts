import type { Context } from 'koa';
import { within } from '#contracts/base/within.ts';
import type { AttemptKind, ConnectAttempt } from '#contracts/ports/connect-attempts.ts';
import { errors } from '../errors.ts';
import { page } from '../html.ts';
import { show, tooLate } from '../people.ts';
import { notFound } from '../refusal.ts';
import { browserOf, isSecretText, keepBrowser, newSecretText } from './browser.ts';
import { type OpenInvite, openInviteOf } from './open-invite.ts';
import type { InviteTools } from './tools.ts';

/** Attempts of the guest's browser; see the port. */

type Kept = ConnectAttempt['kept'];

/** Binds it to the guest's browser, and answers its token. @throws Refusal `not_found` where the client was erased */
export const keepAttempt = async (
  { deps, patience: { callMs } }: InviteTools,
  ctx: Context,
  { id: inviteId, workspaceId, clientId }: OpenInvite,
  {
    token = newSecretText(),
    ...attempt
  }: Pick<ConnectAttempt, 'kind' | 'platform' | 'kept'> & { readonly token?: string },
): Promise<string> => {
  const bearer = { token, browser: keepBrowser(deps, ctx) };
  const keeping = deps.live?.attempts.keep(bearer, { ...attempt, inviteId, workspaceId, clientId });
  if ((await within(callMs, Promise.resolve(keeping), tooLate)) !== true) throw notFound('link');
  return token;
};

/** An attempt whose invite still works. */
export interface OpenAttempt<K extends Kept> {
  readonly open: OpenInvite;
  readonly platform: ConnectAttempt['platform'];
  readonly token: string;
  readonly kept: K;
}

/**
 * Null where the browser has no such attempt, or its invite no longer works.
 * @param how `take` ends it: of several requests, one gets it
 */
export const attemptOf = async <K extends Kept>(
  { deps, patience: { callMs } }: InviteTools,
  ctx: Context,
  { kind, token, how }: { readonly kind: AttemptKind; readonly token: unknown; readonly how: 'find' | 'take' },
): Promise<OpenAttempt<K> | null> => {
  const browser = browserOf(deps, ctx);
  if (deps.live === undefined || browser === null || !isSecretText(token)) return null;
  const attempt = await within(callMs, deps.live.attempts[how]({ token, browser }, kind), tooLate);
  if (attempt === null) return null;
  const open = await within(callMs, openInviteOf(deps, attempt.inviteId), tooLate);
  return open === null ? null : { open, platform: attempt.platform, token, kept: attempt.kept as K };
};

/** One page for every attempt that cannot go on, so that it does not reveal why. */
const endedPage = page(
  'This step has ended',
  '<h1>This step has ended</h1>\n<p>It is done already, took too long, or was begun in another browser. Open the link that you were sent: it shows what is connected, and you can start again there.</p>',
);

export const showEnded = (ctx: Context): void => show(ctx, errors.not_found.status, endedPage);
