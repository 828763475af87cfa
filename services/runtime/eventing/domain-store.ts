import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { within } from '#contracts/base/pause.ts';
import {
  type EventStore,
  EventStoreError,
  type EventToAppend,
  type ExpectedRevision,
  type RecordedEvent,
} from '#contracts/ports/event-store.ts';
import { type Decider, type Fact, fold } from '#domain/decider.ts';
import { causedIdOf } from '#domain/ids.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import { type EventActor, type EventMetadata, instantOf } from '#schemas/common.ts';
import { topicOf } from '#schemas/events.ts';
import { partitionOf } from '#schemas/topics.ts';
import type { DecodedEvent, EventCodec } from './codec.ts';
import { type KeptState, KeptStates } from './kept-states.ts';
import { WorkspaceCache } from './workspace-cache.ts';

/**
 * Caches long streams, decoded and folded, so that the next command on one reads only newer events: otherwise every
 * change of an 8 MiB draft would read and decode all of it, and hold up all tenants. Stored events never change, so a
 * cached stream can only be incomplete; the reader reads on from its last event. Streams with personal members are
 * never cached: the very next read must see an erasure.
 */

interface CachedStream {
  readonly workspaceId: string;
  /** Stored bytes. */
  readonly size: number;
  readonly events: readonly DecodedEvent[];
  folded: { readonly decider: unknown; readonly state: unknown; readonly count: number } | null;
}

/** A stream shorter than both limits is read whole each time, together with others in one statement. */
const longBytes = 64 * 1_024;
const longEvents = 100;
/** Stored bytes in the cache of a process, over all streams. */
const maxCachedBytes = 32 * 1_024 * 1_024;
/** A stream above this (it grew before there was a limit) would evict all others. */
const maxCachedStreamBytes = 12 * 1_024 * 1_024;

const bytesOf = (events: readonly DecodedEvent[]): number => events.reduce((sum, { bytes }) => sum + bytes, 0);

const isLong = (events: readonly DecodedEvent[]): boolean =>
  events.length >= longEvents || bytesOf(events) >= longBytes;

export class LongStreams {
  readonly #cached = new WorkspaceCache<CachedStream>(maxCachedBytes);

  /** All cached events, from the first one on; null when the stream is not cached. */
  known(stream: string): readonly DecodedEvent[] | null {
    return this.#cached.get(stream)?.events ?? null;
  }

  /** Caches a long stream; `events` are all of it, as just read. */
  keep(stream: string, events: readonly DecodedEvent[]): void {
    const before = this.#cached.peek(stream);
    // Of two concurrent readers the one with more events wins.
    if (before !== undefined && before.events.length >= events.length) return;
    const bytes = bytesOf(events);
    const workspaceId = events[0]?.metadata.workspaceId;
    this.drop(stream);
    if (workspaceId === undefined || bytes > maxCachedStreamBytes) return;
    this.#cached.set(stream, { workspaceId, size: bytes, events, folded: before?.folded ?? null });
  }

  drop(stream: string): void {
    this.#cached.delete(stream);
  }

  /** The last fold by this decider over these events or the first of them; null when there is none. */
  folded(stream: string, decider: unknown): { readonly state: unknown; readonly count: number } | null {
    const folded = this.#cached.peek(stream)?.folded ?? null;
    return folded?.decider === decider ? folded : null;
  }

  /** Does nothing unless these are exactly the cached events. */
  keepFold(stream: string, events: readonly DecodedEvent[], decider: unknown, state: unknown): void {
    const cached = this.#cached.peek(stream);
    if (cached?.events === events) cached.folded = { decider, state, count: events.length };
  }
}

/** Streams as deciders see them: loads and folds a stream, appends decided events. */

/** Who requests what: it goes into the metadata of every event of the command. */
export interface CommandContext {
  readonly workspaceId: string;
  readonly actor: EventActor;
  readonly correlationId: string;
  /** Id of the cause of the command: an event, or the request itself. */
  readonly causationId: string;
  /** The same for all effects of one accepted request; folds remember it to recognise a repeat. */
  readonly commandId: string;
  /** Instant of the decision, ISO 8601: in real time, or where `aheadMs` is set by the clock of the workspace. */
  readonly now: string;
  /** Milliseconds by which that clock is ahead of real time. Absent: the store adds it to what is stored. */
  readonly aheadMs?: number;
  /** Set where the append follows from a stored event alone: event ids are then derived from it. */
  readonly causeEventId?: string;
  readonly keyHmac?: string;
  readonly fingerprint?: string;
  /** Where a caller waits: the instant of `performance.now()` after which no append is awaited or repeated. */
  readonly giveUpAt?: number;
}

