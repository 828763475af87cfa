/**
 * The shapes of the read models, and the names that follow from them. A build reads and writes the tables of its own
 * shapes; builds of two shapes run side by side, each with its own tables behind its own views.
 */

/**
 * Raise the number of a projection whenever columns, indexes or folds of its models change, or it gains or loses one:
 * the first process of the new build then makes new tables beside the former ones.
 */
export const shapes = {
  workspaces: 1,
  clients: 1,
  posts: 1,
  approvals: 1,
  media: 1,
  webhooks: 1,
  reports: 1,
  campaigns: 1,
} as const;
export type ProjectionName = keyof typeof shapes;

/** Name of the view of a model. */
export const viewOf = (model: string, shape: number): string =>
  shape === 1 ? `read.${model}` : `read.${model}_s${shape}`;

const own = (projection: ProjectionName, model: string): string => viewOf(model, shapes[projection]);

/**
 * The views of this build. A query gives each an alias, the model's name where it has no shorter one: the name of the
 * view changes with its shape.
 */
export const views = {
  workspaces: own('workspaces', 'workspaces'),
  api_keys: own('workspaces', 'api_keys'),
  grants: own('workspaces', 'grants'),
  team_invites: own('workspaces', 'team_invites'),
  clients: own('clients', 'clients'),
  invites: own('clients', 'invites'),
  accounts: own('clients', 'accounts'),
  posts: own('posts', 'posts'),
  post_targets: own('posts', 'post_targets'),
  approvals: own('approvals', 'approvals'),
  media: own('media', 'media'),
  webhooks: own('webhooks', 'webhooks'),
  reports: own('reports', 'reports'),
  campaigns: own('campaigns', 'campaigns'),
} as const;

/** SQL: the name of each projection, and the generation that the views of this build show. */
export const ownProjections = `(select name, live from ops.projections where (name, shape) in (${Object.entries(shapes)
  .map(([name, shape]) => `('${name}', ${shape})`)
  .join(', ')}))`;
