import { type ApprovalState, approval } from '#domain/approval.ts';
import { post } from '#domain/post/post.ts';
import { type Loaded, uuidv7 } from '#runtime/eventing/domain-store.ts';
import { linkToken } from '#runtime/identity/link-token.ts';
import { instantOf } from '#schemas/common.ts';
import { ApprovalLink, ApprovalLinkCreate, ApprovalLinkParams } from '#schemas/http/approval-link.ts';
import { IdParams } from '#schemas/http/common.ts';
import { wholeList } from '../call/cursor.ts';
import { type Acted, type Call, operation } from '../call/operation.ts';
import { notFound, Refusal } from '../call/refusal.ts';
import { lastOf, makerOf } from '../call/rows.ts';
import { approvalsTag, linkExample } from './examples.ts';
import { loadRequest, notWrittenYet } from './show.ts';

/** Links through which a guest of the client decides, without an account of the agency. */

const hourMs = 3_600_000;
const defaultHours = 168;

interface Accepted {
  readonly linkId: string;
  readonly expiresAt: string;
  readonly keyVersion: string;
}

type Creating = Call<{ readonly id: string }, unknown, { readonly expiresInHours?: number }>;

/** A guest sees the whole post: one that goes to several clients would show each of them what is of another. */
const requireOneClient = async ({ deps }: Creating, { state }: Loaded<ApprovalState>): Promise<void> => {
  if (state.status === 'none') throw notFound('approval');
  const { state: about } = await deps.store.load(post, state.about.postId);
  const targets = about.status === 'live' ? about.plan.targets : [];
  if (targets.every(({ clientId }) => clientId === state.about.clientId)) return;
  throw new Refusal('validation_failed', 'The post goes to accounts of several clients: a guest would see them all.');
};

const createLink = async (call: Creating) => {
  const { deps, now, body } = call;
  const acted = await call.stream(approval).act({
    load: () => loadRequest(call),
    accept: async (): Promise<Accepted> => ({
      linkId: uuidv7(),
      expiresAt: new Date(Date.parse(now) + (body.expiresInHours ?? defaultHours) * hourMs).toISOString(),
      keyVersion: deps.secrets.current,
    }),
    command: (accepted) => ({ type: 'CreateLink', ...accepted }),
    rule: (loaded) => requireOneClient(call, loaded),
    optional: true,
    partitionKey: partitionOf,
  });
  const { linkId } = lastOf(acted.events).data as { readonly linkId: string };
  return { data: linkOf(call, acted, linkId), revision: acted.revision, replayed: acted.replayed };
};

const revokeLink = async (call: Call<{ readonly id: string; readonly linkId: string }>) => {
  const { linkId } = call.params;
  const acted = await call.stream(approval).act({
    command: () => ({ type: 'RevokeLink', linkId }),
    partitionKey: partitionOf,
  });
  return { data: linkOf(call, acted, linkId), revision: acted.revision, replayed: acted.replayed };
};

/** All of one request: its stream has room for a bounded number. */
const listLinks = async (call: Call<{ readonly id: string }>) => {
  const loaded = await call.deps.store.load(approval, call.params.id);
  if (loaded.state.status === 'none') await notWrittenYet(call);
  if (loaded.state.status === 'none' || loaded.events[0]?.metadata.workspaceId !== call.workspaceId) {
    throw notFound('approval');
  }
  const shown = Object.keys(loaded.state.links).map((linkId) => linkOf(call, loaded, linkId));
  return wholeList(shown.map((link) => ({ ...link, url: null, token: null })).reverse());
};

const partitionOf = (state: ApprovalState): string => {
  if (state.status === 'none') throw notFound('approval');
  return state.about.postId;
};

/** Without the address once the link has expired or is revoked. */
const linkOf = (
  { deps, params, now }: Pick<Call<{ readonly id: string }>, 'deps' | 'params' | 'now'>,
  { state, events }: Pick<Acted<ApprovalState>, 'state' | 'events'>,
  linkId: string,
) => {
  const link = state.status === 'none' ? undefined : state.links[linkId];
  const created = events.find(({ type, data }) => type === 'ApprovalLinkCreated' && data.linkId === linkId);
  if (state.status === 'none' || link === undefined || created === undefined) throw notFound('link');
  const { expiresAt, keyVersion, isRevoked } = link;
  const isOpen = expiresAt > now && !isRevoked;
  const token = isOpen ? linkToken(deps.secrets, 'approval', [params.id, linkId], keyVersion) : null;
  return {
    object: 'approval_link' as const,
    linkId,
    approvalId: params.id,
    url: token === null ? null : `${deps.consoleUrl()}/approval/${token}`,
    token,
    createdBy: makerOf(created),
    decidedAt: state.decided?.by.id === linkId ? state.decided.at : null,
    isRevoked,
    expiresAt,
    createdAt: instantOf(created.metadata),
  };
};

export const createApprovalLink = operation({
  id: 'createApprovalLink',
  method: 'POST',
  path: '/approvals/{id}/links',
  tag: approvalsTag,
  summary: 'Make a link through which a guest of the client decides',
  description:
    'A person who opens the page sees the post as it will look on each network, types a name, and approves, rejects or asks for changes: `decidedBy` is then `{type: guest}` with the id of the link. Opening the page changes nothing, so that scanners of mail may. The link works until it expires or is revoked, while its maker may decide, and shows the outcome after a decision. A post that goes to accounts of several clients gets no link.',
  scope: 'approvals.decide',
  limited: 'ids',
  idempotent: 'required',
  cost: 1,
  bodyOptional: true,
  params: IdParams,
  body: ApprovalLinkCreate,
  answer: ApprovalLink,
  codes: ['approval_not_pending', 'stream_full'],
  example: { body: { expiresInHours: 168 }, data: linkExample },
  handle: (call) => createLink(call),
});

export const revokeApprovalLink = operation({
  id: 'revokeApprovalLink',
  method: 'DELETE',
  path: '/approvals/{id}/links/{linkId}',
  tag: approvalsTag,
  summary: 'Revoke a link before its end',
  description:
    'Nobody decides through it any more; a decision that was made through it stays. Revoking it again answers the same.',
  scope: 'approvals.decide',
  limited: 'ids',
  idempotent: 'none',
  cost: 1,
  params: ApprovalLinkParams,
  answer: ApprovalLink,
  codes: [],
  example: { data: { ...linkExample, url: null, token: null, isRevoked: true } },
  handle: (call) => revokeLink(call),
});

export const listApprovalLinks = operation({
  id: 'listApprovalLinks',
  method: 'GET',
  path: '/approvals/{id}/links',
  tag: approvalsTag,
  summary: 'List the links of a request for approval, newest first',
  description:
    'Those that expired or were revoked, too; without their addresses, which the answer to the creation alone shows.',
  scope: 'approvals.decide',
  limited: 'ids',
  idempotent: 'none',
  cost: 1,
  params: IdParams,
  answer: ApprovalLink,
  list: true,
  codes: [],
  example: { data: { ...linkExample, url: null, token: null } },
  handle: (call) => listLinks(call),
});
