import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import type { Context, Middleware } from 'koa';
import { isProxy, noProxies, readCaller, UnnamedProxies } from '#runtime/identity/proxies.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import type { Hold, PublishingHold } from '#runtime/work/publishing-hold.ts';
import { grantableScopes } from '#schemas/grant.ts';
import { challengeOf } from '#services/auth/protected-resource.ts';
import type { Allowances } from '../call/allowances.ts';
import type { Deps } from '../call/deps.ts';
import { errors } from '../call/errors.ts';
import { type CallState, newState } from '../call/operation.ts';
import { logFailure, type ProblemAnswer, problemBody, toProblem } from '../call/problems.ts';

/**
 * What every request passes, whichever part answers it: its state, id, headers and log line, its allowance, problems, and
 * the notice of a hold.
 */

/** The state of the call that a request makes, shared by the middleware of the request. */

const states = new WeakMap<object, CallState>();

const begin = (ctx: Context, state: CallState): void => {
  states.set(ctx.req, state);
};

/** @throws when the first middleware did not run: a bug of this service. */
export const stateOf = (ctx: Pick<Context, 'req'>): CallState => {
  const state = states.get(ctx.req);
  if (state === undefined) throw new BrokenInvariant('the request has no state yet');
  return state;
};

/** A caller's own id: visible ASCII, at most 128. */
const acceptable = /^[\x21-\x7e]{1,128}$/;

/** What follows these names one person's link or authorization. */
const personal = /^\/(?:invite|consent|oauth\/authorize|oauth\/interaction)\//i;

/**
 * A path as the log may show it, without parts that are or could be tokens: a part longer than a uuid, and what follows
 * the beginning of a link for one person.
 */
const loggable = (path: string): string => {
  const [link] = personal.exec(path) ?? [];
  if (link !== undefined) return `${link}…`;
  return path
    .split('/')
    .map((segment) => (segment.length > 36 || /sk_|sess_/.test(segment) ? '…' : segment))
    .join('/');
};

/** Whether callers use TLS: the public address says https, or the nearest proxy forwards it. */
const isSecure = ({ baseUrl, consoleUrl }: Deps, forwarded: string): boolean =>
  [baseUrl(), consoleUrl()].some((url) => url.startsWith('https:')) || /(?:^|,) *https *$/i.test(forwarded);

/** The other end of a connection, read once for all of its requests. */
interface Peer {
  readonly isProxy: boolean;
  /** Of the caller, where no header names another. */
  readonly address: string;
}

/**
 * Gives every request an id, sets the headers that every answer has, and writes one log line. The log line holds no
 * header and no body.
 */
export const correlation = (deps: Deps): Middleware => {
  const { logger, trustedProxies = noProxies, unnamedProxies = new UnnamedProxies(logger) } = deps;
  const peers = new WeakMap<Socket, Peer>();
  const peerOf = (socket: Socket): Peer => {
    const { remoteAddress } = socket;
    const known = peers.get(socket) ?? {
      isProxy: isProxy(remoteAddress, trustedProxies),
      address: readCaller(remoteAddress, '', trustedProxies).address,
    };
    peers.set(socket, known);
    return known;
  };
  return async (ctx, next) => {
    const peer = peerOf(ctx.req.socket);
    const sent = ctx.get('X-Correlation-Id');
    const correlationId = acceptable.test(sent) ? sent : randomUUID();
    const path = loggable(ctx.path);
    const forwardedFor = ctx.get('X-Forwarded-For');
    const { address, unnamed } =
      forwardedFor === ''
        ? { address: peer.address, unnamed: null }
        : readCaller(ctx.req.socket.remoteAddress, forwardedFor, trustedProxies);
    if (unnamed !== null) unnamedProxies.note(unnamed);
    begin(ctx, newState(correlationId, address));
    ctx.set('X-Correlation-Id', correlationId);
    ctx.set('Cache-Control', 'no-store');
    ctx.set('X-Content-Type-Options', 'nosniff');
    const forwarded = peer.isProxy ? ctx.get('X-Forwarded-Proto') : '';
    if (isSecure(deps, forwarded)) ctx.set('Strict-Transport-Security', 'max-age=31536000');
    const started = performance.now();
    await next();
    const { operation, principal } = stateOf(ctx);
    logger.info(
      {
        correlationId,
        method: ctx.method,
        path,
        operation: operation?.id,
        status: ctx.status,
        ms: Math.round(performance.now() - started),
        credential: principal?.id,
        workspaceId: principal?.workspaceId,
      },
      'answered',
    );
  };
};

