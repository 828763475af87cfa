import { setTimeout as delay, setImmediate } from 'node:timers/promises';
import type { Pool, PoolClient } from 'pg';
import { QueryTimeout } from '#contracts/ports/database.ts';
import type { EventStore, RecordedEvent } from '#contracts/ports/event-store.ts';
import type { Lane, LaneBatch, LanePosition, Log, LogRecord, LogSubscription } from '#contracts/ports/log.ts';
import { kindOf, partitionOf, topicOf } from '#schemas/topics.ts';
import type { DecodedEvent, EventCodec, StoredBytes } from './codec.ts';
import { faultPoint } from './fault-point.ts';
import { isInstallationFault, isTimeout, stopsLane } from './faults.ts';
import { withMigrationLock } from './migrate.ts';
import {
  type Judged,
  maxParkedStreams,
  migrateParking,
  parkAgain,
  parkedOf,
  parkedStreams,
  reasonOf,
  type SetAside,
  setAside,
  TooManyParked,
  unpark,
  wantedAgain,
} from './parking.ts';
import { applied, applyInPieces, over, type PieceOutcome } from './pieces.ts';
import { restAfter } from './rests.ts';
import { eventAt, idsOf, migrateLastEvents, otherHistory } from './same-history.ts';
import type { Logger } from './telemetry.ts';

/**
 * A consumer of the log. Its law: the position moves in the transaction of the effect, behind an epoch that every
 * assignment bumps. So a death in between leaves neither, a repeat finds both, and a former owner writes nothing.
 */

/**
 * What to do about an event that cannot be applied. `stop`: the lane rests, then tries again. `park`: it is set
 * aside with all later events of its stream, whose order would be broken. `skip`: it is left out. `retry`: again soon.
 */
export interface Verdict {
  readonly action: 'retry' | 'park' | 'skip' | 'stop';
  readonly eventId: string;
  readonly reason: string;
}

/** For effects that go on in this process once they are durable. Exactly one of the two is called. */
export interface Applied {
  committed(): void;
  /** Nothing of it holds, or it is not known: another batch will tell. */
  rolledBack(): void;
}

/** What `ops.consume_move` takes, in this order. */
export interface Move {
  readonly group: string;
  readonly lane: Lane;
  readonly epoch: string;
  readonly nextOffset: bigint | null;
  readonly position: bigint | null;
  /** Of the event at the position; null where the batch did not have it. */
  readonly eventId: string | null;
}

/** SQLSTATE that a statement raises where `ops.consume_move` is false. */
export const notMoved = 'CM001';
export class NotMoved extends Error {}

/** At the least it says which event it is. */
export interface Shaped {
  readonly id: string;
}

export interface ConsumeMetrics {
  applied(group: string, lane: Lane, events: number, milliseconds: number): void;
  bad(group: string, lane: Lane, action: Verdict['action']): void;
}

export interface LaneStatus {
  readonly state: 'running' | 'retrying' | 'stopped';
  /** Why it does not run; null when it does. */
  readonly reason: string | null;
  /** Commit position of the last record applied. */
  readonly position: bigint | null;
  /** Of a stopped lane: how long it still rests before it tries again, milliseconds. Null while it does not rest. */
  readonly restsMs: number | null;
}

/** @typeParam E what `shape` makes of an event */
export interface ConsumeOptions<E extends Shaped = DecodedEvent> {
  readonly log: Log;
  /** Read on from here where the log lost records. Without it such a lane stops. */
  readonly store?: EventStore;
  readonly pool: Pool;
  readonly group: string;
  readonly topics: readonly string[];
  /** Stream kinds to hand over; others of the topics are passed over undecoded. Default: all. */
  readonly kinds?: readonly string[];
  /** Event types to hand over; others are passed over undecoded. Default: all. */
  readonly types?: readonly string[];
  /** Of these kinds and types, whether to hand it over; asked after `prepare`, with its whole batch. Default: all. */
  readonly wants?: (record: StoredBytes, batch: readonly StoredBytes[]) => boolean;
  /** Before each batch, outside of its transaction: makes sure that `wants` and `apply` know enough. */
  readonly prepare?: () => Promise<void>;
  readonly codec: EventCodec;
  /**
   * Of each event, what is kept until its batch is applied: a large batch that is decoded ahead should not be held as
   * objects. Pure. Needed where `E` is not the event itself.
   */
  readonly shape?: (event: DecodedEvent) => E;
  /** Effects of these events, on `tx` alone. A verdict rolls them back. Throws: see `stopsLane`. */
  apply(tx: PoolClient, events: readonly E[]): Promise<Verdict | Applied | null>;
  /**
   * The same where one statement can do it, position included (`ops.consume_move`): it saves the round trips of a
   * transaction. `nothing`: there is no effect, and the position may be stored later. Null: these need a transaction, and
   * go to `apply`. Throws `NotMoved` when the position was not where it should be.
   */
  readonly atOnce?: (events: readonly E[], move: Move) => Promise<Applied | 'nothing' | null>;
  /** For an event that does not decode. Default: park. Not asked for one of a later version, or with a missing key. */
  readonly invalid?: (record: StoredBytes, error: Error) => Exclude<Verdict['action'], 'retry'>;
  /**
   * The commit does not wait for the disk: a Postgres that crashes may lose the newest effects, and their position with
   * them, so they are applied again. For effects that are made from the log alone and leave the database nowhere.
   */
  readonly relaxed?: boolean;
  /** `never`: its effects leave this database, so records at or before the lane's position are dropped. */
  readonly replay?: 'never';
  readonly signal: AbortSignal;
  readonly logger: Pick<Logger, 'info' | 'warn' | 'error'>;
  readonly metrics?: ConsumeMetrics;
  readonly maxBatch?: number;
  /** How long a lane rests after its first stop, its second, and each one later. Default: a minute, 5 and 15. */
  readonly restsMs?: readonly number[];
  /** How often an operator's requests about parked events are looked for, while there are any. Default 1,000 ms. */
  readonly requestLookMs?: number;
  /** Least time between two batches that are not full, where the log gathers them; see `SubscribeOptions`. */
  readonly spacingMs?: number | (() => number);
}

