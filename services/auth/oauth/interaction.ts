import type { Context } from 'koa';
import { errors, type default as Provider } from 'oidc-provider';
import { grant } from '#domain/grant.ts';
import { uuidv5 } from '#domain/ids.ts';
import { takePlace } from '#projections/queries/credential-places.ts';
import { type Positions, uuidv7 } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { grantableScopes } from '#schemas/grant.ts';
import { type ConsentResult, openConsent } from '../consent.ts';
import { revokeGrant } from '../grants.ts';
import { roleNow } from '../judged.ts';
import { eraOf } from '../people/credentials.ts';
import type { OAuthDeps } from './deps.ts';
import { showError } from './error-page.ts';
import { grantSeconds } from './times.ts';

/**
 * The place where an authorization waits for the person: it sends the browser to the console, and takes the console's
 * answer. Only the browser that began the authorization has its cookie, so nobody finishes one with the consent of
 * another person.
 */

type Asked = Awaited<ReturnType<Provider['interactionDetails']>>;

/** Milliseconds that the browser waits for the append. */
const appendMs = 10_000;
/** Milliseconds that it waits until a token of the grant is accepted; afterwards it goes on anyway. */
const acceptedMs = 2_000;

/** The same decision on the same authorization gives the same grant, so that a repeat completes it. */
const grantIdOf = ({ personId, ...result }: ConsentResult): string =>
  uuidv5(personId, ['oauth grant', JSON.stringify(Object.entries(result).sort())].join('\n'));

/** Whether what was older has not ended since the person decided. */
const isOfEra = async ({ pool }: OAuthDeps, { personId, era }: ConsentResult): Promise<boolean> =>
  (await eraOf(pool, personId)) === era;

interface Allowed {
  readonly scopes: readonly string[];
  readonly resource: string;
  readonly clientId: string;
}

/** What is granted; null where the person left nothing, is no member there any more, or ended what was older. */
const allowedBy = async (deps: OAuthDeps, asked: Asked, result: ConsentResult): Promise<Allowed | null> => {
  if (result.decision !== 'allow') return null;
  const { scope = '', resource, client_id: clientId } = asked.params as Readonly<Record<string, string | undefined>>;
  const requested = new Set(scope.split(' '));
  const scopes = grantableScopes.filter((one) => requested.has(one) && result.scopes.includes(one));
  if (scopes.length === 0 || resource === undefined || clientId === undefined) return null;
  const role = await roleNow(deps, result.workspaceId, result.memberId);
  return role === null || !(await isOfEra(deps, result)) ? null : { scopes, resource, clientId };
};

/** Null where the person ended what was older meanwhile. */
const give = async (
  deps: OAuthDeps,
  provider: Provider,
  result: ConsentResult,
  allowed: Allowed,
): Promise<string | null> => {
  const { personId, memberId, workspaceId, mode } = result;
  const { scopes, resource, clientId } = allowed;
  const grantId = grantIdOf(result);
  const client = await provider.Client.find(clientId);
  if (client === undefined) throw new errors.InvalidClient('the app is gone');
  const id = uuidv7();
  const instant = deps.clock();
  const now = new Date(instant).toISOString();
  const expiresAt = new Date(instant + grantSeconds * 1_000).toISOString();
  const app = { clientId, clientName: client.clientName ?? '' };
  const command = { type: 'Give', now, ...app, personId, memberId, mode, scopes, resource, expiresAt } as const;
  const actor = { type: 'member', id: memberId } as const;
  const context = { workspaceId, actor, correlationId: id, causationId: id, commandId: id, now };
  const positions: Positions = new Map();
  const patient = { ...context, giveUpAt: performance.now() + appendMs };
  await execute(deps.store, grant, grantId, command, patient, { positions });
  // If we die here, the grant is listed and no code or token exists for it: the same answer of the console completes it,
  // and after that answer's minute the sweep ends it.
  faultPoint('oauth:after-given');
  const own = new provider.Grant({ accountId: personId, clientId, jti: grantId } as ConstructorParameters<
    typeof provider.Grant
  >[0]);
  own.addResourceScope(resource, scopes.join(' '));
  await own.save();
  // A concurrent end of older grants finds this row, or this check finds that end. After a crash before it, no code exists.
  if (!(await isOfEra(deps, result))) {
    await revokeGrant(deps, grantId, 'person', { actor });
    return null;
  }
  // The credential is stored: a database that does not answer now costs the caller no secret.
  await deps.caughtUp(positions, acceptedMs).catch(() => false);
  return grantId;
};

const over = (ctx: Context): void =>
  showError(ctx, 400, 'invalid_request', 'This request is over, or it was begun in another browser.');

/** Without an answer of the console the browser goes there; with one it goes back to the app. */
export const interact = async (ctx: Context, provider: Provider, deps: OAuthDeps): Promise<void> => {
  const uid = ctx.path.slice(ctx.path.lastIndexOf('/') + 1);
  ctx.set('Referrer-Policy', 'no-referrer');
  ctx.set('Cache-Control', 'no-store');
  try {
    const asked = await provider.interactionDetails(ctx.req, ctx.res);
    if (asked.uid !== uid) return over(ctx);
    const answer = new URLSearchParams(ctx.querystring).get('result');
    if (answer === null) return go(ctx, `${deps.consoleUrl()}/consent/${uid}`);
    const result = openConsent(deps.secrets, answer, uid, deps.clock());
    if (result === null) return over(ctx);
    if (asked.result !== undefined) return go(ctx, asked.returnTo);
    const allowed = await allowedBy(deps, asked, result);
    const place = { workspaceId: result.workspaceId, id: grantIdOf(result) };
    const isFull = allowed !== null && !(await takePlace(deps, 'grant', place));
    const grantId = allowed === null || isFull ? null : await give(deps, provider, result, allowed);
    const outcome = isFull
      ? { error: 'access_denied', error_description: 'the workspace has too many connected apps: end one first' }
      : grantId === null
        ? { error: 'access_denied', error_description: 'the person did not allow it' }
        : { login: { accountId: result.personId, remember: false }, consent: { grantId } };
    go(ctx, await provider.interactionResult(ctx.req, ctx.res, outcome));
  } catch (error) {
    if (error instanceof errors.SessionNotFound || error instanceof errors.InvalidClient) return over(ctx);
    throw error;
  }
};

const go = (ctx: Context, to: string): void => {
  ctx.status = 303;
  ctx.redirect(to);
  ctx.status = 303;
};