/**
 * Highest commit position that a call stored, per `topic-partition`: a reader that has applied it shows the call's
 * events.
 */
export type Positions = Map<string, bigint>;

/** The store did not answer, or not in time. No fault is known: repeat the call with the same key. */
export class Unavailable extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'Unavailable';
  }
}

export interface Loaded<State> {
  readonly state: State;
  /** Revision of the last event, −1 for an empty stream. */
  readonly revision: number;
  readonly events: readonly DecodedEvent[];
}

/** Time-ordered random UUID (RFC 9562 version 7). */
export const uuidv7 = (): string => {
  const time = Date.now().toString(16).padStart(12, '0');
  // A version 4 UUID supplies the random bits, because Node draws those in bulk.
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
};

/** Of `now`, which is `aheadMs` ahead. */
const realTime = (now: string, aheadMs: number): string =>
  aheadMs === 0 ? now : new Date(Date.parse(now) - aheadMs).toISOString();

const factOf = (event: DecodedEvent): Fact => ({
  eventId: event.id,
  revision: event.revision,
  commandId: event.metadata.commandId,
  occurredAt: instantOf(event.metadata),
  ...(event.metadata.aheadMs === undefined ? {} : { aheadMs: event.metadata.aheadMs }),
});

/** Decoded events in the type that a decider takes. The codec has validated them against the same schemas. */
export const asFacts = <Event extends { readonly type: string }>(
  events: readonly DecodedEvent[],
): { readonly event: Event; readonly fact: Fact }[] =>
  events.map((one) => ({ event: { type: one.type, data: one.data } as unknown as Event, fact: factOf(one) }));

export const foldEvents = <State, Command, Event extends { readonly type: string }>(
  decider: Decider<State, Command, Event>,
  events: readonly DecodedEvent[],
  from: State = decider.initial,
): State => fold(decider, asFacts<Event>(events), from);

/**
 * The key that orders events in the log: the post's id for a post, so that it shares its targets' partition; else the
 * stream's name. A target's and an approval's key is the post's id, which their streams' names do not contain: their
 * writers pass it.
 */
export const partitionKeyOf = (kind: string, id: string): string => {
  if (kind === 'target' || kind === 'approval') {
    throw new BrokenInvariant(`the events of this ${kind} are ordered by its post: pass partitionKey`);
  }
  return kind === 'post' ? id : `${kind}-${id}`;
};

/** Events that a state is folded from at once. */
const pageOfState = 1_000;
/** Waits before the repeats of an append whose outcome is unknown, milliseconds. */
const repeatDelays = [20, 100, 500, 1_000, 2_000];
/**
 * An append that begins after `giveUpAt` is still awaited this long, or a long command could never end. Milliseconds.
 */
const minAppendMs = 1_000;

/**
 * @throws EventStoreError `outcome_unknown` where the answer does not come before that instant; the append itself goes
 * on
 */
const answerBefore = <T>(instant: number, answer: Promise<T>): Promise<T> => {
  if (instant === Number.POSITIVE_INFINITY) return answer;
  return within(Math.max(0, instant - performance.now()), answer, () => {
    throw new EventStoreError('outcome_unknown', 'the caller no longer waits for the append');
  });
};

type AheadOf = (workspaceId: string) => Promise<number>;
const noneIsAhead: AheadOf = async () => 0;

/** Which workspaces take events. */
export interface OpenWorkspaces {
  /** @throws Rejection workspace_closed */
  requireOpen(workspaceId: string): Promise<void>;
}

export class DomainStore {
  readonly #aheadOf: AheadOf;
  readonly #store: EventStore;
  readonly #codec: EventCodec;
  readonly #partitions: number;
  readonly #closed: OpenWorkspaces | undefined;
  readonly #metadata = new WeakMap<CommandContext, Omit<EventMetadata, 'schemaVersion'>>();
  readonly #long = new LongStreams();
  readonly #states = new KeptStates();
  /** Concurrent readers of one stream share the store's answer and its decoding. */
  readonly #decoding = new WeakMap<readonly RecordedEvent[], Promise<readonly DecodedEvent[]>>();

