import Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import { account } from '#domain/account.ts';
import { client } from '#domain/client.ts';
import type { ErrorCode } from '#domain/codes.ts';
import { Rejection } from '#domain/decider.ts';
import { accountIdOf } from '#domain/ids.ts';
import { type InviteState, invite, isUsable } from '#domain/invite.ts';
import { connectable, normalizePlatform } from '#domain/platforms/index.ts';
import { workspace } from '#domain/workspace.ts';
import { isTimezone } from '#domain/zones.ts';
import { type CommandContext, uuidv7 } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { claimedIds, isGenuine } from '#runtime/identity/link-token.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { within } from '#runtime/process/within.ts';
import type { Platform } from '#schemas/common.ts';
import type { CallPatience, Deps } from './deps.ts';
import { errors } from './errors.ts';
import { type ConnectedAccount, invitePage, type RefusedForm } from './invite-html.ts';
import { readBody } from './json.ts';
import { toProblem } from './middleware/problems.ts';
import type { Allowances } from './middleware/rate-limit.ts';
import { forPeople, show, show404, tooLate } from './people.ts';
import { Refusal } from './refusal.ts';
import { stateOf } from './state.ts';

/** The page behind a connect link. The token in its address is the only permission; no cookie, no script. */

interface OpenInvite {
  readonly id: string;
  readonly workspaceId: string;
  readonly state: Extract<InviteState, { readonly expiresAt: string }>;
  readonly clientName: string;
  readonly clientId: string;
  readonly mode: 'live' | 'test';
}

const nowOf = ({ clock }: Deps): string => new Date(clock()).toISOString();

/** Null for unknown, forged, revoked and expired tokens alike, and for those of an archived client. */
const openInvite = async (deps: Deps, token: string): Promise<OpenInvite | null> => {
  const [id] = claimedIds(token, 1) ?? [];
  if (id === undefined) return null;
  const { state, events } = await deps.store.load(invite, id);
  const workspaceId = events[0]?.metadata.workspaceId;
  if (workspaceId === undefined || !isUsable(state, nowOf(deps))) return null;
  if (!isGenuine(deps.secrets, 'invite', token, [id], state.keyVersion)) return null;
  const owner = await deps.store.load(client, state.clientId);
  const home = await deps.store.load(workspace, workspaceId);
  if (owner.state.status !== 'live' || home.state.status !== 'created') return null;
  const { name: clientName } = owner.state.fields;
  return { id, workspaceId, state, clientName, clientId: state.clientId, mode: home.state.mode };
};

const maxShown = 100;

/** Read from the accounts' own streams, so that the guest sees an account right after connecting it. */
const connectedThrough = async (deps: Deps, { state }: OpenInvite): Promise<readonly ConnectedAccount[]> => {
  const loaded = await Promise.all(state.accountIds.slice(-maxShown).map((id) => deps.store.load(account, id)));
  return loaded.flatMap(({ state: one }) =>
    one.status === 'none' ? [] : [{ platform: one.platform, username: one.username ?? '', status: one.status }],
  );
};

interface Wanted {
  readonly platform: Platform;
  readonly username: string;
  readonly timezone: string | null;
}

const refuse = (message: string) => new Refusal('validation_failed', message);

const formLimit = 16 * 1024;

interface Typed {
  readonly platform: Platform | null;
  readonly username: string;
  readonly timezone: string;
}

const readForm = async (ctx: Context): Promise<Typed> => {
  if (ctx.is('application/x-www-form-urlencoded') === false) {
    throw new Refusal('unsupported_media_type', 'Send the form of this page.');
  }
  const form = new URLSearchParams((await readBody(ctx.req, formLimit)).toString('utf8'));
  const text = (name: string): string => (form.get(name) ?? '').trim();
  return { platform: normalizePlatform(text('platform')), username: text('username'), timezone: text('timezone') };
};

