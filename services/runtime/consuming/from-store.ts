import type { EventStore, RecordedEvent } from '#contracts/ports/event-store.ts';
import type { Lane, Log, Overrun } from '#contracts/ports/log.ts';
import { topicOf } from '#schemas/events.ts';
import { isStopped, type LaneState, laneOf, oneAtATime } from './lane.ts';
import type { Lanes } from './lanes.ts';
import type { Shaped } from './options.ts';

const pageEvents = 500;
/** Lanes of one page that are applied at once. */
const maxLanes = 4;
/** A lane without events of its own moves on after so many pages: a death before the end repeats that much at most. */
const markPages = 20;

interface LaneToFill<E> extends Overrun {
  readonly lane: Lane;
  readonly laneState: LaneState<E>;
}

export interface StoreScan<E extends Shaped> {
  readonly store: EventStore;
  readonly log: Log;
  readonly topics: readonly string[];
  readonly lanes: Lanes<E>;
  /** Applies records to a lane and moves it. */
  handle(
    lane: Lane,
    laneState: LaneState<E>,
    records: readonly RecordedEvent[],
    nextOffset: bigint | null,
    position: bigint | null,
  ): Promise<void>;
  /** The lanes are another member's. */
  readonly lost: AbortSignal;
}

/**
 * Reads the store once for all lanes that the log has overrun, from the one that is furthest behind to a head taken now.
 * Each takes what lies behind its own position, and is out of range until the end: whoever dies leaves every lane where
 * it has got to, and the next one begins at the furthest behind again.
 */
export const fillFromStore = async <E extends Shaped>(
  scan: StoreScan<E>,
  overrun: readonly LaneToFill<E>[],
): Promise<void> => {
  const { store, lanes, lost } = scan;
  const [one] = overrun;
  if (one === undefined) return;
  const head = await lanes.untilDone(one.laneState, () => store.head());
  const starts = overrun.map(({ from }) => from.position ?? -1n);
  const [first = -1n] = starts.toSorted((a, b) => (a < b ? -1 : 1));
  let after = first < 0n ? null : first;
  for (let pages = 1; !lost.aborted; pages += 1) {
    const page = await lanes.untilDone(one.laneState, () => store.readAll({ after, limit: pageEvents }));
    const byLane = laneEvents(scan, page, head);
    after = page.at(-1)?.position ?? after;
    const isEnd = page.length === 0 || head === null || (after !== null && after >= head);
    const marks = isEnd ? null : pages % markPages === 0 ? after : null;
    await together(overrun, async ({ lane, laneState, from, firstOffset }) => {
      const start = from.position;
      const mine = (byLane.get(lane) ?? []).filter(({ position }) => start === null || position > start);
      const isBehind = marks !== null && (laneState.position ?? -1n) < marks;
      if (isStopped(laneState) || (mine.length === 0 && !isEnd && !isBehind)) return;
      const position = (isBehind ? marks : mine.at(-1)?.position) ?? laneState.position;
      const next = isEnd ? firstOffset : from.nextOffset;
      await oneAtATime(laneState, () => scan.handle(lane, laneState, mine, next, position));
    });
    if (isEnd) return;
  }
};

const laneEvents = <E extends Shaped>(
  { log, topics }: StoreScan<E>,
  page: readonly RecordedEvent[],
  head: bigint | null,
) =>
  Map.groupBy(page, (event) => {
    const topic = topicOf(event.stream);
    if (topic === null || !topics.includes(topic) || (head !== null && event.position > head)) return null;
    return laneOf(log, event);
  });

/** A few at a time; the first failure is thrown when all that had begun have ended, so that none outlives the lanes' hold. */
const together = async <T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> => {
  const waiting = [...items];
  const failures: unknown[] = [];
  const take = async (): Promise<void> => {
    for (let item = waiting.shift(); item !== undefined && failures.length === 0; item = waiting.shift()) {
      await work(item).catch((error: unknown) => void failures.push(error));
    }
  };
  await Promise.all(Array.from({ length: maxLanes }, take));
  if (failures.length > 0) throw failures[0];
};
