import { setImmediate } from 'node:timers/promises';
import { birthOf } from '#domain/decider.ts';
import { type PersonState, person } from '#domain/person.ts';
import { post } from '#domain/post/post.ts';
import { changesOf } from '#projections/feed/changes.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { inParallel } from '#runtime/work/in-parallel.ts';
import { HistoryEntry, HistoryQuery } from '#schemas/http/audit.ts';
import { IdParams } from '#schemas/http/common.ts';
import type { Plan } from '#schemas/post.ts';
import { placedPage } from '../call/cursor.ts';
import { type Call, type LimitRule, type Many, operation } from '../call/operation.ts';
import { notFound } from '../call/refusal.ts';
import { auditTag, entryExample } from './examples.ts';
import { type Noun, nouns } from './nouns.ts';
import { maxEventsInMemory, originOf, pagesOf, ReadBudget, readWithin, reasonOf } from './streams.ts';

/**
 * The changes of a thing, newest first: its stream is folded event by event, and the states before and after each are
 * compared. Things that were deleted, archived or removed have their history still.
 */

type Asking = Pick<
  Call<{ readonly id: string }, { readonly limit: number; readonly cursor?: string }>,
  'deps' | 'principal' | 'workspaceId' | 'params' | 'query'
>;

/** One event of a thing, with the states around it. */
interface Step {
  /** Among all entries of the history, from the oldest one: it never changes. */
  readonly place: number;
  readonly noun: Noun;
  readonly id: string;
  readonly event: DecodedEvent;
  readonly before: unknown;
  readonly after: unknown;
  /** Members of which nothing is shown any more. */
  readonly blanked: readonly string[];
}

/** The newest entries below a place, the newest first. */
type Steps = (below: number, count: number) => Promise<readonly Step[]>;

/** Streams that one call reads at once. */
const width = 8;
/** Events that are folded in one turn of the event loop. */
const foldedAtOnce = 500;

const isAbout = (noun: Noun, id: string, { data }: DecodedEvent): boolean =>
  noun !== nouns.member || data.memberId === id;

/** The members of a workspace share its stream. That and API keys stay with the live workspace, whichever mode they act in. */
const streamOf = ({ principal, params }: Asking, noun: Noun) => {
  const { workspaceId, liveWorkspaceId } = principal;
  if (noun === nouns.member) return { name: `workspace-${liveWorkspaceId}`, owner: liveWorkspaceId };
  return { name: `${noun.kind}-${params.id}`, owner: noun === nouns.apiKey ? liveWorkspaceId : workspaceId };
};

/** The name of a person who was erased is shown nowhere any more, also not as their workspaces wrote it down. */
const isErased = async ({ deps }: Asking, personId: unknown): Promise<boolean> => {
  if (typeof personId !== 'string') return false;
  const { state }: { readonly state: PersonState } = await deps.store.load(person, personId);
  return state.status === 'erased';
};

/**
 * Of a thing with one stream, which may be long: it is folded page by page, and the entries that are asked for alone are
 * kept. @throws Refusal 404, also for a thing whose creation was fenced off: nobody has seen anything of it
 */
const stepsOfOne =
  (call: Asking, noun: Noun): Steps =>
  async (below, count) => {
    const { deps, params } = call;
    const { name, owner } = streamOf(call, noun);
    const kept: Omit<Step, 'blanked'>[] = [];
    let state = noun.initial;
    let place = 0;
    let personId: unknown = null;
    for await (const page of pagesOf(deps.store, name, new ReadBudget())) {
      if (page.some(({ metadata }) => metadata.workspaceId !== owner)) throw notFound(noun.word);
      for (const event of page) {
        const before = state;
        state = noun.step(before, event);
        if (!isAbout(noun, params.id, event)) continue;
        personId = event.data.personId ?? personId;
        if (place < below) kept.push({ place, noun, id: params.id, event, before, after: state });
        if (kept.length > count) kept.shift();
        place += 1;
      }
    }
    const newest = noun.view(state, { isLimited: false, id: params.id });
    if (place === 0 || (newest === null && noun !== nouns.member)) throw notFound(noun.word);
    const erased = noun === nouns.member && (await isErased(call, personId)) ? ['name'] : [];
    const blanked = [...erased, ...((newest && noun.blanked?.(newest)) ?? [])];
    return kept.reverse().map((step) => ({ ...step, blanked }));
  };

