import { approval } from '#domain/approval.ts';
import { birthOf } from '#domain/decider.ts';
import { contentHashOf, mediaIdsOf } from '#domain/post/content.ts';
import { type LivePost, newestBody, post } from '#domain/post/post.ts';
import { type TargetState, target } from '#domain/post-target/target.ts';
import { rowOf } from '#projections/engine/model.ts';
import { approvals } from '#projections/models/approvals.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { foldEvents } from '#runtime/eventing/domain-store.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import { inParallel } from '#runtime/work/in-parallel.ts';
import type { ApprovalRequest } from '#schemas/approval.ts';
import { ApprovalEvidence } from '#schemas/http/audit.ts';
import { IdParams } from '#schemas/http/common.ts';
import { notWrittenYet, showApproval } from '../approvals/show.ts';
import { type Call, operation } from '../call/operation.ts';
import { notFound } from '../call/refusal.ts';
import { auditTag, evidenceExample } from './examples.ts';
import { maxEventsInMemory, originOf, ReadBudget, readWithin } from './streams.ts';

/**
 * What a request for approval showed, what was decided about it, and whether exactly that content went out. Every hash is
 * counted again from the stored events: nothing is taken from a row.
 */

type Asking = Pick<Call<{ readonly id: string }>, 'deps' | 'workspaceId' | 'params' | 'behind'>;
/** SHA-256 of files, by id. */
type Hashes = ReadonlyMap<string, string>;

/** Streams that one call reads at once. */
const width = 8;

/** Of each file that was ever stored. The bytes of a file never change, and the checks of a post refuse one without bytes. */
const hashesOf = async ({ deps }: Asking, ids: readonly string[], budget: ReadBudget): Promise<Hashes> => {
  const hashes = new Map<string, string>();
  await inParallel(ids, width, async (id) => {
    const events = await readWithin(deps.store, `media-${id}`, budget);
    const stored = events.find(({ type }) => type === 'MediaStored');
    if (stored !== undefined) hashes.set(id, String(stored.data.sha256));
  });
  return hashes;
};

const liveAt = (events: readonly DecodedEvent[], revision: number): LivePost => {
  const state = foldEvents(
    post,
    events.filter((event) => event.revision <= revision),
  );
  if (state.status !== 'live') throw new BrokenInvariant('a post is under a plan where a target or a request names it');
  return state;
};

/** Of the content that the post has for its targets. */
const hashOf = (state: LivePost, hashes: Hashes): string =>
  contentHashOf(newestBody(state), state.plan.targets, (id) => hashes.get(id) ?? null);

const decisionTypes: readonly string[] = [
  ...['ApprovalApproved', 'ApprovalRejected', 'ApprovalChangesRequested', 'ApprovalWithdrawn'],
];

const decisionsOf = (events: readonly DecodedEvent[]) =>
  events.flatMap((event, at) => {
    if (!decisionTypes.includes(event.type)) return [];
    const { comment = null, reason = null } = event.data;
    const before = events[at - 1];
    const guest = before?.type === 'ApprovalGuestNamed' ? before.data : null;
    return [
      {
        ...{ id: event.id, type: event.type, at: event.metadata.occurredAt },
        ...originOf(event),
        ...{ linkId: guest?.linkId ?? null, guestName: guest?.name ?? null, comment, reason },
      },
    ];
  });

const linksOf = (events: readonly DecodedEvent[]) =>
  events.flatMap((event) => {
    if (event.type !== 'ApprovalLinkCreated') return [];
    const { linkId, expiresAt } = event.data;
    const end = events.find(({ type, data }) => type === 'ApprovalLinkRevoked' && data.linkId === linkId);
    const revokedAt = end?.metadata.occurredAt ?? null;
    return [{ linkId, createdAt: event.metadata.occurredAt, createdBy: originOf(event).actor, expiresAt, revokedAt }];
  });

const networkPostOf = (state: TargetState) => {
  if (state.status === 'published') return state;
  const [head] = state.status === 'none' ? [] : state.common.publishedSegments;
  return head ?? null;
};

