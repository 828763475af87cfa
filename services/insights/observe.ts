import { hash } from 'node:crypto';
import { isConflict } from '#contracts/ports/event-store.ts';
import type { Json } from '#contracts/ports/platform.ts';
import {
  type AccountInsightsAnswer,
  accountDays,
  type PostInsightsAnswer,
  type ReportedDay,
  type ReportedProfile,
} from '#contracts/ports/platform-insights.ts';
import { type AccountState, account } from '#domain/account.ts';
import type { Decider } from '#domain/decider.ts';
import { uuidv5 } from '#domain/ids.ts';
import { type AccountMetricsCommand, accountmetrics, targetmetrics } from '#domain/insights.ts';
import { accountFiguresOf, type OddFigure, postFiguresOf } from '#domain/platforms/read-figures.ts';
import { target } from '#domain/post-target/target.ts';
import { InvalidEvent } from '#runtime/eventing/codec.ts';
import { type CommandContext, type DomainStore, foldEvents, type Loaded } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { serviceContext } from '#runtime/eventing/service-context.ts';
import { wellFormedInstant, wellFormedJson } from '#runtime/eventing/well-formed.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { type Lease, LeaseLost } from '#runtime/work/leases.ts';
import { shownProfile } from '#services/workflows/accounts/shown-profile.ts';
import type { Job, PollCycle } from './jobs.ts';
import { dayOf, storyEndsMs } from './schedule.ts';

/**
 * Appends a network's answer about one post or account to its stream. The id of an observation is derived from the job
 * and its due instant, so a worker that repeats the job after a crash finds the observation and appends nothing.
 */

type Seen =
  /** `revision`: the stream's new one. `odd`: figures that were left out. */
  | { readonly kind: 'recorded'; readonly revision: number; readonly odd: readonly OddFigure[] }
  | { readonly kind: 'nonsense'; readonly reason: string; readonly raw: Json | null }
  /**
   * The post seems to be removed since `goneAt`, by the network's clock; only a later poll that confirms it is
   * recorded.
   */
  | { readonly kind: 'perhaps gone'; readonly goneAt: Date }
  | { readonly kind: 'gone' }
  /** A story after its day: its figures stay as they are. */
  | { readonly kind: 'expired' };

export interface Observing {
  readonly store: DomainStore;
  readonly cycle: PollCycle;
  readonly lease: Lease;
  /** Of the workspace. */
  readonly timezone: string;
  /** Adapter and version. */
  readonly source: string;
  readonly goneMs: number;
  /** Milliseconds that the network's clock may be ahead of ours; null: no bound. */
  readonly maxAheadMs: number | null;
}

/** Longest answer that is stored, bytes as JSON: an event must stay storable. */
const maxRaw = 128 * 1024;

export const contextOf = ({ workspaceId, now, aheadMs }: PollCycle, job: Job): CommandContext => {
  const cause = causeOf(job);
  const from = { workspaceId, correlationId: cause, causationId: cause, causeEventId: cause };
  return serviceContext('metrics', from, now.getTime(), aheadMs);
};

const causeOf = ({ id, dueAt }: Job): string => uuidv5(id, dueAt.toISOString());

type ReportedPost = Extract<PostInsightsAnswer, { kind: 'reported' }>;
type ReportedAccount = Extract<AccountInsightsAnswer, { kind: 'reported' }>;
export type ObservedAnswer = ReportedPost | ReportedAccount | Extract<PostInsightsAnswer, { kind: 'removed' }>;

export const observe = async (observing: Observing, job: Job, answer: ObservedAnswer): Promise<Seen> => {
  const observedAt = wellFormedInstant(answer.observedAt);
  if (observedAt === null) return { kind: 'nonsense', reason: 'its clock tells no instant', raw: answer.raw };
  const wrong = untimely(observing, job, Date.parse(observedAt));
  if (wrong !== null) return { kind: 'nonsense', reason: wrong, raw: answer.raw };
  if (Buffer.byteLength(JSON.stringify(answer.raw)) > maxRaw) {
    return { kind: 'nonsense', reason: `the answer has more than ${maxRaw} bytes`, raw: answer.raw };
  }
  const raw = wellFormedJson(answer.raw);
  try {
    if (answer.kind === 'removed') return await observeGone(observing, job, observedAt, raw);
    if (job.kind === 'post') return await observePost(observing, job, observedAt, raw, answer as ReportedPost);
    return await observeAccount(observing, job, observedAt, raw, answer as ReportedAccount);
  } catch (error) {
    // The answer parsed as figures, but the event's schema refuses it.
    if (error instanceof InvalidEvent) return { kind: 'nonsense', reason: error.message.slice(0, 500), raw };
    throw error;
  }
};