/** One stream of the history of a post. */
interface Piece {
  readonly noun: Noun;
  readonly id: string;
  readonly events: readonly DecodedEvent[];
}

/** What the events of a post name that has a stream of its own. A limited credential gets no target of another client. */
const partsOf = (events: readonly DecodedEvent[], clientIds: readonly string[] | null) => {
  const parts = new Map<string, readonly [Noun, string]>();
  for (const { type, data } of events) {
    if (type === 'PostSubmittedForApproval') parts.set(`${data.approvalId}`, [nouns.approval, String(data.approvalId)]);
    if (type !== 'PostScheduled') continue;
    for (const { targetId, clientId } of (data.plan as Plan).targets) {
      if (clientIds === null || clientIds.includes(clientId)) parts.set(targetId, [nouns.target, targetId]);
    }
  }
  return [...parts.values()];
};

/** @throws Refusal 404 */
const piecesOfPost = async ({ deps, workspaceId, principal, params }: Asking): Promise<readonly Piece[]> => {
  const budget = new ReadBudget(maxEventsInMemory);
  const noun = nouns.post;
  const events = await readWithin(deps.store, `${noun.kind}-${params.id}`, budget);
  const isOurs = events[0]?.metadata.workspaceId === workspaceId;
  if (!isOurs || birthOf(post, events) === undefined) throw notFound(noun.word);
  const pieces: Piece[] = [{ noun, id: params.id, events }];
  await inParallel(partsOf(events, principal.clientIds), width, async ([part, id]) => {
    pieces.push({ noun: part, id, events: await readWithin(deps.store, `${part.kind}-${id}`, budget) });
  });
  return pieces;
};

/** The states around the wanted events of one stream, by event. */
const statesIn = async ({ noun, events }: Piece, wanted: ReadonlySet<DecodedEvent>) => {
  const states = new Map<DecodedEvent, Pick<Step, 'before' | 'after'>>();
  let state = noun.initial;
  for (const [at, event] of events.entries()) {
    const after = noun.step(state, event);
    if (wanted.has(event)) states.set(event, { before: state, after });
    state = after;
    if (at % foldedAtOnce === foldedAtOnce - 1) await setImmediate();
  }
  return states;
};

/** In the order in which the store has them, in which a cause stands before what follows from it. */
const stepsOfPost =
  (call: Asking): Steps =>
  async (below, count) => {
    const pieces = await piecesOfPost(call);
    const all = pieces
      .flatMap((piece) => piece.events.map((event) => ({ piece, event })))
      .sort((a, b) => (a.event.position < b.event.position ? -1 : 1))
      .map((one, place) => ({ ...one, place }));
    const end = Math.min(below, all.length);
    const wanted = all.slice(Math.max(0, end - count), end);
    const steps: Step[] = [];
    for (const [piece, entries] of Map.groupBy(wanted, (one) => one.piece)) {
      const { noun, id } = piece;
      const states = await statesIn(piece, new Set(entries.map(({ event }) => event)));
      for (const { event, place } of entries) {
        const around = states.get(event);
        if (around !== undefined) steps.push({ place, noun, id, event, ...around, blanked: [] });
      }
    }
    return steps.sort((a, b) => b.place - a.place);
  };

const shown = ({ noun, id, event, before, after, blanked }: Step, isLimited: boolean) => {
  const viewOf = (state: unknown) => {
    const view = noun.view(state, { isLimited, id });
    return view && Object.fromEntries(Object.entries(view).filter(([name]) => !blanked.includes(name)));
  };
  const { changes, more } = changesOf(viewOf(before), viewOf(after));
  return {
    ...{ id: event.id, object: 'change' as const, resource: noun.resource, resourceId: id },
    ...{ revision: event.revision, type: event.type, at: event.metadata.occurredAt },
    ...originOf(event),
    ...{ reason: reasonOf(event), changes, moreChanges: more },
  };
};

