import { notFound } from '#services/api/refusal.ts';
import { chooseWorkspace } from '#services/auth/people/sessions.ts';
import type { MemberVisitor, Visit } from '../deps.ts';
import { home } from '../paths.ts';
import type { Route } from '../routes.ts';
import { goTo, showPage } from '../show.ts';
import { roleShown } from '../words.ts';

/** Home: the workspace, live or sandbox, and what to do next. */

const showHome = (visit: Visit<MemberVisitor>): void => {
  const { it, visitor } = visit;
  const { membership, memberships, session } = visitor;
  const { deps } = it;
  showPage(visit, {
    ...{ view: 'home', title: membership.name },
    data: {
      mode: session.mode,
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

export const homeRoutes: readonly Route[] = [
  { method: 'GET', path: '/', for: 'anyone', answer: ({ ctx }) => goTo(ctx, home) },
  { method: 'GET', path: home, for: 'member', answer: showHome },
  { method: 'POST', path: '/console/workspace', for: 'member', answer: choose },
];
