/** An event as its row holds it. */
import type { RecordedEvent } from '#contracts/ports/event-store.ts';
import type { Topic } from '#schemas/topics.ts';
import { packingVersion } from './packing/form.ts';
import type { Known } from './packing/known-uuids.ts';
import { unpack } from './packing/unpack.ts';

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
