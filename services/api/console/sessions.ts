import { IdParams } from '#schemas/http/common.ts';
import { SessionShown } from '#schemas/http/console.ts';
import { endSessions, type PersonSession, listSessions as sessionsOf } from '#services/auth/people/sessions.ts';
import { wholeList } from '../call/cursor.ts';
import { operation } from '../call/operation.ts';
import { notFound } from '../call/refusal.ts';
import { consoleTag, personOfCall } from './team.ts';

/** Sessions of the person behind a call. */

const showSession = ({ id, device, address, createdAt, lastUsedAt, expiresAt }: PersonSession, currentId: string) => ({
  id,
  object: 'session' as const,
  ...{ device, address, createdAt, lastUsedAt, expiresAt, current: id === currentId },
});

const exampleSession = {
  id: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0106',
  object: 'session',
  device: 'Firefox on Linux',
  address: '192.0.2.7',
  createdAt: '2026-01-31T08:00:00.000Z',
  lastUsedAt: '2026-01-31T09:00:00.000Z',
  expiresAt: '2026-03-02T08:00:00.000Z',
  current: true,
};

export const listSessions = operation({
  id: 'listSessions',
  method: 'GET',
  path: '/sessions',
  tag: consoleTag,
  noun: 'session',
  summary: 'List your sessions, last used first',
  description: 'The browsers in which you are signed in, whatever the workspace.',
  scope: 'agency.read',
  limited: 'refused',
  firstParty: true,
  idempotent: 'none',
  cost: 1,
  answer: SessionShown,
  list: true,
  codes: [],
  example: { data: exampleSession },
  handle: async (call) => {
    const personId = await personOfCall(call);
    const sessions = personId === null ? [] : await sessionsOf(call.deps, personId);
    return wholeList(sessions.map((one) => showSession(one, call.principal.id)));
  },
});

export const revokeSession = operation({
  id: 'revokeSession',
  method: 'DELETE',
  path: '/sessions/{id}',
  tag: consoleTag,
  noun: 'session',
  summary: 'End one of your sessions',
  description: 'The browser is signed out at its next request.',
  scope: 'agency.read',
  limited: 'refused',
  firstParty: true,
  idempotent: 'none',
  cost: 1,
  params: IdParams,
  answer: SessionShown,
  codes: [],
  example: { data: exampleSession },
  handle: async (call) => {
    const { deps, params, principal } = call;
    const personId = await personOfCall(call);
    const sessions = personId === null ? [] : await sessionsOf(deps, personId);
    const found = sessions.find(({ id }) => id === params.id);
    if (personId === null || found === undefined) throw notFound('session');
    await endSessions(deps, personId, { ids: [found.id] }, 'revoked');
    return { data: showSession(found, principal.id) };
  },
});
