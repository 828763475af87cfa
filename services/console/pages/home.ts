import { rulesOf } from '#domain/platforms/index.ts';
import { noProxies, readCaller } from '#runtime/identity/proxies.ts';
import { type Deps, liveNetworksOf } from '#services/api/call/deps.ts';
import { notFound } from '#services/api/call/refusal.ts';
import { chooseWorkspace } from '#services/auth/people/sessions.ts';
import type { MemberVisitor, Visit } from '../deps.ts';
import { call } from '../operations.ts';
import { home } from '../paths.ts';
import type { Route } from '../routes.ts';
import { canMail } from '../security-mails.ts';
import { goTo, showPage } from '../show.ts';
import { roleShown } from '../words.ts';

/** Home: the workspace, live or sandbox, and what to do next. */

interface AccountRow {
  readonly id: string;
  readonly platform: string;
  readonly username: string | null;
}

/** Accounts on the page: a few at a time, since each must be looked at. */
const maxAccounts = 50;

/** The accounts that nobody has looked at since a restore; null: there was none, or the member sends nothing out. */
const unconfirmed = async (visit: Visit<MemberVisitor>): Promise<readonly AccountRow[] | null> => {
  const { it, visitor } = visit;
  const { restores } = it.deps;
  const restore = (await restores?.newest()) ?? null;
  if (restores === undefined || restore === null || !visitor.principal.scopes.includes('posts.compose')) return null;
  const query = { limit: maxAccounts };
  const accounts = await call<readonly AccountRow[]>(visit, 'listAccounts', { query }, visitor.principal);
  const ids = accounts.map(({ id }) => id);
  const left = new Set(await restores.unlooked(ids, restore));
  return accounts.filter(({ id }) => left.has(id));
};

/** Whether this very request came through a proxy that nobody named: no stranger can make an Owner read it. */
const isByUnnamedProxy = ({ it, ctx }: Visit<MemberVisitor>): boolean => {
  const { trustedProxies = noProxies } = it.deps;
  return readCaller(ctx.req.socket.remoteAddress, ctx.get('X-Forwarded-For'), trustedProxies).unnamed !== null;
};

/** Names of the networks whose accounts a connect link can ask for here; empty: of none. */
const liveNames = (deps: Deps): string =>
  new Intl.ListFormat('en').format(liveNetworksOf(deps).map((platform) => rulesOf(platform).name));

const showHome = async (visit: Visit<MemberVisitor>): Promise<void> => {
  const { it, visitor } = visit;
  const { membership, memberships, session } = visitor;
  const { deps } = it;
  showPage(visit, {
    ...{ view: 'home', title: membership.name },
    data: {
      mode: session.mode,
      live: liveNames(deps),
      isAsked: canMail(it) && !visitor.isProven,
      isByUnnamedProxy: membership.role === 'owner' && isByUnnamedProxy(visit),
      unconfirmed: await unconfirmed(visit),
      role: roleShown(membership.role),
      workspaces: memberships.map(({ workspaceId, name, role }) => ({
        id: workspaceId,
        name,
        role: roleShown(role).name,
        isChosen: workspaceId === membership.workspaceId,
      })),
      makesKeys: membership.role === 'owner' || membership.role === 'manager',
      baseUrl: deps.baseUrl(),
      mcpUrl: deps.mcpUrl(),
      docsUrl: `${new URL(deps.baseUrl()).origin}/docs`,
    },
  });
};

const choose = async ({ it, ctx, form, visitor }: Visit<MemberVisitor>): Promise<void> => {
  const wanted = form.get('workspace') ?? visitor.membership.workspaceId;
  const found = visitor.memberships.find(({ workspaceId }) => workspaceId === wanted);
  const mode = form.get('mode') ?? visitor.session.mode;
  if (found === undefined || (mode !== 'live' && mode !== 'test')) throw notFound('workspace');
  await chooseWorkspace(it.deps.pool, visitor.session.id, { workspaceId: found.workspaceId, mode });
  goTo(ctx, home);
};

const confirm = async (visit: Visit<MemberVisitor>): Promise<void> => {
  const params = { id: visit.params.id ?? '' };
  await call(visit, 'confirmRestoredAccount', { params }, visit.visitor.principal);
  goTo(visit.ctx, home);
};

export const homeRoutes: readonly Route[] = [
  { method: 'GET', path: '/', for: 'anyone', answer: ({ ctx }) => goTo(ctx, home) },
  { method: 'GET', path: home, for: 'member', answer: showHome },
  { method: 'POST', path: '/console/workspace', for: 'member', answer: choose },
  { method: 'POST', path: '/console/accounts/:id/confirm', for: 'member', answer: confirm },
];
