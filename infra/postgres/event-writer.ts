/**
 * Group commit: appends of one process that wait at the same time become one transaction, sent as one call of
 * `append_group` (rules in `event-store.sql.ts`). While it is on its way the next group gathers. The file is long
 * because gather, send, compare and reconnect share one queue.
 */
import { Socket } from 'node:net';
import pg from 'pg';
import { plainArray, textArray } from '#contracts/base/array-literals.ts';
import {
  type AppendResult,
  EventStoreError,
  type EventToAppend,
  type ExpectedRevision,
} from '#contracts/ports/event-store.ts';
import { conflict } from '#infra/append-rules.ts';
import { statements } from './event-store.sql.ts';
import { bigintTypes, isAccessDenied, isConnectionLost, keepAlive, limitGoodbye, setSession } from './pool.ts';
import { toColumns } from './stored-event.ts';

const maxGroupEvents = 500;
const maxGroupBytes = 4 * 1024 * 1024;

interface Waiting {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  /** Revision of its first event, if the append is accepted. */
  readonly first: number;
  readonly events: readonly EventToAppend[];
  readonly bytes: number;
  /** Monotonic milliseconds at which the caller gets an answer. */
  readonly deadline: number;
  /** Appends that may share a group with this one. Halved each time its group takes the server too long. */
  company: number;
  readonly resolve: (result: AppendResult) => void;
  readonly reject: (error: EventStoreError) => void;
}

interface Session {
  readonly client: pg.Client;
  readonly socket: Socket;
}

/** The server aborts a group after this part of the deadline, so that its halves have time to follow. */
const groupShare = 1 / 8;
const minGroupMs = 100;
/** A group without an answer in this part of the deadline is cut off: the waiting appends still have the rest. */
const answerShare = 1 / 2;

export interface WriterOptions {
  readonly url: string;
  readonly schema: string;
  readonly partitions: number;
  /** Milliseconds until an append without an answer fails. */
  readonly deadlineMs: number;
}

/** Nothing of these appends was or can be written. */
const unavailable = (cause: unknown): EventStoreError =>
  isAccessDenied(cause)
    ? new EventStoreError('access_denied', 'Postgres refuses access to the event table', { cause })
    : new EventStoreError('unavailable', 'Postgres does not answer; nothing was written', { cause });

/** `statement_timeout` aborted the group: nothing of it was written. */
const isGivenUp = (error: unknown): boolean => error instanceof pg.DatabaseError && error.code === '57014';

/**
 * Errors that the content of one append can cause: data, constraint, program limit. All others concern the whole
 * server.
 */
const isContentError = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && ['22', '23', '54', 'P0'].includes(error.code?.slice(0, 2) ?? '');

