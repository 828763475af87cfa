import type { Knex } from 'knex';
import { type PostState, post } from '#domain/post/post.ts';
import { approvals, decisionOfRow, type PostDecision } from '#projections/models/approvals.ts';
import { campaigns } from '#projections/models/campaigns.ts';
import { bodyAt } from '#projections/models/post-bodies.ts';
import {
  type PostRow,
  posts,
  renderPost,
  renderPostRow,
  type ShownPost,
  withTargets,
} from '#projections/models/posts.ts';
import { postTargets, renderTarget, type TargetRow } from '#projections/models/targets.ts';
import { postPlanning } from '#projections/queries/post-queries.ts';
import type { DueFirst } from '#projections/queries/target-queries.ts';
import { view } from '#projections/shapes.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { foldEvents } from '#runtime/eventing/domain-store.ts';
import type { Plan } from '#schemas/post.ts';
import { seesPost } from '../call/access.ts';
import { listPage } from '../call/cursor.ts';
import type { Call } from '../call/operation.ts';
import { notFound } from '../call/refusal.ts';
import { behind, keyOf, pageThen, wasBorn } from '../past/lists.ts';
import { inPast, isBetween, type Past, pastClientOf, requirePastFilters } from '../past/past.ts';
import { plannedTarget } from './answers.ts';

/** Posts and their targets as they were: the streams of the post, its targets, its requests and its campaign together. */

type Limited = Pick<Call, 'deps' | 'principal'>;

interface PostThen {
  readonly row: ShownPost;
  /** Of the plan in force. */
  readonly targets: readonly TargetRow[];
}

const stateOf = (events: readonly DecodedEvent[]): PostState => foldEvents(post, events);

/** Whether the credential sees the post as it was. */
export const seesPostThen = async (call: Limited, past: Past, id: string): Promise<boolean> =>
  call.principal.clientIds === null || seesPost(call, stateOf(await past.events(`post-${id}`)));

/** Ids of the targets of the newest plan, and of the requests for approval. */
const namedBy = (events: readonly DecodedEvent[]) => {
  const planned = events.findLast(({ type }) => type === 'PostScheduled');
  const asked = events.flatMap(({ type, data }) =>
    type === 'PostSubmittedForApproval' ? [String(data.approvalId)] : [],
  );
  const targetIds = planned === undefined ? [] : (planned.data.plan as Plan).targets.map(({ targetId }) => targetId);
  return { targetIds, approvalIds: [...new Set(asked)] };
};

const lastDecision = async (past: Past, ids: readonly string[]): Promise<PostDecision | null> => {
  const rows = (await past.rows(approvals, ids)).filter((one) => one.decided_at !== null);
  const [newest] = rows.toSorted((a, b) =>
    a.created_at === b.created_at ? (a.id < b.id ? 1 : -1) : a.created_at < b.created_at ? 1 : -1,
  );
  return newest === undefined ? null : decisionOfRow(newest);
};

const campaignOf = async (past: Past, { campaign_id: id }: PostRow): Promise<string | null> => {
  if (id === null) return null;
  const row = await past.row(campaigns, id);
  return row === null || row.deleted_at === null ? id : null;
};

const postThen = async (past: Past, row: PostRow): Promise<PostThen> => {
  const { targetIds, approvalIds } = namedBy(await past.events(`post-${row.id}`));
  const targets = row.plan_revision === null ? [] : await past.rows(postTargets, targetIds);
  const decided = await lastDecision(past, approvalIds);
  const campaignId = await campaignOf(past, row);
  return { row: { ...withTargets(row, targets), campaign_id: campaignId, last_decision: decided }, targets };
};

type Asked<Query> = Call<{ readonly id: string }, Query>;

export const answerPostThen = (call: Asked<unknown>, asOf: string) =>
  inPast(call, asOf, async (past) => {
    const row = await past.row(posts, call.params.id);
    if (row === null || row.status === 'discarded') throw notFound('post');
    if (!(await seesPostThen(call, past, row.id))) throw notFound('post');
    const found = await postThen(past, row);
    return { data: renderPost(found.row, found.targets) };
  });

