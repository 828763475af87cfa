import { type Intent, type LivePost, type PostState, post, publishedAtOf, statusOf } from '#domain/post/post.ts';
import type { PostApproval } from '#domain/post/post-approval.ts';
import type { TargetProgress } from '#domain/post/post-state.ts';
import { openStatuses, revisableStatuses } from '#domain/post-target/target.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { asFacts } from '#runtime/eventing/domain-store.ts';
import type { Platform } from '#schemas/common.ts';
import { type PostBody, type PostEvent, type PostStatus, searchedCharacters } from '#schemas/post.ts';
import type { TargetStatus } from '#schemas/target.ts';
import { defineModel, type Handlers, type Recount, type Row } from '../engine/model.ts';
import { toIso } from '../engine/rows.ts';
import { postPublisher } from '../webhooks/render/post.ts';
import type { PostDecision } from './approvals.ts';
import {
  askedBodyOf,
  type BodyState,
  bodiesAfter,
  bodyAt,
  bodyStateOf,
  isOpenWithEarlierMedia,
  isOpenWithMedia,
  latestOf,
  mediaOf,
  mediaOfEarlier,
  type OtherBodies,
  stateOfBodies,
} from './post-bodies.ts';
import { type RecycleColumns, recycleColumns, recycleIndexes, recycleOfState } from './post-recycles.ts';
import { renderTarget, type ShownTarget, type TargetRow } from './targets.ts';

/**
 * Posts: the composed content and the state of the whole. The status follows from the post's own events through the
 * decider's fold. The one overlay is `publishing`, counted from the targets while one of them is on its way. The file
 * is long because the columns, their fold, the rendering and the queries change together, and a post has the most of
 * each.
 */

type ProgressByTarget = Readonly<Record<string, TargetProgress>>;
type Counts = { readonly total: number } & { readonly [S in TargetStatus]?: number };

interface Own extends RecycleColumns {
  readonly client_id: string;
  readonly status: PostStatus;
  /** The released one, or the only one. Set on rows that the projector loads only where the post is revised. */
  readonly body: PostBody;
  /** Revision of the event that holds `body`; null until the post is revised. */
  readonly body_revision: number | null;
  /** Cold like `body`; null until the post is revised. */
  readonly earlier: OtherBodies | null;
  /** Null: nothing is asked for beside `body`. */
  readonly body_state: BodyState | null;
  readonly created_by: { readonly type: string; readonly id: string };
  /** Revision of the event that holds the plan in force; null while there is no plan. */
  readonly plan_revision: number | null;
  readonly plans: number;
  /** Targets of the plan in force. */
  readonly planned: number;
  readonly intents: readonly Intent[];
  readonly standings: ProgressByTarget;
  readonly published_at: string | null;
  readonly campaign_id: string | null;
  /** The caller's own reference; null: none. */
  readonly external_ref: string | null;
  /** The newest request for approval, also of a draft that was sent back; null: none. */
  readonly approval: PostApproval | null;
  // Counted from the targets of the plan in force:
  readonly counts: Counts;
  readonly publishing_count: number;
  readonly scheduled_at: string | null;
  readonly platforms: readonly Platform[];
  readonly target_count: number;
  /** True while the targets lag behind the plan or an intent. */
  readonly fan_out_behind: boolean;
}
export type PostRow = Row<Own>;

const uncounted = {
  counts: { total: 0 },
  publishing_count: 0,
  scheduled_at: null,
  platforms: [],
  target_count: 0,
  fan_out_behind: false,
} as const;

/**
 * The decider's state as far as the row keeps it: everything that the fold and the status read after the plan is made.
 */
const stateOf = (row: Own | null): PostState => {
  if (row === null) return { status: 'none' };
  const { client_id: clientId, created_by: createdBy, body, plans, plan_revision: planRevision, intents } = row;
  const { approval, recycle, recycled_from: recycledFrom } = row;
  const written = { clientId, createdBy, body, plans, requests: approval?.request ?? 0, recycle, recycledFrom };
  const live: LivePost = {
    ...written,
    ...stateOfBodies(row, planRevision ?? -1),
    status: 'live',
    plan: { number: plans, targets: [] },
    planRevision: planRevision ?? -1,
    planEventId: '',
    plannedBy: '',
    planHeld: false,
    intents,
    targets: row.standings,
    approval,
    saidPartial: false,
    saidCanceled: false,
  };
  if (planRevision !== null) return live;
  // The intents that cancel the targets of a plan that an approver sent back.
  const returned = intents.length === 0 ? null : live;
  return { status: row.status === 'discarded' ? 'discarded' : 'draft', ...written, returned };
};

