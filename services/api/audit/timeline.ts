import { target } from '#domain/post-target/target.ts';
import { bounded } from '#projections/feed/changes.ts';
import { postPlanning } from '#projections/queries/post-queries.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { asFacts, foldEvents } from '#runtime/eventing/domain-store.ts';
import { HistoryQuery, TimelineEntry, type TimelineStep } from '#schemas/http/audit.ts';
import { IdParams } from '#schemas/http/common.ts';
import type { Plan, PostEvent } from '#schemas/post.ts';
import type { TargetEvent } from '#schemas/target.ts';
import { maxKeptCalls, type TargetCallsEvent } from '#schemas/targetcalls.ts';
import { memoryPage } from '../call/cursor.ts';
import { type Call, operation } from '../call/operation.ts';
import { notFound } from '../call/refusal.ts';
import { auditTag, timelineExample } from './examples.ts';
import { maxEventsInMemory, originOf, ReadBudget, readWithin, reasonOf } from './streams.ts';

/**
 * The course of one target as its ledger has it: what was wanted of it, each step of each attempt, and each call of its
 * network that is kept, in the order of time.
 */

/** Of every event of a target: a new type does not compile until it has its step. */
const stepOf: Readonly<Record<TargetEvent['type'], TimelineStep>> = {
  TargetScheduled: 'planned',
  TargetHeld: 'approval',
  TargetReleased: 'approval',
  TargetRescheduled: 'scheduled',
  TargetRevised: 'scheduled',
  TargetCanceled: 'outcome',
  TargetPublishStarted: 'claim',
  TargetPublishCheckpointed: 'checkpoint',
  TargetSegmentPublished: 'outcome',
  TargetPublishTakenOver: 'claim',
  TargetHandedToPlatform: 'native',
  TargetUndoRequested: 'native',
  TargetUndoFailed: 'native',
  TargetNativeTimeChanged: 'native',
  TargetNativeRevised: 'native',
  TargetScheduleModeChanged: 'native',
  TargetPublished: 'outcome',
  TargetAcceptedByPlatform: 'processing',
  TargetFailed: 'outcome',
  TargetApprovalLapsed: 'outcome',
  TargetRateLimited: 'outcome',
  TargetPublishDeferred: 'outcome',
  TargetOutcomeUnknown: 'outcome',
  TargetAbsenceObserved: 'reconcile',
  TargetOutcomeSettled: 'reconcile',
  TargetOverdue: 'other',
  TargetPlaceLapsed: 'other',
  TargetRequeued: 'scheduled',
  TargetFirstCommentScheduled: 'comment',
  TargetFirstCommentStarted: 'comment',
  TargetFirstCommentPosted: 'comment',
  TargetFirstCommentFailed: 'comment',
  TargetAfterStepScheduled: 'after_step',
  TargetAfterStepStarted: 'after_step',
  TargetAfterStepCompleted: 'after_step',
  TargetAfterStepFailed: 'after_step',
  TargetRemovedOnPlatform: 'other',
};

interface Entry {
  /** Its place: later entries have a greater one. */
  readonly key: string;
  readonly shown: Readonly<Record<string, unknown>>;
}

/** Members whose values may let somebody in, such as those that an adapter keeps of an upload. */
const secretName = /token|secret|password|authorization|signature|jwt|cookie|credential|(?:access|private|api)_?key/i;

/** An adapter keeps addresses of uploads, which anybody may use who has them: their hosts are shown. */
const withoutAddresses = (value: unknown): unknown => {
  if (typeof value === 'string') {
    const address = /^[a-z][a-z0-9+.-]*:\/\//i.test(value) ? URL.parse(value) : null;
    return address === null ? value : `${address.protocol}//${address.host}/…`;
  }
  if (Array.isArray(value)) return value.map(withoutAddresses);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [name, secretName.test(name) ? '…' : withoutAddresses(one)]),
  );
};

/** What adapters write in a form of their own. */
const ofAdapters: readonly string[] = ['data', 'handle'];

