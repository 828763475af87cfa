import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Json, PlatformAdapter, PublishOutcome, PublishRequest } from '#contracts/ports/platform.ts';
import { canonicalJson } from '#domain/canonical.ts';
import { Rejection } from '#domain/decider.ts';
import { effectiveOverrides } from '#domain/platforms/index.ts';
import { contentFor } from '#domain/post/content.ts';
import { newestBody, post } from '#domain/post/post.ts';
import type { RetryPolicy } from '#domain/post-target/outcome.ts';
import { type ScheduledTarget, type TargetCommand, type TargetState, target } from '#domain/post-target/target.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { foldEvents } from '#runtime/eventing/domain-store.ts';
import { UsageError } from '#runtime/process/usage-error.ts';
import { instantOf } from '#schemas/common.ts';
import type { TargetEvent } from '#schemas/target.ts';
import type { Bundle, BundledEvent } from './audit-bundle.ts';
import type { Admin, CommandOutput, Given } from './context.ts';

/**
 * Plays a bundle of an incident. First the decider: given the events before, does the command behind each recorded event decide
 * the same today? Then the sandbox: does a network that behaves as the recorded one did end each attempt as it ended then?
 */

export interface Played {
  /** Events whose command was decided again. */
  readonly decided: number;
  /** Events that no command of a worker is behind, such as a plan: they are taken as given. */
  readonly given: number;
  /** Attempts that the sandbox made. */
  readonly attempts: number;
  readonly notes: readonly string[];
  readonly differences: readonly string[];
}

const maxAttempts = 20;
/** The sandbox gets so long for one attempt, milliseconds. */
const attemptMs = 30_000;

/** @throws UsageError where the file is no bundle */
export const readBundle = async (file: string): Promise<Bundle> => {
  let bundle: Partial<Bundle> | null = null;
  try {
    bundle = JSON.parse(await readFile(file, 'utf8')) as Partial<Bundle>;
  } catch {}
  if (
    bundle?.format !== 1 ||
    typeof bundle.targetId !== 'string' ||
    bundle.streams?.[`target-${bundle.targetId}`] === undefined
  )
    throw new UsageError(`${file} is no bundle of audit bundle.`);
  return bundle as Bundle;
};

const eventsOf = ({ streams }: Bundle, stream: string): readonly DecodedEvent[] =>
  (streams[stream] ?? []).map((event: BundledEvent) => ({ ...event, stream, position: 0n, bytes: 0 }));

const states = (events: readonly DecodedEvent[]): readonly TargetState[] =>
  events.map((_, at) => foldEvents(target, events.slice(0, at)));

const endless = (defers: number, delayMs: number): RetryPolicy => ({
  deferDelaysMs: new Array<number>(defers + 1).fill(delayMs),
  jitter: 0,
  maxRateLimits: Number.POSITIVE_INFINITY,
});

/** The command of the worker that recorded it; null: another did, or it follows from one. */
const commandOf = (event: TargetEvent, state: TargetState, now: string): TargetCommand | null => {
  const { type, data } = event;
  switch (type) {
    case 'TargetPublishStarted':
      return { type: 'Start', now };
    case 'TargetPublishCheckpointed':
      return { type: 'Checkpoint', ...data, segment: data.segment ?? null };
    case 'TargetPublishTakenOver':
      return { type: 'TakeOver', attempt: data.attempt, takeover: data.takeover - 1 };
    case 'TargetPublished':
      return state.status === 'publishing' && state.common.publishedSegments.length === 0
        ? { type: 'RecordPublished', ...data }
        : null;
    case 'TargetFailed':
      if (state.status === 'publishing') return { type: 'RecordFailed', ...data };
      return state.status === 'pending' ? { type: 'RefuseAtClaim', failure: data.failure } : null;
    case 'TargetRateLimited':
      return { type: 'RecordRateLimited', ...data, policy: endless(0, 0) };
    case 'TargetPublishDeferred': {
      if (state.status === 'pending') return { type: 'DeferAtClaim', ...data };
      if (state.status !== 'publishing') return null;
      const policy = endless(state.common.defers, Date.parse(data.retryAt) - Date.parse(now));
      return { type: 'RecordDeferred', ...data, now, nothingSent: true, policy };
    }
    case 'TargetOutcomeUnknown':
      return { type: 'RecordUnknown', ...data };
    default:
      return null;
  }
};

