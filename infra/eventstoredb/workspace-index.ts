/**
 * EventStoreDB cannot find the events of a workspace. An index in Postgres holds their positions, filled from `$all` by
 * one process; a page of them is read as one range of each of its streams. The index is valid as far as its last event
 * is still in the store: after a restore to an earlier day, reads scan the store until the index is filled again.
 * Events of a deleted stream are left out, also before a scavenge removes them.
 */

import { pause } from '#contracts/base/pause.ts';
import {
  type EventStore,
  EventStoreError,
  type ReadStart,
  type RecordedEvent,
  type WorkspacePage,
  workspaceOf,
} from '#contracts/ports/event-store.ts';
import type { KeeperOptions } from '#infra/postgres/one-process.ts';
import type {
  EventPosition,
  IndexedUpTo,
  PositionToAdd,
  WorkspacePositions,
} from '#infra/postgres/workspace-positions.ts';
import { isDeletedStream } from './errors.ts';
import { repeatedRead, scanWorkspace, workspacePageBytes } from './workspace-scan.ts';

type Store = Pick<EventStore, 'read' | 'readAll'>;

/** Streams of one page that are read at once. */
const maxReads = 8;

/** The event at a position of the index, and those behind it; null where another event, or none, begins there. */
const onwardFrom = async (store: Store, { position, eventId }: IndexedUpTo, limit: number) => {
  try {
    const [first, ...rest] = await repeatedRead(() => store.readAll({ from: position, limit: limit + 1 }));
    return first?.position === position && first.id === eventId ? rest : null;
  } catch (error) {
    if (error instanceof EventStoreError && error.code === 'invalid_position') return null;
    throw error;
  }
};

export const readPlacedWorkspace = async (
  store: Store,
  index: WorkspacePositions,
  workspaceId: string,
  options: ReadStart & { readonly limit: number; readonly until?: bigint },
): Promise<WorkspacePage> => {
  const { limit, until = null } = options;
  // The first event of a store may lie at 0.
  const after = options.from === undefined ? (options.after ?? -1n) : options.from - 1n;
  const asked = { after, until, limit, bytes: workspacePageBytes };
  const { reached, positions, isCut } = await index.find(workspaceId, asked).catch((cause: unknown) => {
    throw new EventStoreError('unavailable', 'the index of workspaces does not answer', { cause });
  });
  const isBelieved = reached !== null && reached.position > after && (await onwardFrom(store, reached, 0)) !== null;
  if (!isBelieved) return scanWorkspace(store, workspaceId, options);
  const events = (await eventsAt(store, positions)).filter(({ metadata }) => workspaceOf(metadata) === workspaceId);
  const last = positions.at(-1)?.position ?? options.after ?? null;
  if (isCut) return { events, next: last, isEnd: false };
  if (until !== null && until <= reached.position) return { events, next: last, isEnd: true };
  if (events.length > 0) return { events, next: reached.position, isEnd: false };
  return scanWorkspace(store, workspaceId, {
    after: reached.position,
    limit,
    ...(until === null ? {} : { until }),
  });
};

/** The events that the store still has at these positions, in order. Scavenged ones are left out. */
const eventsAt = async (store: Store, positions: readonly EventPosition[]): Promise<RecordedEvent[]> => {
  const placed = new Set(positions.map(({ position }) => position));
  const runs = [...Map.groupBy(positions, ({ stream }) => stream)];
  const found: RecordedEvent[] = [];
  const read = async (): Promise<void> => {
    for (let run = runs.pop(); run !== undefined; run = runs.pop()) {
      const [stream, [first, ...rest]] = run;
      if (first === undefined) continue;
      const last = rest.at(-1) ?? first;
      const limit = Number(last.revision - first.revision) + 1;
      const storedEvents = async () =>
        (await store.read(stream, { from: first.revision, limit })).filter(({ position }) => placed.has(position));
      const events = await repeatedRead(storedEvents, ({ length }) => length > rest.length).catch((error: unknown) => {
        if (isDeletedStream(error)) return [];
        throw error;
      });
      found.push(...events);
    }
  };
  await Promise.all(Array.from({ length: maxReads }, read));
  return found.sort((a, b) => (a.position < b.position ? -1 : 1));
};

/** Events of one piece. Larger pieces cost memory: an event may have half a megabyte. */
const pieceEvents = 500;
/** Rest after a full piece, in times of its duration: appends and reads go first. */
const restShare = 1;
/** Between two searches for new events, milliseconds. Readers scan the events behind the index themselves. */
const lookMs = 1_000;
/** Between two log lines while a store is still being indexed, milliseconds. */
const reportMs = 10_000;

/**
 * Fills the index until the signal, or until another process does; failures reach the caller. One process at a time
 * runs it.
 */
export const fillIndex = async (store: Store, index: WorkspacePositions, options: KeeperOptions): Promise<void> => {
  const { signal, logger } = options;
  let reached = await index.reached();
  if (reached === null) await index.forget(signal);
  let filled = 0;
  for (let reportedAt = performance.now(); !signal.aborted; ) {
    const began = performance.now();
    const page: readonly RecordedEvent[] | null =
      reached === null
        ? await store.readAll({ after: null, limit: pieceEvents })
        : await onwardFrom(store, reached, pieceEvents);
    if (page === null) {
      logger.warn({ position: String(reached?.position) }, 'the store has another history: its index is rebuilt');
      await index.forget(signal);
      reached = null;
      continue;
    }
    const last = page.at(-1);
    if (last !== undefined) {
      const to: IndexedUpTo = { position: last.position, eventId: last.id };
      if (!(await index.add(reached, page.flatMap(placeOf), to))) return;
      reached = to;
      filled += page.length;
    }
    const isFull = page.length === pieceEvents;
    if (isFull && performance.now() - reportedAt >= reportMs) {
      reportedAt = performance.now();
      logger.info({ position: String(reached?.position), events: filled }, 'the index of workspaces is being filled');
    }
    if (!isFull) {
      if (filled > pieceEvents) logger.info({ events: filled }, 'the index of workspaces is filled');
      filled = 0;
    }
    await pause(isFull ? (performance.now() - began) * restShare : lookMs, signal);
  }
};

const placeOf = ({ stream, revision, position, data, metadata }: RecordedEvent): readonly PositionToAdd[] => {
  const workspaceId = workspaceOf(metadata);
  const bytes = data.byteLength + metadata.byteLength;
  return workspaceId === null ? [] : [{ workspaceId, position, stream, revision, bytes }];
};
