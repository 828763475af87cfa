import type { Pool } from 'pg';
import type { Intent, LivePost, PostState } from '#domain/post/post.ts';
import type { PostApproval } from '#domain/post/post-approval.ts';
import type { BodyAt } from '#domain/post/post-bodies.ts';
import type { PostBody, PostEvent } from '#schemas/post.ts';
import { view } from '../shapes.ts';

/**
 * The bodies of a post in its row: the released one in a column of its own, and beside it those that a revise replaced or
 * asks for and that some target may show, since a target shows the body of its own revision of the post. Only a revise
 * writes them, so a post that was never revised has none.
 */

export interface OtherBodies {
  /** By revision of the event that holds the body. */
  readonly bodies: Readonly<Record<string, PostBody>>;
  /**
   * By target that a revise named: the revision that it shows, and those one of which it shows until the revise reaches it, the
   * newest first. Before the next revise of a post every target has been reached, or was skipped, but for one that a network's
   * own scheduler has: that may be asked to take four contents, and shows the one before them.
   */
  readonly targets: Readonly<Record<string, readonly number[]>>;
}

/** One that it shows, and as many as a network may be asked to take. */
const maxAtNetwork = 5;

const noOtherBodies: OtherBodies = { bodies: {}, targets: {} };

/** What the decider knows of the two bodies beside the released one, which is in a column of its own. */
export interface BodyState {
  readonly released: boolean;
  /** Revisions of the bodies, which are in `earlier`. */
  readonly asked: number | null;
  readonly replaced: number | null;
}

interface WithBodies {
  /** The released one; while nothing was released, the only one. */
  readonly body: PostBody;
  /** Revision of the event that holds `body`; null until the post is revised. */
  readonly body_revision: number | null;
  readonly earlier: OtherBodies | null;
}

interface BeforeEvent extends WithBodies {
  readonly plan_revision: number | null;
  readonly plans: number;
  readonly standings: Readonly<Record<string, unknown>>;
  readonly approval: PostApproval | null;
  /** Null: what follows from `approval`, with nothing asked for. */
  readonly body_state: BodyState | null;
}

/** Of a post of which nothing is asked for beside its body. */
const usualState = (approval: PostApproval | null): BodyState => ({
  released: approval === null || approval.status === 'released' || !approval.isWhole,
  asked: null,
  replaced: null,
});

const revisionOf = (one: BodyAt | null): number | null => one?.revision ?? null;

/** Null where it is the usual one. */
export const bodyStateOf = ({ approval, released, asked, replaced }: LivePost): BodyState | null => {
  const isUsual = asked === null && replaced === null && released === usualState(approval).released;
  return isUsual ? null : { released, asked: revisionOf(asked), replaced: revisionOf(replaced) };
};

/** The decider's state of the bodies. The projector loads the bodies for the events alone that change them. */
export const stateOfBodies = (
  row: BeforeEvent,
  planRevision: number,
): Pick<LivePost, 'body' | 'bodyRevision' | 'released' | 'asked' | 'replaced'> => {
  const { body, body_revision: bodyRevision, earlier, approval } = row;
  const { released, asked, replaced } = row.body_state ?? usualState(approval);
  const at = (revision: number | null): BodyAt | null =>
    revision === null ? null : { revision, body: earlier?.bodies[revision] as PostBody };
  return { body, bodyRevision: bodyRevision ?? planRevision, released, asked: at(asked), replaced: at(replaced) };
};

/**
 * Keeps the body that the revise replaces, which the next event may put back, and drops every other one that no target
 * can show any more: so a post has at most two bodies for each target and one more, however often it is revised; and five for each,
 * where networks' own schedulers may have targets of it.
 */
