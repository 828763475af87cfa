import Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import { within } from '#contracts/base/pause.ts';
import { type ApprovalState, approval, type Decision, decisions, isUsableLink } from '#domain/approval.ts';
import { client } from '#domain/client.ts';
import { Rejection } from '#domain/decider.ts';
import { workspace } from '#domain/workspace.ts';
import { type CommandContext, uuidv7 } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { claimedIds, isGenuine } from '#runtime/identity/link-token.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { maxComment, maxGuestName } from '#schemas/approval.ts';
import { requireInForce } from '#services/api/approvals/decide.ts';
import { shownPostOf } from '#services/api/approvals/shown.ts';
import type { Allowances } from '#services/api/call/allowances.ts';
import type { CallPatience, Deps } from '#services/api/call/deps.ts';
import { errors } from '#services/api/call/errors.ts';
import { toProblem } from '#services/api/call/problems.ts';
import { Refusal } from '#services/api/call/refusal.ts';
import { stateOf } from '#services/api/http/every-request.ts';
import { readBody } from '#services/api/http/rest.ts';
import { pageHeadersWith } from '#services/shell/page.ts';
import { mayStill } from '#services/workflows/authority.ts';
import { tendApprovals } from '#services/workflows/posts/approvals.ts';
import { approvalPage } from './approval-html.ts';
import { forPeople, show, show404, tooLate } from './links.ts';

/**
 * The page behind a link for a guest of the client. Opening it changes nothing: scanners of mail open links. The form
 * decides, once, and the page then shows the outcome.
 */

interface OpenLink {
  readonly approvalId: string;
  readonly linkId: string;
  readonly workspaceId: string;
  readonly state: Exclude<ApprovalState, { status: 'none' }>;
  readonly expiresAt: string;
  readonly clientName: string;
  readonly mode: 'live' | 'test';
}

/** By the clock of the workspace. */
const timeOf = async ({ clock, sandboxClocks }: Deps, workspaceId: string) => {
  const [real, aheadMs] = [clock(), (await sandboxClocks?.known(workspaceId)) ?? 0];
  return { now: new Date(real + aheadMs).toISOString(), realNow: new Date(real).toISOString(), aheadMs };
};

/**
 * Null for unknown, forged, revoked and expired tokens alike, for those of an archived client, and while the member who
 * made the link may not decide.
 */
const openLink = async (deps: Deps, token: string): Promise<OpenLink | null> => {
  const ids = claimedIds(token, 2);
  const [approvalId, linkId] = ids ?? [];
  if (ids === null || approvalId === undefined || linkId === undefined) return null;
  const { state, events } = await deps.store.load(approval, approvalId);
  const workspaceId = events[0]?.metadata.workspaceId;
  if (workspaceId === undefined || state.status === 'none') return null;
  const link = state.links[linkId];
  const { now } = await timeOf(deps, workspaceId);
  if (!isUsableLink(link, now) || !isGenuine(deps.secrets, 'approval', token, ids, link.keyVersion)) return null;
  const created = events.find(({ type, data }) => type === 'ApprovalLinkCreated' && data.linkId === linkId);
  if (created === undefined) return null;
  if (!(await mayStill(deps.store, workspaceId, created.metadata.actor, 'approvals.decide'))) return null;
  const owner = await deps.store.load(client, state.about.clientId);
  const home = await deps.store.load(workspace, workspaceId);
  if (owner.state.status !== 'live' || home.state.status !== 'created') return null;
  const { mode } = home.state;
  const { name: clientName } = owner.state.fields;
  return { approvalId, linkId, workspaceId, state, expiresAt: link.expiresAt, clientName, mode };
};

interface Typed {
  readonly decision: Decision | null;
  readonly name: string;
  readonly comment: string;
}
const nothingTyped: Typed = { decision: null, name: '', comment: '' };

/** A comment of the largest length, each character as three escaped bytes, fits. */
const formLimit = 40 * 1024;

const readForm = async (ctx: Context): Promise<Typed> => {
  if (ctx.is('application/x-www-form-urlencoded') === false) {
    throw new Refusal('unsupported_media_type', 'Send the form of this page.');
  }
  const form = new URLSearchParams((await readBody(ctx.req, formLimit)).toString('utf8'));
  const text = (name: string): string => (form.get(name) ?? '').replaceAll('\r\n', '\n').trim();
  const decision = decisions.find((one) => one === form.get('decision')) ?? null;
  return { decision, name: text('name'), comment: text('comment') };
};