const dayMs = 24 * 3_600_000;
/** No network reports days longer ago than this, milliseconds. */
const longestAgoMs = 800 * dayMs;

/**
 * The decider ignores observations older than the newest one, so one instant far in the future would end a post's
 * figures.
 */
const untimely = ({ cycle, maxAheadMs }: Observing, { publishedAt }: Job, observedAt: number): string | null => {
  if (publishedAt !== null && observedAt < publishedAt.getTime() - dayMs) return 'its clock is before the publication';
  if (maxAheadMs !== null && observedAt > cycle.now.getTime() + maxAheadMs) return 'its clock is ahead of ours';
  return null;
};

const about = ({ cycle, timezone, source }: Observing, observedAt: string, raw: Json) => ({
  accountId: cycle.accountId,
  clientId: cycle.clientId,
  platform: cycle.platform,
  observedAt,
  day: dayOf(observedAt, timezone),
  source,
  raw,
});

const aboutPost = (job: Job) => ({
  targetId: job.id,
  postId: job.postId ?? '',
  externalId: job.externalId ?? '',
  publishedAt: (job.publishedAt ?? new Date(0)).toISOString(),
});

const hashOf = (raw: Json): string => hash('sha256', JSON.stringify(raw), 'base64url').slice(0, 22);

class Observed extends Error {}

type Of<State, Command> = Decider<State, Command, { readonly type: string; readonly data: unknown }>;

/** Folds the last seen event, `before` events before it, and all after it: the next event depends on no others. */
const newest = async <State, Command>(
  store: DomainStore,
  decider: Of<State, Command>,
  { id, seenRevision }: Job,
  before = 0,
): Promise<Loaded<State>> => {
  const events = await store.readStream(`${decider.kind}-${id}`, undefined, Math.max(0, (seenRevision ?? 0) - before));
  return { state: foldEvents(decider, events), revision: events.at(-1)?.revision ?? -1, events };
};

/** Returns the stream's revision. */
const append = async <State, Command>(
  { store, cycle, lease }: Observing,
  job: Job,
  decider: Of<State, Command>,
  command: Command,
  loaded: Loaded<State>,
): Promise<number> => {
  const eventId = uuidv5(causeOf(job), `${decider.kind}-${job.id}`);
  let known = loaded.revision;
  try {
    const { revision } = await execute(store, decider, job.id, command, contextOf(cycle, job), {
      loaded,
      ...(job.postId === null ? {} : { partitionKey: job.postId }),
      guard: ({ events, revision: at }) => {
        known = at;
        if (events.some(({ id }) => id === eventId)) throw new Observed();
        if (!lease.isHeld()) throw new LeaseLost(lease.id);
      },
    });
    return revision;
  } catch (error) {
    if (!(error instanceof Observed)) throw error;
    return known;
  }
};

const observePost = async (
  observing: Observing,
  job: Job,
  observedAt: string,
  raw: Json,
  { fields }: ReportedPost,
): Promise<Seen> => {
  const { platform } = observing.cycle;
  const { use, hasVideo } = job;
  const mapped = postFiguresOf(platform, use ?? 'feed', raw, {
    ...(hasVideo === null ? {} : { hasVideo }),
    ...(fields === undefined ? {} : { fields }),
  });
  if (mapped.kind === 'nonsense') return { ...mapped, raw };
  const { figures, odd } = mapped;
  const observation = {
    ...{ ...about(observing, observedAt, raw), ...aboutPost(job), figures, platformRemovedAt: null },
    rawHash: hashOf(raw),
  };
  const loaded = await newest(observing.store, targetmetrics, job);
  return {
    kind: 'recorded',
    revision: await append(observing, job, targetmetrics, { type: 'Observe', observation }, loaded),
    odd,
  };
};

/**
 * Whether the day exists, is not after the network's present day, and is within the longest time that networks report.
 */
const isDay = (day: string, observedAt: string): boolean => {
  const at = /^\d{4}-\d\d-\d\d$/.test(day) ? Date.parse(day) : Number.NaN;
  const ago = Date.parse(observedAt) - at;
  return ago >= -dayMs && ago <= longestAgoMs && new Date(at).toISOString().startsWith(day);
};

/** Newest events that may already hold days of a list. */
const listEvents = 3 * accountDays;

