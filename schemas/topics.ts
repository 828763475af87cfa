/** The topics of the log, the parts of a stream's name, and the partition of a key. `events.ts` says which kind travels where. */

export const topics = ['workspace', 'posts', 'media', 'metrics', 'webhooks', 'reports'] as const;
export type Topic = (typeof topics)[number];

export const defaultPartitions = 12;

/** `post-6f…` → `post`. */
export const kindOf = (stream: string): string => {
  const dash = stream.indexOf('-');
  return dash < 0 ? stream : stream.slice(0, dash);
};

/** `post-6f…` → `6f…`. */
export const idOf = (stream: string): string => stream.slice(stream.indexOf('-') + 1);

/** Kafka's murmur2 (seed 0x9747b28c) over the key's UTF-8 bytes, so that every client agrees on the partition. */
export const murmur2 = (key: string): number => {
  const data = Buffer.from(key, 'utf8');
  const length = data.length;
  const m = 0x5bd1e995;
  let h = (0x9747b28c ^ length) | 0;
  const whole = length & ~3;
  for (let i = 0; i < whole; i += 4) {
    let k = data.readInt32LE(i);
    k = Math.imul(k, m);
    k ^= k >>> 24;
    k = Math.imul(k, m);
    h = Math.imul(h, m) ^ k;
  }
  const rest = length - whole;
  if (rest === 3) h ^= (data[whole + 2] ?? 0) << 16;
  if (rest >= 2) h ^= (data[whole + 1] ?? 0) << 8;
  if (rest >= 1) {
    h ^= data[whole] ?? 0;
    h = Math.imul(h, m);
  }
  h ^= h >>> 13;
  h = Math.imul(h, m);
  h ^= h >>> 15;
  return h | 0;
};

export const partitionOf = (key: string, partitions: number): number => (murmur2(key) & 0x7fffffff) % partitions;
