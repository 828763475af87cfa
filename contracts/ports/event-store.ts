/**
 * The event store: streams of immutable events and one total order over them. `event-store.suite.ts` proves adapters;
 * the rules follow the real behaviour of EventStoreDB.
 */

/** Exact expectation about a stream: it has no events, or its last event has this revision. Never `any`. */
export type ExpectedRevision = 'none' | bigint;

export interface EventToAppend {
  /** UUID; the store's idempotency key together with the expected revision. */
  readonly id: string;
  readonly type: string;
  /** Serialised once per command, so that a retry carries the same bytes. */
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
  /** Key of the record in the log; decides its partition. Equals `partitionKey` in the metadata. */
  readonly partitionKey: string;
  /**
   * Lower-case UUID of the event's workspace. Every adapter finds a workspace's events by `workspaceOf` their metadata,
   * and refuses an event whose metadata names another one: no replay would ever find it.
   */
  readonly workspaceId?: string;
}

export interface RecordedEvent {
  readonly stream: string;
  readonly id: string;
  readonly type: string;
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
  /** Index in the stream. Contiguous, but a re-created stream does not start at 0. */
  readonly revision: bigint;
  /** Commit position in the total order. Strictly increasing, with gaps. */
  readonly position: bigint;
  readonly created: Date;
}

export interface AppendResult {
  /** Revision of the last event of *this* append; after a repeat it is not the stream's head. */
  readonly revision: bigint;
  /** Commit position of that event; null where the store no longer knows it (a repeat). */
  readonly position: bigint | null;
}

export type SubscriptionItem =
  | { readonly kind: 'event'; readonly event: RecordedEvent }
  /** The subscription has reached the head as of now. May repeat after a reconnect. */
  | { readonly kind: 'caughtUp' };

/**
 * Where a read of the total order begins. Only the position of a returned event is valid: EventStoreDB's are byte
 * offsets, and it refuses one at which no record starts. So callers never compute neighbours: `from` reads the event
 * itself, `after` the events behind it. A read beyond the end is empty, not refused.
 */
export type ReadStart =
  /** Exclusive; null = from the start. */
  | { readonly after: bigint | null; readonly from?: undefined }
  /** Inclusive. */
  | { readonly from: bigint; readonly after?: undefined };

export interface WorkspacePage {
  /** Events of this workspace only, in total order. May be empty though more follow. */
  readonly events: readonly RecordedEvent[];
  /**
   * Every event of the workspace up to here has been read: the next page begins `after` it, here and in `readAll`. It
   * advances with every page that is not the last, also an empty one. It may be the position of another workspace's
   * event, so no HTTP caller may see it. Null where no event was found and no `after` given: begin there again.
   */
  readonly next: bigint | null;
  /** Whether no event of the workspace follows: up to `until`, or without it up to the end at the time of the call. */
  readonly isEnd: boolean;
}

