import { rulesOf } from '#domain/platforms/index.ts';
import { contentFor } from '#domain/post/content.ts';
import { post, statusOf } from '#domain/post/post.ts';
import { attemptAt, isOpen, type TargetState, target } from '#domain/post-target/target.ts';
import type { LedgerRow, SandboxNetwork } from '#infra/platforms/sandbox/index.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { foldEvents } from '#runtime/eventing/domain-store.ts';
import { idOf, kindOf } from '#schemas/topics.ts';
import { checkApprovals } from './check-approvals.ts';
import { type Live, LiveCheck } from './check-live.ts';
import { checkReleased } from './check-released.ts';
import { checkTimes } from './check-times.ts';
import { longAgo } from './past.ts';

/** Invariants of posts and their targets at rest, by the networks' own ledgers. */

export type Streams = ReadonlyMap<string, readonly DecodedEvent[]>;

/** A target due later than this, milliseconds, waits for its time. */
const laterMs = 120_000;

/**
 * Why a target has not ended yet; null when it has, or waits for its time or for a person.
 * @param shown how many posts of it its network shows
 */
export const unsettled = (state: TargetState, shown: number, now = Date.now()): string | null => {
  switch (state.status) {
    case 'none':
      return 'was never written';
    case 'pending':
      return Date.parse(attemptAt(state)) > now + laterMs ? null : `is pending since ${attemptAt(state)}`;
    case 'publishing':
    case 'processing':
    case 'rate_limited':
      return `is ${state.status}`;
    case 'handed_to_platform':
      return state.undo === null ? null : 'is being taken back';
    case 'outcome_unknown': {
      const { absenceIsProof, readsBack, listsOwnPosts } = rulesOf(state.common.platform).publish;
      // It is found by its content, which only one post has, where the network lists posts.
      if (state.restored && (shown !== 1 || !listsOwnPosts)) return null;
      if (shown > state.common.publishedSegments.length) return 'is said to be unknown, and the network shows it';
      return !state.restored && absenceIsProof && readsBack === 'own_posts'
        ? 'is said to be unknown, and its absence is proof'
        : null;
    }
    case 'published':
      return state.firstComment === null ? null : `has a first comment that is ${state.firstComment.status}`;
    default:
      return null;
  }
};

/** The posts that the network still has. */
export const createdIn = (rows: readonly LedgerRow[]): readonly LedgerRow[] =>
  rows.filter((one) => one.outcome === 'created' && one.undoneAt === null);
export const story = (events: readonly DecodedEvent[]): string =>
  events
    .map(({ type, data }) => (data.step === 'boundary' ? 'boundary' : type.replace(/^(Target|Post)/, '')))
    .join(' ');

const ledgerOf = async (sandbox: SandboxNetwork): Promise<readonly LedgerRow[]> => {
  const all: LedgerRow[] = [];
  for (;;) {
    const page = await sandbox.ledger({ after: all.at(-1)?.seq ?? 0, limit: 5_000 });
    if (page.length === 0) return all;
    all.push(...page);
  }
};

export interface CheckedTargets {
  readonly violations: readonly string[];
  readonly states: ReadonlyMap<string, TargetState>;
  /** Targets by status. */
  readonly statuses: Readonly<Record<string, number>>;
}

/** The clock of a test by which targets are due; the networks' ledgers do not know it. */
export interface TestClock {
  readonly now: () => number;
}

/** What was done in the time that a restore lost: only the networks know it. */
export interface Lost {
  /** As they were at the end of that time. */
  readonly streams: Streams;
  /** The rows of the ledger up to this one are of that time, or of before. */
  readonly untilSeq: number;
}

export interface CheckOptions {
  readonly clock?: TestClock;
  readonly lost?: Lost | null;
}

