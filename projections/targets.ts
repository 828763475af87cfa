import type { Knex } from 'knex';
import { type ContentBody, contentFor } from '#domain/content.ts';
import type { Platform } from '#schemas/common.ts';
import type { Failure, PlannedTarget, TargetEvent, TargetStatus } from '#schemas/target.ts';
import { change, defineModel, type Row, unchanged } from './model.ts';
import { asRow, type Page, pageOf } from './rows.ts';

/**
 * Targets of posts and their progress. The content is the post's and is joined when a target is read. The file is long
 * because the columns, their fold, the rendering and the queries change together, and every event of a target changes
 * one.
 */

interface FirstCommentIssue {
  readonly code: string;
  readonly message: string;
  readonly platformCode: string | null;
  readonly at: string;
}

interface Own {
  readonly post_id: string;
  readonly client_id: string;
  readonly account_id: string;
  readonly platform: Platform;
  readonly status: TargetStatus;
  readonly due_at: string;
  readonly scheduled_local: string | null;
  readonly timezone: string;
  readonly jitter_seconds: number;
  readonly schedule_mode: PlannedTarget['scheduleMode'];
  readonly schedule_mode_reason: string | null;
  readonly attempts: number;
  readonly takeover: number;
  readonly published_at: string | null;
  readonly external_id: string | null;
  readonly permalink: string | null;
  readonly failure: Failure | null;
  readonly retry_at: string | null;
  /**
   * When a worker must act on the target next; null when none must. While publishing: the time of its last event.
   */
  readonly next_action_at: string | null;
  readonly first_comment_issue: FirstCommentIssue | null;
  readonly post_revision: number;
  readonly applied_revision: number;
}
export type TargetRow = Row<Own>;

const settled = { retry_at: null, next_action_at: null } as const;
const pending = (dueAt: string) =>
  ({ status: 'pending', due_at: dueAt, next_action_at: dueAt, retry_at: null, failure: null }) as const;
/** A held target stays held through a reschedule or a revision; any other open one becomes pending again. */
const due = (row: Own, dueAt: string): Partial<Own> =>
  row.status === 'awaiting_approval' ? { due_at: dueAt } : pending(dueAt);

