import { isAtLeast } from '#domain/roles.ts';
import { IdParams } from '#schemas/http/common.ts';
import { AppShown } from '#schemas/http/console.ts';
import { revokeGrant } from '#services/auth/grants.ts';
import { exampleApp, ownGrant, showApp } from '../console/apps.ts';
import { lastUsesOf } from '../last-uses.ts';
import { operation } from '../operation.ts';
import { notFound } from '../refusal.ts';

export const revokeApp = operation({
  id: 'revokeApp',
  method: 'DELETE',
  path: '/apps/{id}',
  tag: 'console',
  noun: 'connected app',
  summary: 'End the access of an app',
  description:
    'Its tokens lose all power within a second, and it has to ask again. Owners and Managers end the access of every app in the workspace, others that of their own. A repeat changes nothing.',
  scope: 'agency.read',
  firstParty: true,
  idempotent: 'none',
  cost: 1,
  params: IdParams,
  answer: AppShown,
  codes: [],
  example: { data: { ...exampleApp, revokedAt: '2026-02-01T08:00:00.000Z' } },
  handle: async (call) => {
    const { deps, principal, params, now } = call;
    const { liveWorkspaceId: workspaceId, actor } = principal;
    const found = await ownGrant(call, params.id);
    const mayEnd = isAtLeast(principal.role, 'manager') || found?.memberId === principal.memberId;
    if (found === null || !mayEnd) throw notFound('connected app');
    await revokeGrant(deps, params.id, 'person', { actor, workspaceId });
    const uses = await lastUsesOf(deps.pool, [params.id]);
    return { data: showApp({ ...found, revokedAt: found.revokedAt ?? now }, uses.get(params.id) ?? null) };
  },
});