export interface Consumer {
  /** Resolves when the signal ended it; rejects with what the log could not recover from. */
  readonly done: Promise<void>;
  readonly group: string;
  /** Lanes held now or stopped here. */
  status(): ReadonlyMap<Lane, LaneStatus>;
}

/** This member no longer owns the lane. The log ends its hold. */
export class Fenced extends Error {
  readonly code = 'fenced';
  constructor(group: string, lane: Lane) {
    super(`${group} on ${lane} belongs to another member`);
    this.name = 'Fenced';
  }
}

export const migrate = async (pool: Pool): Promise<void> =>
  withMigrationLock(pool, async (tx) => {
    await tx.query(`
      create schema if not exists ops;
      create table if not exists ops.consumer_positions (
        consumer_group text not null,
        lane text not null,
        next_offset int8,
        position int8,
        epoch int8 not null default 0,
        updated_at timestamptz not null default now(),
        primary key (consumer_group, lane)
      ) with (fillfactor = 50);
      -- False: another owner, or there already. A log that repeats older records takes no position back.
      create or replace function ops.consume_move(m_group text, m_lane text, m_epoch int8, m_next int8, m_position int8)
      returns bool language plpgsql as $$
      begin
        update ops.consumer_positions p
        set next_offset = m_next, position = greatest(p.position, m_position), updated_at = now()
        where p.consumer_group = m_group and p.lane = m_lane and p.epoch = m_epoch
          and (p.next_offset, p.position) is distinct from (m_next, m_position);
        return found;
      end $$`);
    await migrateLastEvents(tx);
    await migrateParking(tx);
  });

/** Bumps the epoch of a group's lanes: whoever holds them writes nothing more. */
export const fence = async (tx: PoolClient, group: string): Promise<void> => {
  await tx.query('update ops.consumer_positions set epoch = epoch + 1 where consumer_group = $1', [group]);
};

/**
 * Effects go by key. A statement is planned once a session, and one that was planned while its table was small would
 * read all of it for as long as no new statistics come, which under load is a minute of growth.
 */
const byKey = 'begin; set local enable_seqscan = off';

/**
 * One connection for `work`, which may die at any moment, also between two statements: without a listener that would end
 * the process. `died`: what left it in a state that is not known.
 */
export const withConnection = async <T>(
  pool: Pool,
  work: (connection: PoolClient, died: (error: Error) => void) => Promise<T>,
): Promise<T> => {
  const connection = await pool.connect();
  let broken: Error | undefined;
  const died = (error: Error): void => {
    broken = error;
  };
  connection.on('error', died);
  try {
    return await work(connection, died);
  } catch (error) {
    if (error instanceof QueryTimeout) died(error);
    throw error;
  } finally {
    connection.off('error', died);
    // A connection that is broken, or whose state is not known, is not given back.
    connection.release(broken);
  }
};

/** Runs the effects of events in a transaction of its own and commits when `work` says so. */
export const inTransaction = async <T>(
  pool: Pool,
  work: (tx: PoolClient) => Promise<{ readonly commit: boolean; readonly result: T }>,
  begin = byKey,
): Promise<T> => {
  return withConnection(pool, async (tx, died) => {
    try {
      await tx.query(begin);
      const { commit, result } = await work(tx);
      await tx.query(commit ? 'commit' : 'rollback');
      return result;
    } catch (error) {
      // A session that did not answer is not asked for more: the server rolls back when it finds the connection closed.
      if (error instanceof QueryTimeout) died(error);
      else await tx.query('rollback').catch(died);
      throw error;
    }
  });
};

const asPosition = (row: { lane: string; next_offset: string | null; position: string | null }): LanePosition => ({
  lane: row.lane,
  nextOffset: row.next_offset === null ? null : BigInt(row.next_offset),
  position: row.position === null ? null : BigInt(row.position),
});

/** Those that lie further than all before them: a log that repeats itself may do so inside of one batch, too. */
const onward = (records: readonly StoredBytes[], from: bigint | null): readonly StoredBytes[] => {
  let reached = from;
  return records.filter(({ position }) => {
    if (reached !== null && position <= reached) return false;
    reached = position;
    return true;
  });
};

/** Milliseconds for which what was passed over may stay unstored. */
const passedOverMs = 1_000;

/** Events decoded ahead in one go: some tenths of a millisecond. */
const decodedAtOnce = 16;

const backoffMs = (failures: number): number => Math.min(5_000, 50 * 2 ** Math.min(failures, 8));

/** How far a lane has come, in the log's own count and in the store's. */
interface Reached {
  readonly nextOffset: bigint | null;
  readonly position: bigint | null;
}