export const postTargets = defineModel<Own, TargetEvent>({
  name: 'post_targets',
  kind: 'target',
  columns: {
    post_id: 'uuid',
    client_id: 'uuid',
    account_id: 'uuid',
    platform: 'text',
    status: 'text',
    due_at: 'timestamptz',
    scheduled_local: 'text',
    timezone: 'text',
    jitter_seconds: 'int4',
    schedule_mode: 'text',
    schedule_mode_reason: 'text',
    attempts: 'int4',
    takeover: 'int4',
    published_at: 'timestamptz',
    external_id: 'text',
    permalink: 'text',
    failure: 'jsonb',
    retry_at: 'timestamptz',
    next_action_at: 'timestamptz',
    first_comment_issue: 'jsonb',
    post_revision: 'int4',
    applied_revision: 'int4',
  },
  indexes: [
    { on: '(workspace_id, due_at, id)' },
    { on: '(post_id, due_at, id)' },
    { on: '(account_id, due_at, id)' },
    { on: '(client_id, due_at, id)' },
    // Used by the due search of the former release; nothing in this one reads it.
    { on: '(next_action_at, id) where next_action_at is not null' },
    // Holds every column that posts are counted by, so that the count reads no rows.
    {
      on: `(workspace_id, published_at) include (post_id, platform, client_id, account_id, revision)
        where published_at is not null`,
    },
    // The publisher searches one network at a time. Targets with an unknown outcome keep a past time for as long as it
    // stays unknown: if this index held them, each search would pass all of them.
    { on: "(platform, next_action_at, id) where next_action_at is not null and status <> 'outcome_unknown'" },
    { on: "(next_action_at, id) where next_action_at is not null and status = 'outcome_unknown'" },
  ],
  on: {
    TargetScheduled: (_row, data) => ({
      post_id: data.postId,
      client_id: data.clientId,
      account_id: data.accountId,
      platform: data.platform,
      ...pending(data.dueAt),
      scheduled_local: data.scheduledLocal,
      timezone: data.timezone,
      jitter_seconds: data.jitterSeconds,
      schedule_mode: data.scheduleMode,
      schedule_mode_reason: data.scheduleModeReason,
      attempts: 0,
      takeover: 0,
      published_at: null,
      external_id: null,
      permalink: null,
      first_comment_issue: null,
      post_revision: data.postRevision,
      applied_revision: data.postRevision,
    }),
    TargetHeld: change((row, { postRevision }) => ({
      ...row,
      ...settled,
      status: 'awaiting_approval',
      applied_revision: Math.max(row.applied_revision, postRevision),
    })),
    TargetReleased: change((row, { postRevision, dueAt }) => ({
      ...row,
      ...pending(dueAt),
      applied_revision: Math.max(row.applied_revision, postRevision),
    })),
    TargetRescheduled: change((row, { dueAt, scheduledLocal, jitterSeconds }) => ({
      ...row,
      ...due(row, dueAt),
      scheduled_local: scheduledLocal,
      jitter_seconds: jitterSeconds,
    })),
    TargetRevised: change((row, { postRevision, dueAt, scheduledLocal, jitterSeconds }) => ({
      ...row,
      ...due(row, dueAt),
      scheduled_local: scheduledLocal,
      jitter_seconds: jitterSeconds,
      post_revision: postRevision,
      applied_revision: postRevision,
    })),
    TargetCanceled: change((row, { postRevision }) => ({
      ...row,
      ...settled,
      status: 'canceled',
      applied_revision: Math.max(row.applied_revision, postRevision ?? 0),
    })),
    TargetPublishStarted: change((row, { attempt, takeover }, event) => ({
      ...row,
      status: 'publishing',
      attempts: attempt,
      takeover,
      retry_at: null,
      failure: null,
      next_action_at: event.metadata.occurredAt,
    })),
    TargetPublishCheckpointed: change((row, _data, event) => ({ ...row, next_action_at: event.metadata.occurredAt })),
    // The head's id and address are shown as soon as the head is published, also of a thread that is never finished.
    TargetSegmentPublished: change((row, { segment, externalId, permalink }, event) => ({
      ...row,
      ...(segment.index === 0 ? { external_id: externalId, permalink } : {}),
      next_action_at: event.metadata.occurredAt,
    })),
    TargetPublishTakenOver: change((row, { takeover }, event) => ({
      ...row,
      takeover,
      next_action_at: event.metadata.occurredAt,
    })),
    TargetHandedToPlatform: unchanged,
    TargetPublished: change((row, { externalId, permalink, publishedAt }) => ({
      ...row,
      ...settled,
      status: 'published',
      external_id: externalId,
      permalink,
      published_at: publishedAt,
      failure: null,
    })),
    TargetFailed: change((row, { attempt, failure }) => ({
      ...row,
      ...settled,
      status: 'failed',
      attempts: attempt,
      failure,
    })),
    TargetRateLimited: change((row, { retryAt, failure }) => ({
      ...row,
      status: 'rate_limited',
      retry_at: retryAt,
      next_action_at: retryAt,
      failure,
    })),
    TargetPublishDeferred: change((row, { retryAt }) => ({ ...row, ...pending(retryAt) })),
    TargetOutcomeUnknown: change((row, { failure, reconcileAt }) => ({
      ...row,
      status: 'outcome_unknown',
      failure,
      next_action_at: reconcileAt,
    })),
    TargetOutcomeSettled: change((row, data, event) => {
      if (data.outcome === 'absent') return { ...row, ...pending(row.due_at) };
      if (data.outcome === 'failed' && data.failure !== null) {
        return { ...row, ...settled, status: 'failed', failure: data.failure };
      }
      return {
        ...row,
        ...settled,
        status: 'published',
        external_id: data.externalId,
        permalink: data.permalink,
        published_at: data.publishedAt ?? event.metadata.occurredAt,
        failure: null,
      };
    }),
    TargetRequeued: change((row, { dueAt }) => ({ ...row, ...pending(dueAt) })),
    TargetFirstCommentPosted: change((row) => ({ ...row, first_comment_issue: null })),
    TargetFirstCommentFailed: change((row, { code, message, platformCode }, event) => ({
      ...row,
      first_comment_issue: { code, message, platformCode, at: event.metadata.occurredAt },
    })),
    TargetRemovedOnPlatform: unchanged,
  },
});

/** The part of a post's body that a target shows. */
export type TargetContent = ContentBody;

const firstCommentOf = (overrides: Readonly<Record<string, unknown>>): string | null => {
  const text = overrides.firstComment;
  return typeof text === 'string' && text !== '' ? text : null;
};

/** Columns of a target that an answer is rendered from. */
export const shownOfTarget = [
  'id',
  'revision',
  'created_at',
  'updated_at',
  'post_id',
  'client_id',
  'account_id',
  'platform',
  'status',
  'due_at',
  'scheduled_local',
  'timezone',
  'jitter_seconds',
  'schedule_mode',
  'schedule_mode_reason',
  'attempts',
  'published_at',
  'external_id',
  'permalink',
  'failure',
  'retry_at',
  'first_comment_issue',
  'post_revision',
] as const satisfies readonly (keyof TargetRow)[];
export type ShownTarget = Pick<TargetRow, (typeof shownOfTarget)[number]>;

export const renderTarget = (row: ShownTarget, body: TargetContent) => {
  const { segments, overrides } = contentFor(body, row.platform);
  return {
    id: row.id,
    object: 'post_target' as const,
    postId: row.post_id,
    clientId: row.client_id,
    accountId: row.account_id,
    platform: row.platform,
    status: row.status,
    scheduledAt: row.due_at,
    scheduledLocal: row.scheduled_local,
    timezone: row.timezone,
    jitterSeconds: row.jitter_seconds,
    scheduleMode: row.schedule_mode,
    scheduleModeReason: row.schedule_mode_reason,
    attempts: row.attempts,
    publishedAt: row.published_at,
    externalId: row.external_id,
    permalink: row.permalink,
    failure: row.failure,
    retryAt: row.retry_at,
    firstComment: firstCommentOf(overrides),
    firstCommentIssue: row.first_comment_issue,
    // For a thread, the content of its head.
    content: segments[0].content,
    mediaIds: segments[0].mediaIds,
    overrides,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    revision: row.revision,
  };
};

