/**
 * What the store packs with in place of `pack.ts` and `unpack.ts`: this file with `?packing=zstd` or `?packing=plain`.
 * zstd makes one frame of an event's metadata and data, as two frames take 40 bytes more. The store packs metadata
 * before data, and the bench reads data before metadata, so the frame stands with the data and the metadata are empty.
 */
import { readFileSync } from 'node:fs';
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import type { Known } from '#infra/postgres/packing/form.ts';

/**
 * `zstd --train-fastcover --maxdict=16384` over 2,394 events of the tour and of `streams.ts`, with other uuids, hashes
 * and instants in each. So zstd knows the very texts that the bench appends.
 */
const dictionary = readFileSync(new URL('zstd.dictionary', import.meta.url));
const params = { [constants.ZSTD_c_compressionLevel]: 3, [constants.ZSTD_c_dictIDFlag]: 0 };

/** Uuids that the row has in other columns cost zstd a few bytes where they end the dictionary. */
const withKnown = ({ workspace, partitionKey, stream }: Known): Buffer =>
  Buffer.concat([
    dictionary,
    Buffer.from(`${stream?.slice(-36) ?? ''}","${partitionKey.slice(-36)}","${workspace ?? ''}"`),
  ]);

const none = Buffer.alloc(0);
const lengthBytes = 2;
let metadata: Uint8Array = none;

const compress = (input: Uint8Array, known: Known): Buffer => {
  if (known.stream === null) {
    metadata = input;
    return none;
  }
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt16BE(metadata.length);
  const frame = zstdCompressSync(Buffer.concat([metadata, input]), { params, dictionary: withKnown(known) });
  return Buffer.concat([length, frame]);
};

const decompress = (packed: Buffer, known: Known): Buffer => {
  if (packed.length === 0) return Buffer.from(metadata);
  const both = zstdDecompressSync(packed.subarray(lengthBytes), { dictionary: withKnown(known) });
  const end = packed.readUInt16BE();
  metadata = both.subarray(0, end);
  return both.subarray(end);
};

const isPlain = new URL(import.meta.url).searchParams.get('packing') === 'plain';
/** The store keeps bytes as they are where packing does not make them shorter. */
export const pack = isPlain ? (input: Uint8Array): Buffer => Buffer.from(input) : compress;
export const unpack = isPlain ? (packed: Buffer): Buffer => packed : decompress;