/** Nothing may be under way. */
export const checkTargets = async (
  streams: Streams,
  sandbox: SandboxNetwork,
  networks: Live | null,
  { clock, lost = null }: CheckOptions = {},
): Promise<CheckedTargets> => {
  const isLost = ({ seq }: LedgerRow): boolean => lost !== null && seq <= lost.untilSeq;
  const violations: string[] = [];
  const statuses: Record<string, number> = {};
  const ofKind = (kind: string) => [...streams].filter(([stream]) => kindOf(stream) === kind);
  const ledger = await ledgerOf(sandbox);
  const made = Map.groupBy(createdIn(ledger), (row) => row.targetId);

  for (const { targetId, posts } of await sandbox.duplicates()) {
    violations.push(
      `target ${targetId} was created ${posts.length} times: ${story(streams.get(`target-${targetId}`) ?? [])}`,
    );
  }
  const states = new Map<string, TargetState>();
  const live = networks === null ? null : await LiveCheck.of(networks);
  const isLive = ([first]: readonly DecodedEvent[]) => first?.metadata.workspaceId === networks?.workspaceId;
  for (const [stream, events] of ofKind('target')) {
    const state = foldEvents(target, events);
    const id = idOf(stream);
    states.set(id, state);
    statuses[state.status] = (statuses[state.status] ?? 0) + 1;
    const itsPost = state.status === 'none' ? [] : (streams.get(`post-${state.common.postId}`) ?? []);
    const onNetwork =
      live !== null && isLive(events)
        ? ofLiveTarget(live, state, itsPost, events)
        : ofTarget(state, { made: made.get(id) ?? [], events, itsPost, clock, isLost });
    const wrong = [...onNetwork, ...ofClaims(events)];
    violations.push(...wrong.map((what) => `target ${id} ${what}: ${story(events)}`));
  }
  for (const [stream, events] of ofKind('post')) {
    violations.push(...ofPost(events, states).map((what) => `${stream} ${what}: ${story(events)}`));
  }
  violations.push(...ofDisconnected(streams, states), ...(live?.strangers() ?? []));
  const [before, since] = [ledger.filter(isLost), ledger.filter((row) => !isLost(row))];
  violations.push(...checkApprovals(streams), ...checkReleased(streams, since), ...checkTimes(streams));
  if (lost !== null) violations.push(...checkReleased(lost.streams, before));
  return { violations, states, statuses };
};

/** By attempt: the instant from which it was allowed to start. */
const dueTimes = (events: readonly DecodedEvent[]): ReadonlyMap<number, string> =>
  new Map(
    events.flatMap(({ type, data }, at) => {
      if (type !== 'TargetPublishStarted') return [];
      const begun = foldEvents(target, events.slice(0, at + 1));
      return begun.status === 'publishing' ? [[Number(data.attempt), attemptAt(begun)] as const] : [];
    }),
  );

/** When the publisher recorded that it would make the call. */
const boundaryOf = ({ attempt, segment }: LedgerRow, events: readonly DecodedEvent[]): Date => {
  const of = (data: DecodedEvent['data']) =>
    Number((data.segment as { index?: number } | null | undefined)?.index ?? 0);
  const found = events.find(({ data }) => data.step === 'boundary' && data.attempt === attempt && of(data) === segment);
  return new Date(found?.metadata.occurredAt ?? 0);
};

const ofLiveTarget = (
  live: LiveCheck,
  state: TargetState,
  itsPost: readonly DecodedEvent[],
  events: readonly DecodedEvent[],
): readonly string[] => {
  const open = unsettled(state, state.status === 'none' ? 0 : live.shown(state, itsPost));
  if (state.status === 'none') return [open ?? ''];
  const wrong = live.target(state, itsPost, events);
  return open === null ? wrong : [open, ...wrong];
};

interface OnNetwork {
  readonly made: readonly LedgerRow[];
  readonly events: readonly DecodedEvent[];
  readonly itsPost: readonly DecodedEvent[];
  readonly clock: TestClock | undefined;
  readonly isLost: (row: LedgerRow) => boolean;
}

