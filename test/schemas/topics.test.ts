import { equal, ok } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { eventCatalogue, topicOf } from '#schemas/events.ts';
import { defaultPartitions, idOf, kindOf, murmur2, partitionOf, topics } from '#schemas/topics.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

const load = createRequire(import.meta.url);
const theirs: (key: string) => number = load('kafkajs/src/producer/partitioners/default/murmur2.js');

suite('topics', (t) => {
  t('kind and id are read from a stream’s name', () => {
    const id = randomUUID();
    equal(kindOf(`post-${id}`), 'post');
    equal(idOf(`post-${id}`), id);
    equal(kindOf('plain'), 'plain');
    equal(kindOf('$all-'), '$all');
  });

  t('carry every kind of the catalogue except those that are read by id alone', () => {
    for (const kind of Object.keys(eventCatalogue)) {
      const topic = topicOf(`${kind}-${randomUUID()}`);
      if (['request', 'externalref', 'quota', 'targetcalls', 'person', 'personemail', 'session'].includes(kind))
        equal(topic, null);
      else ok(topic !== null && topics.includes(topic), kind);
    }
    equal(topicOf('$settings'), null);
    equal(topicOf('unknown-1'), null);
    equal(topicOf(`post-${randomUUID()}`), topicOf(`target-${randomUUID()}`));
  });
});

suite('partitions', (t) => {
  t('hash as kafkajs does, whatever the key', () => {
    const { int } = seeded('keys');
    // Every length of the last word, bytes beyond ASCII, and what our keys look like.
    const letter = () => String.fromCodePoint(int(0, 9) > 0 ? int(0x20, 0x7e) : int(0xa0, 0xd7ff));
    const keys = [
      '',
      ...Array.from({ length: 999 }, () => Array.from({ length: int(1, 40) }, letter).join('')),
      ...Array.from({ length: 500 }, () => randomUUID()),
      ...Array.from({ length: 500 }, () => `client-${randomUUID()}`),
    ];
    for (const key of keys) equal(murmur2(key), theirs(key), JSON.stringify(key));
  });

  t('lie within the topic, and every partition is used', () => {
    for (const partitions of [1, 3, defaultPartitions, 1024]) {
      const used = new Set<number>();
      for (let n = 0; n < partitions * 20; n += 1) {
        const partition = partitionOf(randomUUID(), partitions);
        ok(Number.isInteger(partition) && partition >= 0 && partition < partitions);
        used.add(partition);
      }
      ok(used.size > partitions * 0.9, `${used.size} of ${partitions}`);
    }
  });

  t('of a key never change', () => {
    // Apache Kafka's own test values.
    equal(murmur2('21'), -973932308);
    equal(murmur2('foobar'), -790332482);
    equal(murmur2('a-little-bit-long-string'), -985981536);
    equal(murmur2('lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8'), -58897971);
  });
});