/** `doubtful`: it was only slow, alone. */
type Judgement = Verdict & { readonly doubtful?: boolean };

/** A piece that takes too long so often is too much for the database, not just unlucky. */
const maxTimeouts = 2;

/** How often requests of an operator are looked for, while something is parked. Milliseconds. */
const requestLookMs = 1_000;
/** Parked events applied in one go: batches of the lane come in between. */
const retriedAtOnce = 100;

interface LaneState<E> {
  epoch: string;
  /** Events of the next batch that are decoded already, by id. */
  ahead: Map<string, E>;
  /** Stores, a moment later, how far it has passed over records that nobody asked for. Null when all is stored. */
  passing: { readonly timer: NodeJS.Timeout; next: LanePosition; stored: Promise<void> | null } | null;
  nextOffset: bigint | null;
  position: bigint | null;
  /** Of the batch under way: which event is at which position. */
  ids: ReturnType<typeof idsOf>;
  /** Ends when what is under way on the lane has ended. */
  turn: Promise<void>;
  state: LaneStatus['state'];
  reason: string | null;
  /** Stops since it last got on. */
  stops: number;
  /** While it is stopped: when it tries again. `over`: its time has come, and the log was asked for the lane anew. */
  rest: { readonly timer: NodeJS.Timeout; readonly until: number; over: boolean } | null;
}

class Member<E extends Shaped> implements Consumer {
  readonly group: string;
  readonly done: Promise<void>;
  readonly #options: ConsumeOptions<E>;
  readonly #kinds: ReadonlySet<string> | null;
  readonly #types: ReadonlySet<string> | null;
  readonly #held = new Map<Lane, LaneState<E>>();
  readonly #subscription: LogSubscription;
  /** Streams that may have parked events, and when that was last known. Others take the short way. */
  readonly #parked = new Map<string, number>();
  #looking: NodeJS.Timeout | null = null;

