import type { PostBody, PostEvent } from '#schemas/post.ts';

/**
 * Bodies of a post that a revise replaced and that some target may still show: a target shows the body of its own
 * revision of the post. Only a revise writes them, so a post that was never revised has none.
 */

export interface EarlierBodies {
  /** By revision of the event that holds the body. */
  readonly bodies: Readonly<Record<string, PostBody>>;
  /**
   * By target that a revise named: the revision that it shows, and the one that it shows until the revise reaches it.
   * Before the next revise of a post every target has been reached, or was skipped.
   */
  readonly targets: Readonly<Record<string, readonly [now: number, before: number]>>;
}

const noEarlierBodies: EarlierBodies = { bodies: {}, targets: {} };

interface Revised {
  readonly body: PostBody;
  readonly bodyRevision: number;
  readonly planRevision: number;
  readonly earlier: EarlierBodies | null;
  /** All targets of the plan. */
  readonly targetIds: readonly string[];
}

/**
 * Keeps the body that the revise replaces. Drops a body once no target can show it: so a post has at most two bodies
 * for each target, however often it is revised.
 */
const withRevise = (
  { body, bodyRevision, planRevision, earlier, targetIds }: Revised,
  revision: number,
  named: readonly string[],
): EarlierBodies => {
  const { bodies, targets } = earlier ?? noEarlierBodies;
  const isNamed = new Set(named);
  const next = targetIds.map((id): readonly [string, readonly [number, number]] => {
    const [shown = planRevision] = targets[id] ?? [];
    return [id, isNamed.has(id) ? [revision, shown] : [shown, shown]];
  });
  const needed = new Set(next.flatMap(([, both]) => both));
  const known: Readonly<Record<string, PostBody>> = { ...bodies, [bodyRevision]: body };
  return {
    bodies: Object.fromEntries(Object.entries(known).filter(([at]) => needed.has(Number(at)))),
    targets: Object.fromEntries(next),
  };
};

/** The revise came too late for these targets: they show what they showed before. */
const withoutSkipped = (
  { bodies, targets }: EarlierBodies,
  revision: number,
  skipped: readonly string[],
): EarlierBodies => {
  const restored = skipped.flatMap((id): (readonly [string, readonly [number, number]])[] => {
    const [now, before] = targets[id] ?? [];
    return now === revision && before !== undefined ? [[id, [before, before]]] : [];
  });
  return { bodies, targets: { ...targets, ...Object.fromEntries(restored) } };
};

interface WithBodies {
  readonly body: PostBody;
  /** Null until the post is revised. */
  readonly body_revision: number | null;
  readonly earlier: EarlierBodies | null;
}

interface BeforeEvent extends WithBodies {
  readonly plan_revision: number | null;
  readonly plans: number;
  readonly standings: Readonly<Record<string, unknown>>;
}

/** Revision of the event that holds the body, after an event. */
export const bodyRevisionOf = (row: BeforeEvent | null, { type }: PostEvent, revision: number): number | null => {
  if (type === 'PostScheduled') return null;
  return type === 'PostRevised' ? revision : (row?.body_revision ?? null);
};

/** The earlier bodies after an event. @param row before the event; null: the event is the first one */
export const earlierOf = (row: BeforeEvent | null, event: PostEvent, revision: number): EarlierBodies | null => {
  if (row === null) return null;
  const { body, plan_revision: planRevision } = row;
  // The projector loads them only for the events below.
  const { earlier = null } = row;
  switch (event.type) {
    case 'PostScheduled':
      // A new plan has new targets. An empty object, because a cold column keeps its value where the fold gives null.
      return row.plans > 0 ? noEarlierBodies : null;
    case 'PostRevised': {
      if (planRevision === null) return earlier;
      const targetIds = Object.keys(row.standings);
      const bodyRevision = row.body_revision ?? planRevision;
      return withRevise({ body, bodyRevision, planRevision, earlier, targetIds }, revision, event.data.targetIds);
    }
    case 'PostTargetsSkipped':
      return earlier && withoutSkipped(earlier, event.data.intentRevision, event.data.targetIds);
    default:
      return earlier;
  }
};

/** The body that a target shows. */
export const bodyAt = ({ body, body_revision, earlier }: WithBodies, postRevision: number): PostBody =>
  body_revision !== null && postRevision < body_revision ? (earlier?.bodies[postRevision] ?? body) : body;

/** The same in SQL, for a post `p` and its target `t`. */
export const bodyAtSql = `case when t.post_revision < p.body_revision
  then coalesce(p.earlier -> 'bodies' -> t.post_revision::text, p.body) else p.body end`;