  /**
   * @param aheadOf milliseconds by which the clock of a workspace is ahead; never rejects. Absent: none is
   * @param closed asked before each append, also where no credential was: by the link of a guest. Absent: all are open
   */
  constructor(
    store: EventStore,
    codec: EventCodec,
    partitions: number,
    { aheadOf = noneIsAhead, closed }: { readonly aheadOf?: AheadOf; readonly closed?: OpenWorkspaces } = {},
  ) {
    this.#aheadOf = aheadOf;
    this.#store = store;
    this.#codec = codec;
    this.#partitions = partitions;
    this.#closed = closed;
  }

  async load<State, Command, Event extends { readonly type: string }>(
    decider: Decider<State, Command, Event>,
    id: string,
    upTo?: number,
  ): Promise<Loaded<State>> {
    const stream = `${decider.kind}-${id}`;
    const events = await this.readStream(stream, upTo);
    const known = upTo === undefined ? this.#long.folded(stream, decider) : null;
    // The fold of another call that is ahead of these events cannot be used.
    const from = known !== null && known.count <= events.length ? known : { state: decider.initial, count: 0 };
    const state = foldEvents(decider, from.count === 0 ? events : events.slice(from.count), from.state as State);
    this.#long.keepFold(stream, events, decider, state);
    return { state, revision: events.at(-1)?.revision ?? -1, events };
  }

  /**
   * The state and the revision of a stream that grows for long; its events are read in pages and not kept. A caller
   * that gives up leaves the pages read so far to the next one.
   * @param sizeOf how much of the cache a state takes
   */
  loadState<State, Command, Event extends { readonly type: string }>(
    decider: Decider<State, Command, Event>,
    id: string,
    sizeOf: (state: State) => number,
  ): Promise<Pick<Loaded<State>, 'state' | 'revision'>> {
    const stream = `${decider.kind}-${id}`;
    return this.#states.shared(stream, () => this.#foldOn(stream, decider, sizeOf));
  }

  /** The state as this process knows it, which others may have changed since; null where it is not kept. */
  knownState<State, Command, Event extends { readonly type: string }>(
    decider: Decider<State, Command, Event>,
    id: string,
  ): Pick<Loaded<State>, 'state' | 'revision'> | null {
    const known = this.#states.get(`${decider.kind}-${id}`, decider);
    return known === null ? null : { state: known.state as State, revision: known.revision };
  }

  /** Folds what was just appended behind a state, so that the next command need not read it. */
  noteState<State, Command, Event extends { readonly type: string }>(
    decider: Decider<State, Command, Event>,
    id: string,
    appended: readonly DecodedEvent[],
    sizeOf: (state: State) => number,
  ): void {
    const stream = `${decider.kind}-${id}`;
    const known = this.#states.get(stream, decider);
    const last = appended.at(-1);
    if (known === null || last === undefined || known.revision !== last.revision - appended.length) return;
    this.#keepState(stream, decider, foldEvents(decider, appended, known.state as State), last, sizeOf);
  }

