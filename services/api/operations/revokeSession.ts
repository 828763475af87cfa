import { IdParams } from '#schemas/http/common.ts';
import { SessionShown } from '#schemas/http/console.ts';
import { endSessions, listSessions } from '#services/auth/people/sessions.ts';
import { exampleSession, personOfCall, showSession } from '../console/sessions.ts';
import { operation } from '../operation.ts';
import { notFound } from '../refusal.ts';

export const revokeSession = operation({
  id: 'revokeSession',
  method: 'DELETE',
  path: '/sessions/{id}',
  tag: 'console',
  noun: 'session',
  summary: 'End one of your sessions',
  description: 'The browser is signed out at its next request.',
  scope: 'agency.read',
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
    const sessions = personId === null ? [] : await listSessions(deps, personId);
    const found = sessions.find(({ id }) => id === params.id);
    if (personId === null || found === undefined) throw notFound('session');
    await endSessions(deps, personId, { ids: [found.id] }, 'revoked');
    return { data: showSession(found, principal.id) };
  },
});
