import { birthOf } from '#domain/decider.ts';
import { grant } from '#domain/grant.ts';
import { isAtLeast } from '#domain/roles.ts';
import { grantsOfMember, type ListedGrant, listGrants } from '#projections/models/grants.ts';
import { asFacts } from '#runtime/eventing/domain-store.ts';
import type { GrantEvent } from '#schemas/grant.ts';
import { IdParams } from '#schemas/http/common.ts';
import { AppShown } from '#schemas/http/console.ts';
import { revokeGrant } from '#services/auth/grants.ts';
import { wholeList } from '../call/cursor.ts';
import { type Call, operation } from '../call/operation.ts';
import { notFound } from '../call/refusal.ts';
import { lastUsesOf } from '../callers/bearer-tokens.ts';
import { consoleTag } from './team.ts';

/** Connected apps as the console shows them. */

const showApp = (
  { grantId, clientId, clientName, memberId, mode, scopes, resource, givenAt, expiresAt, revokedAt }: ListedGrant,
  lastUsedAt: string | null,
) => ({
  id: grantId,
  object: 'connected_app' as const,
  ...{ clientId, clientName, memberId, mode, scopes, resource, givenAt, expiresAt, lastUsedAt, revokedAt },
});

/**
 * The grant of the live workspace as its stream has it, so that it can be ended before the read models show it. Null
 * where the workspace has none of this id.
 */
const ownGrant = async (
  { deps, principal }: Pick<Call, 'deps' | 'principal'>,
  grantId: string,
): Promise<ListedGrant | null> => {
  const { liveWorkspaceId: workspaceId } = principal;
  const { events } = await deps.store.load(grant, grantId);
  if (birthOf(grant, events)?.metadata.workspaceId !== workspaceId) return null;
  const facts = asFacts<GrantEvent>(events);
  const given = facts.find(({ event }) => event.type === 'GrantGiven');
  const ended = facts.find(({ event }) => event.type === 'GrantRevoked');
  if (given?.event.type !== 'GrantGiven') return null;
  const { clientId, clientName, personId, memberId, mode, scopes, resource, expiresAt } = given.event.data;
  return {
    ...{ grantId, workspaceId, clientId, clientName, personId, memberId, mode, scopes, resource, expiresAt },
    givenAt: given.fact.occurredAt,
    revokedAt: ended?.fact.occurredAt ?? null,
    revokedBy: ended?.event.type === 'GrantRevoked' ? ended.event.data.by : null,
  };
};

const exampleApp = {
  id: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0105',
  object: 'connected_app',
  clientId: '2YotnFZFEjr1zCsicMWpAA',
  clientName: 'An agent',
  memberId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0102',
  mode: 'test',
  scopes: ['posts.read', 'posts.compose'],
  resource: 'https://api.example/mcp',
  givenAt: '2026-01-31T08:00:00.000Z',
  expiresAt: '2027-01-31T08:00:00.000Z',
  lastUsedAt: null,
  revokedAt: null,
};

export const listApps = operation({
  id: 'listApps',
  method: 'GET',
  path: '/apps',
  tag: consoleTag,
  noun: 'connected app',
  summary: 'List connected apps, newest first',
  description:
    'Owners and Managers see all apps that members gave access to the workspace, others their own; with those whose access ended, at most 500.',
  scope: 'agency.read',
  limited: 'refused',
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

export const revokeApp = operation({
  id: 'revokeApp',
  method: 'DELETE',
  path: '/apps/{id}',
  tag: consoleTag,
  noun: 'connected app',
  summary: 'End the access of an app',
  description:
    'Its tokens lose all power within a second, and it has to ask again. Owners and Managers end the access of every app in the workspace, others that of their own. A repeat changes nothing.',
  scope: 'agency.read',
  limited: 'refused',
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