export interface EventStore {
  /**
   * Appends all events or none. The same ids with the same expectation succeed again and change nothing.
   * @throws EventStoreError `wrong_expected_revision | empty_append | too_large | invalid_event` (nothing written),
   *   `unavailable` (nothing written), `outcome_unknown` (repeat with the same ids and bytes to learn it).
   */
  append(stream: string, expected: ExpectedRevision, events: readonly EventToAppend[]): Promise<AppendResult>;
  /** Events of one stream from `from` (inclusive, default 0) in order; empty when the stream does not exist. */
  read(
    stream: string,
    options?: { readonly from?: bigint; readonly limit?: number },
  ): Promise<readonly RecordedEvent[]>;
  /**
   * Up to `limit` events of all streams from there on, in total order.
   * @throws EventStoreError `invalid_position` where `from` lies before the end and starts no event. The Postgres adapter
   *   takes any `after`; the others refuse it in the same way.
   */
  readAll(options: ReadStart & { readonly limit: number }): Promise<readonly RecordedEvent[]>;
  /**
   * One page of a workspace's events, of every kind of stream, in total order: those events of `readAll` whose metadata
   * name the workspace. It reads a bounded number of other workspaces' events.
   * @param options `limit`: most events of the page, at least 1. `until`: no event behind this position (inclusive)
   * @throws EventStoreError `invalid_position` as `readAll`, but adapters need not detect it
   */
  readWorkspace(
    workspaceId: string,
    options: ReadStart & { readonly limit: number; readonly until?: bigint },
  ): Promise<WorkspacePage>;
  /** Commit position of the newest event, null when the store is empty. */
  head(): Promise<bigint | null>;
  /**
   * All events after `after` (exclusive), then new ones as they come, until the signal aborts. It reconnects by itself
   * from the last event that the consumer took; it never skips or reorders events. Slow consumers push back. With an
   * `after` beyond the end it is caught up at once, and leaves out later events up to `after`.
   * @throws EventStoreError `access_denied | invalid_position`, which no retry fixes
   */
  subscribe(options: { readonly after: bigint | null; readonly signal: AbortSignal }): AsyncIterable<SubscriptionItem>;
  /** Resolves when the store answers, rejects with `unavailable` when it does not. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

export type EventStoreErrorCode =
  | 'wrong_expected_revision'
  | 'empty_append'
  | 'too_large'
  | 'invalid_event'
  | 'unavailable'
  | 'outcome_unknown'
  | 'invalid_position'
  | 'access_denied';

/** The port's one error class: both sides need `instanceof`, so it lives with the types. */
export class EventStoreError extends Error {
  readonly code: EventStoreErrorCode;
  /** For `wrong_expected_revision`: the stream's head, where the store returns it. */
  readonly actual: bigint | 'none' | undefined;
  constructor(code: EventStoreErrorCode, message: string, options?: { cause?: unknown; actual?: bigint | 'none' }) {
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'EventStoreError';
    this.code = code;
    this.actual = options?.actual;
  }
}

/** Whether another writer appended to the stream first. */
export const isConflict = (error: unknown): boolean =>
  error instanceof EventStoreError && error.code === 'wrong_expected_revision';

const workspaceMember = '"workspaceId":"';
const quotedUuid = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"$/;

/**
 * The workspace in an event's metadata; null where there is none. `JSON.stringify` wrote them, so the first member of
 * that name is found without parsing the rest. The Postgres adapter does the same in SQL.
 */
export const workspaceOf = (metadata: Uint8Array): string | null => {
  const bytes = Buffer.from(metadata.buffer, metadata.byteOffset, metadata.byteLength);
  const at = bytes.indexOf(workspaceMember);
  if (at < 0) return null;
  const start = at + workspaceMember.length;
  const value = bytes.toString('latin1', start, start + 37);
  return quotedUuid.test(value) ? value.slice(0, 36) : null;
};

/** Largest append: data, metadata and type names of all its events, in serialised bytes. */
export const maxAppendBytes = 512 * 1024;

/**
 * A whole stream, page by page. A rule of retention may have dropped its first events, so that its revisions say where a page
 * begins, and not how many events came before.
 * @param limit events of one page
 */
export async function* streamPages(
  store: Pick<EventStore, 'read'>,
  stream: string,
  limit: number,
): AsyncGenerator<readonly RecordedEvent[]> {
  for (let from = 0n; ; ) {
    const page = await store.read(stream, { from, limit });
    const last = page.at(-1);
    if (last === undefined) return;
    yield page;
    if (page.length < limit) return;
    from = last.revision + 1n;
  }
}

/** Erases what events say, where a workspace ends. */
export interface EventEraser {
  /**
   * Erases these, and all that follows in their streams, which belong to one workspace. What is erased already stays so: after a
   * death the call is repeated. @throws EventStoreError
   */
  erase(events: readonly RecordedEvent[]): Promise<void>;
  /** Drops what the store keeps to find the events of a workspace, once they are erased. */
  forget(workspaceId: string): Promise<void>;
  /** What stays of them after all, and until when: a line of the receipt. Null: nothing does. */
  readonly stays: string | null;
}
