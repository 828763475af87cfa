import type { Pool } from 'pg';
import type { EventStore, RecordedEvent } from '#contracts/ports/event-store.ts';
import { applyInPieces, applied as done } from '#runtime/consuming/attempts.ts';
import type { FailureAction } from '#runtime/consuming/options.ts';
import { maxParkedStreams, reasonOf, setAside, TooManyParked, troubledStreams } from '#runtime/consuming/parking.ts';
import type { DecodedEvent, EventCodec } from '#runtime/eventing/codec.ts';
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
  /**
   * Decodes the next events, of its kinds alone, while those before them are applied. It never rejects.
   * @returns what applies them. An event that it has already changes nothing.
   */
  prepare(records: readonly RecordedEvent[]): Promise<() => Promise<void>>;
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

/** A page on its way into the tables. */
interface Coming {
  /** Of the last event within what is to be read; null: there is none. */
  readonly last: RecordedEvent | null;
  readonly size: number;
  /** Of each reader, in the order of the readers. */
  readonly own: readonly { readonly count: number; readonly apply: () => Promise<void> }[];
}

/**
 * Reads the store once for several new tables, each page into all of them at once. While Postgres writes a page, the next one
 * is read and decoded.
 * @returns why a reader was left out, by its name: the others go on
 */
export const readStore = async (options: ReadOptions): Promise<ReadonlyMap<string, unknown>> => {
  const { intakes, signal, took } = options;
  const failed = new Map<string, unknown>();
  const begin = (after: bigint | null): Promise<Coming> => {
    const coming = comingPage(options, after, (name) => failed.has(name));
    coming.catch(() => undefined);
    return coming;
  };
  let coming = begin(leastOf(intakes.map(({ after }) => after)));
  while (failed.size < intakes.length) {
    signal?.throwIfAborted();
    const { last, size, own } = await coming;
    if (last === null) break;
    coming = begin(last.position);
    const events = new Map<string, number>();
    await Promise.all(
      intakes.map(async (intake, at) => {
        const { count, apply } = own[at] ?? none;
        if (failed.has(intake.name)) return;
        try {
          await apply();
          events.set(intake.name, count);
        } catch (error) {
          failed.set(intake.name, error);
        }
      }),
    );
    await took?.({ position: last.position, readTo: last.created, size, events });
  }
  return failed;
};

const none = { count: 0, apply: () => Promise.resolve() };

const comingPage = async (
  { store, intakes, upTo }: ReadOptions,
  after: bigint | null,
  isLeftOut: (name: string) => boolean,
): Promise<Coming> => {
  const isOver = upTo === null || (after !== null && after >= upTo);
  const page = isOver ? [] : await store.readAll({ after, limit: pageEvents });
  const within = page.filter(({ position }) => upTo !== null && position <= upTo);
  const own = await Promise.all(
    intakes.map(async ({ name, kinds, after: had, prepare }) => {
      const wanted = within.filter(
        ({ stream, position }) => (had === null || position > had) && kinds.has(kindOf(stream)),
      );
      if (wanted.length === 0 || isLeftOut(name)) return none;
      return { count: wanted.length, apply: await prepare(wanted) };
    }),
  );
  return { last: within.at(-1) ?? null, size: within.length, own };
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
    prepare: async (wanted) => {
      // Which event it is that cannot be decoded, `applyPage` finds.
      const decoded = await codec.decodeAll(wanted).catch(() => null);
      return () => applyPage({ pool, codec, projector, group, known, wanted, decoded });
    },
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
  /** All of them; null: one of them cannot be decoded. */
  readonly decoded: readonly DecodedEvent[] | null;
}

/** What notes how far the tables are waits for the disk, and with it all that was committed before. */
const relaxed = `${byKey}; set local synchronous_commit = off`;

const applyPage = async ({ pool, codec, projector, group, known, wanted, decoded }: Page): Promise<void> => {
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
        const isWhole = ids.size === 0 && records.length === wanted.length;
        const events = (isWhole ? decoded : null) ?? (await codec.decodeAll(records.filter(({ id }) => !ids.has(id))));
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