/** Events that hold the body of the post, or change a member of it. */
const bodyEvents: readonly PostEvent['type'][] = [
  ...(['PostDrafted', 'DraftReplaced', 'PostScheduled', 'PostRevised', 'PostCampaignChanged'] as const),
];

const folded = (row: Own | null, _data: unknown, stored: DecodedEvent): Own | null => {
  const [one] = asFacts<PostEvent>([stored]);
  if (one === undefined) return row;
  const state = post.evolve(stateOf(row), one.event, one.fact);
  const status = statusOf(state);
  if (state.status === 'none' || status === null) return row;
  const live = state.status === 'live' ? state : null;
  const written = bodyEvents.includes(one.event.type);
  const returned = state.status === 'draft' ? state.returned : null;
  const planned = one.event.type === 'PostScheduled' ? one.event.data.plan.targets.length : (row?.planned ?? 0);
  return {
    ...(row ?? uncounted),
    client_id: state.clientId,
    status,
    ...bodiesAfter(row, state, one.event),
    body_state: live && bodyStateOf(live),
    created_by: state.createdBy,
    plan_revision: live?.planRevision ?? null,
    plans: state.plans,
    planned: live === null ? 0 : planned,
    intents: latestOf((live ?? returned)?.intents ?? []),
    standings: live?.targets ?? {},
    published_at: publishedAtOf(state),
    campaign_id: written ? state.body.campaignId : (row?.campaign_id ?? null),
    external_ref: written ? (state.body.externalRef ?? null) : (row?.external_ref ?? null),
    approval: live === null ? (row?.approval ?? null) : live.approval,
    ...recycleOfState(state, status),
  };
};

/**
 * Every event of a post goes through the decider's fold; this table exists so that tsc reports a missing event type.
 */
const on: Handlers<Own, PostEvent> = {
  PostDrafted: folded,
  DraftReplaced: folded,
  PostDiscarded: folded,
  PostScheduled: folded,
  PostSubmittedForApproval: folded,
  PostReleased: folded,
  PostReturnedToDraft: folded,
  PostTargetsChanged: folded,
  PostRevised: folded,
  PostTargetsSkipped: folded,
  PostTargetSettled: folded,
  PostCampaignChanged: folded,
  PostRecycleSet: folded,
  PostRecyclePlanned: folded,
  PostRecycled: folded,
  PostRecycleFailed: folded,
  PostRecycleCleared: folded,
  PostTargetReopened: folded,
  PostExternalRefClaimLapsed: folded,
  PostAbandoned: folded,
  PostPublished: folded,
  PostPartiallyPublished: folded,
  PostFailed: folded,
  PostCanceled: folded,
};

/** The instant that `from`/`to` compare: the earliest due instant of the targets, or a draft's creation. */
export const listedAt = 'coalesce(scheduled_at, created_at)';

/**
 * A search scans the first characters of the content: scanning long texts whole would keep the server busy for seconds.
 */
export const searchedText = (body: string): string => `lower(left(${body} ->> 'content', ${searchedCharacters}))`;

export const posts = defineModel<Own, PostEvent>({
  name: 'posts',
  kind: 'post',
  publisher: postPublisher,
  columns: {
    client_id: 'uuid',
    status: 'text',
    body: 'jsonb',
    created_by: 'jsonb',
    plan_revision: 'int4',
    plans: 'int4',
    planned: 'int4',
    intents: 'jsonb',
    standings: 'jsonb',
    published_at: 'timestamptz',
    campaign_id: 'uuid',
    external_ref: 'text',
    approval: 'jsonb',
    counts: 'jsonb',
    publishing_count: 'int4',
    scheduled_at: 'timestamptz',
    platforms: 'text[]',
    target_count: 'int4',
    fan_out_behind: 'bool',
    body_revision: 'int4',
    earlier: 'jsonb',
    body_state: 'jsonb',
    ...recycleColumns,
  },
  cold: ['body', 'earlier'],
  warmedBy: [
    ...(['PostRevised', 'PostSubmittedForApproval', 'PostReleased'] as const),
    ...(['PostTargetsSkipped', 'PostCampaignChanged'] as const),
  ],
  fences: post.fences ?? [],
  counted: {
    counts: `'{"total": 0}'`,
    publishing_count: '0',
    scheduled_at: 'null',
    platforms: `'{}'`,
    target_count: '0',
    fan_out_behind: 'false',
  },
  generated: [
    `shown_status text generated always as
      (case when status = 'scheduled' and publishing_count > 0 then 'publishing' else status end) stored`,
  ],
  searched: { of: 'body', text: searchedText },
  indexes: [
    { on: '(workspace_id, created_at, id)' },
    { on: '(client_id, created_at, id)' },
    { on: '(workspace_id, shown_status, created_at, id)' },
    { on: `(workspace_id, (${listedAt}))` },
    { on: '(updated_at, id) where fan_out_behind' },
    { on: '(workspace_id, published_at, id) where published_at is not null' },
    { on: `using gin ((${mediaOf})) where ${isOpenWithMedia}` },
    { on: '(workspace_id, external_ref, created_at, id) where external_ref is not null' },
    { on: `using gin ((${mediaOfEarlier})) where ${isOpenWithEarlierMedia}` },
    // With the condition of the view: the posts of a campaign are counted in the index alone.
    {
      on: `(workspace_id, campaign_id, created_at, id)
        where campaign_id is not null and status <> 'discarded' and revision >= 0`,
    },
    { on: `(id) where approval ->> 'status' = 'pending'` },
    ...recycleIndexes,
    { on: '(client_id, shown_status, created_at, id)' },
    { on: `((approval ->> 'id')) where approval ->> 'status' = 'pending'` },
  ],
  on,
});