const withRevise = (
  { bodies, targets }: OtherBodies,
  former: BodyAt & { readonly isPutBack: boolean },
  planRevision: number,
  revision: number,
  all: readonly string[],
  named: readonly string[],
  isNative: boolean,
): OtherBodies => {
  const isNamed = new Set(named);
  const next = all.map((id): readonly [string, readonly number[]] => {
    const known = targets[id] ?? [planRevision];
    const [shown = planRevision] = known;
    if (isNative) return [id, [...(isNamed.has(id) ? [revision] : []), ...new Set(known)].slice(0, maxAtNetwork)];
    return [id, isNamed.has(id) ? [revision, shown] : [shown, shown]];
  });
  const needed = new Set(next.flatMap(([, both]) => both));
  if (former.isPutBack) needed.add(former.revision);
  const known: Readonly<Record<string, PostBody>> = { ...bodies, [former.revision]: former.body };
  return {
    bodies: Object.fromEntries(Object.entries(known).filter(([at]) => needed.has(Number(at)))),
    targets: Object.fromEntries(next),
  };
};

/** The revise came too late for these targets: they show what they showed before. */
const withoutSkipped = (
  { bodies, targets }: OtherBodies,
  revision: number,
  skipped: readonly string[],
): OtherBodies => {
  const restored = skipped.flatMap((id): (readonly [string, readonly number[]])[] => {
    const [now, before, ...earlier] = targets[id] ?? [];
    return now === revision && before !== undefined ? [[id, [before, before, ...earlier]]] : [];
  });
  return { bodies, targets: { ...targets, ...Object.fromEntries(restored) } };
};

const without = (bodies: OtherBodies['bodies'], revision: number): OtherBodies['bodies'] =>
  Object.fromEntries(Object.entries(bodies).filter(([at]) => Number(at) !== revision));

/** The bodies after an event that the state has folded in. @param row before the event; null: the event is the first one */
export const bodiesAfter = (
  row: BeforeEvent | null,
  state: Exclude<PostState, { status: 'none' }>,
  event: PostEvent,
): WithBodies => {
  const { body } = state;
  // A new plan has new targets. An empty object, because a cold column keeps its value where the fold gives null.
  if (event.type === 'PostScheduled') {
    return { body, body_revision: null, earlier: row !== null && row.plans > 0 ? noOtherBodies : null };
  }
  if (row === null) return { body, body_revision: null, earlier: null };
  // The projector loads them only for the events below.
  const { earlier = null, plan_revision: planRevision, body_revision: known } = row;
  const left = { body, body_revision: known, earlier };
  if (state.status !== 'live' || planRevision === null) return left;
  const { bodyRevision, asked, replaced } = state;
  const body_revision = bodyRevision === planRevision ? null : bodyRevision;
  switch (event.type) {
    case 'PostRevised': {
      const former = { revision: known ?? planRevision, body: row.body, isPutBack: replaced !== null };
      const all = Object.keys(row.standings);
      const { targetIds } = event.data;
      const others = earlier ?? noOtherBodies;
      // A target that a network has of a former content may show that one again, whatever the post wants by now.
      const isNative = [row.body, body, ...Object.values(others.bodies)].some((one) => one.scheduleMode === 'native');
      const next = withRevise(others, former, planRevision, bodyRevision, all, targetIds, isNative);
      return { body, body_revision, earlier: next };
    }
    case 'PostSubmittedForApproval': {
      if (asked === null || earlier === null) return left;
      const bodies = { ...earlier.bodies, [asked.revision]: asked.body };
      return { body, body_revision, earlier: { ...earlier, bodies } };
    }
    case 'PostReleased':
      if (bodyRevision === (known ?? planRevision) || earlier === null) return left;
      return { body, body_revision, earlier: { ...earlier, bodies: without(earlier.bodies, bodyRevision) } };
    case 'PostTargetsSkipped':
      return { ...left, earlier: earlier && withoutSkipped(earlier, event.data.intentRevision, event.data.targetIds) };
    default:
      return left;
  }
};

/** What a revise asks for while it is held; null: nothing. */
export const askedBodyOf = ({ body_state, earlier }: Pick<BeforeEvent, 'body_state' | 'earlier'>): PostBody | null =>
  body_state?.asked == null ? null : (earlier?.bodies[body_state.asked] ?? null);