const saidOf = (work: () => readonly TargetEvent[]): string => {
  try {
    const [first] = work();
    return first === undefined ? 'nothing' : `${first.type} ${canonicalJson(first.data)}`;
  } catch (error) {
    if (!(error instanceof Rejection)) throw error;
    return `a refusal, ${error.code}`;
  }
};

/** Holds each recorded event against what the decider of this release decides. */
const playDecider = (events: readonly DecodedEvent[]): Pick<Played, 'decided' | 'given' | 'differences'> => {
  const differences: string[] = [];
  let decided = 0;
  const before = states(events);
  for (const [at, event] of events.entries()) {
    const recorded = { type: event.type, data: event.data } as unknown as TargetEvent;
    const state = before[at] ?? target.initial;
    const command = commandOf(recorded, state, instantOf(event.metadata));
    if (command === null) continue;
    decided += 1;
    const today = saidOf(() => target.decide(command, state));
    if (today !== `${recorded.type} ${canonicalJson(recorded.data)}`)
      differences.push(
        `revision ${event.revision}: ${event.type} was recorded, and ${command.type} decides ${today.slice(0, 300)}`,
      );
  }
  return { decided, given: events.length - decided, differences };
};

interface Attempt {
  readonly number: number;
  /** Before its claim. */
  readonly state: ScheduledTarget;
  readonly claimedAt: string;
  /** How it ended. */
  readonly end: string;
  /** What makes the sandbox behave as the network did; null: nothing does. */
  readonly fault: string | null;
}

/** Whether the network turned out to have the post of an attempt whose outcome was unknown. */
const hadPost = (events: readonly DecodedEvent[]): boolean =>
  events.some(({ type, data }) => type === 'TargetOutcomeSettled' && data.outcome === 'published');

const ends: Readonly<Record<string, string | null>> = {
  TargetPublished: null,
  TargetFailed: 'reject',
  TargetRateLimited: 'rate_limit',
  TargetPublishDeferred: 'down',
};

const attemptsOf = (events: readonly DecodedEvent[]): readonly Attempt[] => {
  const before = states(events);
  return events.flatMap((event, at): Attempt[] => {
    const state = before[at];
    if (event.type !== 'TargetPublishStarted' || state === undefined || state.status === 'none') return [];
    const rest = events.slice(at + 1);
    const next = rest.findIndex(({ type }) => type === 'TargetPublishStarted');
    const own = next < 0 ? rest : rest.slice(0, next);
    const end = own.find(({ type }) => type in ends || type === 'TargetOutcomeUnknown');
    if (end === undefined) return [];
    const fault =
      end.type === 'TargetOutcomeUnknown' ? (hadPost(own) ? 'timeout_after' : 'timeout_before') : ends[end.type];
    const claimedAt = instantOf(event.metadata);
    return [{ number: Number(event.data.attempt), state, claimedAt, end: end.type, fault: fault ?? null }];
  });
};

const endOf: Readonly<Record<PublishOutcome['kind'], string>> = {
  published: 'TargetPublished',
  accepted: 'TargetAcceptedByPlatform',
  failed: 'TargetFailed',
  rate_limited: 'TargetRateLimited',
  deferred: 'TargetPublishDeferred',
  nothing_sent: 'TargetPublishDeferred',
  unknown: 'TargetOutcomeUnknown',
};

/**
 * The attempt again, with the sandbox for a network; its steps are decided as a worker's are. The sandbox keeps what it made for
 * ever, perhaps in the database of customers: it is of a target and an account that nobody has, and counts for nobody.
 */
