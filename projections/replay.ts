import type { Pool } from 'pg';
import type { EventStore, RecordedEvent } from '#contracts/ports/event-store.ts';
import type { FailureAction } from '#runtime/consuming/options.ts';
import { maxParkedStreams, reasonOf, setAside, TooManyParked, troubledStreams } from '#runtime/consuming/parking.ts';
import { applyInPieces, applied as done } from '#runtime/consuming/pieces.ts';
import type { EventCodec } from '#runtime/eventing/codec.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { isInstallationFault, stopsLane } from '#runtime/process/faults.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import { kindOf } from '#schemas/topics.ts';
import { Projector } from './apply.ts';
import { groupOf, type Projection } from './index.ts';

/** Events of one transaction of a replay. */
const pageEvents = 1_000;

export interface ReplayOptions {
  readonly pool: Pool;
  readonly store: EventStore;
  readonly codec: EventCodec;
  readonly projection: Projection;
  /** Its tables exist and are empty. */
  readonly generation: number;
  /**
   * The live generation. Streams that it has parked are parked here too and do not count against the limit: they may
   * have accumulated over years.
   */
  readonly live: number;
  /** Commit position of the last event to apply; null = none. */
  readonly upTo: bigint | null;
  readonly signal?: AbortSignal;
  readonly progress?: (events: number, position: bigint) => void;
}

/**
 * Applies the store from its first event. A stream with an event that cannot be applied is parked for this generation,
 * as the consumer does: one bad event must not prevent the rebuild that repairs the tables.
 * @returns how many events the projection applied or parked
 * @throws when the fault lies with no event, or when too many streams would be parked
 */
export const replay = async (options: ReplayOptions): Promise<number> => {
  const { pool, store, codec, projection, generation, live, upTo, signal, progress } = options;
  const projector = new Projector(projection, generation);
  const kinds = new Set(projector.kinds);
  const group = groupOf(projection.name, generation);
  const known = await troubledStreams(pool, groupOf(projection.name, live));
  let applied = 0;
  for (let after: bigint | null = null; upTo !== null && (after === null || after < upTo); ) {
    signal?.throwIfAborted();
    const page = await store.readAll({ after, limit: pageEvents });
    const last = page.at(-1);
    if (last === undefined) break;
    after = last.position;
    const wanted = page.filter((one) => one.position <= upTo && kinds.has(kindOf(one.stream)));
    if (wanted.length === 0) continue;
    await applyPage({ pool, codec, projector, group, known, wanted });
    applied += wanted.length;
    progress?.(applied, after);
  }
  return applied;
};

interface Page {
  readonly pool: Pool;
  readonly codec: EventCodec;
  readonly projector: Projector;
  readonly group: string;
  readonly known: readonly string[];
  readonly wanted: readonly RecordedEvent[];
}

const applyPage = async ({ pool, codec, projector, group, known, wanted }: Page): Promise<void> => {
  const judged = new Map<string, { readonly action: 'park'; readonly reason: string }>();
  const streams = new Set<string>();
  const counted = new Set<string>();
  const isKnown = new Set(known);
  const markParked = ({ id, stream }: Pick<RecordedEvent, 'id' | 'stream'>, reason: string): void => {
    judged.set(id, { action: 'park', reason });
    streams.add(stream);
    if (!isKnown.has(stream)) counted.add(stream);
    if (counted.size > maxParkedStreams) throw new TooManyParked(group);
  };
  const piece = async (records: readonly RecordedEvent[]): Promise<FailureAction | null> =>
    inTransaction(pool, async (tx) => {
      const { ids } = await setAside(tx, group, records, judged, { known });
      const events = await codec.decodeAll(records.filter(({ id }) => !ids.has(id)));
      const failure = await projector.apply(tx, events);
      return { commit: failure === null, result: failure };
    });
  await applyInPieces({
    records: wanted,
    judged: ({ id, stream }) => judged.has(id) || streams.has(stream),
    attempt: async (records) => {
      try {
        for (let failure = await piece(records); failure !== null; failure = await piece(records)) {
          const { eventId, reason } = failure;
          const culprit = records.find(({ id }) => id === eventId);
          if (failure.action !== 'park' || culprit === undefined) throw new BrokenInvariant(reason);
          markParked(culprit, reason);
        }
        return done;
      } catch (error) {
        if (!stopsLane(error) || isInstallationFault(error)) throw error;
        return { kind: 'failed', error };
      }
    },
    blame: (record, error) => {
      markParked(record, reasonOf(error));
      return true;
    },
    failed: (error) => {
      throw error;
    },
  });
};