/** Filters that lists of posts and of their targets have in common. */
const sharedFilters = ['clientId', 'status', 'platform', 'externalRef', 'from', 'to'] as const;

interface Listing {
  readonly limit: number;
  readonly cursor?: string;
  readonly clientId?: string;
  readonly status?: readonly string[];
  readonly platform?: readonly string[];
  readonly externalRef?: string;
  readonly from?: string;
  readonly to?: string;
}

export const listPostsThen = (call: Call<unknown, Listing & { readonly campaignId?: string }>, asOf: string) => {
  const { status, platform, campaignId, externalRef } = call.query;
  requirePastFilters(call.query, ...sharedFilters, 'campaignId');
  const kind = { model: posts, births: ['PostDrafted', 'PostScheduled'], clientId: pastClientOf(call.query) };
  return inPast(call, asOf, (past) =>
    listPage('listPosts', call, {
      rows: (page: Parameters<typeof pageThen>[3], knex) =>
        pageThen(knex, past, kind, page, async (row) => {
          if (row.status === 'discarded' || (externalRef !== undefined && row.external_ref !== externalRef))
            return null;
          if (!(await seesPostThen(call, past, row.id))) return null;
          const { row: found, targets } = await postThen(past, row);
          const shown = renderPostRow(found);
          if (status?.includes(shown.status) === false || !isBetween(shown.scheduledAt ?? shown.createdAt, call.query))
            return null;
          if (campaignId !== undefined && found.campaign_id !== campaignId) return null;
          const isMeant = platform === undefined || targets.some((one) => platform.includes(one.platform));
          return isMeant ? shown : null;
        }),
      keyOf,
      show: ({ shown }) => shown,
    }),
  );
};

/** The post whose plan names a target that is not stored yet. Its row, which may have come since, names the post too. */
const planningPost = async ({ deps, workspaceId }: Past, targetId: string): Promise<string | null> => {
  const { rows } = await deps.pool.query<{ post_id: string }>(
    `select post_id from ${view('post_targets')} as post_targets where id = $1 and workspace_id = $2`,
    [targetId, workspaceId],
  );
  return rows[0]?.post_id ?? postPlanning(deps.pool, workspaceId, targetId);
};

const contentThen = async (past: Past, target: TargetRow) => {
  const row = await past.row(posts, target.post_id);
  return row === null ? null : bodyAt(row, target.post_revision);
};

export const answerTargetThen = (call: Asked<unknown>, asOf: string) =>
  inPast(call, asOf, async (past) => {
    const { id } = call.params;
    const row = await past.row(postTargets, id);
    if (row !== null) {
      const body = await contentThen(past, row);
      if (body === null) throw notFound('post target');
      return { data: renderTarget(row, body) };
    }
    const postId = await planningPost(past, id);
    const events = postId === null ? [] : await past.events(`post-${postId}`);
    const state = stateOf(events);
    const planned = postId === null || state.status !== 'live' ? null : plannedTarget(postId, state, events, id);
    if (planned === null) throw notFound('post target');
    return { data: renderTarget(planned.target, planned.body) };
  });

/** Targets of one client that one page looks at. */
const maxTargets = 20_000;

interface Due extends DueFirst {
  /** Whether it may have changed since, so that its time then is in its stream alone. */
  readonly changed: boolean;
}

/** Each target of the client that was there, with its time as the read model has it now. */
const targetsThere = async (knex: Knex, past: Past, clientId: string): Promise<readonly Due[]> => {
  const { workspaceId, moment } = past;
  const { rows } = await knex.raw<{ rows: readonly { id: string; due: Date; changed: boolean }[] }>(
    `select t.id, t.due_at as due, coalesce((select f.sequence from ops.feed_events f
        where f.stream = 'target-' || t.id order by f.revision desc limit 1) > ?, true) as changed
     from ${view('post_targets')} t
     where t.client_id = ? and t.workspace_id = ? and ${wasBorn('target', 't.id')} limit ?`,
    [moment.sequence - behind, clientId, workspaceId, workspaceId, moment.sequence, maxTargets + 1],
  );
  if (rows.length > maxTargets) past.tooMuch();
  return rows.map(({ id, due, changed }) => ({ id, changed, scheduledAt: due.toISOString() }));
};

