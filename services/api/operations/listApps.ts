import { isAtLeast } from '#domain/roles.ts';
import { grantsOfMember, listGrants } from '#projections/models/grants.ts';
import { AppShown } from '#schemas/http/console.ts';
import { exampleApp, showApp } from '../console/apps.ts';
import { wholeList } from '../cursor.ts';
import { lastUsesOf } from '../last-uses.ts';
import { operation } from '../operation.ts';

export const listApps = operation({
  id: 'listApps',
  method: 'GET',
  path: '/apps',
  tag: 'console',
  noun: 'connected app',
  summary: 'List connected apps, newest first',
  description:
    'Owners and Managers see all apps that members gave access to the workspace, others their own; with those whose access ended, at most 500.',
  scope: 'agency.read',
  firstParty: true,
  idempotent: 'none',
  cost: 1,
  answer: AppShown,
  list: true,
  codes: [],
  example: { data: exampleApp },
  handle: async (call) => {
    await call.behind(['workspace']);
    const { deps, principal } = call;
    const all = isAtLeast(principal.role, 'manager');
    const grants = all
      ? await listGrants(deps.pool, { workspaceId: principal.liveWorkspaceId })
      : await grantsOfMember(deps.pool, principal.memberId);
    const uses = await lastUsesOf(
      deps.pool,
      grants.map(({ grantId }) => grantId),
    );
    return wholeList(grants.map((grant) => showApp(grant, uses.get(grant.grantId) ?? null)));
  },
});
