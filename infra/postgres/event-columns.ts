/** A group of appends as the columns that `append_group` takes. */

import { type EventToAppend, workspaceOf } from '#contracts/ports/event-store.ts';
import { topicOf } from '#schemas/events.ts';
import { partitionOf } from '#schemas/topics.ts';
import { plainArray, textArray } from './event-store.sql.ts';
import { packingVersion } from './packing/form.ts';
import { pack } from './packing/pack.ts';

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
