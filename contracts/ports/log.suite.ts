/**
 * The behaviour of every log adapter, seen through a consumer that stores its position with its effect. The log need
 * not be empty and may be shared: every case has its own groups, streams and keys, and begins at the log's end.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { partitionOf } from '#schemas/topics.ts';
import { type Applied, type Hooks, SuiteEffects, type SuiteMember } from './log.suite-consumer.ts';
import type { ConsumerHandlers, Lane, LaneBatch, Log, LogRecord, LogSubscription } from './log.ts';

/** An event of a stream on its way into the log. */
export interface Fact {
  readonly stream: string;
  readonly key: string;
  readonly id: string;
  readonly type: string;
  readonly revision: bigint;
  readonly value: Uint8Array;
  readonly metadata: Uint8Array;
}

export interface LogHarness {
  /** An empty database for the consumers' positions and effects. */
  readonly effectsUrl: string;
  /** A member without a sign of life for this long loses its lanes, milliseconds. */
  readonly sessionMs: number;
  /** Another handle on the same log, as another process would hold it. The harness closes the handles it opened. */
  open(): Promise<Log>;
  /** A handle whose network can be cut permanently. */
  openCuttable(): Promise<{ readonly log: Log; cut(): void }>;
  /** Resolves to the records when the log has acknowledged all of them; sends again until it does. */
  write(facts: readonly Fact[]): Promise<readonly LogRecord[]>;
  close(): Promise<void>;
  /** Kills the server with -9 and starts it again on the same data. */
  kill9?(): Promise<void>;
  /** Writes; the acknowledgement of the first try is lost after the log took the records. */
  writeLosingAck?(facts: readonly Fact[]): Promise<readonly LogRecord[]>;
  /** Writes earlier records into the log again, as a relay does that crashed or was suspended. */
  repeat?(records: readonly LogRecord[]): Promise<void>;
  /** Deletes everything that the lanes of these topics hold now. */
  truncate?(topics: readonly string[]): Promise<void>;
}

/** Optional abilities of a harness; a case that needs a missing one is not registered. */
export type Offer = 'kill9' | 'writeLosingAck' | 'repeat' | 'truncate';

/** The methods of the runner's `t` that the suite uses. */
export interface Cases {
  (name: string, run: () => Promise<void>): void;
  before(run: () => Promise<void>): void;
  after(run: () => Promise<void>): void;
}

const deadlineMs = 60_000;
const bytes = new TextEncoder();

