import { randomBytes } from 'node:crypto';
import type { Context } from 'koa';
import { within } from '#contracts/base/pause.ts';
import { type AttemptKind, attemptMs, type ConnectAttempt } from '#contracts/ports/connect-attempts.ts';
import type { Deps } from '#services/api/call/deps.ts';
import { errors } from '#services/api/call/errors.ts';
import { notFound } from '#services/api/call/refusal.ts';
import { page } from '#services/shell/page.ts';
import { show, tooLate } from '../links.ts';
import { type OpenInvite, openInviteOf } from './open-invite.ts';
import type { InviteTools } from './tools.ts';

/**
 * The cookie that binds attempts to the browser that began them: an answer of a network that reaches another browser
 * opens nothing there. Over https its name begins with `__Host-`, so that no other host and no plain connection can set
 * it.
 */

const isSecure = ({ consoleUrl }: Deps): boolean => consoleUrl().startsWith('https:');
const nameOf = (deps: Deps): string => (isSecure(deps) ? '__Host-connect' : 'connect');

/** The form of what follows. */
const isSecretText = (text: unknown): text is string => typeof text === 'string' && /^[\w-]{43}$/.test(text);
export const newSecretText = (): string => randomBytes(32).toString('base64url');

/** Null: the browser has begun nothing. */
const browserOf = (deps: Deps, ctx: Context): string | null => {
  const value = ctx.cookies.get(nameOf(deps));
  return isSecretText(value) ? value : null;
};

/** The browser's own text, which it keeps as long as its newest attempt. */
const keepBrowser = (deps: Deps, ctx: Context): string => {
  const value = browserOf(deps, ctx) ?? newSecretText();
  const parts = [`${nameOf(deps)}=${value}`, 'Path=/', `Max-Age=${attemptMs / 1_000}`, 'HttpOnly', 'SameSite=Lax'];
  ctx.append('Set-Cookie', [...parts, ...(isSecure(deps) ? ['Secure'] : [])].join('; '));
  return value;
};

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
