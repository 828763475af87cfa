/** A group of appends as the columns that `append_group` takes. */

import type { EventToAppend } from '#contracts/ports/event-store.ts';
import { topicOf } from '#schemas/events.ts';
import { partitionOf } from '#schemas/topics.ts';
import { plainArray, textArray } from './event-store.sql.ts';

interface Piece {
  readonly stream: string;
  /** Revision of its first event. */
  readonly first: number;
  readonly events: readonly EventToAppend[];
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
  // Events with equal metadata stand side by side, so comparing with the last one suffices to send it once.
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
      dataStarts.push(add(event.data));
      dataLengths.push(event.data.byteLength);
      if (shared?.metadata !== event.metadata) shared = { metadata: event.metadata, start: add(event.metadata) };
      metadataStarts.push(shared.start);
      metadataLengths.push(event.metadata.byteLength);
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
    plainArray(dataStarts),
    plainArray(dataLengths),
    plainArray(metadataStarts),
    plainArray(metadataLengths),
    Buffer.concat(bytes),
  ];
};
