import type { Tag } from '../call/operation.ts';

export const auditTag: Tag = {
  place: 125,
  name: 'audit',
  noun: 'post',
  about:
    'What happened, read from the stored events: for auditors. Only an Owner, or an API key that an Owner gave `events.read`, reads it; no app can be given that scope.',
};

/** Values of the contract's examples of what auditors read. */

const origin = {
  actor: { type: 'apikey', id: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0201' },
  credential: { type: 'api_key', id: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0201' },
  correlationId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0301',
  causationId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0301',
  commandId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0302',
};

export const entryExample = (resource: string, type: string, field: string, values: readonly [unknown, unknown]) => ({
  id: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0303',
  object: 'change',
  resource,
  resourceId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0304',
  revision: 1,
  type,
  at: '2026-01-31T08:05:00.000Z',
  ...origin,
  reason: null,
  changes: [{ field, old: values[0], new: values[1] }],
  moreChanges: 0,
});
