import type { EventStore, RecordedEvent } from '#contracts/ports/event-store.ts';
import type { Lane, Log, Overrun } from '#contracts/ports/log.ts';
import { topicOf } from '#schemas/events.ts';
import { isStopped, type LaneState, type Lanes, laneOf, oneAtATime } from './lanes.ts';
import type { Shaped } from './options.ts';

const pageEvents = 500;
/** Lanes to which one page is applied concurrently. */
const maxLanes = 4;
/** Pages after which a lane without events moves its position; a crash repeats at most this many pages. */
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
  /** Applies records to a lane and moves its position. */
  handle(
    lane: Lane,
    laneState: LaneState<E>,
    records: readonly RecordedEvent[],
    nextOffset: bigint | null,
    position: bigint | null,
  ): Promise<void>;
  /** Aborts when another member has the lanes. */
  readonly lost: AbortSignal;
}

/**
 * Reads the store once for all lanes that the log has overrun, from the lane furthest behind to the current head. Each
 * lane takes the events after its own position and stays out of range until the end. A crash leaves every lane at the
 * position that it has reached, and the next member starts at the lane furthest behind.
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

/**
 * Runs a few at a time. Throws the first failure after all running work has ended, so that no work outlives the lanes'
 * hold.
 */
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