  constructor(options: ConsumeOptions<E>) {
    this.#options = options;
    this.group = options.group;
    this.#kinds = options.kinds === undefined ? null : new Set(options.kinds);
    this.#types = options.types === undefined ? null : new Set(options.types);
    const { store } = options;
    this.#subscription = options.log.subscribe({
      group: options.group,
      topics: options.topics,
      signal: options.signal,
      ...(options.maxBatch === undefined ? {} : { maxBatch: options.maxBatch }),
      ...(options.spacingMs === undefined ? {} : { spacingMs: options.spacingMs }),
      handlers: {
        assigned: (lanes) => this.#assigned(lanes),
        batch: (batch) => this.#batch(batch),
        ...(store === undefined
          ? {}
          : {
              outOfRange: (lane: Lane, from: LanePosition, first: bigint) => this.#outOfRange(store, lane, from, first),
            }),
      },
    });
    this.done = this.#subscription.done.catch((error: unknown) => {
      if (!options.signal.aborted) throw error;
    });
    this.done.catch(() => undefined);
  }

  status(): ReadonlyMap<Lane, LaneStatus> {
    const now = performance.now();
    return new Map(
      [...this.#held].map(([lane, { state, reason, position, rest }]) => {
        const restsMs = state === 'stopped' && rest !== null ? Math.max(0, rest.until - now) : null;
        return [lane, { state, reason, position, restsMs }];
      }),
    );
  }

  async #assigned(lanes: readonly Lane[]): Promise<readonly LanePosition[]> {
    const rows = await this.#insisting(null, async () => {
      const result = await this.#options.pool.query(
        `insert into ops.consumer_positions (consumer_group, lane, epoch)
         select $1, lane, 1 from unnest($2::text[]) as lane order by lane
         on conflict (consumer_group, lane) do update set epoch = consumer_positions.epoch + 1
         returning lane, next_offset, position, epoch,
           case when event_position = position then event_id end as event_id`,
        [this.group, lanes],
      );
      // After the epoch: the former owner parks nothing more.
      this.#noteParked(await parkedStreams(this.#options.pool, this.group));
      return result.rows;
    });
    const refusal = await this.#insisting(null, async () => {
      const { store } = this.#options;
      return store === undefined ? null : otherHistory(store, `group ${this.group}`, rows);
    });
    const kept = new Set([...lanes, ...this.#subscription.lanes()]);
    for (const [lane, { rest }] of this.#held) {
      if (kept.has(lane)) continue;
      clearTimeout(rest?.timer);
      this.#held.delete(lane);
    }
    for (const row of rows) {
      const before = this.#held.get(row.lane);
      const { nextOffset, position } = asPosition(row);
      const same = before?.position === position;
      // A lane that rests here goes on resting, unless somebody got past the event: it would stop at the same one.
      const rests = same && before.state === 'stopped' && before.rest?.over === false;
      if (!rests) clearTimeout(before?.rest?.timer);
      this.#held.set(row.lane, {
        epoch: row.epoch,
        ahead: new Map(),
        passing: null,
        nextOffset,
        position,
        ids: [],
        turn: before?.turn ?? Promise.resolve(),
        state: rests ? 'stopped' : 'running',
        reason: rests ? before.reason : null,
        stops: same ? before.stops : 0,
        rest: rests ? before.rest : null,
      });
    }
    if (refusal !== null) this.#refuse(lanes, refusal);
    return rows.map(asPosition);
  }

  #refuse(lanes: readonly Lane[], reason: string): void {
    this.#options.logger.error({ group: this.group, lanes, reason }, 'lanes stopped: the store has another history');
    for (const lane of lanes) {
      const held = this.#held.get(lane);
      if (held !== undefined && !isStopped(held)) this.#stop(lane, held, reason);
    }
  }

  async #batch(batch: LaneBatch): Promise<void> {
    const held = this.#held.get(batch.lane);
    if (held === undefined) throw new Fenced(this.group, batch.lane);
    const { records, nextOffset, position, next = [] } = batch;
    const ready = held.ahead;
    held.ahead = new Map();
    const turn = { over: false };
    void this.#decodeAhead(held.ahead, next, turn);
    try {
      await this.#inTurn(held, () =>
        this.#handle(batch.lane, held, records.map(asStored), nextOffset, position, ready),
      );
    } finally {
      turn.over = true;
    }
  }

  /**
   * While the database works on one batch this process has nothing to do: it decodes the next one, a few at a time so
   * that an answer of the database is never kept waiting. What fails is left to its own turn.
   */
  async #decodeAhead(
    into: Map<string, E>,
    coming: NonNullable<LaneBatch['next']>,
    turn: { readonly over: boolean },
  ): Promise<void> {
    // A page that could not be read is read again, in its turn.
    const next = await Promise.resolve(coming).then(
      (records) => records.map(asStored),
      () => [],
    );
    const wanted = next.filter((one) => this.#wants(one, next));
    for (let i = 0; i < wanted.length; i += decodedAtOnce) {
      await setImmediate();
      if (turn.over) return;
      try {
        for (const one of wanted.slice(i, i + decodedAtOnce)) into.set(one.id, await this.#shaped(one));
      } catch {
        return;
      }
    }
  }

  #wants(record: StoredBytes, batch: readonly StoredBytes[]): boolean {
    const { stream, type } = record;
    if (this.#kinds !== null && !this.#kinds.has(kindOf(stream))) return false;
    if (this.#types !== null && !this.#types.has(type)) return false;
    return this.#options.wants?.(record, batch) ?? true;
  }

  /** The lane does nothing until its rest is over; then it is read anew from where it got to. */
  #stop(lane: Lane, held: LaneState<E>, reason: string): void {
    const { restsMs, signal, metrics } = this.#options;
    metrics?.bad(this.group, lane, 'stop');
    const ms = restAfter(held.stops + 1, restsMs);
    const rest = { until: performance.now() + ms, over: false, timer: setTimeout(() => again(), ms).unref() };
    const again = (): void => {
      rest.over = true;
      if (!signal.aborted) this.#subscription.again(lane);
    };
    Object.assign(held, { state: 'stopped', reason, stops: held.stops + 1, rest });
  }

  /** One thing at a time on a lane: batches, and what an operator wants to have tried again. */
  async #inTurn(held: LaneState<E>, work: () => Promise<void>): Promise<void> {
    const turn = held.turn.then(work);
    held.turn = turn.catch(() => undefined);
    await turn;
  }

  /** Applies records and moves the lane. A lane that is stopped takes records and does nothing: it must not hold up the others. */
  async #handle(
    lane: Lane,
    held: LaneState<E>,
    all: readonly StoredBytes[],
    nextOffset: bigint | null,
    position: bigint | null,
    ready: ReadonlyMap<string, E> = new Map(),
  ): Promise<void> {
    if (isStopped(held) || !(await this.#prepared(lane, held))) return;
    const { replay, relaxed } = this.#options;
    held.ids = idsOf(all);
    const wanted = all.filter((one) => this.#wants(one, all));
    const records = replay === 'never' ? onward(wanted, held.position) : wanted;
    if (all.length > 0 && wanted.length === 0 && relaxed !== true) {
      this.#passOver(lane, held, nextOffset, position);
      return;
    }
    await this.#inPieces(lane, held, records, { nextOffset, position: newest(held.position, position) }, ready);
  }

  /** All at once as a rule. Where that fails for good, in pieces, until the event to blame stands alone and is parked. */
  async #inPieces(
    lane: Lane,
    held: LaneState<E>,
    records: readonly StoredBytes[],
    end: Reached,
    ready: ReadonlyMap<string, E>,
  ): Promise<void> {
    const { metrics, logger } = this.#options;
    const left = new Map<string, Judgement>();
    let gotOn = false;
    /** By stream: the event that was blamed. A blame may be taken back. */
    const blamed = new Map<string, string>();
    const judged = ({ id, stream }: StoredBytes): boolean => left.has(id) || left.has(blamed.get(stream) ?? '');
    await applyInPieces({
      records,
      judged,
      attempt: async (piece, whole) => {
        if (whole && !gotOn && blamed.size > 1 && piece.every(judged)) {
          // All fail, of several streams: no event is to blame.
          this.#stoppedBy(lane, held, new Error([...left.values()][0]?.reason));
          return over;
        }
        // A record does not tell its offset: a piece moves the position alone, and a log that repeats records is put up with.
        const last = newest(held.position, piece.at(-1)?.position ?? null);
        const reached = whole ? end : { nextOffset: held.nextOffset, position: last };
        const outcome = await this.#attempt(lane, held, piece, reached, left, ready);
        gotOn ||= outcome.kind === 'applied' && !piece.every(judged);
        return outcome;
      },
      blame: (record, error) => {
        const reason = reasonOf(error);
        const { id, stream, type } = record;
        left.set(id, { action: 'park', eventId: id, reason, doubtful: isTimeout(error) });
        blamed.set(stream, id);
        metrics?.bad(this.group, lane, 'park');
        logger.error({ group: this.group, lane, eventId: id, stream, type, err: error }, 'event fails alone: parked');
        if (parkedAmong(records, left) <= maxParkedStreams) return true;
        this.#stopGroup(new TooManyParked(this.group));
        return false;
      },
      failed: (error) => this.#stoppedBy(lane, held, error),
    });
  }

  /** One piece, until it is applied, the lane stopped, or it failed for good. */
  async #attempt(
    lane: Lane,
    held: LaneState<E>,
    records: readonly StoredBytes[],
    reached: Reached,
    left: Map<string, Judgement>,
    ready: ReadonlyMap<string, E>,
  ): Promise<PieceOutcome> {
    const { metrics, signal } = this.#options;
    const began = performance.now();
    let timeouts = 0;
    for (let tries = 0; !isStopped(held); tries += 1) {
      try {
        await this.#passed(held);
        const asked = records.filter((one) => !left.has(one.id));
        const events = await this.#decode(asked, ready);
        const verdict = Array.isArray(events)
          ? await this.#transaction(lane, held, records, events, left, reached)
          : events;
        if (verdict === null) {
          Object.assign(held, reached);
          // Another lane may have stopped the group meanwhile.
          if (!isStopped(held)) Object.assign(held, { state: 'running', reason: null, stops: 0 });
          metrics?.applied(this.group, lane, asked.length, performance.now() - began);
          return applied;
        }
        await this.#judge(lane, held, verdict, records, left, tries);
      } catch (error) {
        if (error instanceof Fenced || signal.aborted) throw error;
        if (error instanceof TooManyParked) {
          this.#stopGroup(error);
        } else if (isInstallationFault(error)) {
          this.#stoppedBy(lane, held, error);
        } else {
          // A time-out says something of the events only where the database answers others.
          const slow = isTimeout(error) && (await this.#answers());
          if (slow) timeouts += 1;
          if (stopsLane(error)) return { kind: 'failed', error };
          if (timeouts >= maxTimeouts && (await this.#isUndone(lane, held, reached))) return { kind: 'failed', error };
          // What was blamed for being slow is innocent where the database fails in other ways, too.
          if (!slow) for (const [id, { doubtful }] of left) if (doubtful === true) left.delete(id);
          await this.#waitFor(held, error, tries);
        }
      }
    }
    return over;
  }

  /**
   * Whether the tries whose answers did not come have left nothing. They are fenced first: one that is still under way on
   * the server would do again what the pieces do, and move the position past theirs. False also where nobody says: the
   * same is tried again, and the position tells.
   */
  async #isUndone(lane: Lane, held: LaneState<E>, { nextOffset, position }: Reached): Promise<boolean> {
    const asked = await inTransaction(this.#options.pool, async (tx) => ({
      commit: true,
      result: await tx.query<{ epoch: string; undone: boolean }>(
        `update ops.consumer_positions set epoch = epoch + 1
         where consumer_group = $1 and lane = $2 and epoch = $3::int8
         returning epoch::text, (next_offset, position) is distinct from ($4::int8, $5::int8) as undone`,
        [this.group, lane, held.epoch, nextOffset, position],
      ),
    })).catch(() => null);
    if (asked === null) return false;
    const [row] = asked.rows;
    if (row === undefined) throw new Fenced(this.group, lane);
    held.epoch = row.epoch;
    return row.undone;
  }

  async #answers(): Promise<boolean> {
    return this.#options.pool.query('select 1').then(
      () => true,
      () => false,
    );
  }

  #stoppedBy(lane: Lane, held: LaneState<E>, error: unknown): void {
    this.#stop(lane, held, error instanceof Error ? error.message : String(error));
    this.#options.logger.error({ group: this.group, lane, err: error }, 'lane stopped by a fault');
  }

  #stopGroup(error: Error): void {
    for (const [lane, held] of this.#held) if (!isStopped(held)) this.#stoppedBy(lane, held, error);
  }

  /** False when the lane stopped over it. */
  async #prepared(lane: Lane, held: LaneState<E>): Promise<boolean> {
    const { prepare, signal } = this.#options;
    if (prepare === undefined) return true;
    try {
      await this.#insisting(held, prepare);
      return true;
    } catch (error) {
      if (signal.aborted) throw error;
      this.#stoppedBy(lane, held, error);
      return false;
    }
  }

  /**
   * A consumer that wants few of its topics' events would pay a write, and its wait for the disk, for batch after batch
   * in which there is nothing for it. It stores that it passed them over once in a while; after a death in between it
   * passes over the same ones again. A relaxed consumer waits for no disk and stores each: readers wait for its position.
   */
  #passOver(lane: Lane, held: LaneState<E>, nextOffset: bigint | null, position: bigint | null): void {
    Object.assign(held, { nextOffset, position: newest(held.position, position) });
    const next = { lane, nextOffset, position };
    if (held.passing !== null && held.passing.stored === null) {
      held.passing.next = next;
      return;
    }
    const before = held.passing?.stored ?? Promise.resolve();
    const store = (): void => {
      if (this.#options.signal.aborted || this.#held.get(lane) !== held) return;
      const { next: to } = passing;
      // What fails is stored with the next batch, or passed over again.
      passing.stored = before
        .then(() => this.#move(this.#options.pool, lane, held, to.nextOffset, to.position))
        .then(
          () => undefined,
          () => undefined,
        )
        .finally(() => {
          if (held.passing === passing) held.passing = null;
        });
    };
    const passing: NonNullable<LaneState<E>['passing']> = {
      timer: setTimeout(store, passedOverMs).unref(),
      next,
      stored: null,
    };
    held.passing = passing;
  }

  /** Nothing of what was passed over is on its way to the store any more: what comes now may not be overtaken by it. */
  async #passed(held: LaneState<E>): Promise<void> {
    clearTimeout(held.passing?.timer);
    await held.passing?.stored;
    held.passing = null;
  }

  async #shaped(record: StoredBytes): Promise<E> {
    const { codec, shape } = this.#options;
    const event = await codec.decode(record);
    return shape === undefined ? (event as Shaped as E) : shape(event);
  }

  async #decode(records: readonly StoredBytes[], ready: ReadonlyMap<string, E>): Promise<E[] | Verdict> {
    const { invalid } = this.#options;
    const decoded: E[] = [];
    for (const one of records) {
      try {
        decoded.push(ready.get(one.id) ?? (await this.#shaped(one)));
      } catch (error) {
        if (!(error instanceof Error) || !stopsLane(error) || isInstallationFault(error)) throw error;
        return { action: invalid?.(one, error) ?? 'park', eventId: one.id, reason: error.message };
      }
    }
    return decoded;
  }

  async #judge(
    lane: Lane,
    held: LaneState<E>,
    verdict: Verdict,
    records: readonly StoredBytes[],
    left: Map<string, Judgement>,
    tries: number,
  ): Promise<void> {
    const { logger, metrics, signal } = this.#options;
    const { action, eventId, reason } = verdict;
    if (action !== 'stop') metrics?.bad(this.group, lane, action);
    const record = records.find((one) => one.id === eventId);
    const where = { group: this.group, lane, eventId, stream: record?.stream, type: record?.type, reason };
    if (action === 'retry') {
      Object.assign(held, { state: 'retrying', reason });
      await delay(backoffMs(tries), undefined, { signal });
    } else if (action === 'stop' || record === undefined) {
      this.#stop(lane, held, reason);
      logger.error(where, 'lane stopped at an event that cannot be applied');
    } else {
      left.set(eventId, verdict);
      if (parkedAmong(records, left) > maxParkedStreams) this.#stopGroup(new TooManyParked(this.group));
      logger.warn(where, action === 'park' ? 'event parked' : 'event skipped');
    }
  }

  /** Position first: it takes the row's lock, so a later owner waits for us and an earlier one is found out at once. */
  async #transaction(
    lane: Lane,
    held: LaneState<E>,
    records: readonly StoredBytes[],
    decoded: readonly E[],
    left: ReadonlyMap<string, Judgement>,
    { nextOffset, position }: Reached,
  ): Promise<Verdict | null> {
    const { atOnce } = this.#options;
    const judged: Judged = new Map(records.flatMap(({ id }) => (left.has(id) ? [[id, left.get(id) as Verdict]] : [])));
    const parks = judged.size > 0 || records.some(({ stream }) => this.#parked.has(stream));
    if (atOnce !== undefined && records.length > 0 && !parks) {
      faultPoint('consume:before-effect');
      const done = await this.#atOnce(atOnce, lane, held, decoded, nextOffset, position);
      if (done) return null;
    }
    const begin = this.#options.relaxed === true ? `${byKey}; set local synchronous_commit = off` : byKey;
    if (records.length === 0) {
      // Nothing to apply: the position alone.
      const move = (tx: PoolClient) => this.#move(tx, lane, held, nextOffset, position);
      await inTransaction(this.#options.pool, async (tx) => ({ commit: await move(tx), result: null }), begin);
      return null;
    }
    let made: Applied | null = null;
    let aside: ReadonlySet<string> = new Set();
    try {
      const verdict = await inTransaction(
        this.#options.pool,
        async (tx) => {
          if (!(await this.#move(tx, lane, held, nextOffset, position))) {
            // A try before it was carried out and its answer lost: what that one parked is parked.
            aside = new Set(await parkedStreams(tx, this.group));
            return { commit: false, result: null };
          }
          const { ids, streams } = parks ? await setAside(tx, this.group, records, judged) : nothingAside;
          // Before the commit: after it nothing of such a stream may take the short way.
          this.#noteParked([...streams]);
          aside = streams;
          const events = ids.size === 0 ? decoded : decoded.filter((one) => !ids.has(one.id));
          const effect = events.length === 0 ? null : await this.#options.apply(tx, events);
          if (effect !== null && 'action' in effect) return { commit: false, result: effect };
          made = effect;
          faultPoint('consume:before-commit');
          return { commit: true, result: null };
        },
        begin,
      );
      faultPoint('consume:after-commit');
      this.#noteParked([...aside]);
      asApplied(made)?.committed();
      return verdict;
    } catch (error) {
      asApplied(made)?.rolledBack();
      throw error;
    }
  }

  /** False when it takes a transaction. If we die before the statement nothing is there, after it effect and position are. */
  async #atOnce(
    atOnce: NonNullable<ConsumeOptions<E>['atOnce']>,
    lane: Lane,
    held: LaneState<E>,
    events: readonly E[],
    nextOffset: bigint | null,
    position: bigint | null,
  ): Promise<boolean> {
    try {
      const eventId = eventAt(held.ids, position);
      const done = await atOnce(events, { group: this.group, lane, epoch: held.epoch, nextOffset, position, eventId });
      if (done === null) return false;
      if (done === 'nothing') {
        this.#passOver(lane, held, nextOffset, position);
        return true;
      }
      faultPoint('consume:after-commit');
      done.committed();
    } catch (error) {
      if (!(error instanceof NotMoved)) throw error;
      await this.#requireOwn(this.#options.pool, lane, held);
    }
    return true;
  }

  /** The position was not moved: it is there already (a commit whose answer was lost). @throws Fenced */
  async #requireOwn(db: Pick<PoolClient, 'query'>, lane: Lane, held: LaneState<E>, lock = ''): Promise<void> {
    const { rowCount } = await db.query(
      `select 1 from ops.consumer_positions where consumer_group = $1 and lane = $2 and epoch = $3::int8 ${lock}`,
      [this.group, lane, held.epoch],
    );
    if (rowCount === 0) throw new Fenced(this.group, lane);
  }

  /** False when the lane is there already. @throws Fenced */
  async #move(
    tx: Pick<PoolClient, 'query'>,
    lane: Lane,
    held: LaneState<E>,
    nextOffset: bigint | null,
    position: bigint | null,
  ): Promise<boolean> {
    const { rows } = await tx.query<{ moved: boolean }>({
      name: 'consume-move',
      text: 'select ops.consume_move($1, $2, $3::int8, $4::int8, $5::int8, $6::uuid) as moved',
      values: [this.group, lane, held.epoch, nextOffset, position, eventAt(held.ids, position)],
    });
    if (rows[0]?.moved === true) return true;
    await this.#requireOwn(tx, lane, held);
    return false;
  }

  /** Reads the store from the lane's position to a head taken now, then goes on in the log at its first offset. */
  async #outOfRange(store: EventStore, lane: Lane, from: LanePosition, first: bigint): Promise<LanePosition> {
    const { log, topics, logger } = this.#options;
    const held = this.#held.get(lane);
    if (held === undefined) throw new Fenced(this.group, lane);
    // It takes nothing until its rest is over; then it is asked for anew.
    if (isStopped(held)) return { lane, nextOffset: first, position: held.position };
    logger.warn({ group: this.group, lane, from, first }, 'the log lost what this lane reads next: reading the store');
    const head = await this.#insisting(held, () => store.head());
    let after = from.position;
    for (;;) {
      const page = await this.#insisting(held, () => store.readAll({ after, limit: 500 }));
      const mine = page.filter((one) => {
        const topic = topicOf(one.stream);
        if (topic === null || !topics.includes(topic) || (head !== null && one.position > head)) return false;
        return log.laneOf(topic, partitionOf(partitionKeyOf(one), log.partitions)) === lane;
      });
      after = page.at(-1)?.position ?? after;
      const last = page.length === 0 || head === null || (after !== null && after >= head);
      const position = mine.at(-1)?.position ?? held.position;
      if (mine.length > 0 || last) {
        const next = last ? first : from.nextOffset;
        await this.#inTurn(held, () => this.#handle(lane, held, mine, next, position));
      }
      if (last) return { lane, nextOffset: first, position: held.position };
    }
  }

  async #waitFor(held: LaneState<E> | null, error: unknown, failures: number): Promise<void> {
    const { logger, signal } = this.#options;
    const reason = error instanceof Error ? error.message : String(error);
    if (held !== null && !isStopped(held)) Object.assign(held, { state: 'retrying', reason });
    if (failures === 0) logger.warn({ group: this.group, reason }, 'consumer waits for a part that is away');
    await delay(backoffMs(failures), undefined, { signal });
  }

  #noteParked(streams: readonly string[]): void {
    const now = performance.now();
    for (const stream of streams) this.#parked.set(stream, now);
    if (this.#parked.size === 0 || this.#looking !== null || this.#options.signal.aborted) return;
    const { requestLookMs: everyMs = requestLookMs } = this.#options;
    this.#looking = setTimeout(() => void this.#lookAtRequests(), everyMs).unref();
  }

  /** Tries again what an operator wants to have tried again, and forgets streams that nothing is parked of any more. */
  async #lookAtRequests(): Promise<void> {
    const { pool, store, logger, signal } = this.#options;
    try {
      const requests = store === undefined ? [] : await wantedAgain(pool, this.group);
      for (const { stream, first } of requests) await this.#tryAgain(stream, first);
      const asked = performance.now();
      const still = new Set(await parkedStreams(pool, this.group));
      // One that was parked since the question may not be in the answer.
      for (const [stream, at] of this.#parked) if (at < asked && !still.has(stream)) this.#parked.delete(stream);
    } catch (error) {
      if (!signal.aborted) logger.warn({ group: this.group, err: error }, 'parked events are looked at again later');
    } finally {
      this.#looking = null;
      this.#noteParked([]);
    }
  }

  /** In the order of revisions, a few at a time, in the lane's turn. Another member's stream is left to that one. */
  async #tryAgain(stream: string, first: bigint): Promise<void> {
    const { pool, store, log, signal } = this.#options;
    const [event] = (await store?.read(stream, { from: first, limit: 1 })) ?? [];
    const topic = topicOf(stream);
    if (event === undefined || topic === null) return;
    const lane = log.laneOf(topic, partitionOf(partitionKeyOf(event), log.partitions));
    for (let more = true; more && !signal.aborted; ) {
      const held = this.#held.get(lane);
      if (held === undefined || isStopped(held)) return;
      more = false;
      await this.#inTurn(held, async () => {
        const revisions = await parkedOf(pool, this.group, stream, retriedAtOnce);
        if (revisions.length > 0 && (await this.#prepared(lane, held))) {
          more = await this.#applyParked(lane, held, stream, revisions);
        }
      });
    }
  }

  /** One transaction an event: what fails is known, and all before it holds. False where the stream stays parked. */
  async #applyParked(lane: Lane, held: LaneState<E>, stream: string, revisions: readonly bigint[]): Promise<boolean> {
    const { pool, store, logger } = this.#options;
    for (const revision of revisions) {
      const [event] = (await store?.read(stream, { from: revision, limit: 1 })) ?? [];
      const reason =
        event === undefined || event.revision !== revision
          ? 'the store does not have it'
          : await this.#applyOneParked(lane, held, event).catch((error: unknown) => {
              if (!stopsLane(error)) throw error;
              return reasonOf(error);
            });
      if (reason === null) continue;
      await parkAgain(pool, this.group, stream, revision, reason);
      logger.warn({ group: this.group, lane, stream, revision: String(revision), reason }, 'event stays parked');
      return false;
    }
    logger.info({ group: this.group, lane, stream, events: revisions.length }, 'parked events applied');
    return true;
  }

  /**
   * The event's effect and the end of its parking are one transaction, behind the lane's epoch: if we die before, it is
   * parked and still wanted; after, it is applied. Answers why it cannot be applied, null when it was.
   */
  async #applyOneParked(lane: Lane, held: LaneState<E>, event: RecordedEvent): Promise<string | null> {
    const { pool, apply } = this.#options;
    const shaped = await this.#shaped(event);
    let made: Applied | null = null;
    try {
      const verdict = await inTransaction(pool, async (tx) => {
        await this.#requireOwn(tx, lane, held, 'for update');
        const effect = await apply(tx, [shaped]);
        if (effect !== null && 'action' in effect) return { commit: false, result: effect };
        made = effect;
        await unpark(tx, this.group, event.stream, [event.revision]);
        faultPoint('consume:before-unpark');
        return { commit: true, result: null };
      });
      asApplied(made)?.committed();
      return verdict === null ? null : verdict.reason;
    } catch (error) {
      asApplied(made)?.rolledBack();
      throw error;
    }
  }

  /** Until it succeeds: what is transient is tried again for as long as the signal lets it. */
  async #insisting<T>(held: LaneState<E> | null, attempt: () => Promise<T>): Promise<T> {
    const { signal } = this.#options;
    for (let failures = 0; ; failures += 1) {
      try {
        const result = await attempt();
        if (held?.state === 'retrying') Object.assign(held, { state: 'running', reason: null });
        return result;
      } catch (error) {
        if (error instanceof Fenced || signal.aborted) throw error;
        // Without its positions a member can do nothing but ask again.
        if (held !== null && stopsLane(error)) throw error;
        await this.#waitFor(held, error, failures);
      }
    }
  }
}