const until = async (what: string, holds: () => boolean | Promise<boolean>): Promise<void> => {
  const end = performance.now() + deadlineMs;
  while (!(await holds())) {
    if (performance.now() > end) assert.fail(`not within ${deadlineMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
};

/** Streams of one case, each with its own key, and their next events in turn. */
class Source {
  readonly streams: readonly string[];
  readonly facts: Fact[] = [];
  readonly records: LogRecord[] = [];
  readonly #next = new Map<string, bigint>();

  constructor(streams: number) {
    this.streams = Array.from({ length: streams }, () => `post-${randomUUID()}`);
  }

  take(count: number, typeAt: (at: number) => string = () => 'PostCreated'): Fact[] {
    const facts = Array.from({ length: count }, (_, i): Fact => {
      const stream = this.streams[(this.facts.length + i) % this.streams.length] ?? '';
      const revision = this.#next.get(stream) ?? 0n;
      this.#next.set(stream, revision + 1n);
      const value = bytes.encode(JSON.stringify({ revision: Number(revision), text: 'ünï 🦊 \u0000 end' }));
      const metadata = bytes.encode(JSON.stringify({ partitionKey: stream }));
      return { stream, key: stream, id: randomUUID(), type: typeAt(i), revision, value, metadata };
    });
    this.facts.push(...facts);
    return facts;
  }
}

const byStream = (list: readonly { stream: string; id: string }[]): Map<string, string[]> => {
  const found = new Map<string, string[]>();
  for (const { stream, id } of list) found.set(stream, [...(found.get(stream) ?? []), id]);
  return found;
};

const once = (applied: readonly Applied[], source: Source): void => {
  const got = byStream(applied);
  for (const [stream, ids] of byStream(source.facts)) assert.deepEqual(got.get(stream), ids, `order of ${stream}`);
  assert.equal(applied.length, source.facts.length, 'every record once');
};

export const logSuite = (t: Cases, make: () => Promise<LogHarness>, offers: readonly Offer[] = []): void => {
  let harness: LogHarness;
  let effects: SuiteEffects;
  const running = new Set<{ stop(): Promise<void> }>();
  const offer = (name: Offer): boolean => offers.includes(name);

  t.before(async () => {
    harness = await make();
    effects = new SuiteEffects(harness.effectsUrl);
    await effects.create();
  });
  t.after(async () => {
    await Promise.all([...running].map((member) => member.stop()));
    await effects?.close();
    await harness?.close();
  });

  interface Run {
    readonly member: SuiteMember;
    readonly subscription: LogSubscription;
    readonly log: Log;
    stop(): Promise<void>;
  }

  const join = (log: Log, group: string, name: string, hooks: Hooks = {}, topics = ['posts'], maxBatch = 500): Run => {
    const member = effects.member(group, name, hooks);
    const control = new AbortController();
    const subscription = log.subscribe({ group, topics, handlers: member, signal: control.signal, maxBatch });
    const run = {
      member,
      subscription,
      log,
      stop: async (): Promise<void> => {
        running.delete(run);
        control.abort();
        await subscription.done.catch(() => undefined);
      },
    };
    running.add(run);
    return run;
  };

  const newGroup = async (log: Log, topics = ['posts']): Promise<string> => {
    const group = `group-${randomUUID()}`;
    await effects.place(group, await log.ends(topics));
    return group;
  };

  const write = async (source: Source, count: number): Promise<void> => {
    source.records.push(...(await harness.write(source.take(count))));
  };

  const settled = (group: string, source: Source): Promise<void> =>
    until(`${source.facts.length} records applied`, async () => (await effects.count(group)) >= source.facts.length);

  t('carries an event unchanged', async () => {
    const log = await harness.open();
    const group = await newGroup(log);
    const seen: LogRecord[] = [];
    const run = join(log, group, 'a', { before: async ({ records }) => void seen.push(...records) });
    const source = new Source(1);
    await write(source, 2);
    await settled(group, source);
    await run.stop();
    const [fact] = source.facts;
    const record = seen.find((one) => one.id === fact?.id);
    assert.ok(fact && record);
    assert.equal(record.topic, 'posts');
    assert.equal(record.partition, partitionOf(fact.key, log.partitions));
    assert.deepEqual(
      [record.key, record.stream, record.type, record.revision],
      [fact.key, fact.stream, fact.type, fact.revision],
    );
    assert.deepEqual(Buffer.from(record.value), Buffer.from(fact.value));
    assert.deepEqual(Buffer.from(record.metadata), Buffer.from(fact.metadata));
    assert.equal(new Date(record.time).toISOString(), record.time);
    assert.ok((seen[1]?.position ?? 0n) > record.position, 'positions rise');
  });

  t('keeps the order of a key', async () => {
    const log = await harness.open();
    const group = await newGroup(log);
    const run = join(log, group, 'a');
    const source = new Source(40);
    for (let i = 0; i < 10; i += 1) await write(source, 100);
    await settled(group, source);
    await run.stop();
    once(await effects.applied(group), source);
  });

  t('delivers at most maxBatch records at once', async () => {
    const log = await harness.open();
    const group = await newGroup(log);
    const source = new Source(1);
    await write(source, 70);
    const run = join(log, group, 'a', {}, ['posts'], 7);
    await settled(group, source);
    await run.stop();
    once(await effects.applied(group), source);
    assert.ok(run.member.largest <= 7, `${run.member.largest} records in one batch`);
  });

  t('gives a consumer its topics only', async () => {
    const log = await harness.open();
    const group = await newGroup(log, ['media']);
    const seen: LogRecord[] = [];
    const run = join(log, group, 'a', { before: async ({ records }) => void seen.push(...records) }, ['media']);
    const source = new Source(3);
    await write(source, 30);
    const media = new Source(1);
    const stream = `media-${randomUUID()}`;
    await harness.write(media.take(1).map((fact) => ({ ...fact, stream, key: stream })));
    await until('the media record', async () => (await effects.count(group)) === 1);
    await run.stop();
    assert.deepEqual([...new Set(seen.map(({ topic }) => topic))], ['media']);
  });

  t('gives a consumer all records of its types, and its position passes the others', async () => {
    const log = await harness.open();
    const type = 'PostScheduled';
    const group = await newGroup(log);
    const begin = await log.ends(['posts']);
    const seen: LogRecord[] = [];
    let reached = 0n;
    const handlers: ConsumerHandlers = {
      assigned: async (lanes) => begin.filter(({ lane }) => lanes.includes(lane)),
      batch: async ({ records, position }) => {
        seen.push(...records);
        if (position !== null && position > reached) reached = position;
      },
    };
    const control = new AbortController();
    const some = { group: `${group}-some`, topics: ['posts'], types: [type], handlers, signal: control.signal };
    const subscription = log.subscribe(some);
    const all = join(log, group, 'all');
    const source = new Source(3);
    const typeAt = (at: number): string => (at % 7 === 3 ? type : 'PostCreated');
    for (let i = 0; i < 20; i += 1) source.records.push(...(await harness.write(source.take(60, typeAt))));
    await settled(group, source);
    await until('the last position', () => source.records.every(({ position }) => position <= reached));
    control.abort();
    await Promise.all([subscription.done, all.stop()]);
    once(await effects.applied(group), source);
    const expected = byStream(source.facts.filter((fact) => fact.type === type));
    assert.deepEqual(byStream(seen.filter((record) => record.type === type)), expected);
  });

  t('reads on from the stored position after a restart', async () => {
    const log = await harness.open();
    const group = await newGroup(log);
    const source = new Source(10);
    await write(source, 200);
    const first = join(log, group, 'first');
    await until('some applied', async () => (await effects.count(group)) > 0);
    await first.stop();
    await write(source, 200);
    let repeated = 0;
    const before = new Set((await effects.applied(group)).map(({ id }) => id));
    const second = join(await harness.open(), group, 'second', {
      before: async ({ records }) => {
        repeated += records.filter(({ id }) => before.has(id)).length;
      },
    });
    await settled(group, source);
    await second.stop();
    once(await effects.applied(group), source);
    assert.equal(repeated, 0, 'records below the stored position');
  });

  t('reads a lane again on request, and then the records after it', async () => {
    const log = await harness.open();
    const group = await newGroup(log);
    const source = new Source(10);
    let resting = false;
    const run = join(log, group, 'only', { resting: () => resting });
    await write(source, 100);
    await settled(group, source);
    resting = true;
    await write(source, 100);
    await until('they are taken', () => run.member.ignored === 100);
    resting = false;
    const assigned = run.member.assignments.length;
    for (const lane of run.subscription.lanes()) run.subscription.again(lane);
    // No new record comes: only `again` brings these.
    await settled(group, source);
    assert.ok(run.member.assignments.length > assigned);
    run.subscription.again('nobody-0');
    await write(source, 100);
    await settled(group, source);
    await run.stop();
    once(await effects.applied(group), source);
  });

  t('applies nothing twice while members join and leave', async () => {
    const group = await newGroup(await harness.open());
    const source = new Source(60);
    const a = join(await harness.open(), group, 'a');
    await until('a holds lanes', () => a.subscription.lanes().length > 0);
    await write(source, 500);
    const b = join(await harness.open(), group, 'b');
    for (let i = 0; i < 10; i += 1) await write(source, 100);
    await a.stop();
    assert.deepEqual(a.subscription.lanes(), []);
    for (let i = 0; i < 5; i += 1) await write(source, 100);
    await until('b took over', () => b.subscription.lanes().length > 0);
    await settled(group, source);
    const c = join(await harness.open(), group, 'c');
    await write(source, 500);
    await settled(group, source);
    await Promise.all([b.stop(), c.stop()]);
    const applied = await effects.applied(group);
    once(applied, source);
    assert.ok(applied.some(({ member }) => member === 'b'));
  });

  t('refuses a member that writes after it lost its lanes', async () => {
    const group = await newGroup(await harness.open());
    const source = new Source(4);
    const { log, cut } = await harness.openCuttable();
    let wake = (): void => undefined;
    const asleep = new Promise<void>((resolve) => {
      wake = resolve;
    });
    let inside = false;
    const zombie = join(log, group, 'zombie', {
      before: async () => {
        inside = true;
        await asleep;
      },
    });
    await write(source, 100);
    await until('the zombie has a batch', () => inside);
    cut();
    const heir = join(await harness.open(), group, 'heir');
    await settled(group, source);
    wake();
    await until('the zombie was refused', () => zombie.member.fenced > 0);
    await write(source, 100);
    await settled(group, source);
    await Promise.all([zombie.stop(), heir.stop()]);
    const applied = await effects.applied(group);
    once(applied, source);
    assert.deepEqual([...new Set(applied.map(({ member }) => member))], ['heir']);
  });

  t('assigns lanes again to a member that was fenced while it owns them', async () => {
    const log = await harness.open();
    const group = await newGroup(log);
    const source = new Source(4);
    const run = join(log, group, 'a');
    await until('a holds lanes', () => run.subscription.lanes().length > 0);
    await effects.pool.query('UPDATE positions SET epoch = epoch + 1 WHERE grp = $1', [group]);
    await write(source, 50);
    await settled(group, source);
    await run.stop();
    assert.ok(run.member.fenced > 0);
    once(await effects.applied(group), source);
  });

  t('serves two groups independently', async () => {
    const log = await harness.open();
    const groups = [await newGroup(log), await newGroup(log)] as const;
    const source = new Source(10);
    let free = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      free = resolve;
    });
    const slow = join(log, groups[0], 'slow', { before: () => held });
    const quick = join(log, groups[1], 'quick');
    await write(source, 300);
    await settled(groups[1], source);
    assert.equal(await effects.count(groups[0]), 0);
    free();
    await settled(groups[0], source);
    await Promise.all([slow.stop(), quick.stop()]);
    for (const group of groups) once(await effects.applied(group), source);
  });

  t('keeps the lanes of a handler that takes longer than the session', async () => {
    const log = await harness.open();
    const group = await newGroup(log);
    const source = new Source(1);
    const slow = join(log, group, 'slow', {
      before: () => new Promise((resolve) => setTimeout(resolve, harness.sessionMs * 1.5)),
    });
    await until('lanes', () => slow.subscription.lanes().length > 0);
    await write(source, 20);
    await settled(group, source);
    // A member that lost its lanes meanwhile would join again before it gets these.
    await write(source, 20);
    await settled(group, source);
    assert.equal(slow.member.assignments.length, 1, 'joined once');
    await slow.stop();
    once(await effects.applied(group), source);
  });

  t('ends after the present batch when its signal aborts', async () => {
    const log = await harness.open();
    const group = await newGroup(log);
    const source = new Source(1);
    let finish = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      finish = resolve;
    });
    let batches = 0;
    const run = join(log, group, 'a', {
      before: async () => {
        batches += 1;
        await held;
      },
    });
    await write(source, 10);
    await until('a batch', () => batches > 0);
    let ended = false;
    const stopped = run.stop().then(() => {
      ended = true;
    });
    const later = harness.write(source.take(10));
    await later;
    assert.equal(ended, false, 'a batch is under way');
    finish();
    await stopped;
    assert.deepEqual(run.subscription.lanes(), []);
    const count = await effects.count(group);
    const again = join(log, group, 'b');
    await settled(group, source);
    await again.stop();
    assert.ok(count <= 10);
    once(await effects.applied(group), source);
  });

  t('ends without an error when its handler gives up at the signal', async () => {
    const log = await harness.open();
    const group = await newGroup(log);
    const control = new AbortController();
    let busy = false;
    const handlers = effects.member(group, 'a', {
      before: () => {
        busy = true;
        return new Promise((_, reject) => control.signal.addEventListener('abort', () => reject(new Error('gave up'))));
      },
    });
    const { done } = log.subscribe({ group, topics: ['posts'], handlers, signal: control.signal });
    await write(new Source(1), 5);
    await until('a batch', () => busy);
    control.abort();
    await done;
    assert.equal(await effects.count(group), 0);
  });

  t('does not wait for members that left while they joined', async () => {
    const log = await harness.open();
    const group = await newGroup(log);
    const source = new Source(12);
    await write(source, 60);
    const hasty = Array.from({ length: 6 }, (_, i) => join(log, group, `hasty ${i}`));
    for (const [i, run] of hasty.entries()) {
      await new Promise((resolve) => setTimeout(resolve, i * 20));
      await run.stop();
    }
    const steady = join(log, group, 'steady');
    await write(source, 60);
    await settled(group, source);
    const rest = performance.now();
    await steady.stop();
    once(await effects.applied(group), source);
    assert.ok(performance.now() - rest < 5000, 'left in time');
  });

  t('stops with the error of its handler', async () => {
    const log = await harness.open();
    const group = await newGroup(log);
    const source = new Source(1);
    const poison = new Error('poison');
    const run = join(log, group, 'a', { before: () => Promise.reject(poison) });
    await write(source, 5);
    await assert.rejects(run.subscription.done, (error) => error === poison);
    assert.equal(await effects.count(group), 0);
    await run.stop();
  });

  t('names lanes and their ends', async () => {
    const log = await harness.open();
    const source = new Source(1);
    const [stream = ''] = source.streams;
    const lane = log.laneOf('posts', partitionOf(stream, log.partitions));
    const endOf = async (of: Lane): Promise<bigint> =>
      (await log.ends(['posts'])).find((one) => one.lane === of)?.nextOffset ?? -1n;
    await write(new Source(1), 1);
    const before = await endOf(lane);
    await write(source, 10);
    const after = await endOf(lane);
    assert.ok(after >= before + 10n, `${before} to ${after}`);
    // A consumer that has everything has reached the end, lane by lane.
    const group = await newGroup(log);
    const more = new Source(1);
    const run = join(log, group, 'a');
    await write(more, 10);
    const ends = await log.ends(['posts']);
    await until('the ends are reached', async () => {
      const at = await effects.positions(group);
      return ends.every((end) => (at.get(end.lane)?.nextOffset ?? -1n) >= (end.nextOffset ?? 0n));
    });
    await run.stop();
    once(await effects.applied(group), more);
    await log.ping();
  });

  if (offer('repeat'))
    t('tolerates a log that repeats older records', async () => {
      const log = await harness.open();
      const group = await newGroup(log);
      const source = new Source(5);
      let seen = 0;
      let last = new Map<Lane, bigint>();
      const run = join(log, group, 'a', {
        before: async ({ lane, records, position }: LaneBatch) => {
          seen += records.length;
          assert.ok((position ?? 0n) >= (last.get(lane) ?? 0n), 'a position never steps back');
          last = last.set(lane, position ?? 0n);
        },
      });
      await write(source, 100);
      await settled(group, source);
      await harness.repeat?.(source.records.slice(20, 90));
      await until('the repeats alone', () => seen === 170);
      await write(source, 100);
      await settled(group, source);
      assert.equal(seen, 270);
      await run.stop();
      once(await effects.applied(group), source);
    });

  if (offer('writeLosingAck'))
    t('holds each record in order after a lost acknowledgement', async () => {
      const log = await harness.open();
      const group = await newGroup(log);
      const run = join(log, group, 'a');
      const source = new Source(12);
      await write(source, 60);
      for (let i = 0; i < 3; i += 1) {
        source.records.push(...((await harness.writeLosingAck?.(source.take(60))) ?? []));
        await write(source, 60);
      }
      await settled(group, source);
      await run.stop();
      once(await effects.applied(group), source);
    });

  if (offer('truncate'))
    t('reads on from the store where the log no longer has the record', async () => {
      const log = await harness.open();
      const group = await newGroup(log);
      const source = new Source(20);
      const store = (lane: Lane, after: bigint | null): LogRecord[] =>
        source.records.filter((one) => log.laneOf(one.topic, one.partition) === lane && one.position > (after ?? -1n));
      const first = join(log, group, 'first', { store });
      await write(source, 100);
      await settled(group, source);
      await first.stop();
      await write(source, 100);
      await harness.truncate?.(['posts']);
      await write(source, 100);
      const second = join(log, group, 'second', { store });
      await settled(group, source);
      // The reverse: a position above the end, as after a log that was lost and recreated.
      await second.stop();
      assert.ok(second.member.overrun.length > 0);
      const beyond = (await log.ends(['posts'])).map((end) => ({ ...end, nextOffset: (end.nextOffset ?? 0n) + 1000n }));
      const position = source.records.at(-1)?.position ?? null;
      await effects.place(
        group,
        beyond.map((end) => ({ ...end, position })),
      );
      await write(source, 100);
      const third = join(log, group, 'third', { store });
      await settled(group, source);
      await third.stop();
      assert.equal(third.member.overrun.length, beyond.length);
      once(await effects.applied(group), source);
    });

  if (offer('truncate'))
    t('reads on from the store where the log was cut under a running member', async () => {
      const log = await harness.open();
      const group = await newGroup(log);
      const source = new Source(20);
      let go = (): void => undefined;
      const held = new Promise<void>((resolve) => {
        go = resolve;
      });
      let busy = false;
      const run = join(log, group, 'a', {
        before: () => {
          busy = true;
          return held;
        },
        store: (lane, after) =>
          source.records.filter(
            (one) => log.laneOf(one.topic, one.partition) === lane && one.position > (after ?? -1n),
          ),
      });
      await write(source, 100);
      await until('a batch', () => busy);
      await write(source, 100);
      await harness.truncate?.(['posts']);
      await write(source, 100);
      go();
      await settled(group, source);
      await run.stop();
      assert.ok(run.member.overrun.length > 0);
      once(await effects.applied(group), source);
    });

  if (offer('kill9'))
    t('holds every acknowledged record once and in order after the server was killed', async () => {
      const log = await harness.open();
      const group = await newGroup(log);
      const run = join(log, group, 'a');
      const source = new Source(20);
      await write(source, 200);
      const kills = (async (): Promise<void> => {
        for (let i = 0; i < 2; i += 1) {
          const applied = await effects.count(group);
          await until('progress', async () => (await effects.count(group)) > applied);
          await harness.kill9?.();
        }
      })();
      let over = false;
      kills.then(
        () => {
          over = true;
        },
        () => {
          over = true;
        },
      );
      while (!over) await write(source, 20);
      await kills;
      await write(source, 200);
      await settled(group, source);
      await run.stop();
      once(await effects.applied(group), source);
    });

  t('carries 20,000 records in bounded memory', async () => {
    const log = await harness.open();
    const group = await newGroup(log);
    const source = new Source(200);
    let held = 0;
    const base = process.memoryUsage();
    const run = join(log, group, 'a', {
      before: async () => {
        const now = process.memoryUsage();
        held = Math.max(held, now.external - base.external, now.arrayBuffers - base.arrayBuffers);
      },
    });
    for (let i = 0; i < 40; i += 1) await write(source, 500);
    await settled(group, source);
    await run.stop();
    once(await effects.applied(group), source);
    // 20,000 records are about 10 MB of values; memory holds a fetch at a time, not the log.
    assert.ok(held < 64 * 1024 * 1024, `${Math.round(held / 1024 / 1024)} MiB of buffers held`);
  });
};
