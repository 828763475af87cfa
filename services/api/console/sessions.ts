import type { PersonSession } from '#services/auth/people/sessions.ts';
import type { Call } from '../operation.ts';
import { membersOf } from './team.ts';

/** Sessions of the person behind a call. */

/** Null for a member that an operator made: nobody signs in as it. */
export const personOfCall = async (call: Pick<Call, 'deps' | 'principal'>): Promise<string | null> =>
  (await membersOf(call))[call.principal.memberId]?.personId ?? null;

export const showSession = (
  { id, device, address, createdAt, lastUsedAt, expiresAt }: PersonSession,
  currentId: string,
) => ({
  id,
  object: 'session' as const,
  ...{ device, address, createdAt, lastUsedAt, expiresAt, current: id === currentId },
});

export const exampleSession = {
  id: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0106',
  object: 'session',
  device: 'Firefox on Linux',
  address: '192.0.2.7',
  createdAt: '2026-01-31T08:00:00.000Z',
  lastUsedAt: '2026-01-31T09:00:00.000Z',
  expiresAt: '2026-03-02T08:00:00.000Z',
  current: true,
};