const observeAccount = async (
  observing: Observing,
  job: Job,
  observedAt: string,
  raw: Json,
  { fields, figuresOf, earlier = [] }: ReportedAccount,
): Promise<Seen> => {
  if (figuresOf !== null && !isDay(figuresOf, observedAt)) {
    return { kind: 'nonsense', reason: 'its figures are of no day', raw };
  }
  const asked = fields === undefined ? {} : { fields };
  const mapped = accountFiguresOf(observing.cycle.platform, raw, asked);
  if (mapped.kind === 'nonsense') return { ...mapped, raw };
  const { kind: _kind, odd, ...reported } = mapped;
  const observation = {
    ...about(observing, observedAt, raw),
    ...{ ...reported, figuresDay: figuresOf, rawHash: hashOf(raw) },
  };
  const days = figuresOf === null ? [] : earlier.slice(0, accountDays).filter(({ day }) => day < figuresOf);
  const others = days.map((one) => earlierOf(observing, observation, one));
  const known = others.flatMap((one) => (one.observation === null ? [] : [one.observation]));
  const loaded = await newest(observing.store, accountmetrics, job, days.length === 0 ? 0 : listEvents);
  const command = { type: 'Observe', observation, earlier: known } as const;
  return {
    kind: 'recorded',
    revision: await append(observing, job, accountmetrics, command, loaded),
    odd: [...odd, ...others.flatMap((one) => one.odd)],
  };
};

type AccountObservation = AccountMetricsCommand['observation'];

/**
 * A day that cannot be parsed does not affect the others. Followers and demographics describe the present in every
 * event of a poll. A figure that the list leaves out of a day is absent although the adapter asked for it: null would
 * overwrite the value of an earlier observation. A day is stored only when it changed, so its answer has no hash.
 */
const earlierOf = (
  { cycle }: Observing,
  { figures: { followerCount }, rawHash: _ofNewest, ...newest }: AccountObservation,
  { day, raw }: ReportedDay,
): { readonly observation: AccountObservation | null; readonly odd: readonly OddFigure[] } => {
  if (!isDay(day, newest.observedAt)) return { observation: null, odd: [{ field: 'day', reason: 'it is of no day' }] };
  const mapped = accountFiguresOf(cycle.platform, raw);
  if (mapped.kind === 'nonsense') return { observation: null, odd: [{ field: 'day', reason: mapped.reason }] };
  const { followerCount: _now, ...daily } = mapped.figures;
  const figures = followerCount === undefined ? daily : { ...daily, followerCount };
  return { observation: { ...newest, figures, figuresDay: day, raw: wellFormedJson(raw) }, odd: mapped.odd };
};

/**
 * One answer does not prove a removal, because networks lose posts for a moment. If the process dies between the final
 * observation and the target's own event, the job stays: the next poll finds the observation, appends the event and
 * ends the job.
 */
const observeGone = async (observing: Observing, job: Job, observedAt: string, raw: Json): Promise<Seen> => {
  if (job.kind === 'account') return { kind: 'nonsense', reason: 'an account is no post', raw };
  const goneAt = job.goneAt ?? new Date(observedAt);
  if (job.use === 'story' && goneAt.getTime() - (job.publishedAt?.getTime() ?? 0) >= storyEndsMs) {
    return { kind: 'expired' };
  }
  if (Date.parse(observedAt) - goneAt.getTime() < observing.goneMs) return { kind: 'perhaps gone', goneAt };
  const { cycle, store } = observing;
  // Reads the whole stream: the final observation repeats each figure as it was last fetched.
  const loaded = await store.load(targetmetrics, job.id);
  const { last, figures, raw: known } = loaded.state;
  const observation = {
    ...about(observing, observedAt, last === null ? raw : (known as Json)),
    ...aboutPost(job),
    figures,
    platformRemovedAt: goneAt.toISOString(),
  };
  await append(observing, job, targetmetrics, { type: 'Observe', observation }, loaded);
  faultPoint('insights:after-gone-observed');
  await execute(
    store,
    target,
    job.id,
    { type: 'RecordRemoved', observedAt: goneAt.toISOString() },
    contextOf(cycle, job),
    { partitionKey: job.postId ?? '' },
  );
  faultPoint('insights:after-gone');
  return { kind: 'gone' };
};

/**
 * Records that the network shows the account under another name or picture than before. If the process dies after the
 * append, the next poll finds the profile in the stream and appends nothing. An account that was changed since it was
 * read has a newer profile, perhaps: the next poll compares with that one.
 */
export const recordProfile = async (
  store: DomainStore,
  accountId: string,
  loaded: Loaded<AccountState>,
  shown: ReportedProfile,
  context: CommandContext,
): Promise<void> => {
  const command = { type: 'ChangeProfile', ...shownProfile(shown) } as const;
  try {
    const options = { loaded, redecide: false };
    const { appended } = await execute(store, account, accountId, command, context, options);
    if (appended.length > 0) faultPoint('insights:after-profile');
  } catch (error) {
    if (isConflict(error)) return;
    throw error;
  }
};