const refuse = (message: string) => new Refusal('validation_failed', message);

/** @throws Refusal with words for the guest */
const checked = ({ decision, name, comment }: Typed) => {
  if (decision === null) throw refuse('Choose one of the three buttons.');
  if (name === '' || name.length > maxGuestName || /\p{C}/u.test(name)) {
    throw refuse(`Give your name, in 1 to ${maxGuestName} characters.`);
  }
  if (comment.length > maxComment || comment.includes('\u0000')) {
    throw refuse(`A comment has at most ${maxComment} characters.`);
  }
  if (comment === '' && decision !== 'approve') throw refuse('Say in a comment what is wrong.');
  return { decision, name, comment: comment === '' ? null : comment };
};

/**
 * The decision is appended to the request, then the post follows. If we die before the append, nothing was decided, and
 * the guest sends the form again; after it, the outcomes consumer or the sweeper carries the decision out.
 */
const decide = async (deps: Deps, ctx: Context, open: OpenLink, typed: Typed, giveUpAt: number): Promise<void> => {
  const { correlationId, positions } = stateOf(ctx);
  const { approvalId, linkId, workspaceId, state } = open;
  const { decision, name, comment } = checked(typed);
  const { now, aheadMs } = await timeOf(deps, workspaceId);
  const decidedBy = { type: 'guest', id: linkId } as const;
  const commandId = uuidv7();
  const context: CommandContext = {
    ...{ workspaceId, actor: decidedBy, correlationId, causationId: correlationId, commandId },
    ...{ now, aheadMs, giveUpAt },
  };
  await requireInForce({ deps, positions }, approvalId, state);
  const command = { type: 'Decide', decision, decidedBy, comment, guest: { linkId, name, now } } as const;
  const { postId } = state.about;
  await execute(deps.store, approval, approvalId, command, context, { positions, partitionKey: postId });
  faultPoint('approval:after-decision');
  await tendApprovals(deps.store, postId, { positions });
};

const showLink = async (deps: Deps, ctx: Context, open: OpenLink, typed: Typed, refusal: Rejection | null) => {
  const { state, clientName, mode, expiresAt } = open;
  stateOf(ctx).pageOf = open.workspaceId;
  const isShown = state.status !== 'withdrawn';
  const { post, origins } = isShown
    ? await shownPostOf(deps, open, await timeOf(deps, open.workspaceId))
    : { post: null, origins: [] };
  const html = approvalPage({
    ...{ clientName, mode, status: state.status, comment: state.decided?.comment ?? null, post, expiresAt, typed },
    alert: refusal?.message ?? null,
  });
  const status = refusal === null ? 200 : errors[toProblem(refusal).code].status;
  show(ctx, status, html, pageHeadersWith(origins));
};

/** Refusals that the page of the link shows in words. */
const shownCodes = ['validation_failed', 'approval_not_pending', 'approval_superseded'];

export const approvalPages = (deps: Deps, allowances: Allowances, { appendMs, callMs }: CallPatience): Middleware => {
  const router = new Router({ strict: true, sensitive: true });
  const people = forPeople(deps, allowances);
  const opened = (token: string) => within(callMs, openLink(deps, token), tooLate);
  router.get('/approval/:token', people, async (ctx) => {
    const open = await opened(String(ctx.params.token));
    if (open === null) return show404(ctx);
    return within(callMs, showLink(deps, ctx, open, nothingTyped, null), tooLate);
  });
  router.post('/approval/:token', people, async (ctx) => {
    const token = String(ctx.params.token);
    const open = await opened(token);
    if (open === null) return show404(ctx);
    const typed = await readForm(ctx);
    try {
      await within(callMs, decide(deps, ctx, open, typed, performance.now() + appendMs), tooLate);
    } catch (error) {
      if (!(error instanceof Rejection) || !shownCodes.includes(toProblem(error).code)) throw error;
      // Another person may have decided meanwhile: the page shows how the request stands now.
      const now = (await opened(token)) ?? open;
      return within(callMs, showLink(deps, ctx, now, typed, error), tooLate);
    }
    // Back to the page by GET, so that a reload sends nothing again.
    ctx.set('Location', `/approval/${token}`);
    return show(ctx, 303, '');
  });
  return router.routes() as Middleware;
};
