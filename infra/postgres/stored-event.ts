/** An event as its row holds it. */

import { plainArray, textArray } from '#contracts/base/array-literals.ts';
import { type EventToAppend, type RecordedEvent, workspaceOf } from '#contracts/ports/event-store.ts';
import type { LogRecord } from '#contracts/ports/log.ts';
import { topicOf } from '#schemas/events.ts';
import { partitionOf, type Topic } from '#schemas/topics.ts';
import { type Known, packingVersion } from './packing/form.ts';
import { pack } from './packing/pack.ts';
import { unpack } from './packing/unpack.ts';
import { cachingLast } from './pool.ts';

export interface TailEvent extends RecordedEvent {
  /** Null for streams without a topic; then the partition is null too. */
  readonly topic: Topic | null;
  readonly partition: number | null;
  readonly partitionKey: string;
  /** Of data and metadata. */
  readonly bytes: number;
}

export type EventRow = [
  position: bigint,
  stream: string,
  revision: bigint,
  id: string,
  type: string,
  /** Base64; where they are not packed and the statement says so, the bytes as text. */
  data: string,
  metadata: string,
  created: Date,
  topic: Topic | null,
  partition: number | null,
  partitionKey: string,
  workspace: string | null,
  packing: number | null,
  ownBytes: number,
];
/** Of bytes that are not packed. */
type Encoding = 'base64' | 'utf8';
/** Index of a column that a statement adds behind those of the row. */
export const behindEvent = 14;

/**
 * The bytes are unpacked when they are first read: most consumers pass over most events. NOTE: a class, since V8 makes
 * a map for each object that has getters of its own.
 */
class StoredEvent implements TailEvent {
  readonly position: bigint;
  readonly stream: string;
  readonly revision: bigint;
  readonly id: string;
  readonly type: string;
  readonly created: Date;
  readonly topic: Topic | null;
  readonly partition: number | null;
  readonly partitionKey: string;
  readonly bytes: number;
  readonly #workspace: string | null;
  /** Null where the row is packed. */
  readonly #encoding: Encoding | null;
  /** Text as it came from the database, until it is first read. */
  #data: Buffer | string;
  #metadata: Buffer | string;

  constructor(row: EventRow, encoding: Encoding) {
    this.position = row[0];
    this.stream = row[1];
    this.revision = row[2];
    this.id = row[3];
    this.type = row[4];
    this.#data = row[5];
    this.#metadata = row[6];
    this.created = row[7];
    this.topic = row[8];
    this.partition = row[9];
    this.partitionKey = row[10];
    this.#workspace = row[11];
    this.#encoding = row[12] === null ? encoding : null;
    this.bytes = row[13];
  }