const detailsOf = (data: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(data).map(([name, value]) => [
      name,
      bounded(ofAdapters.includes(name) ? withoutAddresses(value) : value),
    ]),
  );

/** Events of one stream in their order, whatever the clocks of the processes said that stored them. */
const inTime = function* (events: readonly DecodedEvent[]): Generator<readonly [at: string, event: DecodedEvent]> {
  let last = '';
  for (const event of events) {
    const { occurredAt } = event.metadata;
    if (occurredAt > last) last = occurredAt;
    yield [last, event];
  }
};

/** At one instant the post stands before its target, and both before the calls that follow. */
const keyOf = (at: string, stream: 'a-post' | 'b-target' | 'c-call' | 'd-lost', revision: number): string =>
  `${at}/${stream}/${String(revision).padStart(9, '0')}`;

const numberOr = (value: unknown): number | null => (typeof value === 'number' ? value : null);

const shownEvent = (
  event: DecodedEvent,
  step: TimelineStep,
  at: string,
  details: Readonly<Record<string, unknown>>,
) => {
  const { actor, credential, correlationId } = originOf(event);
  return {
    id: event.id,
    object: 'timeline_entry' as const,
    ...{ step, at, type: event.type, revision: event.revision },
    attempt: numberOr(event.data.attempt),
    takeover: numberOr(event.data.takeover),
    reason: reasonOf(event),
    ...{ actor, credential, correlationId, details, call: null },
  };
};

const targetEntries = (events: readonly DecodedEvent[]): readonly Entry[] =>
  [...inTime(events)].map(([at, event]) => {
    const { type, data, revision } = event;
    const isBoundary = type === 'TargetPublishCheckpointed' && data.step === 'boundary';
    const step = isBoundary ? 'boundary' : (stepOf[type as TargetEvent['type']] ?? 'other');
    return { key: keyOf(at, 'b-target', revision), shown: shownEvent(event, step, at, detailsOf(data)) };
  });

const callEntries = (events: readonly DecodedEvent[]): readonly Entry[] =>
  events.map((event) => {
    const {
      attempt,
      targetId: _target,
      accountId: _account,
      clientId: _client,
      ...call
    } = event.data as unknown as TargetCallsEvent['data'];
    const made = shownEvent(event, 'call', call.startedAt, {});
    return {
      key: keyOf(call.startedAt, 'c-call', event.revision),
      shown: { ...made, attempt, reason: null, call },
    };
  });

/** What was wanted of the target in the stream of its post: without the content, and without other targets. */
const intentEntries = (targetId: string, events: readonly DecodedEvent[]): readonly Entry[] => {
  /** Requests for approval that are about the target. */
  const asked = new Set<string>();
  return [...inTime(events)].flatMap(([at, event]): Entry[] => {
    const [one] = asFacts<PostEvent>([event]);
    const wanted = one === undefined ? null : wantedOf(targetId, one.event, asked);
    if (wanted === null) return [];
    const [step, details] = wanted;
    return [{ key: keyOf(at, 'a-post', event.revision), shown: shownEvent(event, step, at, detailsOf(details)) }];
  });
};

type Wanted = readonly [TimelineStep, Readonly<Record<string, unknown>>];

const wantedOf = (targetId: string, { type, data }: PostEvent, asked: Set<string>): Wanted | null => {
  switch (type) {
    case 'PostScheduled': {
      const planned = (data.plan as Plan).targets.find((one) => one.targetId === targetId);
      return planned === undefined ? null : ['intent', { plan: data.plan.number, ...planned }];
    }
    case 'PostSubmittedForApproval': {
      if (!data.targetIds.includes(targetId)) return null;
      asked.add(data.approvalId);
      return ['approval', { approvalId: data.approvalId, request: data.request, contentHash: data.hash }];
    }
    case 'PostReleased':
    case 'PostReturnedToDraft': {
      const { approvalId, decidedBy, comment } = data;
      return asked.has(approvalId) ? ['approval', { approvalId, decidedBy, comment }] : null;
    }
    case 'PostTargetsChanged':
      return data.targetIds.includes(targetId) ? ['intent', { change: data.change }] : null;
    case 'PostRevised': {
      const at = data.targetIds.indexOf(targetId);
      return at < 0 ? null : ['intent', { changed: data.changed, time: data.times?.[at] ?? null }];
    }
    case 'PostTargetsSkipped': {
      const { intentRevision, reason, targetIds } = data;
      return targetIds.includes(targetId) ? ['intent', { intentRevision, skipped: reason }] : null;
    }
    default:
      return null;
  }
};

