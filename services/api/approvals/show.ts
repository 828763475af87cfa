import { type ApprovalState, approval } from '#domain/approval.ts';
import { coveredBody } from '#domain/post/content.ts';
import { newestBody, type PostState, post } from '#domain/post/post.ts';
import type { NewestFirst } from '#projections/engine/rows.ts';
import { accounts } from '#projections/models/accounts.ts';
import {
  type ApprovalRow,
  approvals,
  getApproval as queryApproval,
  listApprovals as queryApprovals,
} from '#projections/models/approvals.ts';
import { media } from '#projections/models/media.ts';
import { postAskingFor } from '#projections/queries/post-queries.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { foldEvents, type Loaded, Unavailable } from '#runtime/eventing/domain-store.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import { Approval, ApprovalQuery, ApprovalSummary } from '#schemas/http/approval.ts';
import { AsOfQuery, type Cleaned, IdParams } from '#schemas/http/common.ts';
import { tendApprovals } from '#services/workflows/posts/approvals.ts';
import { withinLimit } from '../call/access.ts';
import { listPage, newestFirst } from '../call/cursor.ts';
import { type Call, operation } from '../call/operation.ts';
import { notFound } from '../call/refusal.ts';
import { readRow } from '../call/rows.ts';
import { keyOf, pageThen } from '../past/lists.ts';
import { inPast, pastClientOf, requirePastFilters } from '../past/past.ts';
import { withoutErased } from '../past/things.ts';
import { seesPostThen } from '../posts/past.ts';
import { contentOf, type Names, namesNow } from './content.ts';
import { approvalExample, approvalRowExample, approvalsTag } from './examples.ts';

/** A request for approval with what it is about: the post as of the revision at which its approval was asked for. */

type About = Pick<ApprovalRow, 'id'>;

type Naming = Pick<Call<{ readonly id: string }>, 'deps' | 'workspaceId' | 'params' | 'behind'>;

/**
 * The post whose accepted content asks for this request; null: none does. Its answer names the request before the
 * request is written, and a post that the read model lacks may ask for it. @throws Unavailable
 */
const askingFor = async ({ deps, workspaceId, params, behind }: Naming): Promise<string | null> => {
  const isBehind = await behind(['posts']);
  const postId = await postAskingFor(deps.pool, workspaceId, params.id);
  if (postId === null && isBehind) throw new Unavailable('The read model of posts is behind.');
  return postId;
};

/** For a read, which writes nothing. @throws Unavailable for a request that is not written yet: never 404 for it */
export const notWrittenYet = async (call: Naming): Promise<null> => {
  if ((await askingFor(call)) === null) return null;
  throw new Unavailable('The request for approval is being made.');
};

/** For an action: writes the request first that its post asks for, so that an answered id is never 404. */
export const loadRequest = async (call: Naming & Pick<Call, 'positions'>): Promise<Loaded<ApprovalState>> => {
  const { deps, params, positions } = call;
  const loaded = await deps.store.load(approval, params.id);
  const postId = loaded.state.status === 'none' ? await askingFor(call) : null;
  if (postId === null) return loaded;
  await tendApprovals(deps.store, postId, { positions });
  return await deps.store.load(approval, params.id);
};

const liveOf = (state: PostState, { id }: About): Extract<PostState, { status: 'live' }> => {
  if (state.status !== 'live' || state.approval?.id !== id) {
    throw new BrokenInvariant(`the post does not ask for approval ${id} at the revision that the request names`);
  }
  return state;
};

/** The post as its events up to the request leave it; `others`: the targets that the request is not about. */
export const snapshotOf = (row: About, events: readonly DecodedEvent[]) => {
  const state = liveOf(foldEvents(post, events), row);
  const { plan, approval, intents } = state;
  const held = new Set(approval?.targetIds);
  const times = new Map(
    intents.flatMap((one) =>
      one.kind === 'revise' ? one.targetIds.map((id, index) => [id, one.times?.[index]] as const) : [],
    ),
  );
  const targets = plan.targets
    .filter(({ targetId }) => held.has(targetId))
    .map(({ targetId, accountId, clientId, platform, ...planned }) => {
      const { dueAt: scheduledAt, scheduledLocal, timezone } = times.get(targetId) ?? planned;
      return { targetId, accountId, clientId, platform, scheduledAt, scheduledLocal, timezone };
    });
  const body = newestBody(state);
  const { schedule, scheduleMode } = body;
  const others = plan.targets.filter(({ targetId }) => !held.has(targetId));
  return { post: { ...coveredBody(body), schedule, scheduleMode, targets }, others };
};