/** Just created, and without a row yet. */
const targetsFresh = async (
  knex: Knex,
  { workspaceId, moment }: Past,
  clientId: string,
): Promise<readonly string[]> => {
  const { rows } = await knex.raw<{ rows: readonly { id: string }[] }>(
    `select substr(f.stream, 8) as id from ops.feed_events f
     where f.workspace_id = ? and f.sequence > ? and f.sequence <= ? and f.type = 'TargetScheduled' and f.client_id = ?
       and (select t.id from ${view('post_targets')} t where t.id = substr(f.stream, 8)::uuid) is null`,
    [workspaceId, moment.sequence - behind, moment.sequence, clientId],
  );
  return rows.map(({ id }) => id);
};

const dueFirst = (a: DueFirst, b: DueFirst): number =>
  a.scheduledAt < b.scheduledAt || (a.scheduledAt === b.scheduledAt && a.id < b.id) ? -1 : 1;

type Filters = Listing & { readonly postId?: string; readonly accountId?: string };

const isAsked = (row: TargetRow, { status, platform, postId, accountId }: Filters): boolean =>
  status?.includes(row.status) !== false &&
  platform?.includes(row.platform) !== false &&
  (postId === undefined || row.post_id === postId) &&
  (accountId === undefined || row.account_id === accountId);

/** The reference of a target's post as it was. */
const refThen = async (past: Past, row: TargetRow): Promise<string | null> =>
  (await past.row(posts, row.post_id))?.external_ref ?? null;

/**
 * A page in the order of the times as they were. Those of targets that have not changed since stand in their rows; the
 * others are folded first.
 */
const targetPage = async (
  call: Call<unknown, Filters>,
  past: Past,
  knex: Knex,
  { after, limit }: { readonly after: DueFirst | null; readonly limit: number },
) => {
  const { externalRef } = call.query;
  const clientId = pastClientOf(call.query);
  const there = await targetsThere(knex, past, clientId);
  const moved = [
    ...there.flatMap(({ id, changed }) => (changed ? [id] : [])),
    ...(await targetsFresh(knex, past, clientId)),
  ];
  const known = (await past.rows(postTargets, moved)).map(({ id, due_at: at }) => ({ id, scheduledAt: at }));
  const left = [...there.filter(({ changed }) => !changed), ...known]
    .filter((one) => isBetween(one.scheduledAt, call.query) && (after === null || dueFirst(after, one) < 0))
    .sort(dueFirst);
  const shown: ReturnType<typeof renderTarget>[] = [];
  for (let from = 0; from < left.length; ) {
    const chunk = left.slice(from, from + Math.max(10, limit + 1 - shown.length));
    from += chunk.length;
    const made = await past.each(chunk, async ({ id }) => {
      const row = await past.row(postTargets, id);
      if (row === null || !isAsked(row, call.query)) return null;
      if (externalRef !== undefined && (await refThen(past, row)) !== externalRef) return null;
      if (!(await seesPostThen(call, past, row.post_id))) return null;
      const body = await contentThen(past, row);
      return body === null ? null : renderTarget(row, body);
    });
    shown.push(...made.filter((one) => one !== null));
    if (shown.length > limit) return { rows: shown.slice(0, limit), hasMore: true };
    const last = chunk.at(-1);
    if (past.isTired && from < left.length && last !== undefined) {
      return { rows: shown, hasMore: true, next: { scheduledAt: last.scheduledAt, id: last.id } };
    }
  }
  return { rows: shown, hasMore: false };
};

export const listTargetsThen = (call: Call<unknown, Filters>, asOf: string) => {
  requirePastFilters(call.query, ...sharedFilters, 'postId', 'accountId');
  return inPast(call, asOf, (past) =>
    listPage('listPostTargets', call, {
      rows: (page: { readonly after: DueFirst | null; readonly limit: number }, knex) =>
        targetPage(call, past, knex, page),
      keyOf: ({ scheduledAt, id }): DueFirst => ({ scheduledAt, id }),
      show: (shown) => shown,
    }),
  );
};
