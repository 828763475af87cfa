import { Quota } from '#schemas/http/quota.ts';
import { operation } from '../operation.ts';
import { exampleQuota } from '../quota/examples.ts';
import { showQuota } from '../quota/show.ts';

export const getQuota = operation({
  id: 'getQuota',
  method: 'GET',
  path: '/quota',
  tag: 'agency',
  summary: 'Get the quota of this month',
  description: [
    'A post takes one place for each of its targets, in the month in which the target is due, in the zone of the workspace; a thread is one target. A month without room refuses the call that would need one: 429 `quota_exceeded`. Targets that move into another month, and failed targets that are tried again, need a place there first.',
    'Canceled and failed targets give their places back, and drafts take none. The operator of the service sets the quota.',
  ].join('\n\n'),
  scope: 'accounts.read',
  idempotent: 'none',
  cost: 1,
  answer: Quota,
  codes: [],
  example: { data: exampleQuota },
  handle: async (call) => {
    await call.behind(['posts', 'workspace']);
    return { data: await showQuota(call) };
  },
});
