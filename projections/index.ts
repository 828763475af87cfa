import type { Topic } from '#schemas/topics.ts';
import type { Model } from './engine/model.ts';
import { accounts } from './models/accounts.ts';
import { apiKeys } from './models/apikeys.ts';
import { approvals } from './models/approvals.ts';
import { campaigns } from './models/campaigns.ts';
import { clients } from './models/clients.ts';
import { grants } from './models/grants.ts';
import { invites } from './models/invites.ts';
import { media } from './models/media.ts';
import { posts } from './models/posts.ts';
import { clientAccounts, postTargetCounts, type Recount } from './models/recounts.ts';
import { reports } from './models/reports.ts';
import { postTargets } from './models/targets.ts';
import { teamInvites } from './models/team-invites.ts';
import { webhooks } from './models/webhook-endpoints.ts';
import { workspaces } from './models/workspaces.ts';

/** The table of projections: which models are written together, and from which topics. */

export interface Projection {
  readonly name: string;
  /**
   * Raise it whenever a model's columns or folds change: a rebuild then makes new tables beside the old ones. A new
   * column that is null where its events lack the member needs none: a start adds it to the live table.
   */
  readonly shape: number;
  readonly topics: readonly Topic[];
  /** In the order of writing: owners before the rows that they count. */
  readonly models: readonly Model[];
  readonly recounts: readonly Recount[];
}

export const projections: readonly Projection[] = [
  {
    name: 'workspaces',
    shape: 1,
    topics: ['workspace'],
    models: [workspaces, apiKeys, grants, teamInvites],
    recounts: [],
  },
  {
    name: 'clients',
    shape: 1,
    topics: ['workspace'],
    models: [clients, invites, accounts],
    recounts: [clientAccounts],
  },
  { name: 'posts', shape: 1, topics: ['posts'], models: [posts, postTargets], recounts: [postTargetCounts] },
  { name: 'approvals', shape: 1, topics: ['posts'], models: [approvals], recounts: [] },
  { name: 'media', shape: 1, topics: ['media'], models: [media], recounts: [] },
  { name: 'webhooks', shape: 1, topics: ['webhooks'], models: [webhooks], recounts: [] },
  { name: 'reports', shape: 1, topics: ['reports'], models: [reports], recounts: [] },
  { name: 'campaigns', shape: 1, topics: ['posts'], models: [campaigns], recounts: [] },
];

/** @throws when there is no projection of that name. */
export const projectionOf = (name: string): Projection => {
  const found = projections.find((one) => one.name === name);
  if (found === undefined) {
    throw new Error(`no projection is called ${name}; there are ${projections.map((one) => one.name).join(', ')}`);
  }
  return found;
};

/** Consumer group of one generation of a projection's tables. */
export const groupOf = (name: string, generation: number): string => `projection-${name}-v${generation}`;