/** A target and the content of its post that it shows. */
export interface TargetWithContent {
  readonly target: TargetRow;
  readonly body: TargetContent;
}

const content =
  "p.body -> 'content' as c, p.body -> 'mediaIds' as m, p.body -> 'variants' as v, p.body -> 'thread' as t";
interface RawContent {
  readonly c: TargetContent['content'];
  readonly m: TargetContent['mediaIds'];
  readonly v: TargetContent['variants'];
  readonly t: TargetContent['thread'];
}
const contentOf = ({ c, m, v, t }: RawContent): TargetContent => ({ content: c, mediaIds: m, variants: v, thread: t });

export const getTarget = async (knex: Knex, workspaceId: string, id: string): Promise<TargetWithContent | null> => {
  const found = await knex.raw(
    `select t.*, ${content} from read.post_targets t join read.posts p on p.id = t.post_id
     where t.id = ? and t.workspace_id = ?`,
    [id, workspaceId],
  );
  const [raw] = found.rows;
  if (raw === undefined) return null;
  const { c, m, v, t, ...row } = raw;
  return { target: asRow(postTargets, row), body: contentOf({ c, m, v, t }) };
};

export interface TargetFilters {
  readonly postId?: string;
  readonly clientId?: string;
  /** Only targets of these clients in posts of these clients. */
  readonly clientIds?: readonly string[];
  readonly accountId?: string;
  /** Of the post. */
  readonly externalRef?: string;
  readonly platforms?: readonly Platform[];
  readonly statuses?: readonly TargetStatus[];
  /** Due instants: from inclusive, to exclusive. */
  readonly from?: string;
  readonly to?: string;
}

/** Keyset cursor of the list of targets. */
export interface DueFirst {
  readonly scheduledAt: string;
  readonly id: string;
}

/** Ascending by due instant. A second statement fetches each post's content once, however many targets show it. */
export const listTargets = async (
  knex: Knex,
  workspaceId: string,
  filters: TargetFilters,
  { after, limit }: { readonly after: DueFirst | null; readonly limit: number },
): Promise<Page<TargetWithContent>> => {
  const query = knex('read.post_targets').where({ workspace_id: workspaceId });
  if (filters.postId !== undefined) query.where({ post_id: filters.postId });
  if (filters.clientId !== undefined) query.where({ client_id: filters.clientId });
  const { clientIds } = filters;
  if (clientIds !== undefined) {
    query.whereRaw(
      `client_id = any(?::uuid[]) and exists (
         select from read.posts p where p.id = post_targets.post_id and p.client_id = any(?::uuid[]))`,
      [[...clientIds], [...clientIds]],
    );
  }
  if (filters.accountId !== undefined) query.where({ account_id: filters.accountId });
  if (filters.externalRef !== undefined) {
    // An array, so that Postgres reads the few posts first and never the targets of the whole workspace.
    query.whereRaw(
      'post_id = any(array(select p.id from read.posts p where p.workspace_id = ? and p.external_ref = ?))',
      [workspaceId, filters.externalRef],
    );
  }
  if (filters.platforms !== undefined) query.whereRaw('platform = any(?::text[])', [[...filters.platforms]]);
  if (filters.statuses !== undefined) query.whereRaw('status = any(?::text[])', [[...filters.statuses]]);
  if (filters.from !== undefined) query.where('due_at', '>=', filters.from);
  if (filters.to !== undefined) query.where('due_at', '<', filters.to);
  if (after !== null) query.whereRaw('(due_at, id) > (?::timestamptz, ?::uuid)', [after.scheduledAt, after.id]);
  const raw: Record<string, unknown>[] = await query.orderBy(['due_at', 'id']).limit(limit + 1);
  const page = pageOf(
    raw.map((row) => asRow(postTargets, row)),
    limit,
  );
  const postIds = [...new Set(page.rows.map((row) => row.post_id))];
  if (postIds.length === 0) return { rows: [], hasMore: false };
  const found = await knex.raw(`select p.id, ${content} from read.posts p where p.id = any(?::uuid[])`, [postIds]);
  const bodies = new Map<string, TargetContent>(
    found.rows.map((row: RawContent & { readonly id: string }) => [row.id, contentOf(row)]),
  );
  const rows = page.rows.flatMap((target): TargetWithContent[] => {
    const body = bodies.get(target.post_id);
    // The post's row is written before, or with, its first target; until then the target is not shown.
    return body === undefined ? [] : [{ target, body }];
  });
  return { rows, hasMore: page.hasMore };
};