/** Compares the target's stream with the network's posts. */
const ofTarget = (state: TargetState, { made, events, itsPost, clock, isLost }: OnNetwork): readonly string[] => {
  const open = unsettled(state, made.length, clock?.now());
  if (open !== null || state.status === 'none') return [open ?? ''];
  const { publishedSegments: segments } = state.common;
  const [first] = made;
  const due = dueTimes(events);
  const startedAt = (row: LedgerRow): Date => (clock === undefined ? row.callStartedAt : boundaryOf(row, events));
  const wrong = made
    .filter((row) => row.scheduledFor === null && !isLost(row))
    .map((row) => ({ dueAt: due.get(row.attempt) ?? state.common.dueAt, at: startedAt(row).toISOString() }))
    .filter(({ dueAt, at }) => at < dueAt)
    .map(({ dueAt, at }) => `was due ${dueAt} and published ${at}`);
  const composed = foldEvents(
    post,
    itsPost.filter(({ revision }) => revision <= state.common.postRevision),
  );
  const sent = composed.status === 'live' ? contentFor(composed.body, state.common.platform).segments : [];
  for (const row of made) {
    if (row.content !== sent[row.segment]?.content)
      wrong.push(`has another text on its network in segment ${row.segment}`);
  }
  // For a thread: each segment once, in order, each a reply to the previous one, whatever the outcome of the whole.
  for (const [index, { externalId }] of segments.entries()) {
    const row = made[index];
    const parent = index === 0 ? null : segments[index - 1]?.externalId;
    if (row?.postId !== externalId || row.segment !== index || row.replyTo !== parent) {
      wrong.push(
        `has the segment ${index} as ${externalId}, and the network has ${row?.postId} in reply to ${row?.replyTo}`,
      );
    }
  }
  if (state.status === 'handed_to_platform') {
    return first?.postId === state.nativeId
      ? wrong
      : [...wrong, `is handed over as ${state.nativeId}, and the network has ${first?.postId}`];
  }
  if (state.status !== 'published') {
    const more = made[segments.length];
    // After a restore a person looks for what can not be found by its content.
    const isLeft = state.status === 'outcome_unknown' && state.restored && more !== undefined && isLost(more);
    return more === undefined || isLeft
      ? wrong
      : [...wrong, `is ${state.status}, and the network has it as ${more.postId}`];
  }
  if (first === undefined && state.externalId.startsWith(longAgo)) return wrong;
  if (first === undefined) return [...wrong, 'is published, and the network has nothing'];
  if (first.postId !== state.externalId) wrong.push(`is ${state.externalId}, and the network has ${first.postId}`);
  // A scheduled post becomes visible by the network's clock, which the load moves.
  const isOut = first.scheduledFor !== null || (first.visibleAt !== null && first.visibleAt.getTime() <= Date.now());
  if (!isOut) wrong.push('is published, and does not show');
  return wrong;
};

const ofClaim = new Set([
  'TargetPublishCheckpointed',
  'TargetSegmentPublished',
  'TargetPublished',
  'TargetRateLimited',
  'TargetPublishDeferred',
  'TargetOutcomeUnknown',
]);

/** The network has the post, and does not show it yet. */
const taken = new Set(['TargetHandedToPlatform', 'TargetAcceptedByPlatform']);

/** Attempts count up one by one, and only the newest claim of the present attempt writes. */
const ofClaims = (events: readonly DecodedEvent[]): readonly string[] => {
  const wrong: string[] = [];
  let attempt = 0;
  let takeover = 0;
  let under = false;
  let crossed = false;
  let handed = false;
  let unknown = false;
  // Segments that reconcile finds are recorded after the attempt, in the same append as the requeue.
  const found = (at: number): boolean => /^Target(Requeued|OutcomeSettled)$/.test(events[at + 1]?.type ?? '') && !under;
  for (const [at, { type, data }] of events.entries()) {
    if (type === 'TargetPublishStarted') {
      if (under) wrong.push('was claimed while an attempt was under way');
      if (data.attempt !== attempt + 1) wrong.push(`began attempt ${data.attempt} after ${attempt}`);
      [attempt, takeover, under, crossed, handed] = [Number(data.attempt), 0, true, false, false];
      unknown = false;
    } else if (type === 'TargetPublishTakenOver') {
      if (!under || data.takeover !== takeover + 1) wrong.push('was taken over out of turn');
      takeover = Number(data.takeover);
    } else if (taken.has(type) || (handed && type === 'TargetOutcomeUnknown')) {
      // Reconcile finds what the network has after its attempt, and the network may say nothing at its time.
      if (!crossed) wrong.push(`${type} without a call`);
      if (handed && type === 'TargetAcceptedByPlatform') wrong.push('was accepted twice');
      if (data.attempt !== attempt || data.takeover !== takeover) wrong.push(`${type} by a lost claim`);
      [under, handed] = [false, true];
    } else if (type === 'TargetPublishDeferred' && !under) {
      // Put off before its claim: it names the attempt that the claim would have begun.
      if (data.attempt !== attempt + 1 || data.takeover !== 0) wrong.push(`${type} by a lost claim`);
    } else if (unknown && type === 'TargetOutcomeUnknown' && data.reason === 'restored') {
      // A restore asks anew about a target whose outcome was unknown in the copy.
      if (data.attempt !== attempt || data.takeover !== takeover) wrong.push(`${type} by a lost claim`);
      unknown = false;
    } else if (ofClaim.has(type) && !(type === 'TargetSegmentPublished' && found(at))) {
      if (!under || data.attempt !== attempt || data.takeover !== takeover) wrong.push(`${type} by a lost claim`);
      if (data.step === 'boundary') {
        if (crossed) wrong.push('crossed its boundary twice in an attempt');
        crossed = true;
      }
      unknown = type === 'TargetOutcomeUnknown';
      if (type === 'TargetSegmentPublished') crossed = false;
      else if (type !== 'TargetPublishCheckpointed') under = false;
    } else if (type === 'TargetFailed') {
      [attempt, under] = [Math.max(attempt, Number(data.attempt)), false];
    }
    if (/^Target(Requeued|OutcomeSettled|Failed|Canceled)$/.test(type)) unknown = false;
  }
  return wrong;
};

