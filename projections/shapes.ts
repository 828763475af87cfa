/**
 * The shapes of the read models, and the names that follow from them. A build writes and reads the tables of its own
 * shapes; builds of two shapes run side by side, each with its own tables behind its own views.
 */

interface Raised {
  readonly shape: number;
  /** All models of the projection. A model keeps its projection, or gets another name. */
  readonly models: readonly string[];
}

/**
 * Raise the shape of a projection, which begins at 1, whenever columns, indexes or folds of its models change, or it gains
 * or loses a model: the first process of the new build then makes new tables beside the former ones.
 */
const raised: Readonly<Record<string, Raised>> = {
  posts: { shape: 3, models: ['posts', 'post_targets'] },
};

export const shapeOf = (projection: string): number => raised[projection]?.shape ?? 1;

export const viewOf = (model: string, shape: number): string =>
  shape === 1 ? `read.${model}` : `read.${model}_s${shape}`;

/**
 * The view of a model in this build. A query gives it an alias, the model's name where it has no shorter one: the name of
 * the view changes with its shape.
 */
export const view = (model: string): string =>
  viewOf(model, Object.values(raised).find(({ models }) => models.includes(model))?.shape ?? 1);

const raisedShapes = JSON.stringify(
  Object.fromEntries(Object.entries(raised).map(([name, { shape }]) => [name, shape])),
);

/** SQL: the name of each projection, and the generation that the views of this build show. */
export const ownProjections = `(select name, live from ops.projections
  where shape = coalesce(('${raisedShapes}'::jsonb ->> name)::int4, 1))`;