const historyOf = async (id: string, call: Asking, steps: Steps): Promise<Many<unknown>> => {
  const { data, page } = await placedPage(`${id} ${call.params.id}`, call, steps);
  return { data: data.map((step) => shown(step, call.principal.clientIds !== null)), page };
};

const promised = (path: string, noun: Noun, limited: LimitRule, about: string) => ({
  ...{ path, limited },
  method: 'GET' as const,
  tag: auditTag,
  noun: noun.word,
  summary: `List the changes of ${about}`,
  description:
    'Newest first: who did what, when, with which credential, in which request, why, and each member with its old and its new value. Read from the stored events, so that it has what was deleted, archived or removed too, and no secret. What an erasure took is null.',
  scope: 'events.read' as const,
  idempotent: 'none' as const,
  cost: 10,
  params: IdParams,
  query: HistoryQuery,
  answer: HistoryEntry,
  list: true,
  codes: ['history_too_long'] as const,
});

export const getPostHistory = operation({
  id: 'getPostHistory',
  ...promised('/posts/{id}/history', nouns.post, 'ids', 'a post, its targets and its requests for approval'),
  example: { data: entryExample('post', 'DraftReplaced', '/content', ['A word from us.', 'A better word.']) },
  handle: async (call) => historyOf('getPostHistory', call, stepsOfPost(call)),
});

export const getClientHistory = operation({
  id: 'getClientHistory',
  ...promised('/clients/{id}/history', nouns.client, 'ids', 'a client'),
  example: { data: entryExample('client', 'ClientUpdated', '/approvalRequired', [false, true]) },
  handle: async (call) => historyOf('getClientHistory', call, stepsOfOne(call, nouns.client)),
});

export const getAccountHistory = operation({
  id: 'getAccountHistory',
  ...promised('/accounts/{id}/history', nouns.account, 'ids', 'an account'),
  example: { data: entryExample('account', 'AccountDisconnected', '/status', ['connected', 'disconnected']) },
  handle: async (call) => historyOf('getAccountHistory', call, stepsOfOne(call, nouns.account)),
});

export const getCampaignHistory = operation({
  id: 'getCampaignHistory',
  ...promised('/campaigns/{id}/history', nouns.campaign, 'ids', 'a campaign'),
  example: { data: entryExample('campaign', 'CampaignUpdated', '/endsOn', [null, '2026-03-31']) },
  handle: async (call) => historyOf('getCampaignHistory', call, stepsOfOne(call, nouns.campaign)),
});

export const getApprovalHistory = operation({
  id: 'getApprovalHistory',
  ...promised('/approvals/{id}/history', nouns.approval, 'ids', 'a request for approval'),
  example: { data: entryExample('approval', 'ApprovalApproved', '/status', ['pending', 'approved']) },
  handle: async (call) => historyOf('getApprovalHistory', call, stepsOfOne(call, nouns.approval)),
});

export const getWebhookHistory = operation({
  id: 'getWebhookHistory',
  ...promised('/webhooks/{id}/history', nouns.webhook, 'refused', 'a webhook endpoint'),
  example: { data: entryExample('webhook', 'WebhookDisabled', '/active', [true, false]) },
  handle: async (call) => historyOf('getWebhookHistory', call, stepsOfOne(call, nouns.webhook)),
});

export const getMemberHistory = operation({
  id: 'getMemberHistory',
  ...promised('/members/{id}/history', nouns.member, 'refused', 'a member'),
  example: { data: entryExample('member', 'MemberRoleChanged', '/role', ['creator', 'manager']) },
  handle: async (call) => historyOf('getMemberHistory', call, stepsOfOne(call, nouns.member)),
});

export const getApiKeyHistory = operation({
  id: 'getApiKeyHistory',
  ...promised('/api-keys/{id}/history', nouns.apiKey, 'refused', 'an API key'),
  example: { data: entryExample('api_key', 'ApiKeyRevoked', '/revokedAt', [null, '2026-01-31T08:05:00.000Z']) },
  handle: async (call) => historyOf('getApiKeyHistory', call, stepsOfOne(call, nouns.apiKey)),
});
