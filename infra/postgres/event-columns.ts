/** A group of appends as the columns that `append_group` takes. */
import type { EventToAppend } from '#contracts/ports/event-store.ts';
import { partitionOf, topicOf } from '#schemas/topics.ts';
import { plainArray, textArray } from './event-store.sql.ts';

interface Piece {
  readonly stream: string;
  /** Revision of its first event. */
  readonly first: number;
  readonly events: readonly EventToAppend[];
}

/** Parameters of `append_group`, one array a column; topic and partition are decided here, once and for all. */
export const toColumns = (group: readonly Piece[], partitions: number): unknown[] => {
  const streams: string[] = [];
  const firsts: number[] = [];
  const revisions: number[] = [];
  const ids: string[] = [];
  const types: string[] = [];
  const topics: (string | null)[] = [];
  const places: (number | null)[] = [];
  const keys: string[] = [];
  const starts: number[] = [];
  const dataLengths: number[] = [];
  const metadataLengths: number[] = [];
  const bytes: Uint8Array[] = [];
  // substr counts from 1.
  let start = 1;
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
      starts.push(start);
      dataLengths.push(event.data.byteLength);
      metadataLengths.push(event.metadata.byteLength);
      bytes.push(event.data, event.metadata);
      start += event.data.byteLength + event.metadata.byteLength;
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
    plainArray(starts),
    plainArray(dataLengths),
    plainArray(metadataLengths),
    Buffer.concat(bytes),
  ];
};
