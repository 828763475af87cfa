import { setImmediate as immediate } from 'node:timers/promises';
import { EventMetadata } from '#schemas/common.ts';
import { type EventCatalogue, type EventDefinition, eventCatalogue } from '#schemas/events.ts';
import { kindOf } from '#schemas/topics.ts';
import type { Upcast } from '#schemas/upcast.ts';
import { issuesOf } from '#schemas/validator.ts';
import { type DataKeys, openPersonal, personalMembers, sealPersonal } from './personal.ts';

/**
 * Converts events of the domain to bytes of the store and back: validates both ways, encrypts personal members, and
 * upcasts older versions on reading. An event that it refuses is never written, and never applied.
 */

export interface DecodedEvent {
  readonly stream: string;
  readonly id: string;
  readonly type: string;
  readonly data: Record<string, unknown>;
  readonly metadata: EventMetadata;
  readonly revision: number;
  readonly position: bigint;
  /** Stored length of its data and metadata. */
  readonly bytes: number;
}

/** The stored form, as the store's port and the log's port both show it. */
export interface StoredBytes {
  readonly stream: string;
  readonly id: string;
  readonly type: string;
  readonly revision: bigint;
  readonly position: bigint;
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
}

/** An event that does not fit its schema, or has no known type. The caller may conclude nothing from it. */
export class InvalidEvent extends Error {
  constructor(stream: string, type: string, why: string) {
    super(`${type} in ${stream}: ${why}`);
    this.name = 'InvalidEvent';
  }
}

/** The event has a type or version that this code does not know: a newer process wrote it, and can read it. */
export class UnknownEvent extends InvalidEvent {}

const decoder = new TextDecoder('utf-8', { fatal: true });

/** Stored bytes decoded in one turn of the event loop. */
const maxBytesInOnePiece = 256 * 1_024;

/** @throws InvalidEvent without the parser's own message: it quotes the text, which may be personal */
const parse = (stream: string, type: string, bytes: Uint8Array): Record<string, unknown> => {
  let value: unknown;
  try {
    value = JSON.parse(decoder.decode(bytes));
  } catch {
    throw new InvalidEvent(stream, type, 'is not JSON');
  }
  if (typeof value !== 'object' || value === null) throw new InvalidEvent(stream, type, 'is not a JSON object');
  return value as Record<string, unknown>;
};

export class EventCodec {
  readonly #keys: DataKeys;
  readonly #catalogue: EventCatalogue;
  readonly #metadata = new WeakMap<object, { readonly version: number; readonly bytes: Uint8Array }>();
  #lastMetadata: { readonly bytes: Uint8Array; readonly metadata: EventMetadata } | null = null;

  constructor(keys: DataKeys, catalogue: EventCatalogue = eventCatalogue) {
    this.#keys = keys;
    this.#catalogue = catalogue;
  }

  #definition(stream: string, type: string): EventDefinition {
    const definition = this.#catalogue[kindOf(stream)]?.[type];
    if (definition === undefined) throw new UnknownEvent(stream, type, 'is not in the catalogue');
    return definition;
  }

  /** Whether events of such a stream have members that an erasure blanks. */
  isPersonal(stream: string): boolean {
    const definitions = Object.values(this.#catalogue[kindOf(stream)] ?? {});
    return definitions.some(({ schema }) => personalMembers(schema).length > 0);
  }

  /** The version in which this code writes the event: the first one that can say it. */
  versionOf(stream: string, type: string, data: unknown): number {
    const { upcasts } = this.#definition(stream, type);
    const isNeeded = ({ needed }: Upcast): boolean => needed === undefined || needed(data as Record<string, unknown>);
    return upcasts.findLastIndex(isNeeded) + 2;
  }

  /** Serialised once: the same bytes go into every repeat of the append. */
  async encode(
    stream: string,
    event: { readonly type: string; readonly data: unknown },
    metadata: Omit<EventMetadata, 'schemaVersion'>,
  ): Promise<{ readonly data: Uint8Array; readonly metadata: Uint8Array }> {
    const { schema } = this.#definition(stream, event.type);
    this.#check(stream, event.type, schema, event.data);
    const members = personalMembers(schema);
    const data = event.data as Record<string, unknown>;
    const sealed = members.length === 0 ? data : await sealPersonal(this.#keys, stream, event.type, members, data);
    return {
      data: Buffer.from(JSON.stringify(sealed)),
      metadata: this.#encodeMetadata(stream, event.type, this.versionOf(stream, event.type, data), metadata),
    };
  }

  /** A fan-out appends many events with one metadata object: it is checked and serialised once. */
  #encodeMetadata(
    stream: string,
    type: string,
    version: number,
    metadata: Omit<EventMetadata, 'schemaVersion'>,
  ): Uint8Array {
    const known = this.#metadata.get(metadata);
    if (known?.version === version) return known.bytes;
    const full: EventMetadata = { ...metadata, schemaVersion: version };
    this.#check(stream, type, EventMetadata, full);
    const bytes = Buffer.from(JSON.stringify(full));
    this.#metadata.set(metadata, { version, bytes });
    return bytes;
  }

  /** The events of one command lie side by side and share one metadata: it is parsed and checked once. */
  #decodeMetadata(stream: string, type: string, bytes: Uint8Array): EventMetadata {
    const last = this.#lastMetadata;
    if (last !== null && (last.bytes === bytes || Buffer.compare(last.bytes, bytes) === 0)) return last.metadata;
    const parsed = parse(stream, type, bytes);
    this.#check(stream, type, EventMetadata, parsed);
    const metadata = parsed as EventMetadata;
    this.#lastMetadata = { bytes, metadata };
    return metadata;
  }

  async decode(stored: StoredBytes): Promise<DecodedEvent> {
    const { stream, id, type, position } = stored;
    const { schema, version, upcasts } = this.#definition(stream, type);
    const metadata = this.#decodeMetadata(stream, type, stored.metadata);
    if (metadata.schemaVersion > version) {
      throw new UnknownEvent(stream, type, `has version ${metadata.schemaVersion}, we know up to ${version}`);
    }
    let data = parse(stream, type, stored.data);
    const members = personalMembers(schema);
    if (members.length > 0) data = await openPersonal(this.#keys, stream, type, members, data);
    for (const upcast of upcasts.slice(metadata.schemaVersion - 1)) data = upcast(data);
    this.#check(stream, type, schema, data);
    const bytes = stored.data.length + stored.metadata.length;
    return { stream, id, type, data, metadata, revision: Number(stored.revision), position, bytes };
  }

  async decodeAll(stored: readonly StoredBytes[]): Promise<DecodedEvent[]> {
    const decoded: DecodedEvent[] = [];
    let bytes = 0;
    for (const one of stored) {
      decoded.push(await this.decode(one));
      bytes += one.data.length + one.metadata.length;
      if (bytes < maxBytesInOnePiece) continue;
      // Yields here: parsing megabytes of one tenant at once would hold up all requests.
      bytes = 0;
      await immediate();
    }
    return decoded;
  }

  #check(stream: string, type: string, schema: EventDefinition['schema'], value: unknown): void {
    const [issue] = issuesOf(schema, value);
    // The message names the member, never its value, which may be personal.
    if (issue !== undefined) throw new InvalidEvent(stream, type, `${issue.path || '/'} ${issue.message}`);
  }
}