  #keepState<State>(
    stream: string,
    decider: unknown,
    state: State,
    { metadata: { workspaceId }, revision, id: eventId }: DecodedEvent,
    sizeOf: (state: State) => number,
  ): KeptState {
    const kept = { workspaceId, size: sizeOf(state), revision, eventId, decider, state };
    this.#states.keep(stream, kept);
    return kept;
  }

  async #foldOn<State, Command, Event extends { readonly type: string }>(
    stream: string,
    decider: Decider<State, Command, Event>,
    sizeOf: (state: State) => number,
  ): Promise<Pick<Loaded<State>, 'state' | 'revision'>> {
    let known = this.#states.get(stream, decider);
    let state = known === null ? decider.initial : (known.state as State);
    for (;;) {
      const from = known?.revision ?? 0;
      const stored = await this.#asking(() => this.#store.read(stream, { from: BigInt(from), limit: pageOfState }));
      // A store that has another event there, or none, was restored to an earlier day.
      if (known !== null && stored[0]?.id !== known.eventId) {
        this.#states.drop(stream);
        known = null;
        state = decider.initial;
        continue;
      }
      const events = await this.#codec.decodeAll(known === null ? stored : stored.slice(1));
      state = foldEvents(decider, events, state);
      const last = events.at(-1);
      if (last !== undefined) known = this.#keepState(stream, decider, state, last, sizeOf);
      if (stored.length < pageOfState) return { state, revision: known?.revision ?? -1 };
    }
  }

  async readStream(stream: string, upTo?: number, from = 0): Promise<readonly DecodedEvent[]> {
    const known = from === 0 ? this.#long.known(stream) : null;
    if (known !== null) {
      const events = await this.#readOn(stream, known, upTo);
      if (events !== null) return events;
    }
    const limit = upTo === undefined ? {} : { limit: Math.max(0, upTo + 1 - from) };
    const stored = await this.#asking(() => this.#store.read(stream, { from: BigInt(from), ...limit }));
    if (upTo !== undefined) return this.#codec.decodeAll(stored.filter((one) => one.revision <= BigInt(upTo)));
    const decoding = this.#decoding.get(stored) ?? this.#codec.decodeAll(stored);
    this.#decoding.set(stored, decoding);
    const events = await decoding;
    if (from === 0) this.#keep(stream, events);
    return events;
  }

  /** Events as the store has them, for those who show how they are stored. @throws Unavailable */
  readonly stored: Pick<EventStore, 'read' | 'readWorkspace' | 'head'> = {
    read: (...asked) => this.#asking(() => this.#store.read(...asked)),
    readWorkspace: (...asked) => this.#asking(() => this.#store.readWorkspace(...asked)),
    head: () => this.#asking(() => this.#store.head()),
  };

  /** As the domain knows it. @throws InvalidEvent */
  decode(stored: RecordedEvent): Promise<DecodedEvent> {
    return this.#codec.decode(stored);
  }

  /** The same of several, with pauses. @throws InvalidEvent */
  decodeAll(stored: readonly RecordedEvent[]): Promise<readonly DecodedEvent[]> {
    return this.#codec.decodeAll(stored);
  }

  /**
   * The cached events of a stream and those appended since. The last cached event is read again: a store that has
   * another event there, or none, was restored to an earlier day, so the cache is invalid. Null then.
   */
  async #readOn(
    stream: string,
    known: readonly DecodedEvent[],
    upTo: number | undefined,
  ): Promise<readonly DecodedEvent[] | null> {
    const last = known.at(-1);
    if (last === undefined) return null;
    const [again, ...later] = await this.#asking(() => this.#store.read(stream, { from: BigInt(last.revision) }));
    if (again?.id !== last.id) {
      this.#long.drop(stream);
      return null;
    }
    const events = later.length === 0 ? known : [...known, ...(await this.#codec.decodeAll(later))];
    if (later.length > 0) this.#keep(stream, events);
    return upTo === undefined ? events : events.filter(({ revision }) => revision <= upTo);
  }

  #keep(stream: string, events: readonly DecodedEvent[]): void {
    if (isLong(events) && !this.#codec.isPersonal(stream)) this.#long.keep(stream, events);
  }

  /**
   * Appends at exactly this revision (−1 = the stream must not exist). Repeats an append with an unknown outcome with
   * the same ids and bytes; the exact expectation makes that safe. Where a caller waits the repeats end at `giveUpAt`:
   * the outcome of the last one is then unknown.
   * @throws EventStoreError `wrong_expected_revision` when another writer was first; Unavailable when the store does
   * not answer
   */
  async append(
    stream: string,
    expected: number,
    events: readonly { readonly type: string; readonly data: unknown }[],
    context: CommandContext,
    partitionKey: string,
    positions?: Positions,
  ): Promise<readonly DecodedEvent[]> {
    await this.#closed?.requireOpen(context.workspaceId);
    const metadata = this.#metadataOf(context, partitionKey, await this.#timeOf(context));
    const toAppend: EventToAppend[] = [];
    for (const [index, event] of events.entries()) {
      // Several events of one cause in one stream need several ids.
      const caused = context.causeEventId === undefined ? null : index === 0 ? stream : `${stream}#${index}`;
      const id =
        caused === null || context.causeEventId === undefined ? uuidv7() : causedIdOf(context.causeEventId, caused);
      const bytes = await this.#codec.encode(stream, event, metadata);
      toAppend.push({ id, type: event.type, ...bytes, partitionKey, workspaceId: context.workspaceId });
    }
    // mutant: claim without revision
    const expectation: ExpectedRevision = expected < 0 ? 'none' : BigInt(expected);
    const giveUpAt = Math.max(context.giveUpAt ?? Number.POSITIVE_INFINITY, performance.now() + minAppendMs);
    const result = await this.#appendUntilKnown(stream, expectation, toAppend, giveUpAt);
    const position =
      result.position ?? (topicOf(stream) === null ? null : await this.#positionOf(stream, result.revision));
    if (position !== null && positions !== undefined) this.#raise(positions, stream, partitionKey, position);
    return toAppend.map((one, index) => ({
      stream,
      id: one.id,
      type: one.type,
      data: events[index]?.data as Record<string, unknown>,
      metadata: { ...metadata, schemaVersion: this.#codec.versionOf(stream, one.type, events[index]?.data) },
      revision: Number(result.revision) - (toAppend.length - 1) + index,
      position: position ?? 0n,
      bytes: one.data.length + one.metadata.length,
    }));
  }

  /**
   * Counts events of an earlier call as if this call had stored them: the answer to a repeat promises as much as the
   * first one.
   */
  note(events: readonly DecodedEvent[], positions: Positions): void {
    for (const { stream, metadata, position } of events) {
      this.#raise(positions, stream, metadata.partitionKey, position);
    }
  }

  #raise(positions: Positions, stream: string, partitionKey: string, position: bigint): void {
    const topic = topicOf(stream);
    if (topic === null) return;
    const lane = `${topic}-${partitionOf(partitionKey, this.#partitions)}`;
    const known = positions.get(lane);
    if (known === undefined || known < position) positions.set(lane, position);
  }

  /** Events keep the real time, beside how far the clock of their workspace was ahead of it. */
  async #timeOf({ now, aheadMs, workspaceId }: CommandContext): Promise<Pick<EventMetadata, 'occurredAt' | 'aheadMs'>> {
    const ahead = aheadMs ?? (await this.#aheadOf(workspaceId));
    return { occurredAt: realTime(now, aheadMs ?? 0), ...(ahead === 0 ? {} : { aheadMs: ahead }) };
  }

  /** The same object for the same context and key. */
  #metadataOf(
    context: CommandContext,
    partitionKey: string,
    time: Pick<EventMetadata, 'occurredAt' | 'aheadMs'>,
  ): Omit<EventMetadata, 'schemaVersion'> {
    const known = this.#metadata.get(context);
    if (known?.partitionKey === partitionKey) return known;
    const made = {
      workspaceId: context.workspaceId,
      partitionKey,
      actor: context.actor,
      $correlationId: context.correlationId,
      $causationId: context.causationId,
      commandId: context.commandId,
      ...time,
      ...(context.keyHmac === undefined ? {} : { keyHmac: context.keyHmac }),
      ...(context.fingerprint === undefined ? {} : { fingerprint: context.fingerprint }),
    };
    this.#metadata.set(context, made);
    return made;
  }

  async #appendUntilKnown(
    stream: string,
    expected: ExpectedRevision,
    events: readonly EventToAppend[],
    giveUpAt: number,
  ) {
    for (const pause of [...repeatDelays, null]) {
      try {
        return await answerBefore(giveUpAt, this.#store.append(stream, expected, events));
      } catch (error) {
        const open =
          error instanceof EventStoreError && (error.code === 'outcome_unknown' || error.code === 'unavailable');
        if (!open) throw error;
        if (pause === null || performance.now() + pause >= giveUpAt) {
          throw new Unavailable('The event store does not answer.', { cause: error });
        }
        await delay(pause);
      }
    }
    throw new Unavailable('The event store does not answer.');
  }

  /**
   * Position of an event that a repeat had stored the first time. Null when it cannot be read now: the append stands
   * all the same.
   */
  async #positionOf(stream: string, revision: bigint): Promise<bigint | null> {
    const [event] = await this.#store.read(stream, { from: revision, limit: 1 }).catch(() => []);
    return event?.position ?? null;
  }

  async #asking<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      if (error instanceof EventStoreError && (error.code === 'unavailable' || error.code === 'outcome_unknown')) {
        throw new Unavailable('The event store does not answer.', { cause: error });
      }
      throw error;
    }
  }
}
