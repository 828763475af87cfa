import type { Topic } from '#schemas/topics.ts';
import type { Model, Recount } from './engine/model.ts';
import { accounts } from './models/accounts.ts';
import { apiKeys } from './models/apikeys.ts';
import { approvals } from './models/approvals.ts';
import { campaigns } from './models/campaigns.ts';
import { clientAccounts, clients } from './models/clients.ts';
import { grants } from './models/grants.ts';
import { invites } from './models/invites.ts';
import { media } from './models/media.ts';
import { posts, postTargetCounts } from './models/posts.ts';
import { reports } from './models/reports.ts';
import { postTargets, targetsOfShape1 } from './models/targets.ts';
import { teamInvites } from './models/team-invites.ts';
import { webhooks } from './models/webhook-endpoints.ts';
import { workspaces } from './models/workspaces.ts';
import { shapeOf } from './shapes.ts';

/** The table of projections: which models are written together, and from which topics. */

export interface Projection {
  readonly name: string;
  readonly shape: number;
  readonly topics: readonly Topic[];
  /** In the order of writing: owners before the rows that they count. */
  readonly models: readonly Model[];
  readonly recounts: readonly Recount[];
  /**
   * The shape of the release before, as this build writes it while processes of that release read it: their own
   * projections may have left. Null: it is the same shape.
   */
  readonly former: Projection | null;
}

interface Entry extends Omit<Projection, 'shape' | 'former'> {
  readonly former?: Pick<Projection, 'shape' | 'models'>;
}

const table: readonly Entry[] = [
  {
    name: 'workspaces',
    topics: ['workspace'],
    models: [workspaces, apiKeys, grants, teamInvites],
    recounts: [],
  },
  {
    name: 'clients',
    topics: ['workspace'],
    models: [clients, invites, accounts],
    recounts: [clientAccounts],
  },
  {
    name: 'posts',
    topics: ['posts'],
    models: [posts, postTargets],
    recounts: [postTargetCounts],
    former: { shape: 1, models: [posts, targetsOfShape1] },
  },
  { name: 'approvals', topics: ['posts'], models: [approvals], recounts: [] },
  { name: 'media', topics: ['media'], models: [media], recounts: [] },
  { name: 'webhooks', topics: ['webhooks'], models: [webhooks], recounts: [] },
  { name: 'reports', topics: ['reports'], models: [reports], recounts: [] },
  { name: 'campaigns', topics: ['posts'], models: [campaigns], recounts: [] },
];

export const projections: readonly Projection[] = table.map(({ former, ...one }) => ({
  ...{ ...one, shape: shapeOf(one.name) },
  former: former === undefined ? null : { ...one, ...former, former: null },
}));

/** @throws when there is no projection of that name. */
export const projectionOf = (name: string, of: readonly Projection[] = projections): Projection => {
  const found = of.find((one) => one.name === name);
  if (found === undefined) {
    throw new Error(`no projection is called ${name}; there are ${of.map((one) => one.name).join(', ')}`);
  }
  return found;
};

/** Consumer group of one generation of a projection's tables. */
export const groupOf = (name: string, generation: number): string => `projection-${name}-v${generation}`;