/** @throws Refusal with words for the guest. */
const checked = ({ platform, username: typed, timezone }: Typed, { state, mode }: OpenInvite): Wanted => {
  if (platform === null || !state.platforms.includes(platform)) throw refuse('This link is not for that network.');
  if (!connectable(mode, state.platforms).includes(platform))
    throw refuse('That network cannot be connected here yet.');
  const username = typed.replace(/^@/, '');
  if (username === '' || username.length > 100 || /\p{C}/u.test(username)) {
    throw refuse('Give a username of 1 to 100 characters.');
  }
  if (timezone !== '' && !isTimezone(timezone))
    throw refuse('That is no timezone: give one such as Europe/Berlin, or none.');
  return { platform, username, timezone: timezone === '' ? null : timezone };
};

/**
 * Use → connect. The stream of the invite decides first, so that an earlier revocation or archive always wins. If we
 * die in between, the invite names an account that is not connected: the page shows only those that are, and the
 * guest's next try finds the use done and connects.
 */
const connect = async (deps: Deps, ctx: Context, open: OpenInvite, wanted: Wanted, giveUpAt: number): Promise<void> => {
  const { correlationId, positions } = stateOf(ctx);
  const profile = deps.sandboxProfile(wanted.platform, wanted.username);
  const accountId = accountIdOf(open.clientId, wanted.platform, profile.externalId);
  const now = nowOf(deps);
  const context: CommandContext = {
    workspaceId: open.workspaceId,
    actor: { type: 'guest', id: open.id },
    correlationId,
    causationId: correlationId,
    commandId: uuidv7(),
    now,
    giveUpAt,
  };
  const { platform, timezone } = wanted;
  await execute(deps.store, invite, open.id, { type: 'Use', now, accountId, platform }, context, { positions });
  faultPoint('invite:between-use-and-connect');
  const { externalId, username, displayName, avatarUrl, scopes } = profile;
  await execute(
    deps.store,
    account,
    accountId,
    {
      type: 'Connect',
      clientId: open.clientId,
      platform,
      externalId,
      network: 'sandbox',
      username,
      displayName,
      avatarUrl,
      scopes,
      expiresAt: null,
      timezone,
      inviteId: open.id,
    },
    context,
    { positions },
  );
};

/** A form that was refused, and the status of the answer. */
interface RefusedAs extends RefusedForm {
  readonly code: ErrorCode;
}

const showInvite = async (deps: Deps, ctx: Context, open: OpenInvite, refused: RefusedAs | null): Promise<void> => {
  const connected = await connectedThrough(deps, open);
  const { platforms, expiresAt } = open.state;
  const html = invitePage({
    clientName: open.clientName,
    mode: open.mode,
    platforms,
    offered: connectable(open.mode, platforms),
    expiresAt,
    connected,
    refused,
  });
  show(ctx, refused === null ? 200 : errors[refused.code].status, html);
};

export const invitePages = (deps: Deps, allowances: Allowances, { appendMs, callMs }: CallPatience): Middleware => {
  const router = new Router({ strict: true, sensitive: true });
  const people = forPeople(deps, allowances);
  router.get('/invite/:token', people, async (ctx) => {
    const open = await within(callMs, openInvite(deps, String(ctx.params.token)), tooLate);
    if (open === null) return show404(ctx);
    return showInvite(deps, ctx, open, null);
  });
  router.post('/invite/:token', people, async (ctx) => {
    const token = String(ctx.params.token);
    const open = await within(callMs, openInvite(deps, token), tooLate);
    if (open === null) return show404(ctx);
    const typed = await readForm(ctx);
    try {
      const connecting = connect(deps, ctx, open, checked(typed, open), performance.now() + appendMs);
      await within(callMs, connecting, tooLate);
    } catch (error) {
      const { code } = toProblem(error);
      if (!(error instanceof Rejection) || (code !== 'validation_failed' && code !== 'invite_full')) throw error;
      return showInvite(deps, ctx, open, { ...typed, code, words: error.message });
    }
    // Back to the page by GET, so that a reload sends nothing again.
    ctx.set('Location', `/invite/${token}`);
    return show(ctx, 303, '');
  });
  return router.routes() as Middleware;
};