export class EventWriter {
  readonly #options: WriterOptions;
  readonly #sql: ReturnType<typeof statements>;
  #queue: Waiting[] = [];
  #session: Session | undefined;
  #running: Promise<void> | undefined;
  #closed = false;
  /**
   * Appends that may share a group: halved when a group was cut off, as one of them may be what keeps the server
   * silent.
   */
  #company = maxGroupEvents;
  /** The group on its way, from its connection on, and when it is cut off. */
  #underWay: { readonly deadline: number; socket: Socket | undefined } | undefined;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#sql = statements(options.schema);
  }

  /** Queues an append that `checkAppend` passed; `bytes` is its size. */
  append(
    stream: string,
    expected: ExpectedRevision,
    events: readonly EventToAppend[],
    bytes: number,
  ): Promise<AppendResult> {
    if (this.#closed) return Promise.reject(new EventStoreError('unavailable', 'the store is closed'));
    return new Promise((resolve, reject) => {
      // No stream reaches a revision beyond exact numbers: such an expectation is always a conflict.
      const first = expected === 'none' ? 0 : Math.min(Number(expected) + 1, 2 ** 53 - maxGroupBytes);
      const deadline = performance.now() + this.#options.deadlineMs;
      const company = maxGroupEvents;
      this.#queue.push({ stream, expected, first, events, bytes, deadline, company, resolve, reject });
      this.#running ??= this.#run();
    });
  }

  /** Writes the queue, then closes the connection. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
    const session = this.#session;
    this.#session = undefined;
    await session?.client.end().catch(() => {});
  }

  /**
   * Runs while appends wait. When idle, a first append is sent at the end of this turn, with the others of the turn.
   */
  async #run(): Promise<void> {
    const watch = setInterval(() => this.#giveUpLate(), Math.min(500, this.#options.deadlineMs / 10));
    await nextLoop();
    while (this.#queue.length > 0) {
      const group = this.#takeGroup();
      await this.#write(group);
      this.#underWay = undefined;
      // Callers that were just answered append again within this turn and belong to the next group.
      await nextLoop();
    }
    clearInterval(watch);
    this.#running = undefined;
  }

  /** The next group in order. It holds a stream once: later appends to it see the outcome first, in the next group. */
  #takeGroup(): Waiting[] {
    const group: Waiting[] = [];
    const held: Waiting[] = [];
    const streams = new Set<string>();
    let events = 0;
    let bytes = 0;
    let looked = 0;
    const company = Math.max(1, Math.min(this.#company, this.#queue[0]?.company ?? maxGroupEvents));
    for (const waiting of this.#queue) {
      if (group.length === company || (group.length > 0 && waiting.company !== group[0]?.company)) break;
      if (streams.has(waiting.stream)) held.push(waiting);
      else {
        events += waiting.events.length;
        bytes += waiting.bytes;
        // The first append always fits, whatever its size.
        if (group.length > 0 && (events > maxGroupEvents || bytes > maxGroupBytes)) break;
        streams.add(waiting.stream);
        group.push(waiting);
      }
      looked++;
    }
    this.#queue = [...held, ...this.#queue.slice(looked)];
    return group;
  }

  #giveUpLate(): void {
    const now = performance.now();
    const late = this.#queue.filter(({ deadline }) => deadline <= now);
    if (late.length > 0) this.#queue = this.#queue.filter(({ deadline }) => deadline > now);
    refuseAll(late, unavailable(new Error('the deadline passed in the queue')));
    const { deadline, socket } = this.#underWay ?? {};
    // Cuts off a session that hangs; how far the group had come decides whether its outcome is known.
    if (deadline !== undefined && deadline <= now) socket?.destroy(new Error('the deadline of the append passed'));
  }

  /** Answers every append of the group or queues it again. */
  async #write(group: readonly Waiting[]): Promise<void> {
    const earliest = group.reduce((min, { deadline }) => Math.min(min, deadline), Number.POSITIVE_INFINITY);
    const deadline = Math.min(earliest, performance.now() + this.#options.deadlineMs * answerShare);
    const underWay = { deadline, socket: this.#session?.socket };
    this.#underWay = underWay;
    let session: Session;
    try {
      session = await this.#connect((socket) => {
        underWay.socket = socket;
      });
    } catch (error) {
      refuseAll(group, unavailable(error));
      return;
    }
    let open = group;
    try {
      const { base, heads } = await this.#send(session.client, group);
      this.#company = Math.min(maxGroupEvents, this.#company * 2);
      const behind: { readonly waiting: Waiting; readonly head: number }[] = [];
      let row = 0;
      for (const waiting of group) {
        const { first, events, resolve, reject } = waiting;
        const head = heads[row] ?? -1;
        row += events.length;
        if (first === head + 1) resolve({ revision: lastOf(waiting), position: base + BigInt(row) });
        else if (first > head) reject(conflictOf(waiting, head));
        else behind.push({ waiting, head });
      }
      open = behind.map(({ waiting }) => waiting);
      // Stored events never change, so repeats and conflicts can be separated after the commit.
      if (behind.length > 0) await this.#compare(session.client, behind);
    } catch (error) {
      if (isGivenUp(error)) this.#apart(open, error);
      else if (isConnectionLost(error)) {
        this.#drop(session);
        if (performance.now() >= deadline) this.#company = Math.max(1, group.length >>> 1);
        // The commit may have arrived: only a repeat of the same append finds out.
        refuseAll(
          open,
          new EventStoreError('outcome_unknown', 'the connection was lost before the answer came', { cause: error }),
        );
      } else if (!isContentError(error)) {
        refuseAll(open, unavailable(error));
      } else if (group.length === 1) {
        refuseAll(open, new EventStoreError('invalid_event', 'Postgres refuses the append', { cause: error }));
      } else {
        // Nothing was written. Splitting in halves refuses only the culprit, in order as before.
        const middle = group.length >>> 1;
        await this.#write(group.slice(0, middle));
        await this.#write(group.slice(middle));
      }
    }
  }

  /**
   * The group took the server too long, and nothing of it was written. Each half is queued again on its own, behind the
   * waiting appends: an append that makes the server hang ends up alone, and delays the others only briefly each time.
   * Alone it gets two tries: at the first another process may have held the lock. Appends to one of its streams stay
   * behind it: ahead of it they would be refused.
   */
  #apart(group: readonly Waiting[], cause: unknown): void {
    const now = performance.now();
    const last = group.length === 1 && (group[0]?.company ?? 0) < 1;
    const again = last ? [] : group.filter(({ deadline }) => deadline > now);
    refuseAll(last ? group : group.filter(({ deadline }) => deadline <= now), unavailable(cause));
    for (const waiting of again) waiting.company = group.length === 1 ? 0 : group.length >>> 1;
    const streams = new Set(again.map(({ stream }) => stream));
    const follows = ({ stream }: Waiting): boolean => streams.has(stream);
    const others = this.#queue.filter((waiting) => !follows(waiting));
    this.#queue = [...others, ...again, ...this.#queue.filter(follows)];
  }

  /** Sends the group; resolves to its result when it is committed. */
  async #send(client: pg.Client, group: readonly Waiting[]) {
    const { rows } = await client.query<[bigint, string]>({
      name: 'append',
      text: this.#sql.append,
      values: toColumns(group, this.#options.partitions),
      rowMode: 'array',
      types: appendTypes,
    });
    const [base, heads] = rows[0] ?? [0n, '{}'];
    return { base, heads: heads.slice(1, -1).split(',').map(Number) };
  }

  /** Appends below the head: repeats where the stored ids are the same, conflicts elsewhere. */
  async #compare(client: pg.Client, behind: readonly { readonly waiting: Waiting; readonly head: number }[]) {
    const { rows } = await client.query<[string, bigint, string, bigint]>({
      name: 'in-place',
      text: this.#sql.inPlace,
      values: [
        textArray(behind.map(({ waiting }) => waiting.stream)),
        plainArray(behind.map(({ waiting }) => waiting.first)),
        plainArray(behind.map(({ waiting }) => lastOf(waiting))),
      ],
      rowMode: 'array',
      types: bigintTypes,
    });
    const found = new Map(rows.map(([stream, revision, id, position]) => [`${revision} ${stream}`, { id, position }]));
    for (const { waiting, head } of behind) {
      const { stream, first, events } = waiting;
      const inPlace = events.map((_, i) => found.get(`${first + i} ${stream}`));
      if (inPlace.every((stored, i) => stored?.id === events[i]?.id)) {
        waiting.resolve({ revision: lastOf(waiting), position: inPlace.at(-1)?.position ?? null });
      } else waiting.reject(conflictOf(waiting, head));
    }
  }

  /**
   * Passes the socket to `begun` before it connects, so that a server which falls silent from then on is cut off in
   * time too.
   */
  async #connect(begun: (socket: Socket) => void): Promise<Session> {
    if (this.#session !== undefined) return this.#session;
    const { url, deadlineMs } = this.#options;
    const socket = new Socket();
    begun(socket);
    const client = new pg.Client({
      connectionString: url,
      application_name: 'events-writer',
      ...keepAlive,
      stream: () => socket,
    });
    limitGoodbye(client);
    const session: Session = { client, socket };
    const lose = () => {
      if (this.#session === session) this.#session = undefined;
    };
    client.on('error', lose);
    client.on('end', lose);
    try {
      await client.connect();
      await setSession(
        client,
        `set default_transaction_isolation = 'read committed'; set synchronous_commit = on;
         set plan_cache_mode = force_generic_plan;
         set statement_timeout = ${Math.ceil(Math.max(minGroupMs, deadlineMs * groupShare))}`,
      );
    } catch (error) {
      socket.destroy();
      throw error;
    }
    this.#session = session;
    return session;
  }

  #drop(session: Session): void {
    session.socket.destroy();
    if (this.#session === session) this.#session = undefined;
  }
}

const nextLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const lastOf = ({ first, events }: Waiting): bigint => BigInt(first + events.length - 1);

const conflictOf = ({ stream, expected }: Waiting, head: number): EventStoreError =>
  conflict(stream, expected, head < 0 ? 'none' : BigInt(head));

/** The heads come as one array literal of plain numbers. */
const appendTypes = { getTypeParser: (oid: number) => (oid === 20 ? BigInt : String) } as typeof bigintTypes;

const refuseAll = (group: readonly Waiting[], error: EventStoreError): void => {
  for (const waiting of group) waiting.reject(error);
};