/** The body that a target shows. */
export const bodyAt = ({ body, body_revision, earlier }: WithBodies, postRevision: number): PostBody =>
  postRevision === body_revision ? body : (earlier?.bodies[postRevision] ?? body);

/** The same in SQL, for a post `p` and its target `t`. */
export const bodyAtSql = `case when p.earlier is null or t.post_revision = p.body_revision then p.body
  else coalesce(p.earlier -> 'bodies' -> t.post_revision::text, p.body) end`;

/**
 * The intents that show whether targets lag, without times: for each target the last revise and the last release. The row
 * keeps only these, so it does not grow however often callers revise the post.
 */
export const latestOf = (intents: readonly Intent[]): readonly Intent[] => {
  const seen = { revise: new Set<string>(), release: new Set<string>() };
  const latest: Intent[] = [];
  for (const intent of intents.toReversed()) {
    if (intent.kind === 'cancel') {
      latest.push(intent);
      continue;
    }
    const known = seen[intent.kind];
    const targetIds = intent.targetIds.filter((id) => !known.has(id));
    for (const id of targetIds) known.add(id);
    if (targetIds.length === 0) continue;
    latest.push(intent.kind === 'revise' ? { ...intent, targetIds, times: null } : { ...intent, targetIds });
  }
  return latest.reverse();
};

/** Ids of all assets that bodies name, as an array; must agree with `mediaIdsOf` of the domain. */
const mediaIn = (json: string, body: string): string =>
  ['mediaIds[*]', 'variants[*].mediaIdsOverride[*]', 'thread.segments[*].mediaIds[*]', 'coverMediaId']
    .map((path) => `jsonb_path_query_array(${json}, '${body}.${path} ? (@ != null)')`)
    .join(' || ');
export const mediaOf = mediaIn('body', '$');
export const mediaOfEarlier = mediaIn('earlier', '$.bodies.*');

/** Posts that may still be published or scheduled. */
const isOpen = `status in ('draft', 'pending_approval', 'scheduled', 'publishing')`;
/** The order matters: for a post that is already out, Postgres then never reads the body. */
export const isOpenWithMedia = `${isOpen} and (${mediaOf}) <> '[]'`;
/** Few posts were ever revised. */
export const isOpenWithEarlierMedia = `${isOpen} and earlier is not null`;

/**
 * The post `p` has a target that still goes out with another body that names the asset, or asks for a body that names it
 * and that its targets may not have yet.
 */
const isNeededEarlier = `((${mediaIn("(p.earlier -> 'bodies' -> (p.body_state ->> 'asked'))", '$')}) @> $2::jsonb or exists (
  select 1 from ${view('post_targets')} t
  where t.post_id = p.id and t.post_revision is distinct from p.body_revision and t.status not in ('published', 'failed', 'canceled')
    and (${mediaIn("(p.earlier -> 'bodies' -> t.post_revision::text)", '$')}) @> $2::jsonb))`;

/** Posts of a workspace that may still be published with this asset, at most `limit`. */
export const openPostsWith = async (
  pool: Pool,
  workspaceId: string,
  assetId: string,
  limit: number,
): Promise<readonly { readonly id: string; readonly clientId: string }[]> => {
  const { rows } = await pool.query<{ id: string; clientId: string }>(
    `select id::text, client_id::text as "clientId" from ${view('posts')} as posts
     where (${mediaOf}) @> $2::jsonb and ${isOpenWithMedia} and workspace_id = $1
     union
     select id::text, client_id::text from ${view('posts')} p
     where (${mediaOfEarlier}) @> $2::jsonb and ${isOpenWithEarlierMedia} and workspace_id = $1 and ${isNeededEarlier}
     limit $3`,
    [workspaceId, JSON.stringify([assetId]), limit],
  );
  return rows;
};
