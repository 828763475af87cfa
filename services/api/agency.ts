import { getWorkspace, renderAgency } from '#projections/models/workspaces.ts';
import { Unavailable } from '#runtime/eventing/domain-store.ts';
import { Agency } from '#schemas/http/agency.ts';
import { Quota } from '#schemas/http/quota.ts';
import { maxTargets } from '#schemas/post.ts';
import { exampleAgency } from './call/examples.ts';
import { defaultBodyLimit } from './call/json.ts';
import { operation, type Tag } from './call/operation.ts';
import { exampleQuota, showQuota } from './posts/quota.ts';

export const agencyTag: Tag = { place: 10, name: 'agency', noun: 'agency', about: 'The workspace of the credential.' };

export const getAgency = operation({
  id: 'getAgency',
  method: 'GET',
  path: '/agency',
  tag: agencyTag,
  summary: 'Get the current workspace',
  description: 'A test key gets the sandbox twin, which counts the members of the live workspace.',
  scope: 'agency.read',
  limited: 'open',
  idempotent: 'none',
  cost: 1,
  etag: true,
  answer: Agency,
  codes: [],
  example: { data: exampleAgency },
  handle: async ({ deps, principal, workspaceId }) => {
    const row = await getWorkspace(deps.knex, workspaceId);
    const live = row?.twin_of ? await getWorkspace(deps.knex, principal.liveWorkspaceId) : row;
    if (row === null || live === null) throw new Unavailable('The read model of this workspace is behind.');
    const hold = (await deps.hold?.of(workspaceId)) ?? null;
    const limits = {
      requestsPerMinute: deps.rate.perMinute,
      requestBurst: deps.rate.burst,
      bodyBytes: defaultBodyLimit,
      targetsPerPost: maxTargets,
    };
    return { data: renderAgency(row, Object.keys(live.members).length, limits, hold), revision: row.revision };
  },
});

export const getQuota = operation({
  id: 'getQuota',
  method: 'GET',
  path: '/quota',
  tag: agencyTag,
  summary: 'Get the quota of this month',
  description: [
    'A post takes one place for each of its targets, in the month in which the target is due, in the zone of the workspace; a thread is one target. A month without room refuses the call that would need one: 429 `quota_exceeded`. Targets that move into another month, and failed targets that are tried again, need a place there first.',
    'Canceled and failed targets give their places back, and drafts take none. The operator of the service sets the quota.',
  ].join('\n\n'),
  scope: 'accounts.read',
  limited: 'refused',
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
