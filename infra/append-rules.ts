/**
 * Appends that every event store adapter refuses before it calls its server. The port's suite proves that the adapters
 * agree.
 */
import {
  EventStoreError,
  type EventStoreErrorCode,
  type EventToAppend,
  type ExpectedRevision,
  maxAppendBytes,
  workspaceOf,
} from '#contracts/ports/event-store.ts';

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const zeroUuid = '00000000-0000-0000-0000-000000000000';

/** Longest stream name, type and partition key, in UTF-16 units: all fit one index page of Postgres. */
const maxNameLength = 500;

const refuse = (code: EventStoreErrorCode, message: string): never => {
  throw new EventStoreError(code, message);
};

/** Names that start with `$` belong to the store; Postgres and the wire can hold neither NUL nor lone surrogates. */
const checkName = (what: string, name: string): void => {
  if (typeof name !== 'string' || name === '') refuse('invalid_event', `${what} is empty`);
  if (name.startsWith('$')) refuse('invalid_event', `${what} ${JSON.stringify(name)}: the prefix $ is the store's own`);
  if (name.length > maxNameLength) refuse('invalid_event', `${what} is longer than ${maxNameLength}`);
  if (name.includes('\0') || !name.isWellFormed()) refuse('invalid_event', `${what} is not storable text`);
};

/**
 * Size of the append as the port counts it, in bytes.
 * @throws EventStoreError `empty_append | invalid_event | too_large`, before anything is written.
 */
export const checkAppend = (stream: string, expected: ExpectedRevision, events: readonly EventToAppend[]): number => {
  checkName('stream name', stream);
  if (expected !== 'none' && (typeof expected !== 'bigint' || expected < 0n)) {
    refuse('invalid_event', `expected revision ${expected} is neither 'none' nor a revision`);
  }
  if (events.length === 0) refuse('empty_append', `nothing to append to ${stream}`);
  const ids = new Set<string>();
  let bytes = 0;
  for (const event of events) {
    if (typeof event.id !== 'string' || !uuid.test(event.id) || event.id === zeroUuid) {
      refuse('invalid_event', `event id ${JSON.stringify(event.id)} is not a lower-case UUID`);
    }
    if (ids.has(event.id)) refuse('invalid_event', `event id ${event.id} stands twice in one append`);
    ids.add(event.id);
    checkName('event type', event.type);
    checkName('partition key', event.partitionKey);
    if (!(event.data instanceof Uint8Array) || !(event.metadata instanceof Uint8Array)) {
      refuse('invalid_event', `event ${event.id}: data and metadata are bytes`);
    }
    if (event.workspaceId !== undefined && workspaceOf(event.metadata) !== event.workspaceId) {
      refuse('invalid_event', `event ${event.id}: its metadata do not name workspace ${event.workspaceId}`);
    }
    bytes += event.data.byteLength + event.metadata.byteLength + Buffer.byteLength(event.type, 'utf8');
  }
  if (bytes > maxAppendBytes) {
    refuse('too_large', `append of ${bytes} bytes to ${stream}, the most is ${maxAppendBytes}`);
  }
  return bytes;
};

/** The one conflict error, so that every adapter gives the same text. */
export const conflict = (stream: string, expected: ExpectedRevision, actual: bigint | 'none'): EventStoreError =>
  new EventStoreError('wrong_expected_revision', `${stream} is at ${actual}, the append expected ${expected}`, {
    actual,
  });