/** An intent may still reach targets in these statuses: a cancel takes back what a network has. */
const reachable: Readonly<Record<PostRow['intents'][number]['kind'], readonly TargetStatus[]>> = {
  cancel: [...openStatuses, 'handed_to_platform'],
  revise: revisableStatuses,
  release: ['awaiting_approval'],
};

/** A partly published thread is skipped. */
const lacks = (row: PostRow, targets: readonly TargetRow[]): boolean =>
  row.intents.some((intent) =>
    targets.some(
      (one) =>
        intent.targetIds.includes(one.id) &&
        !intent.skipped.includes(one.id) &&
        reachable[intent.kind].includes(one.status) &&
        one.applied_revision < intent.revision,
    ),
  );

/**
 * The row with its counted columns recounted from all targets of the post. Does in TypeScript what the projector's
 * recount does in SQL, for answers that are rendered before a projection has applied the events.
 */
export const withTargets = (row: PostRow, all: readonly TargetRow[]): PostRow => {
  const { plan_revision: plan } = row;
  const targets = plan === null ? [] : all.filter((one) => one.post_revision >= plan);
  const counts: Record<string, number> = { total: targets.length };
  for (const { status } of targets) counts[status] = (counts[status] ?? 0) + 1;
  const dues = (some: readonly TargetRow[]): string[] => some.map((one) => one.due_at).sort();
  const [scheduledAt = dues(targets)[0] ?? null] = dues(targets.filter((one) => one.status !== 'canceled'));
  return {
    ...row,
    counts: counts as Counts,
    publishing_count: (counts.publishing ?? 0) + (counts.processing ?? 0),
    scheduled_at: scheduledAt,
    platforms: [...new Set(targets.map((one) => one.platform))].sort(),
    target_count: targets.length,
    fan_out_behind: targets.length < row.planned || lacks(row, plan === null ? all : targets),
  };
};

/** Targets that an intent names and can still reach. Only posts with an intent pay for the count. */
const intentLags = (targets: string): string => `
  exists (
    select 1
    from jsonb_array_elements(o.intents) i
    join ${targets} t on t.post_id = o.id and t.post_revision >= coalesce(o.plan_revision, 0)
      and i -> 'targetIds' ? t.id::text and not i -> 'skipped' ? t.id::text
    where t.status = any (case i ->> 'kind'
        when 'release' then array['awaiting_approval']
        when 'revise' then array['awaiting_approval', 'pending', 'failed']
        else array['awaiting_approval', 'pending', 'rate_limited', 'handed_to_platform'] end)
      and t.applied_revision < (i ->> 'revision')::int)`;

/**
 * A post's targets of the plan in force. The same in TypeScript: `withTargets`. NOTE: post by post
 * (lateral): as a join Postgres may read the whole table of targets for each batch, and does so as long as it has no
 * statistics. A post has at most 500 targets.
 */
