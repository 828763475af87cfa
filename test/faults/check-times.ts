import { target } from '#domain/post-target/target.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { foldEvents } from '#runtime/eventing/domain-store.ts';
import type { Segment } from '#schemas/target.ts';
import { idOf, kindOf } from '#schemas/topics.ts';

/** What posts promise each other at rest, by the events: times between publications, and ends that hold. */

type Streams = ReadonlyMap<string, readonly DecodedEvent[]>;

interface Publication {
  readonly targetId: string;
  readonly accountId: string;
  readonly workspaceId: string;
  /** The recycled post, or the post itself. */
  readonly originId: string;
  /** When the publisher recorded that it would make the call. */
  readonly at: number;
  /** When the attempt of that call began, which is when its place among the others was decided. */
  readonly claimedAt: number;
  readonly isNative: boolean;
}

const hourMs = 3_600_000;
/** Less than the days of its recycling, by the change of the clocks and the time of day. */
const slackMs = 12 * hourMs;

const originOf = (streams: Streams, postId: string): string => {
  const scheduled = streams.get(`post-${postId}`)?.find(({ type }) => type === 'PostScheduled');
  return (scheduled?.data.recycledFrom as { readonly postId: string } | undefined)?.postId ?? postId;
};

const publicationOf = (streams: Streams, stream: string, events: readonly DecodedEvent[]): readonly Publication[] => {
  const state = foldEvents(target, events);
  if (state.status !== 'published' && state.status !== 'handed_to_platform') return [];
  const isHead = ({ segment }: DecodedEvent['data']): boolean => ((segment as Segment | undefined)?.index ?? 0) === 0;
  const crossed = events.findLastIndex(({ data }) => data.step === 'boundary' && isHead(data));
  const claimed = events.slice(0, Math.max(0, crossed)).findLast(({ type }) => type === 'TargetPublishStarted');
  const [first, boundary] = [events[0], events[crossed]];
  if (boundary === undefined || claimed === undefined || first === undefined) return [];
  const { accountId, postId } = state.common;
  const isNative = events.some(({ type }) => type === 'TargetHandedToPlatform');
  const at = isNative ? state.common.dueAt : boundary.metadata.occurredAt;
  const { workspaceId } = first.metadata;
  const originId = originOf(streams, postId);
  const claimedAt = Date.parse(claimed.metadata.occurredAt);
  return [{ targetId: idOf(stream), accountId, workspaceId, originId, at: Date.parse(at), claimedAt, isNative }];
};

/** Pairs of neighbours in time that are closer than they may be. */
const tooClose = (all: readonly Publication[], leastMs: number): readonly string[] => {
  const sorted = all.toSorted((a, b) => a.at - b.at);
  return sorted.flatMap((one, at) => {
    const before = sorted[at - 1];
    if (before === undefined || one.at - before.at >= leastMs) return [];
    const minutes = Math.round((one.at - before.at) / 60_000);
    return [`target ${one.targetId} went out ${minutes} min after ${before.targetId}`];
  });
};

/**
 * By workspace: the least time between two posts of an account, and from when on. A rule is set, and set again once the read
 * model shows it; one that nobody saw there is not in force.
 */
const pacesOf = (streams: Streams) =>
  new Map(
    [...streams].flatMap(([stream, events]) => {
      const [set] = events.filter(({ type }) => type === 'CadenceSet').slice(1);
      const minutes = Number(set?.data.minIntervalMinutes ?? 0);
      if (set === undefined || minutes === 0) return [];
      return [[idOf(stream), { leastMs: minutes * 60_000, since: Date.parse(set.metadata.occurredAt) }] as const];
    }),
  );

/** By post: the days between its copies. */
const daysOf = (streams: Streams, postId: string): number =>
  Number(streams.get(`post-${postId}`)?.findLast(({ type }) => type === 'PostRecycleSet')?.data.everyDays ?? 0);

export const checkTimes = (streams: Streams): readonly string[] => {
  const violations: string[] = [];
  const targets = [...streams].filter(([stream]) => kindOf(stream) === 'target');
  const all = targets.flatMap(([stream, events]) => publicationOf(streams, stream, events));
  for (const same of Map.groupBy(all, ({ accountId, originId }) => `${accountId} ${originId}`).values()) {
    const days = daysOf(streams, same[0]?.originId ?? '');
    const close = tooClose(same, days * 24 * hourMs - slackMs);
    violations.push(...close.map((what) => `${what}, of the same recycled post`));
  }
  // A post that the network's own scheduler has goes out at its time, whatever came meanwhile.
  const paces = pacesOf(streams);
  const paced = all.filter(({ workspaceId, isNative }) => paces.has(workspaceId) && !isNative);
  for (const same of Map.groupBy(paced, ({ accountId }) => accountId).values()) {
    const pace = paces.get(same[0]?.workspaceId ?? '');
    if (pace === undefined) continue;
    // Publishers know the rule within a second. It does not end an attempt that began before.
    const under = same.filter(({ claimedAt }) => claimedAt >= pace.since + 1_000);
    violations.push(...tooClose(under, pace.leastMs).map((what) => `${what}, against the cadence of its workspace`));
  }
  return [...violations, ...afterEnds(streams, targets), ...waitingCopies(streams, targets)];
};

/** No attempt begins once the client was archived or the account disconnected. */
const afterEnds = (
  streams: Streams,
  targets: readonly (readonly [string, readonly DecodedEvent[]])[],
): readonly string[] =>
  targets.flatMap(([stream, events]) => {
    const scheduled = events.find(({ type }) => type === 'TargetScheduled');
    const begun = events.findLast(({ type }) => type === 'TargetPublishStarted');
    if (scheduled === undefined || begun === undefined) return [];
    const ends = [
      streams.get(`client-${scheduled.data.clientId}`)?.find(({ type }) => type === 'ClientArchived'),
      streams.get(`account-${scheduled.data.accountId}`)?.find(({ type }) => type === 'AccountDisconnected'),
    ];
    return ends.flatMap((end) =>
      end !== undefined && end.position < begun.position ? [`${stream} began an attempt after ${end.type}`] : [],
    );
  });

/** Of the copies of one post, only the newest may still wait for a person. */
const waitingCopies = (
  streams: Streams,
  targets: readonly (readonly [string, readonly DecodedEvent[]])[],
): readonly string[] => {
  const waiting = targets.flatMap(([stream, events]) => {
    const state = foldEvents(target, events);
    if (state.status !== 'awaiting_approval') return [];
    const { postId, accountId } = state.common;
    const originId = originOf(streams, postId);
    return originId === postId ? [] : [{ stream, key: `${accountId} ${originId}` }];
  });
  return [...Map.groupBy(waiting, ({ key }) => key).values()].flatMap((same) =>
    same.length > 1
      ? [`${same.length} copies of one post wait at the same time: ${same.map((one) => one.stream)}`]
      : [],
  );
};
