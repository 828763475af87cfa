import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { setImmediate as immediate } from 'node:timers/promises';
import type { TSchema } from 'typebox';
import { cipherKeyOf, MissingKey } from '#contracts/ports/data-keys.ts';
import { EventMetadata, instantOf } from '#schemas/common.ts';
import { type EventCatalogue, type EventDefinition, eventCatalogue } from '#schemas/events.ts';
import { kindOf } from '#schemas/topics.ts';
import type { Upcast } from '#schemas/upcast.ts';
import { issuesOf } from '#schemas/validator.ts';
import { BrokenInvariant } from '../process/invariant.ts';

/**
 * Personal members are encrypted at the store's edge with the data key of the client, person or invitation that the event
 * names. In the stored JSON such a member is `{"$sealed": "<base64 of iv, tag, ciphertext>"}`; null stays null; after the
 * key's destruction it reads as null.
 */

interface Sealed {
  readonly $sealed: string;
}

const isSealed = (value: unknown): value is Sealed =>
  typeof value === 'object' && value !== null && typeof (value as Sealed).$sealed === 'string';

const found = new WeakMap<TSchema, readonly string[]>();

/** Names of the personal members at the top of an event's data. */
export const personalMembers = (schema: TSchema): readonly string[] => {
  const known = found.get(schema);
  if (known !== undefined) return known;
  const properties = (schema as { properties?: Record<string, { personal?: boolean }> }).properties ?? {};
  const names = Object.entries(properties).flatMap(([name, member]) => (member.personal === true ? [name] : []));
  found.set(schema, names);
  return names;
};

type Data = Record<string, unknown>;

/** Whose data key seals the personal members: the client, person or invitation that the event names. */
const subjectOf = ({ clientId, personId, inviteId }: Data): string => {
  const subject = clientId ?? personId ?? inviteId;
  if (typeof subject !== 'string')
    throw new BrokenInvariant('an event with personal members must name its clientId, personId or inviteId');
  return subject;
};

/** The member's place is authenticated with the ciphertext, so that it cannot be moved to another event or member. */
const place = (stream: string, type: string, member: string): Buffer => Buffer.from(`${stream}\n${type}\n${member}`);

export const sealPersonal = async (
  keys: DataKeys,
  stream: string,
  type: string,
  members: readonly string[],
  data: Data,
): Promise<Data> => {
  if (members.every((member) => data[member] === null || data[member] === undefined)) return data;
  const key = await keys.forWriting(subjectOf(data));
  const sealed: Data = { ...data };
  for (const member of members) {
    const value = data[member];
    if (value === null || value === undefined) continue;
    if (key === null) {
      sealed[member] = null;
      continue;
    }
    const iv = randomBytes(12);
    const cipher = createCipheriv('aes-256-gcm', cipherKeyOf(key), iv).setAAD(place(stream, type, member));
    const text = Buffer.concat([cipher.update(String(value), 'utf8'), cipher.final()]);
    sealed[member] = { $sealed: Buffer.concat([iv, cipher.getAuthTag(), text]).toString('base64') };
  }
  return sealed;
};

/** @throws MissingKey where another key of the client sealed the bytes */
const unsealed = (key: Buffer, bytes: Buffer, aad: Buffer): string => {
  try {
    const decipher = createDecipheriv('aes-256-gcm', cipherKeyOf(key), bytes.subarray(0, 12)).setAAD(aad);
    decipher.setAuthTag(bytes.subarray(12, 28));
    return Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString('utf8');
  } catch (cause) {
    throw new MissingKey('the data key of its client does not authenticate a personal member', { cause });
  }
};

export const openPersonal = async (
  keys: DataKeys,
  stream: string,
  type: string,
  members: readonly string[],
  data: Data,
): Promise<Data> => {
  if (!members.some((member) => isSealed(data[member]))) return data;
  const key = await keys.forReading(subjectOf(data));
  const opened: Data = { ...data };
  for (const member of members) {
    const value = data[member];
    if (!isSealed(value)) continue;
    if (key === null) {
      opened[member] = null;
      continue;
    }
    opened[member] = unsealed(key, Buffer.from(value.$sealed, 'base64'), place(stream, type, member));
  }
  return opened;
};

/** Keys that encrypt one client's personal members. Destroying a client's key erases the client. */
export interface DataKeys {
  /** 32 bytes. Created and committed before the first use. Null when the client's key was destroyed. */
  forWriting(clientId: string): Promise<Buffer | null>;
  /**
   * Null when the key was destroyed. @throws when it is missing or cannot be unwrapped: that is a fault, never "null"
   */
  forReading(clientId: string): Promise<Buffer | null>;
}

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

/** The time of what follows from a stored event alone: whichever process stores it, it is the same. */
export const timeOf = (metadata: DecodedEvent['metadata']): { readonly now: string; readonly aheadMs: number } => ({
  now: instantOf(metadata),
  aheadMs: metadata.aheadMs ?? 0,
});
