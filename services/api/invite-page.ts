import Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import type { ConnectedProfile } from '#contracts/ports/connector.ts';
import type { NewCredential } from '#contracts/ports/credentials.ts';
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
import { type ConnectedAccount, formConnectorOf, invitePage, type RefusedForm } from './invite-html.ts';
import { readBody } from './json.ts';
import { liveNetworksOf } from './live-networks.ts';
import { toProblem } from './middleware/problems.ts';
import type { Allowances } from './middleware/rate-limit.ts';
import { forPeople, show, show404, tooLate } from './people.ts';
import { notFound, Refusal } from './refusal.ts';
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
  /** By the name of the field; never shown again. */
  readonly secrets: ReadonlyMap<string, string>;
}

const refuse = (message: string) => new Refusal('validation_failed', message);

const formLimit = 16 * 1024;

interface Typed {
  readonly platform: Platform | null;
  readonly username: string;
  readonly timezone: string;
  readonly secrets: ReadonlyMap<string, string>;
}

/** Fields of every network; what else a form has is a secret of the guest. */
const plainFields = ['platform', 'username', 'timezone'];

const readForm = async (ctx: Context): Promise<Typed> => {
  if (ctx.is('application/x-www-form-urlencoded') === false) {
    throw new Refusal('unsupported_media_type', 'Send the form of this page.');
  }
  const form = new URLSearchParams((await readBody(ctx.req, formLimit)).toString('utf8'));
  const text = (name: string): string => (form.get(name) ?? '').trim();
  const secrets = new Map([...form].filter(([name]) => !plainFields.includes(name)).slice(0, 10));
  const platform = normalizePlatform(text('platform'));
  return { platform, username: text('username'), timezone: text('timezone'), secrets };
};

/** @throws Refusal with words for the guest. */
const checked = (deps: Deps, { platform, username: typed, timezone, secrets }: Typed, open: OpenInvite): Wanted => {
  const { state, mode } = open;
  if (platform === null || !state.platforms.includes(platform)) throw refuse('This link is not for that network.');
  if (!connectable(mode, state.platforms, liveNetworksOf(deps)).includes(platform))
    throw refuse('That network cannot be connected here yet.');
  const username = typed.replace(/^@/, '');
  if (username === '' || username.length > 100 || /\p{C}/u.test(username)) {
    throw refuse('Give a username of 1 to 100 characters.');
  }
  if (timezone !== '' && !isTimezone(timezone))
    throw refuse('That is no timezone: give one such as Europe/Berlin, or none.');
  for (const { name, label, maxLength } of mode === 'live'
    ? (formConnectorOf(deps.live?.connectors[platform])?.secrets ?? [])
    : []) {
    const given = secrets.get(name) ?? '';
    if (given === '') throw refuse(`Give the ${label}.`);
    if (given.length > maxLength) throw refuse(`The ${label} has at most ${maxLength} characters.`);
  }
  return { platform, username, timezone: timezone === '' ? null : timezone, secrets };
};

/** What is connected: an account of the sandbox, or one that the network has just answered for. */
interface Consented {
  readonly network: 'live' | 'sandbox';
  readonly profile: ConnectedProfile;
  /** Null: the sandbox gives none. */
  readonly credential: NewCredential | null;
}

/** Milliseconds for the network's answers while a guest waits. */
const networkMs = 10_000;

/** @throws Refusal with the network's refusal in words for the guest */
const consented = async (deps: Deps, { mode }: OpenInvite, wanted: Wanted): Promise<Consented> => {
  const { platform, username, secrets } = wanted;
  if (mode === 'test') {
    const profile = { ...deps.sandboxProfile(platform, username), consentEndsAt: null };
    return { network: 'sandbox', profile, credential: null };
  }
  const connector = formConnectorOf(deps.live?.connectors[platform]);
  if (connector === undefined) throw refuse('That network cannot be connected here yet.');
  const answer = await connector.connect(username, secrets, AbortSignal.timeout(networkMs));
  if (answer.kind === 'refused') throw refuse(answer.words);
  return { network: 'live', profile: answer.profile, credential: answer.credential };
};

/**
 * Use → credentials → connect. The stream of the invite decides first, so that an earlier revocation or archive always
 * wins. If we die after the use, the invite names an account that is not connected: the page shows only those that are,
 * and the guest's next try finds the use done and connects. If we die after the credentials, an account that nobody
 * connected has some, which the next consent replaces; the other order would show an account that cannot publish.
 */
const connect = async (deps: Deps, ctx: Context, open: OpenInvite, wanted: Wanted, appendMs: number): Promise<void> => {
  const { correlationId, positions } = stateOf(ctx);
  const { network, profile, credential } = await consented(deps, open, wanted);
  const giveUpAt = performance.now() + appendMs;
  const { platform, timezone } = wanted;
  const accountId = accountIdOf(open.clientId, platform, profile.externalId);
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
  await execute(deps.store, invite, open.id, { type: 'Use', now, accountId, platform }, context, { positions });
  faultPoint('invite:between-use-and-connect');
  if (credential !== null) {
    const { workspaceId, clientId } = open;
    const kept = await deps.live?.credentials.keep({ accountId, workspaceId, clientId, platform }, credential);
    if (kept === null || kept === undefined) throw notFound('link');
    faultPoint('invite:between-credentials-and-connect');
  }
  const { externalId, username, displayName, avatarUrl, scopes, consentEndsAt: expiresAt } = profile;
  await execute(
    deps.store,
    account,
    accountId,
    {
      ...{ type: 'Connect', clientId: open.clientId, platform, externalId, network, username, displayName, avatarUrl },
      ...{ scopes, expiresAt, timezone, inviteId: open.id },
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
    offered: connectable(open.mode, platforms, liveNetworksOf(deps)),
    connectors: open.mode === 'live' ? (deps.live?.connectors ?? {}) : {},
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
      const connecting = connect(deps, ctx, open, checked(deps, typed, open), appendMs);
      await within(callMs + networkMs, connecting, tooLate);
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
