import { getWorkspace, renderAgency } from '#projections/models/workspaces.ts';
import { Unavailable } from '#runtime/eventing/domain-store.ts';
import { Agency } from '#schemas/http/agency.ts';
import { maxTargets } from '#schemas/post.ts';
import { exampleAgency } from '../examples.ts';
import { defaultBodyLimit } from '../json.ts';
import { operation } from '../operation.ts';

export const getAgency = operation({
  id: 'getAgency',
  method: 'GET',
  path: '/agency',
  tag: 'agency',
  summary: 'Get the current workspace',
  description: 'A test key gets the sandbox twin, which counts the members of the live workspace.',
  scope: 'agency.read',
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