/** The targets that the request is about, with the hash of the content that each has. */
const targetsOf = async (
  { deps }: Asking,
  about: ApprovalRequest,
  events: readonly DecodedEvent[],
  { hashes, budget }: { readonly hashes: Hashes; readonly budget: ReadBudget },
) => {
  const { plan, approval: asked } = liveAt(events, about.postRevision);
  const meant = plan.targets.filter(({ targetId }) => asked?.targetIds.includes(targetId) === true);
  const states = new Map<string, TargetState>();
  await inParallel(meant, width, async ({ targetId }) => {
    states.set(targetId, foldEvents(target, await readWithin(deps.store, `target-${targetId}`, budget)));
  });
  const counted = new Map<number, string>();
  return meant.map(({ targetId, accountId, platform }) => {
    const state = states.get(targetId) ?? target.initial;
    // The plan gives a target its content before the stream of the target is there.
    const postRevision = state.status === 'none' ? about.postRevision : state.common.postRevision;
    const contentHash = counted.get(postRevision) ?? hashOf(liveAt(events, postRevision), hashes);
    counted.set(postRevision, contentHash);
    const out = networkPostOf(state);
    return {
      ...{
        targetId,
        accountId,
        platform,
        status: state.status === 'none' ? ('awaiting_approval' as const) : state.status,
      },
      ...{ publishedAt: out?.publishedAt ?? null, externalId: out?.externalId ?? null },
      ...{ permalink: out?.permalink ?? null, postRevision, contentHash, matches: contentHash === about.contentHash },
    };
  });
};

/** Files that any content of the post names. */
const filesOf = (events: readonly DecodedEvent[]): readonly string[] => {
  const named = events.flatMap(({ data }) => ('body' in data ? mediaIdsOf(data.body as never) : []));
  return [...new Set(named)];
};

/** @throws Refusal 404; Unavailable while the request is being made */
const evidenceOf = async (call: Asking) => {
  const { deps, workspaceId, params } = call;
  const budget = new ReadBudget(maxEventsInMemory);
  const events = await readWithin(deps.store, `${approval.kind}-${params.id}`, budget);
  const request = birthOf(approval, events);
  const state = foldEvents(approval, events);
  const row = rowOf(approvals, events);
  if (request === undefined || state.status === 'none' || row === null) {
    await notWrittenYet(call);
    throw notFound('approval');
  }
  if (row.workspace_id !== workspaceId) throw notFound('approval');
  const { about } = state;
  const whole = await readWithin(deps.store, `post-${about.postId}`, budget);
  const hashes = await hashesOf(call, filesOf(whole), budget);
  const recountedHash = hashOf(liveAt(whole, about.postRevision), hashes);
  const targets = await targetsOf(call, about, whole, { hashes, budget });
  return {
    id: params.id,
    object: 'approval_evidence' as const,
    approval: await showApproval(call, row, state),
    requestedAt: request.metadata.occurredAt,
    requestedWith: originOf(request).credential,
    contentHash: about.contentHash,
    recountedHash,
    matches: recountedHash === about.contentHash,
    links: linksOf(events),
    decisions: decisionsOf(events),
    targets,
    targetsMatch: targets.every(({ matches }) => matches),
  };
};

export const getApprovalEvidence = operation({
  id: 'getApprovalEvidence',
  method: 'GET',
  path: '/approvals/{id}/evidence',
  tag: auditTag,
  noun: 'approval',
  summary: 'Get the evidence of a request for approval',
  description:
    'Exactly what was shown, to whom, what was decided, by whom and when, and for each target whether the content that went out, or stands now, has the hash that was asked for. Hashes are counted again from the stored events.',
  scope: 'events.read',
  limited: 'ids',
  idempotent: 'none',
  cost: 10,
  params: IdParams,
  answer: ApprovalEvidence,
  codes: ['history_too_long'],
  example: { data: evidenceExample },
  handle: async (call) => ({ data: await evidenceOf(call) }),
});