/** A row of GET /approvals. */
const renderApprovalRow = (row: ApprovalRow) => ({
  id: row.id,
  object: 'approval' as const,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  revision: row.revision,
  postId: row.post_id,
  clientId: row.client_id,
  status: row.status,
  requestedBy: row.requested_by,
  decidedBy: row.decided_by,
  decidedAt: row.decided_at,
  comment: row.comment,
  withdrawnReason: row.withdrawn_reason,
  contentHash: row.content_hash,
  scheduledAt: row.scheduled_at,
});

/** The row with what the approver was shown. @param events of the post, up to the revision that the request is about */
const shownRow = async (row: ApprovalRow, state: ApprovalState, events: readonly DecodedEvent[], called: Names) => {
  const guestName = state.status === 'none' ? null : (state.decided?.guestName ?? null);
  const { post: about, others } = snapshotOf(row, events);
  const { items } = await contentOf(called, { body: about, targets: about.targets, others });
  return { ...renderApprovalRow(row), guestName, post: about, shown: items };
};

export const showApproval = async ({ deps }: Pick<Call, 'deps'>, row: ApprovalRow, known?: ApprovalState) => {
  const state = known ?? (await deps.store.load(approval, row.id)).state;
  const events = await deps.store.readStream(`post-${row.post_id}`, row.post_revision);
  return shownRow(row, state, events, namesNow(deps.knex, row.workspace_id));
};

/** The request as it was, with the names that its files and accounts had. */
const answerThen = (call: Call<{ readonly id: string }>, asOf: string) =>
  inPast(call, asOf, async (past) => {
    const row = await past.row(approvals, call.params.id);
    if (row === null || !(await seesPostThen(call, past, row.post_id))) throw notFound('approval');
    const state = foldEvents(approval, await past.events(`approval-${row.id}`));
    const events = (await past.events(`post-${row.post_id}`)).filter(({ revision }) => revision <= row.post_revision);
    const data = await shownRow(row, state, events, {
      files: async (ids) => new Map((await past.rows(media, ids)).map((one) => [one.id, one])),
      accounts: async (ids) => past.each(await past.rows(accounts, ids), (one) => withoutErased(past, one)),
    });
    return { data };
  });

const listThen = (call: Call<unknown, Cleaned<typeof ApprovalQuery>>, asOf: string) => {
  const { status, postId } = call.query;
  requirePastFilters(call.query, 'clientId', 'status', 'postId');
  const kind = { model: approvals, births: ['ApprovalRequested'], clientId: pastClientOf(call.query) };
  return inPast(call, asOf, (past) =>
    listPage('listApprovals', call, {
      rows: (page: { readonly after: NewestFirst | null; readonly limit: number }, knex) =>
        pageThen(knex, past, kind, page, async (row) => {
          if (status?.includes(row.status) === false || (postId !== undefined && row.post_id !== postId)) return null;
          return (await seesPostThen(call, past, row.post_id)) ? renderApprovalRow(row) : null;
        }),
      keyOf,
      show: ({ shown }) => shown,
    }),
  );
};

export const getApproval = operation({
  id: 'getApproval',
  method: 'GET',
  path: '/approvals/{id}',
  tag: approvalsTag,
  summary: 'Get a request for approval, with the post that it is about',
  scope: 'approvals.read',
  limited: 'ids',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  query: AsOfQuery,
  answer: Approval,
  codes: ['history_too_long'],
  example: { data: approvalExample },
  handle: async (call) => {
    if (call.query.asOf !== undefined) return answerThen(call, call.query.asOf);
    const { deps, workspaceId } = call;
    const row = await readRow<ApprovalRow>(
      call,
      'approval',
      ['posts'],
      (id) => queryApproval(deps.knex, workspaceId, id),
      () => notWrittenYet(call),
    );
    return { data: await showApproval(call, row), revision: row.revision };
  },
});

export const listApprovals = operation({
  id: 'listApprovals',
  method: 'GET',
  path: '/approvals',
  tag: approvalsTag,
  summary: 'List requests for approval, newest first',
  description: 'Without the posts that they are about: GET /approvals/{id} has its post.',
  scope: 'approvals.read',
  limited: 'filtered',
  idempotent: 'none',
  cost: 1,
  query: ApprovalQuery,
  answer: ApprovalSummary,
  list: true,
  codes: ['history_too_long'],
  example: { data: approvalRowExample },
  handle: async (call) => {
    if (call.query.asOf !== undefined) return listThen(call, call.query.asOf);
    await call.behind(['posts']);
    const { limit: _limit, cursor: _cursor, status, ...more } = call.query;
    const filters = { ...more, ...(status === undefined ? {} : { statuses: status }), ...withinLimit(call.principal) };
    return listPage('listApprovals', call, {
      rows: (page: { readonly after: NewestFirst | null; readonly limit: number }, knex) =>
        queryApprovals(knex, call.workspaceId, filters, page),
      keyOf: newestFirst,
      show: renderApprovalRow,
    });
  },
});
