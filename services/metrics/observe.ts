import type { Json } from '#contracts/ports/platform.ts';
import type { MetricsAnswer } from '#contracts/ports/platform-metrics.ts';
import type { Decider } from '#domain/decider.ts';
import { uuidv5 } from '#domain/ids.ts';
import { accountmetrics, targetmetrics } from '#domain/metrics.ts';
import { accountFiguresOf, postFiguresOf } from '#domain/platforms/metrics/index.ts';
import { target } from '#domain/target.ts';
import { InvalidEvent } from '#runtime/codec.ts';
import { type CommandContext, type DomainStore, uuidv7 } from '#runtime/domain-store.ts';
import { execute } from '#runtime/execute.ts';
import { faultPoint } from '#runtime/fault-point.ts';
import { type Lease, LeaseLost } from '#runtime/leases.ts';
import { wellFormedInstant, wellFormedJson } from '#runtime/well-formed.ts';
import type { Job, Turn } from './jobs.ts';
import { dayOf } from './schedule.ts';

/**
 * From what a network told of one post, or of the account, to its stream. What is observed is named by the job and the
 * instant it was due, so that whoever repeats it after a death finds it there and adds nothing.
 */

export type Seen =
  | { readonly kind: 'told' }
  | { readonly kind: 'nonsense'; readonly reason: string; readonly raw: Json | null }
  /** It seems to be gone since then, by the network's clock: that is said when it is so on a later look. */
  | { readonly kind: 'perhaps gone'; readonly goneAt: Date }
  | { readonly kind: 'gone' };

export interface Observing {
  readonly store: DomainStore;
  readonly turn: Turn;
  readonly lease: Lease;
  /** Of the workspace. */
  readonly timezone: string;
  /** Adapter and version. */
  readonly source: string;
  readonly goneMs: number;
}

/** Of what a network told, bytes as JSON: an event must stay storable. */
const mostRaw = 128 * 1024;

export const contextOf = ({ workspaceId, now }: Turn, job: Job): CommandContext => {
  const cause = causeOf(job);
  return {
    workspaceId,
    actor: { type: 'service', id: 'metrics' },
    correlationId: cause,
    causationId: cause,
    causeEventId: cause,
    commandId: uuidv7(),
    now: now.toISOString(),
  };
};

const causeOf = ({ id, dueAt }: Job): string => uuidv5(id, dueAt.toISOString());

type Told = Extract<MetricsAnswer, { kind: 'told' | 'removed' }>;

export const observe = async (observing: Observing, job: Job, answer: Told): Promise<Seen> => {
  const observedAt = wellFormedInstant(answer.observedAt);
  if (observedAt === null) return { kind: 'nonsense', reason: 'its clock tells no instant', raw: answer.raw };
  if (Buffer.byteLength(JSON.stringify(answer.raw)) > mostRaw) {
    return { kind: 'nonsense', reason: `the answer has more than ${mostRaw} bytes`, raw: answer.raw };
  }
  const raw = wellFormedJson(answer.raw);
  try {
    if (answer.kind === 'removed') return await observeGone(observing, job, observedAt, raw);
    return await (job.kind === 'account' ? observeAccount : observePost)(observing, job, observedAt, raw);
  } catch (error) {
    // What was told passed for figures, and does not fit our language all the same.
    if (error instanceof InvalidEvent) return { kind: 'nonsense', reason: error.message.slice(0, 500), raw };
    throw error;
  }
};

const about = ({ turn, timezone, source }: Observing, observedAt: string, raw: Json) => ({
  accountId: turn.accountId,
  clientId: turn.clientId,
  platform: turn.platform,
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

class Observed extends Error {}

const append = async <State, Command>(
  { store, turn, lease }: Observing,
  job: Job,
  decider: Decider<State, Command, { readonly type: string; readonly data: unknown }>,
  command: (state: State) => Command,
): Promise<void> => {
  const stream = `${decider.kind}-${job.id}`;
  const loaded = await store.load(decider, job.id);
  const eventId = uuidv5(causeOf(job), stream);
  try {
    await execute(store, decider, job.id, command(loaded.state), contextOf(turn, job), {
      loaded,
      ...(job.postId === null ? {} : { partitionKey: job.postId }),
      guard: ({ events }) => {
        if (events.some(({ id }) => id === eventId)) throw new Observed();
        if (!lease.isHeld()) throw new LeaseLost(lease.id);
      },
    });
  } catch (error) {
    if (!(error instanceof Observed)) throw error;
  }
};

const observePost = async (observing: Observing, job: Job, observedAt: string, raw: Json): Promise<Seen> => {
  const { platform } = observing.turn;
  const { use, hasVideo } = job;
  const mapped = postFiguresOf(platform, use ?? 'feed', raw, hasVideo === null ? {} : { hasVideo });
  if (mapped.kind === 'nonsense') return { ...mapped, raw };
  const { figures } = mapped;
  const observation = { ...about(observing, observedAt, raw), ...aboutPost(job), figures, platformRemovedAt: null };
  await append(observing, job, targetmetrics, () => ({ type: 'Observe' as const, observation }));
  return { kind: 'told' };
};

const observeAccount = async (observing: Observing, job: Job, observedAt: string, raw: Json): Promise<Seen> => {
  const mapped = accountFiguresOf(observing.turn.platform, raw);
  if (mapped.kind === 'nonsense') return { ...mapped, raw };
  const { kind: _kind, ...told } = mapped;
  const observation = { ...about(observing, observedAt, raw), ...told };
  await append(observing, job, accountmetrics, () => ({ type: 'Observe' as const, observation }));
  return { kind: 'told' };
};

/**
 * One look is not enough: networks lose posts for a moment. If we die between the final observation and the target's own
 * event the job is still there: the next look finds the first made, makes the second, and ends the job.
 */
const observeGone = async (observing: Observing, job: Job, observedAt: string, raw: Json): Promise<Seen> => {
  if (job.kind === 'account') return { kind: 'nonsense', reason: 'an account is no post', raw };
  const goneAt = job.goneAt ?? new Date(observedAt);
  if (Date.parse(observedAt) - goneAt.getTime() < observing.goneMs) return { kind: 'perhaps gone', goneAt };
  const { turn, store } = observing;
  await append(observing, job, targetmetrics, ({ last }) => ({
    type: 'Observe' as const,
    observation: {
      ...about(observing, observedAt, last === null ? raw : (last.raw as Json)),
      ...aboutPost(job),
      figures: last?.figures ?? {},
      platformRemovedAt: goneAt.toISOString(),
    },
  }));
  faultPoint('metrics:after-gone-observed');
  await execute(
    store,
    target,
    job.id,
    { type: 'RecordRemoved', observedAt: goneAt.toISOString() },
    contextOf(turn, job),
    { partitionKey: job.postId ?? '' },
  );
  faultPoint('metrics:after-gone');
  return { kind: 'gone' };
};