export const postTargetCounts: Recount = {
  owner: 'posts',
  children: [{ model: 'post_targets', by: 'post_id' }],
  countCreated: (owner, children) => withTargets(owner as PostRow, children as readonly TargetRow[]),
  statements: (table) => [
    `update ${table('posts')} o set
       counts = c.counts, publishing_count = c.publishing, scheduled_at = c.due, platforms = c.platforms,
       target_count = c.total,
       fan_out_behind = c.total < o.planned or (o.intents <> '[]' and ${intentLags(table('post_targets'))})
     from (
       select p.id, counted.*
       from ${table('posts')} p cross join lateral (
         select coalesce(sum(n), 0)::int as total,
           jsonb_build_object('total', coalesce(sum(n), 0)) || coalesce(jsonb_object_agg(status, n), '{}') as counts,
           coalesce(sum(n) filter (where status in ('publishing', 'processing')), 0)::int as publishing,
           coalesce(min(due) filter (where status <> 'canceled'), min(due)) as due,
           coalesce(
             (select array_agg(distinct one order by one) from unnest(string_to_array(string_agg(platforms, ','), ',')) one),
             '{}') as platforms
         from (
           select t.status, count(*) as n, min(t.due_at) as due, string_agg(distinct t.platform, ',') as platforms
           from ${table('post_targets')} t
           where t.post_id = p.id and t.post_revision >= p.plan_revision
           group by t.status
         ) by_status
       ) counted
       where p.id = any($1::uuid[])
     ) c
     where o.id = c.id and o.revision >= 0`,
  ],
};

/** Columns of a post that an answer is rendered from. */
export const shownOfPost = [
  'id',
  'workspace_id',
  'revision',
  'created_at',
  'updated_at',
  'client_id',
  'status',
  'body',
  'body_revision',
  'earlier',
  'body_state',
  'created_by',
  'plan_revision',
  'published_at',
  'campaign_id',
  'approval',
  'recycled_from',
  'counts',
  'publishing_count',
  'scheduled_at',
] as const satisfies readonly (keyof PostRow)[];
export type ShownPost = Pick<PostRow, (typeof shownOfPost)[number]> & {
  /** Joined from the requests for approval. Absent: a command answers, and adds it. */
  readonly last_decision?: PostDecision | null;
};

/** Postgres writes an instant in JSON with its own offset. */
const decisionOf = ({ last_decision: decision = null }: ShownPost): PostDecision | null =>
  decision === null ? null : { ...decision, decidedAt: toIso(decision.decidedAt) ?? decision.decidedAt };

const shownStatus = (row: ShownPost): PostStatus =>
  row.status === 'scheduled' && row.publishing_count > 0 ? 'publishing' : row.status;

/** A row of GET /posts: without `variants` and `targets`. */
export const renderPostRow = (row: ShownPost) => {
  const { variants: _variants, campaignId: _campaign, ...body } = row.body;
  return {
    id: row.id,
    object: 'post' as const,
    clientId: row.client_id,
    status: shownStatus(row),
    ...body,
    campaignId: row.campaign_id,
    externalRef: row.body.externalRef ?? null,
    scheduledAt: row.scheduled_at,
    publishedAt: row.published_at,
    createdBy: row.created_by,
    approvalId: row.approval?.id ?? null,
    lastDecision: decisionOf(row),
    recycledFrom: row.recycled_from?.postId ?? null,
    counts: row.counts,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    revision: row.revision,
  };
};

const byDue = (a: ShownTarget, b: ShownTarget): number =>
  a.due_at < b.due_at ? -1 : a.due_at > b.due_at ? 1 : a.id < b.id ? -1 : 1;

/** What a held revise asks for; null: nothing. */
const pendingRevisionOf = (row: ShownPost) => {
  const body = askedBodyOf(row);
  if (body === null || row.approval === null) return null;
  const { content, mediaIds, variants, thread, mediaAltTexts, coverMediaId, coverFrameMs, aiDisclosure } = body;
  const { schedule, timezone } = body;
  const { id: approvalId, targetIds } = row.approval;
  return {
    ...{ approvalId, targetIds, content, mediaIds, variants, thread, mediaAltTexts },
    ...{ coverMediaId, coverFrameMs, aiDisclosure, schedule, timezone },
  };
};

/** The whole post. A draft's selection is resolved when the draft is published, so `targets` is `[]` until then. */
export const renderPost = (row: ShownPost, all: readonly ShownTarget[]) => {
  const { plan_revision: plan } = row;
  const targets = plan === null ? [] : all.filter((one) => one.post_revision >= plan).sort(byDue);
  return {
    ...renderPostRow(row),
    variants: row.body.variants,
    pendingRevision: pendingRevisionOf(row),
    targets: targets.map((one) => renderTarget(one, bodyAt(row, one.post_revision))),
  };
};
