/** What the relay's tests share: events to send, and the law of the log. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { EventStore, EventToAppend, RecordedEvent } from '#contracts/ports/event-store.ts';
import type { LogRecord } from '#contracts/ports/log.ts';
import { topicOf } from '#schemas/events.ts';

export const eventFor = (partitionKey: string): EventToAppend => ({
  id: randomUUID(),
  type: 'PostCreated',
  data: Buffer.from('{"text":"hello"}'),
  metadata: Buffer.from(JSON.stringify({ partitionKey })),
  partitionKey,
});

/** Appends to `streams` streams of posts and targets, and to some the log does not carry. */
export const fill = async (store: EventStore, streams: number, rounds: number): Promise<void> => {
  const posts = Array.from({ length: streams }, () => randomUUID());
  for (let round = 0; round < rounds; round++) {
    const expected = round === 0 ? 'none' : BigInt(round * 2 - 1);
    for (const post of posts) {
      await store.append(`post-${post}`, expected, [eventFor(post), eventFor(post)]);
      await store.append(`target-${post}`, expected, [eventFor(post), eventFor(post)]);
      if (round % 3 === 0) {
        const id = randomUUID();
        await store.append(`request-${id}`, 'none', [eventFor(id)]);
      }
    }
  }
};

/**
 * Every event that has a topic is there; inside a key each record is either the next event of the key or a repeat of
 * one that already came.
 */
export const keepsTheLaw = (stored: readonly RecordedEvent[], log: readonly LogRecord[]): void => {
  const expected = new Map<string, string[]>();
  for (const event of stored) {
    if (topicOf(event.stream) === null) continue;
    const key = JSON.parse(Buffer.from(event.metadata).toString()).partitionKey as string;
    expected.set(key, [...(expected.get(key) ?? []), event.id]);
  }
  const seen = new Map<string, Set<string>>();
  for (const record of log) {
    const had = seen.get(record.key) ?? new Set();
    seen.set(record.key, had);
    if (had.has(record.id)) continue;
    assert.equal(record.id, expected.get(record.key)?.[had.size], `key ${record.key}: a record out of order`);
    had.add(record.id);
  }
  for (const [key, ids] of expected) assert.equal(seen.get(key)?.size ?? 0, ids.length, `key ${key}: records missing`);
};