/** Every answer shows an allowance, also the answer to a request that was refused before it spent anything. */
export const showAllowance =
  (allowances: Allowances): Middleware =>
  async (ctx, next) => {
    await next();
    if (ctx.res.getHeader('RateLimit') !== undefined) return;
    await allowances.of(stateOf(ctx)).show(ctx);
  };

/** Every page says that publishing is held, for all workspaces or for the one that the page is about. */

const words = 'Publishing is held: nothing goes out until an operator resumes it. What is due goes out then.';
const afterRestore =
  'This service was restored from an older copy. What may have gone out since then is looked for, and nothing else goes out until an operator resumes publishing.';
const noticeOf = (isRestored: boolean): string =>
  `<p class="banner" role="status"><strong>Publishing is held</strong>${isRestored ? afterRestore : words}</p>`;

/** The page with the notice as the first thing of its main part; a page without one stays as it is. */
const withNotice = (page: string, notice: string): string => {
  const main = page.indexOf('<main');
  const end = main === -1 ? -1 : page.indexOf('>', main);
  return end === -1 ? page : `${page.slice(0, end + 1)}\n${notice}${page.slice(end + 1)}`;
};

/** The workspace is known once the page is made. */
const heldIn = (hold: PublishingHold, ctx: Context): Promise<Hold | null> => {
  const { pageOf } = stateOf(ctx);
  return pageOf === null ? hold.ofAll() : hold.of(pageOf);
};

/** Whether a restore set the hold, or came while it was set. */
const isRestored = async (restores: Deps['restores'], { since }: Hold): Promise<boolean> => {
  const restore = (await restores?.newest()) ?? null;
  return restore !== null && (restore.completedAt === null || since === null || since <= restore.completedAt);
};

export const heldNotice =
  ({ hold, restores, logger }: Pick<Deps, 'hold' | 'restores' | 'logger'>): Middleware =>
  async (ctx, next) => {
    await next();
    if (hold === undefined || ctx.response.type !== 'text/html' || typeof ctx.body !== 'string') return;
    try {
      const held = await heldIn(hold, ctx);
      if (held !== null) ctx.body = withNotice(ctx.body, noticeOf(await isRestored(restores, held)));
    } catch (error) {
      logger.warn({ err: error }, 'whether publishing is held could not be read; a page does not tell it');
    }
  };

const isGrantable = (scope: string | null | undefined): boolean => grantableScopes.some((one) => one === scope);

const render = (ctx: Context, deps: Deps, problem: ProblemAnswer): void => {
  const { code, headers } = problem;
  const { status } = errors[code];
  ctx.status = status;
  ctx.set(headers);
  if (status === 401) {
    const error = code === 'missing_token' ? null : 'invalid_token';
    ctx.set('WWW-Authenticate', challengeOf(deps.baseUrl(), { error }));
  }
  const { principal, operation } = stateOf(ctx);
  if (code === 'insufficient_scope' && principal?.kind === 'oauth' && isGrantable(operation?.scope)) {
    // What it lacks and what it has: an app then asks for both, and loses nothing.
    const scope = [...new Set([...principal.scopes, operation?.scope])].join(' ');
    ctx.set('WWW-Authenticate', challengeOf(deps.baseUrl(), { error: 'insufficient_scope', scope }));
  }
  ctx.body = JSON.stringify(problemBody(deps, stateOf(ctx).correlationId, problem));
  ctx.type = 'application/problem+json';
};

/**
 * Turns every error into a problem; no other place knows HTTP statuses. An error that is no refusal is logged with its
 * correlation id, and answered as `internal` without the message.
 */
export const problems =
  (deps: Deps): Middleware =>
  async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      const answer = toProblem(error);
      const { correlationId, operation } = stateOf(ctx);
      logFailure(deps, answer.code, { correlationId, operation: operation?.id }, error);
      render(ctx, deps, answer);
    }
  };
