import { SessionShown } from '#schemas/http/console.ts';
import { listSessions as sessionsOf } from '#services/auth/people/sessions.ts';
import { exampleSession, personOfCall, showSession } from '../console/sessions.ts';
import { wholeList } from '../cursor.ts';
import { operation } from '../operation.ts';

export const listSessions = operation({
  id: 'listSessions',
  method: 'GET',
  path: '/sessions',
  tag: 'console',
  noun: 'session',
  summary: 'List your sessions, last used first',
  description: 'The browsers in which you are signed in, whatever the workspace.',
  scope: 'agency.read',
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
