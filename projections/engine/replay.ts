import type { Pool } from 'pg';
import type { EventStore, RecordedEvent } from '#contracts/ports/event-store.ts';
import { applyInPieces, applied as done } from '#runtime/consuming/attempts.ts';
import type { FailureAction } from '#runtime/consuming/options.ts';
import { maxParkedStreams, reasonOf, setAside, TooManyParked, troubledStreams } from '#runtime/consuming/parking.ts';
import type { EventCodec } from '#runtime/eventing/codec.ts';
import { byKey, inTransaction } from '#runtime/postgres/transactions.ts';
import { isInstallationFault, stopsLane } from '#runtime/process/faults.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import { kindOf } from '#schemas/topics.ts';
import { groupOf, type Projection } from '../index.ts';
import { Projector } from './apply.ts';

/** The store, read from its first event into new tables. */

/** Events of one page, and of one transaction of each of its readers. */
const pageEvents = 1_000;

/** New tables that take events of the store. */
export interface Intake {
  /** Of the read models, or `analytics`. */
  readonly name: string;
  /** Kinds of the streams whose events it takes. */
  readonly kinds: ReadonlySet<string>;
  /** It has all events up to this position; null: none. */
  readonly after: bigint | null;
  /** Takes the next events, of its kinds alone. An event that it has already changes nothing. */
  apply(records: readonly RecordedEvent[]): Promise<void>;
}

/** What a page gave. */
export interface PageRead {
  readonly position: bigint;
  /** When the store took its last event. */
  readonly readTo: Date;
  /** Events of the store, of all kinds. */
  readonly size: number;
  /** Events that each reader took, by its name. */
  readonly events: ReadonlyMap<string, number>;
}

interface ReadOptions {
  readonly store: Pick<EventStore, 'readAll'>;
  readonly intakes: readonly Intake[];
  /** Commit position of the last event to read; null = none. */
  readonly upTo: bigint | null;
  readonly signal?: AbortSignal | undefined;
  /** Called when every reader has committed a page. If we die before, each passes over what it has of it. */
  readonly took?: (page: PageRead) => Promise<void>;
}

/**
 * Reads the store once for several new tables, each page into all of them at once.
 * @returns why a reader was left out, by its name: the others go on
 */
export const readStore = async (options: ReadOptions): Promise<ReadonlyMap<string, unknown>> => {
  const { store, intakes, upTo, signal, took } = options;
  const failed = new Map<string, unknown>();
  const pageAfter = (after: bigint | null): Promise<readonly RecordedEvent[]> => {
    const isOver = upTo === null || (after !== null && after >= upTo);
    const page = isOver ? Promise.resolve([]) : store.readAll({ after, limit: pageEvents });
    page.catch(() => undefined);
    return page;
  };
  let going = intakes;
  let coming = pageAfter(leastOf(intakes.map(({ after }) => after)));
  while (going.length > 0) {
    signal?.throwIfAborted();
    const page = await coming;
    const within = page.filter(({ position }) => upTo !== null && position <= upTo);
    const last = within.at(-1);
    if (last === undefined) break;
    // The next page comes while this one is applied.
    coming = pageAfter(page.at(-1)?.position ?? null);
    const events = new Map<string, number>();
    const ends = await Promise.allSettled(
      going.map(async ({ name, kinds, after, apply }) => {
        const own = within.filter(
          ({ stream, position }) => (after === null || position > after) && kinds.has(kindOf(stream)),
        );
        if (own.length > 0) await apply(own);
        events.set(name, own.length);
      }),
    );
    for (const [at, end] of ends.entries())
      if (end.status === 'rejected') failed.set(going[at]?.name ?? '', end.reason);
    going = going.filter(({ name }) => !failed.has(name));
    await took?.({ position: last.position, readTo: last.created, size: within.length, events });
  }
  return failed;
};

/** Null, which is before all, where one of them is. */
export const leastOf = (positions: readonly (bigint | null)[]): bigint | null => {
  const known = positions.filter((one) => one !== null);
  return known.length < positions.length ? null : (known.sort((a, b) => (a < b ? -1 : 1))[0] ?? null);
};

interface IntakeOptions {
  readonly pool: Pool;
  readonly codec: EventCodec;
  readonly projection: Projection;
  /** Its tables exist, and hold the store up to `after`. */
  readonly generation: number;
  /**
   * The live generation, of this shape or a former one; null where there is none. Streams that it has parked are parked
   * here too and do not count against the limit: they may have accumulated over years.
   */
  readonly live: number | null;
  readonly after?: bigint | null;
}

/**
 * A stream with an event that cannot be applied is parked for this generation, as the consumer does: one bad event must not
 * prevent the rebuild that repairs the tables. `apply` throws when the fault lies with no event, or when too many streams
 * would be parked.
 */
export const intakeOf = async (options: IntakeOptions): Promise<Intake> => {
  const { pool, codec, projection, generation, live, after = null } = options;
  const projector = new Projector(projection, generation);
  const group = groupOf(projection.name, generation);
  const known = live === null ? [] : await troubledStreams(pool, groupOf(projection.name, live));
  return {
    name: projection.name,
    kinds: new Set(projector.kinds),
    after,
    apply: (wanted) => applyPage({ pool, codec, projector, group, known, wanted }),
  };
};

interface ReplayOptions extends IntakeOptions {
  readonly store: EventStore;
  /** Commit position of the last event to apply; null = none. */
  readonly upTo: bigint | null;
  readonly signal?: AbortSignal;
  readonly took?: (page: PageRead) => Promise<void>;
}

/**
 * Applies the store to one projection.
 * @returns how many events the projection applied or parked
 * @throws as `apply` of its intake
 */
export const replay = async ({ store, upTo, signal, took, ...options }: ReplayOptions): Promise<number> => {
  const intake = await intakeOf(options);
  let applied = 0;
  const failed = await readStore({
    ...{ store, upTo, signal, intakes: [intake] },
    took: async (page) => {
      applied += page.events.get(intake.name) ?? 0;
      await took?.(page);
    },
  });
  if (failed.has(intake.name)) throw failed.get(intake.name);
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

/** What notes how far the tables are waits for the disk, and with it all that was committed before. */
const relaxed = `${byKey}; set local synchronous_commit = off`;

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
    inTransaction(
      pool,
      async (tx) => {
        const { ids } = await setAside(tx, group, records, judged, { known });
        const events = await codec.decodeAll(records.filter(({ id }) => !ids.has(id)));
        const failure = await projector.apply(tx, events);
        return { commit: failure === null, result: failure };
      },
      relaxed,
    );
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
