import type { LogRecord } from '#contracts/ports/log.ts';
import { cachingLast } from './pool.ts';
import type { TailEvent } from './stored-event.ts';

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