const makeAttempt = async (
  sandbox: PlatformAdapter,
  { state, number, claimedAt, fault }: Attempt,
  content: Pick<PublishRequest, 'content' | 'overrides' | 'aiDisclosure'>,
): Promise<string> => {
  const started = target.decide({ type: 'Start', now: claimedAt }, state);
  const fact = { occurredAt: claimedAt, commandId: randomUUID() } as Parameters<typeof target.evolve>[2];
  const folded = (events: readonly TargetEvent[], from: TargetState): TargetState =>
    events.reduce((now, event) => target.evolve(now, event, fact), from);
  let now = folded(started, state);
  const record = (step: string, data: Json, deadline: string | null): void => {
    const claim = { attempt: number, takeover: 0 };
    now = folded(target.decide({ type: 'Checkpoint', ...claim, step, data, deadline }, now), now);
  };
  const ended = AbortSignal.timeout(attemptMs);
  const { platform } = state.common;
  const accountId = randomUUID();
  const outcome = await sandbox.publish(
    {
      ...{ workspaceId: randomUUID(), targetId: randomUUID(), attempt: number, platform, ...content },
      content: fault === null ? content.content : `${content.content} [[sandbox:${fault}]]`,
      account: { id: accountId, externalId: accountId, username: 'bundle' },
      ...{ media: [], cover: null, coverFrameMs: null, thread: null, checkpoints: [] },
    },
    {
      signal: ended,
      moved: () => undefined,
      checkpoint: async (step, data) => record(step, data, null),
      boundary: async (data) => {
        const deadline = new Date(Date.parse(claimedAt) + sandbox.boundaryDeadlineMs).toISOString();
        record('boundary', data, deadline);
        return AbortSignal.any([ended, AbortSignal.timeout(sandbox.boundaryDeadlineMs)]);
      },
    },
  );
  return endOf[outcome.kind];
};

/** @param sandbox null: the deciders alone are played */
export const playBundle = async (bundle: Bundle, sandbox: PlatformAdapter | null): Promise<Played> => {
  const events = eventsOf(bundle, `target-${bundle.targetId}`);
  const { decided, given, differences } = playDecider(events);
  const attempts = attemptsOf(events);
  const notes: string[] = [];
  const found = [...differences];
  let made = 0;
  for (const attempt of sandbox === null ? [] : attempts.slice(0, maxAttempts)) {
    const { postId, postRevision, platform, scheduleMode } = attempt.state.common;
    const posted = eventsOf(bundle, `post-${postId}`).filter(({ revision }) => revision <= postRevision);
    const state = foldEvents(post, posted);
    if (state.status !== 'live') {
      notes.push(`attempt ${attempt.number}: the bundle lacks its post`);
      continue;
    }
    const body = newestBody(state);
    const { segments, overrides } = contentFor(body, platform);
    const [segment] = segments;
    if (segments.length !== 1 || segment === undefined || segment.mediaIds.length > 0 || scheduleMode === 'native') {
      notes.push(`attempt ${attempt.number}: files, threads and hand-overs are played by the decider alone`);
      continue;
    }
    made += 1;
    const content = {
      ...{ content: segment.content, aiDisclosure: body.aiDisclosure },
      overrides: effectiveOverrides(platform, overrides, body.aiDisclosure, null) as PublishRequest['overrides'],
    };
    const end = sandbox === null ? attempt.end : await makeAttempt(sandbox, attempt, content);
    if (end !== attempt.end)
      found.push(`attempt ${attempt.number}: ${attempt.end} was recorded, and the sandbox ends with ${end}`);
  }
  return { decided, given, attempts: made, notes, differences: found };
};

/** @throws Error that names each difference */
export const replayBundle = async ({ sandbox }: Admin, given: Given): Promise<CommandOutput> => {
  const { differences, notes, ...played } = await playBundle(await readBundle(given.at(0)), sandbox);
  if (differences.length > 0) throw new Error([...differences.map((one) => `DIFFERS  ${one}`), ...notes].join('\n'));
  return { ...played, notes: notes.join('; ') || null, same: true };
};