/** Asked anew each time: what is awaited in between may stop it. */
const isStopped = ({ state }: Pick<LaneStatus, 'state'>): boolean => state === 'stopped';

const asStored = ({ stream, id, type, revision, position, value, metadata }: LogRecord): StoredBytes => ({
  stream,
  id,
  type,
  revision,
  position,
  data: value,
  metadata,
});

/** Streams that are to be parked. */
const parkedAmong = (records: readonly StoredBytes[], left: ReadonlyMap<string, Verdict>): number =>
  new Set(records.filter(({ id }) => left.get(id)?.action === 'park').map(({ stream }) => stream)).size;

const nothingAside: SetAside = { ids: new Set(), streams: new Set() };

/** tsc does not see that the transaction assigned it. */
const asApplied = (applied: Applied | null): Applied | null => applied;

const newest = (a: bigint | null, b: bigint | null): bigint | null => (a === null || (b !== null && b > a) ? b : a);

const text = new TextDecoder();
const partitionKeyOf = (event: RecordedEvent): string =>
  (JSON.parse(text.decode(event.metadata)) as { partitionKey: string }).partitionKey;

/** What a stopped lane waits for, as a person reads it. */
export const restingOf = (restsMs: number | null): string =>
  restsMs === null ? '' : ` (stopped; tries again in ${Math.ceil(restsMs / 1_000)} s)`;

/** For /readyz: the lanes that do not run as they should, and why. */
export const stoppedLanes = (consumers: readonly Consumer[]): readonly string[] =>
  consumers.flatMap((one) =>
    [...one.status()].flatMap(([lane, { state, reason, restsMs }]) =>
      state === 'running' ? [] : [`${one.group} ${lane}: ${reason}${restingOf(restsMs)}`],
    ),
  );

/** Starts consuming; see `ConsumeOptions`. */
export const consume = <E extends Shaped = DecodedEvent>(options: ConsumeOptions<E>): Consumer => new Member(options);