  get data(): Buffer {
    if (typeof this.#data === 'string') {
      this.#data =
        this.#encoding === null
          ? unpack(Buffer.from(this.#data, 'base64'), this.#known(this.stream))
          : Buffer.from(this.#data, this.#encoding);
    }
    return this.#data;
  }

  get metadata(): Buffer {
    if (typeof this.#metadata === 'string') {
      this.#metadata =
        this.#encoding === null
          ? unpackMetadata(this.#metadata, this.#known(null))
          : Buffer.from(this.#metadata, this.#encoding);
    }
    return this.#metadata;
  }

  #known(stream: string | null): Known {
    return { workspace: this.#workspace, partitionKey: this.partitionKey, stream };
  }
}

let last: { readonly packed: string; readonly known: Known; readonly bytes: Buffer } | undefined;

/** The events of a fan-out lie side by side and have the same metadata: they are unpacked once. */
const unpackMetadata = (packed: string, known: Known): Buffer => {
  const isSame =
    last?.packed === packed &&
    last.known.workspace === known.workspace &&
    last.known.partitionKey === known.partitionKey;
  if (last !== undefined && isSame) return last.bytes;
  const bytes = unpack(Buffer.from(packed, 'base64'), known);
  last = { packed, known, bytes };
  return bytes;
};

/** @throws Error where a later release packed the row: the reader waits until it is replaced */
export const toEvent = (row: EventRow, encoding: Encoding = 'base64'): TailEvent => {
  const packing = row[12];
  if (packing !== null && packing !== packingVersion) throw new Error(`a later release packed the event at ${row[0]}`);
  return new StoredEvent(row, encoding);
};

const timeOf = cachingLast((created: Date) => created.toISOString());

/** An event as the log gives it. Its bytes are unpacked when they are read. */
export class EventRecord implements LogRecord {
  readonly topic: string;
  readonly partition: number;
  readonly key: string;
  readonly stream: string;
  readonly id: string;
  readonly type: string;
  readonly revision: bigint;
  readonly position: bigint;
  readonly time: string;
  readonly #event: TailEvent;

  constructor(event: TailEvent, topic: string) {
    this.topic = topic;
    this.partition = event.partition ?? 0;
    this.key = event.partitionKey;
    this.stream = event.stream;
    this.id = event.id;
    this.type = event.type;
    this.revision = event.revision;
    this.position = event.position;
    this.time = timeOf(event.created);
    this.#event = event;
  }

  get value(): Uint8Array {
    return this.#event.data;
  }

  get metadata(): Uint8Array {
    return this.#event.metadata;
  }
}

/** A group of appends as the columns that `append_group` takes. */
interface Piece {
  readonly stream: string;
  /** Revision of its first event. */
  readonly first: number;
  readonly events: readonly EventToAppend[];
}

/** The bytes of a row; not packed where the packed ones are no shorter. */
interface Stored {
  readonly workspace: string | null;
  readonly packing: number | null;
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
}

/** Events of one command have the same metadata, which stand side by side: they are packed and sent once. */
class MetadataPacker {
  #last: { readonly metadata: Uint8Array; readonly key: string; readonly packed: Uint8Array } | undefined;
  #workspace: string | null = null;

  store(stream: string, { data, metadata, partitionKey }: EventToAppend): Stored {
    if (this.#last?.metadata !== metadata || this.#last.key !== partitionKey) {
      this.#workspace = workspaceOf(metadata);
      const packed = pack(metadata, { workspace: this.#workspace, partitionKey, stream: null });
      this.#last = { metadata, key: partitionKey, packed };
    }
    const workspace = this.#workspace;
    const { packed } = this.#last;
    const packedData = pack(data, { workspace, partitionKey, stream });
    if (packedData.length + packed.length >= data.length + metadata.length) {
      return { workspace: null, packing: null, data, metadata };
    }
    return { workspace, packing: packingVersion, data: packedData, metadata: packed };
  }
}

/** Parameters of `append_group`, one array a column; topic and partition are fixed here for ever. */
export const toColumns = (group: readonly Piece[], partitions: number): unknown[] => {
  const streams: string[] = [];
  const firsts: number[] = [];
  const revisions: number[] = [];
  const ids: string[] = [];
  const types: string[] = [];
  const topics: (string | null)[] = [];
  const places: (number | null)[] = [];
  const keys: string[] = [];
  const workspaces: (string | null)[] = [];
  const packings: (number | null)[] = [];
  const sizes: (number | null)[] = [];
  const dataStarts: number[] = [];
  const dataLengths: number[] = [];
  const metadataStarts: number[] = [];
  const metadataLengths: number[] = [];
  const bytes: Uint8Array[] = [];
  // substr counts from 1.
  let end = 1;
  const add = (some: Uint8Array): number => {
    const start = end;
    bytes.push(some);
    end += some.byteLength;
    return start;
  };
  const packer = new MetadataPacker();
  let shared: { readonly metadata: Uint8Array; readonly start: number } | undefined;
  for (const { stream, first, events } of group) {
    const topic = topicOf(stream);
    for (const [i, event] of events.entries()) {
      streams.push(stream);
      firsts.push(first);
      revisions.push(first + i);
      ids.push(event.id);
      types.push(event.type);
      topics.push(topic);
      places.push(topic === null ? null : partitionOf(event.partitionKey, partitions));
      keys.push(event.partitionKey);
      const { workspace, packing, data, metadata } = packer.store(stream, event);
      workspaces.push(workspace);
      packings.push(packing);
      sizes.push(packing === null ? null : event.data.byteLength + event.metadata.byteLength);
      dataStarts.push(add(data));
      dataLengths.push(data.byteLength);
      if (shared?.metadata !== metadata) shared = { metadata, start: add(metadata) };
      metadataStarts.push(shared.start);
      metadataLengths.push(metadata.byteLength);
    }
  }
  return [
    textArray(streams),
    plainArray(firsts),
    plainArray(revisions),
    plainArray(ids),
    textArray(types),
    plainArray(topics),
    plainArray(places),
    textArray(keys),
    plainArray(workspaces),
    plainArray(packings),
    plainArray(sizes),
    plainArray(dataStarts),
    plainArray(dataLengths),
    plainArray(metadataStarts),
    plainArray(metadataLengths),
    Buffer.concat(bytes),
  ];
};
