import { setTimeout as delay, setImmediate } from 'node:timers/promises';
import type { Pool, PoolClient } from 'pg';
import { QueryTimeout } from '#contracts/ports/database.ts';
import type { EventStore, RecordedEvent } from '#contracts/ports/event-store.ts';
import type { Lane, LaneBatch, LanePosition, Log, LogRecord, LogSubscription } from '#contracts/ports/log.ts';
import { kindOf, partitionOf, topicOf } from '#schemas/topics.ts';
import type { DecodedEvent, EventCodec, StoredBytes } from './codec.ts';
import { faultPoint } from './fault-point.ts';
import { stopsLane } from './faults.ts';
import { withMigrationLock } from './migrate.ts';
import { restAfter } from './rests.ts';
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
  /** For an event that does not decode. Default: stop. */
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
      end $$;
      create table if not exists ops.parked_events (
        consumer_group text not null,
        stream text not null,
        revision int8 not null,
        event_id uuid not null,
        type text not null,
        position int8 not null,
        reason text not null,
        parked_at timestamptz not null default now(),
        primary key (consumer_group, stream, revision)
      )`);
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

interface Held<E> {
  readonly epoch: string;
  /** Events of the next batch that are decoded already, by id. */
  ahead: Map<string, E>;
  /** Stores, a moment later, how far it has passed over records that nobody asked for. Null when all is stored. */
  passing: { readonly timer: NodeJS.Timeout; next: LanePosition; stored: Promise<void> | null } | null;
  position: bigint | null;
  /** Whether the group has parked events: only then are they looked for. */
  parks: boolean;
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
  readonly #held = new Map<Lane, Held<E>>();
  readonly #subscription: LogSubscription;

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
           exists (select 1 from ops.parked_events p where p.consumer_group = $1) as parks`,
        [this.group, lanes],
      );
      return result.rows;
    });
    const kept = new Set([...lanes, ...this.#subscription.lanes()]);
    for (const [lane, { rest }] of this.#held) {
      if (kept.has(lane)) continue;
      clearTimeout(rest?.timer);
      this.#held.delete(lane);
    }
    for (const row of rows) {
      const before = this.#held.get(row.lane);
      const { position } = asPosition(row);
      const same = before?.position === position;
      // A lane that rests here goes on resting, unless somebody got past the event: it would stop at the same one.
      const rests = same && before.state === 'stopped' && before.rest?.over === false;
      if (!rests) clearTimeout(before?.rest?.timer);
      this.#held.set(row.lane, {
        epoch: row.epoch,
        ahead: new Map(),
        passing: null,
        position,
        parks: row.parks,
        state: rests ? 'stopped' : 'running',
        reason: rests ? before.reason : null,
        stops: same ? before.stops : 0,
        rest: rests ? before.rest : null,
      });
    }
    return rows.map(asPosition);
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
      await this.#handle(batch.lane, held, records.map(asStored), nextOffset, position, ready);
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
  #stop(lane: Lane, held: Held<E>, reason: string): void {
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

  /** Applies records and moves the lane. A lane that is stopped takes records and does nothing: it must not hold up the others. */
  async #handle(
    lane: Lane,
    held: Held<E>,
    all: readonly StoredBytes[],
    nextOffset: bigint | null,
    position: bigint | null,
    ready: ReadonlyMap<string, E> = new Map(),
  ): Promise<void> {
    if (isStopped(held) || !(await this.#prepared(lane, held))) return;
    const { replay, metrics, signal } = this.#options;
    const known = held.position;
    const wanted = all.filter((one) => this.#wants(one, all));
    const records = replay === 'never' ? onward(wanted, known) : wanted;
    if (all.length > 0 && wanted.length === 0 && this.#options.relaxed !== true) {
      this.#passOver(lane, held, nextOffset, position);
      return;
    }
    await this.#passed(held);
    const left = new Map<string, Verdict>();
    const began = performance.now();
    for (let tries = 0; !isStopped(held); tries += 1) {
      let applied = 0;
      const attempt = async (): Promise<Verdict | null> => {
        const asked = records.filter((one) => !left.has(one.id));
        const events = await this.#decode(asked, ready);
        if (!Array.isArray(events)) return events;
        applied = events.length;
        return this.#transaction(lane, held, records, events, left, nextOffset, position);
      };
      try {
        const verdict = await this.#insisting(held, attempt);
        if (verdict === null) {
          Object.assign(held, { position: newest(known, position), stops: 0 });
          metrics?.applied(this.group, lane, applied, performance.now() - began);
          return;
        }
        await this.#judge(lane, held, verdict, records, left, tries);
      } catch (error) {
        if (error instanceof Fenced || signal.aborted) throw error;
        // Nobody judged it: a fault of ours, or of the database. The lane rests, so that it is seen, and nothing is lost.
        this.#stoppedBy(lane, held, error);
      }
    }
  }

  #stoppedBy(lane: Lane, held: Held<E>, error: unknown): void {
    this.#stop(lane, held, error instanceof Error ? error.message : String(error));
    this.#options.logger.error({ group: this.group, lane, err: error }, 'lane stopped by a fault');
  }

  /** False when the lane stopped over it. */
  async #prepared(lane: Lane, held: Held<E>): Promise<boolean> {
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
  #passOver(lane: Lane, held: Held<E>, nextOffset: bigint | null, position: bigint | null): void {
    held.position = newest(held.position, position);
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
    const passing: NonNullable<Held<E>['passing']> = {
      timer: setTimeout(store, passedOverMs).unref(),
      next,
      stored: null,
    };
    held.passing = passing;
  }

  /** Nothing of what was passed over is on its way to the store any more: what comes now may not be overtaken by it. */
  async #passed(held: Held<E>): Promise<void> {
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
        if (!(error instanceof Error) || !stopsLane(error)) throw error;
        return { action: invalid?.(one, error) ?? 'stop', eventId: one.id, reason: error.message };
      }
    }
    return decoded;
  }

  async #judge(
    lane: Lane,
    held: Held<E>,
    verdict: Verdict,
    records: readonly StoredBytes[],
    left: Map<string, Verdict>,
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
      held.state = 'running';
    } else if (action === 'stop' || record === undefined) {
      this.#stop(lane, held, reason);
      logger.error(where, 'lane stopped at an event that cannot be applied');
    } else {
      left.set(eventId, verdict);
      logger.warn(where, action === 'park' ? 'event parked' : 'event skipped');
    }
  }

  /** Position first: it takes the row's lock, so a later owner waits for us and an earlier one is found out at once. */
  async #transaction(
    lane: Lane,
    held: Held<E>,
    records: readonly StoredBytes[],
    decoded: readonly E[],
    left: ReadonlyMap<string, Verdict>,
    nextOffset: bigint | null,
    position: bigint | null,
  ): Promise<Verdict | null> {
    const { atOnce } = this.#options;
    if (atOnce !== undefined && records.length > 0 && left.size === 0 && !held.parks) {
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
    let applied: Applied | null = null;
    try {
      const verdict = await inTransaction(
        this.#options.pool,
        async (tx) => {
          if (!(await this.#move(tx, lane, held, nextOffset, position))) return { commit: false, result: null };
          const parked = await this.#park(tx, held, records, left);
          const events = parked.size === 0 ? decoded : decoded.filter((one) => !parked.has(one.id));
          const made = events.length === 0 ? null : await this.#options.apply(tx, events);
          if (made !== null && 'action' in made) return { commit: false, result: made };
          applied = made;
          faultPoint('consume:before-commit');
          return { commit: true, result: null };
        },
        begin,
      );
      faultPoint('consume:after-commit');
      asApplied(applied)?.committed();
      return verdict;
    } catch (error) {
      asApplied(applied)?.rolledBack();
      throw error;
    }
  }

  /** False when it takes a transaction. If we die before the statement nothing is there, after it effect and position are. */
  async #atOnce(
    atOnce: NonNullable<ConsumeOptions<E>['atOnce']>,
    lane: Lane,
    held: Held<E>,
    events: readonly E[],
    nextOffset: bigint | null,
    position: bigint | null,
  ): Promise<boolean> {
    try {
      const done = await atOnce(events, { group: this.group, lane, epoch: held.epoch, nextOffset, position });
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
  async #requireOwn(db: Pick<PoolClient, 'query'>, lane: Lane, held: Held<E>): Promise<void> {
    const { rowCount } = await db.query(
      'select 1 from ops.consumer_positions where consumer_group = $1 and lane = $2 and epoch = $3::int8',
      [this.group, lane, held.epoch],
    );
    if (rowCount === 0) throw new Fenced(this.group, lane);
  }

  /** False when the lane is there already. @throws Fenced */
  async #move(
    tx: Pick<PoolClient, 'query'>,
    lane: Lane,
    held: Held<E>,
    nextOffset: bigint | null,
    position: bigint | null,
  ): Promise<boolean> {
    const { rows } = await tx.query<{ moved: boolean }>({
      name: 'consume-move',
      text: 'select ops.consume_move($1, $2, $3::int8, $4::int8, $5::int8) as moved',
      values: [this.group, lane, held.epoch, nextOffset, position],
    });
    if (rows[0]?.moved === true) return true;
    await this.#requireOwn(tx, lane, held);
    return false;
  }

  /** Sets aside what was judged so, and every later event of a stream that has one set aside. Returns their ids. */
  async #park(
    tx: PoolClient,
    held: Held<E>,
    records: readonly StoredBytes[],
    left: ReadonlyMap<string, Verdict>,
  ): Promise<ReadonlySet<string>> {
    const parked = new Set<string>();
    const judged = [...left.values()].some((one) => one.action === 'park');
    if (!held.parks && !judged) return parked;
    const known = await tx.query(
      `select stream, min(revision) as revision from ops.parked_events
       where consumer_group = $1 and stream = any($2::text[]) group by stream`,
      [this.group, [...new Set(records.map((one) => one.stream))]],
    );
    const first = new Map<string, bigint>(known.rows.map((row) => [row.stream, BigInt(row.revision)]));
    for (const { id, stream, revision, type, position } of records) {
      const verdict = left.get(id);
      const behind = first.get(stream);
      if (verdict?.action === 'skip' || (verdict === undefined && (behind === undefined || revision < behind)))
        continue;
      if (behind === undefined) first.set(stream, revision);
      parked.add(id);
      await tx.query(
        `insert into ops.parked_events (consumer_group, stream, revision, event_id, type, position, reason)
         values ($1, $2, $3::int8, $4, $5, $6::int8, $7) on conflict do nothing`,
        [
          this.group,
          stream,
          revision,
          id,
          type,
          position,
          verdict?.reason ?? 'an earlier event of its stream is parked',
        ],
      );
    }
    if (judged) held.parks = true;
    return parked;
  }

  /** Reads the store from the lane's position to a head taken now, then goes on in the log at its first offset. */
  async #outOfRange(store: EventStore, lane: Lane, from: LanePosition, first: bigint): Promise<LanePosition> {
    const { log, topics, logger } = this.#options;
    const held = this.#held.get(lane);
    if (held === undefined) throw new Fenced(this.group, lane);
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
      if (mine.length > 0 || last) await this.#handle(lane, held, mine, last ? first : from.nextOffset, position);
      if (last) return { lane, nextOffset: first, position: held.position };
    }
  }

  /** Until it succeeds: what is transient is tried again for as long as the signal lets it. */
  async #insisting<T>(held: Held<E> | null, attempt: () => Promise<T>): Promise<T> {
    const { logger, signal } = this.#options;
    for (let failures = 0; ; failures += 1) {
      try {
        const result = await attempt();
        if (held?.state === 'retrying') Object.assign(held, { state: 'running', reason: null });
        return result;
      } catch (error) {
        if (error instanceof Fenced || signal.aborted) throw error;
        // Without its positions a member can do nothing but ask again.
        if (held !== null && stopsLane(error)) throw error;
        const reason = error instanceof Error ? error.message : String(error);
        if (held !== null) Object.assign(held, { state: 'retrying', reason });
        if (failures === 0) logger.warn({ group: this.group, reason }, 'consumer waits for a part that is away');
        await delay(backoffMs(failures), undefined, { signal });
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