/** Events about the whole occur once, and the post has the outcome of each target. */
const ofPost = (events: readonly DecodedEvent[], targets: ReadonlyMap<string, TargetState>): readonly string[] => {
  const wrong: string[] = [];
  for (const once of ['PostPartiallyPublished', 'PostCanceled', 'PostDrafted', 'PostDiscarded']) {
    const times = events.filter((one) => one.type === once).length;
    if (times > 1) wrong.push(`has ${times} times ${once}`);
  }
  wrong.push(...onceBetween('', events, 'PostScheduled', ['PostReturnedToDraft']));
  for (const whole of ['PostPublished', 'PostFailed'])
    wrong.push(...onceBetween('', events, whole, ['PostTargetReopened', 'PostRevised']));
  const state = foldEvents(post, events);
  if (state.status !== 'live') return wrong;
  for (const { targetId } of state.plan.targets) {
    const own = targets.get(targetId);
    if (own === undefined || own.status === 'none') {
      wrong.push(`planned the target ${targetId}, which is not there`);
      continue;
    }
    const settled = ['published', 'failed', 'canceled'].includes(own.status) ? own.status : null;
    const reported = state.targets[targetId]?.outcome ?? null;
    if (reported !== settled) wrong.push(`knows ${reported} of ${targetId}, which is ${own.status}`);
  }
  const said = events.findLast((one) =>
    /^Post(Published|Failed|PartiallyPublished|Canceled|TargetReopened|Revised)$/.test(one.type),
  );
  const shown = statusOf(state);
  if (
    ['published', 'failed'].includes(shown ?? '') &&
    said?.type !== (shown === 'published' ? 'PostPublished' : 'PostFailed')
  )
    wrong.push(`is ${shown} and does not say so`);
  return wrong;
};

/** `what` occurred again before one of `between`. */
export const onceBetween = (
  stream: string,
  events: readonly DecodedEvent[],
  what: string,
  between: readonly string[],
): readonly string[] => {
  let said = false;
  for (const { type } of events) {
    if (between.includes(type)) said = false;
    else if (type === what) {
      if (said) return [`${stream} says ${what} twice`];
      said = true;
    }
  }
  return [];
};

/** What was scheduled to an account before it was disconnected is canceled, also where it was connected again. */
const ofDisconnected = (streams: Streams, states: ReadonlyMap<string, TargetState>): readonly string[] =>
  [...states].flatMap(([id, state]) => {
    if (state.status === 'none' || !isOpen(state)) return [];
    const since = streams.get(`target-${id}`)?.[0]?.position ?? 0n;
    const parting = streams
      .get(`account-${state.common.accountId}`)
      ?.find(({ type, position }) => type === 'AccountDisconnected' && position > since);
    return parting === undefined ? [] : [`target ${id} is ${state.status}, and its account was disconnected`];
  });
