import type { Context } from 'koa';
import { within } from '#contracts/base/pause.ts';
import type { Connector } from '#contracts/ports/connector.ts';
import { account } from '#domain/account.ts';
import type { ErrorCode } from '#domain/codes.ts';
import { Rejection } from '#domain/decider.ts';
import { connectable } from '#domain/platforms/index.ts';
import { type Deps, liveNetworksOf } from '#services/api/call/deps.ts';
import { errors } from '#services/api/call/errors.ts';
import { toProblem } from '#services/api/call/problems.ts';
import { pageHeaders, pageHeadersWith } from '#services/shell/page.ts';
import { show, tooLate } from '../links.ts';
import { type ConnectedAccount, invitePage, type RefusedForm } from './html.ts';
import type { OpenInvite } from './open-invite.ts';
import type { InviteTools } from './tools.ts';

const maxShown = 100;

/** Read from the accounts' own streams, so that the guest sees an account right after connecting it. */
const connectedThrough = async (deps: Deps, { state }: OpenInvite): Promise<readonly ConnectedAccount[]> => {
  const loaded = await Promise.all(state.accountIds.slice(-maxShown).map((id) => deps.store.load(account, id)));
  return loaded.flatMap(({ state: one }) =>
    one.status === 'none'
      ? []
      : [
          {
            platform: one.platform,
            name: one.username ?? one.displayName ?? one.externalId,
            status: one.status,
          },
        ],
  );
};

/** A form that was refused, and the status of the answer. */
interface RefusedAs extends RefusedForm {
  readonly code: ErrorCode;
}

/**
 * The form of a consent ends at the network. Its host cannot be named: the server of a Bluesky account may be anybody's,
 * and networks send browsers on among hosts of their own. So any host, by https; also by http where we are a trial on
 * this machine ourselves.
 */
const headersOf = ({ consoleUrl }: Deps, ways: readonly Connector[]): Readonly<Record<string, string>> => {
  if (!ways.some(({ kind }) => kind === 'consent')) return pageHeaders;
  return pageHeadersWith([], { leadsTo: consoleUrl().startsWith('https:') ? ['https:'] : ['https:', 'http:'] });
};

export const showInvite = async (
  { deps, patience: { callMs } }: InviteTools,
  ctx: Context,
  open: OpenInvite,
  refused: RefusedAs | null,
): Promise<void> => {
  const connected = await within(callMs, connectedThrough(deps, open), tooLate);
  const { platforms, expiresAt } = open.state;
  const offered = connectable(open.mode, platforms, liveNetworksOf(deps));
  const connectors = open.mode === 'live' ? (deps.live?.connectors ?? {}) : {};
  const html = invitePage({
    clientName: open.clientName,
    mode: open.mode,
    path: open.path,
    platforms,
    offered,
    connectors,
    expiresAt,
    connected,
    refused,
  });
  const headers = headersOf(
    deps,
    offered.flatMap((platform) => connectors[platform] ?? []),
  );
  show(ctx, refused === null ? 200 : errors[refused.code].status, html, headers);
};

/** Goes where `work` leads, by GET, so that a reload sends nothing again; null: it has answered. The page of the link shows a refusal. */
export const goOrShow = async (
  tools: InviteTools,
  ctx: Context,
  open: OpenInvite,
  typed: Pick<RefusedForm, 'platform' | 'way'> & Partial<RefusedForm>,
  work: () => Promise<string | null>,
): Promise<void> => {
  try {
    const next = await work();
    if (next === null) return;
    ctx.set('Location', next);
    return show(ctx, 303, '');
  } catch (error) {
    const { code } = toProblem(error);
    if (!(error instanceof Rejection) || (code !== 'validation_failed' && code !== 'invite_full')) throw error;
    return showInvite(tools, ctx, open, { username: '', timezone: '', ...typed, code, words: error.message });
  }
};