const lost = (reason: 'full' | 'none_kept', at: string, attempt: number | null): Entry => ({
  key: keyOf(at, 'd-lost', attempt ?? 0),
  shown: {
    ...{ id: null, object: 'timeline_entry', step: 'calls_not_kept', at, type: null, revision: null },
    ...{ attempt, takeover: null, reason, actor: null, credential: null, correlationId: null },
    ...{ details: {}, call: null },
  },
});

/** Behind each boundary the network was called: an attempt of which no call is kept says so, and so does a full stream. */
const lostEntries = (events: readonly DecodedEvent[], calls: readonly DecodedEvent[]): readonly Entry[] => {
  const kept = new Set(calls.map(({ data }) => data.attempt));
  const boundaries = [...inTime(events)].filter(
    ([, { type, data }]) => type === 'TargetPublishCheckpointed' && data.step === 'boundary',
  );
  const without = new Map(
    boundaries.flatMap(([at, { data }]) => (kept.has(data.attempt) ? [] : [[numberOr(data.attempt), at] as const])),
  );
  const last = calls.at(-1);
  const full =
    calls.length >= maxKeptCalls && last !== undefined ? [lost('full', String(last.data.endedAt), null)] : [];
  return [...[...without].map(([attempt, at]) => lost('none_kept', at, attempt)), ...full];
};

/** @throws Refusal 404 */
const entriesOf = async ({
  deps,
  workspaceId,
  params: { id },
}: Pick<Call<{ readonly id: string }>, 'deps' | 'workspaceId' | 'params'>): Promise<readonly Entry[]> => {
  const budget = new ReadBudget(maxEventsInMemory);
  const events = await readWithin(deps.store, `target-${id}`, budget);
  if ((events[0]?.metadata.workspaceId ?? workspaceId) !== workspaceId) throw notFound('post target');
  const state = foldEvents(target, events);
  // Its post has planned a target before the stream of the target is there.
  const postId = state.status === 'none' ? await postPlanning(deps.pool, workspaceId, id) : state.common.postId;
  if (postId === null) throw notFound('post target');
  const [post, calls] = await Promise.all([
    readWithin(deps.store, `post-${postId}`, budget),
    readWithin(deps.store, `targetcalls-${id}`, budget),
  ]);
  return [...intentEntries(id, post), ...targetEntries(events), ...callEntries(calls), ...lostEntries(events, calls)];
};

export const getPostTargetTimeline = operation({
  id: 'getPostTargetTimeline',
  method: 'GET',
  path: '/post-targets/{id}/timeline',
  tag: auditTag,
  noun: 'post target',
  summary: 'List the steps of a post target on its way to its network',
  description:
    'The earliest first: what was wanted of it, each step of each attempt, each call of the network that is kept, with its answer, and how it ended. Calls of which nothing is kept are said. Calls are written a moment after they were made, so that the newest may be missing.',
  scope: 'events.read',
  limited: 'ids',
  idempotent: 'none',
  cost: 10,
  params: IdParams,
  query: HistoryQuery,
  answer: TimelineEntry,
  list: true,
  codes: ['history_too_long'],
  example: { data: timelineExample },
  handle: async (call) => {
    const { data, page } = memoryPage('getPostTargetTimeline', call, await entriesOf(call), ({ key }) => key);
    return { data: data.map(({ shown }) => shown), page };
  },
});
