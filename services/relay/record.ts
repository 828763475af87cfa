import type { RecordedEvent } from '#contracts/ports/event-store.ts';
import type { LogRecord } from '#contracts/ports/log.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import { topicOf } from '#schemas/events.ts';
import { partitionOf } from '#schemas/topics.ts';

/** An event that the log cannot carry. The relay never skips it: it stops and reports it. */
class UnsendableEvent extends BrokenInvariant {
  constructor(event: RecordedEvent, why: string, cause?: unknown) {
    super(`event ${event.id} of ${event.stream} at position ${event.position} ${why}`, { cause });
    this.name = 'UnsendableEvent';
  }
}

const partitionKeyOf = (event: RecordedEvent): string => {
  let metadata: unknown;
  try {
    metadata = JSON.parse(
      Buffer.from(event.metadata.buffer, event.metadata.byteOffset, event.metadata.byteLength).toString(),
    );
  } catch (error) {
    throw new UnsendableEvent(event, 'has metadata that is not JSON', error);
  }
  const key = (metadata as { partitionKey?: unknown } | null)?.partitionKey;
  if (typeof key !== 'string' || key === '') throw new UnsendableEvent(event, 'names no partitionKey');
  return key;
};

/** The event as a record; null for a stream without a topic. @throws UnsendableEvent */
export const toRecord = (event: RecordedEvent, partitions: number): LogRecord | null => {
  const topic = topicOf(event.stream);
  if (topic === null) return null;
  const key = partitionKeyOf(event);
  return {
    topic,
    partition: partitionOf(key, partitions),
    key,
    stream: event.stream,
    id: event.id,
    type: event.type,
    revision: event.revision,
    position: event.position,
    time: event.created.toISOString(),
    value: event.data,
    metadata: event.metadata,
  };
};
