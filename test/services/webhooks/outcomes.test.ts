import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { type ReceiverPath, type Receivers, startReceivers } from '#test/support/egress-receivers.ts';
import { patience } from '#test/support/patience.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { ok, receiver, SenderWorld, status } from './world.ts';

/** Milliseconds that a busy machine does not take for an answer that comes at once. */
const patient = { webhookExchangeMs: 20_000, webhookLeaseMs: 60_000 } as const;

/** What a receiver does → what the attempt says. A status that came counts, whatever the body does after it. */
const outcomes: readonly (readonly [ReceiverPath, number | null, string | null])[] = [
  ['/status-then-reset', 200, null],
  ['/status-then-close', 200, null],
  ['/broken-chunks', 201, null],
  ['/300mb', 200, null],
  ['/300mb-error', 500, null],
  ['/small-gzip-bomb', 200, null],
  ['/redirect', 302, null],
  ['/reset', null, 'connection_failed'],
  ['/close', null, 'connection_failed'],
  ['/garbage', null, 'bad_response'],
  ['/endless-headers', null, 'bad_response'],
];
/** What ends at the time limit alone. Milliseconds: the head of a dripping body comes before them. */
const slow: readonly (readonly [...(typeof outcomes)[number], number])[] = [
  ['/drip-body', 202, null, 1_500],
  ['/drip-headers', null, 'timeout', 700],
  ['/silence', null, 'timeout', 700],
];

suite('sender: answers of receivers', { waits: true }, (t) => {
  let world: SenderWorld;
  let receivers: Receivers;
  t.before(async () => {
    world = await SenderWorld.open();
    receivers = await startReceivers();
  });
  t.after(async () => {
    await world.close();
    await receivers.close();
  });

  t('each behaviour has its outcome, and a status of 2xx is a success', async () => {
    const meets = async ([path, code, error]: (typeof outcomes)[number], mostMs: number) => {
      const endpoint = await world.endpoint(receivers.url(path));
      const [id = ''] = await world.queue(endpoint);
      const { status: now, attempts } = await world.settled(id);
      assert.deepEqual(
        [path, attempts.map((one) => [one.status, one.error]), now],
        [path, [[code, error]], code !== null && code < 300 ? 'delivered' : 'failed'],
      );
      const [attempt] = attempts;
      assert.ok((attempt?.durationMs ?? 0) < mostMs, `${path}: ${attempt?.durationMs} ms`);
      assert.ok((attempt?.responseBody ?? '').length <= 4_096, path);
      assert.equal((await receivers.seen(path)).requests, 1, path);
    };
    const running = world.start({ ...patient, webhookRetryDelaysMs: [0] });
    for (const one of outcomes) await meets(one, patient.webhookExchangeMs);
    await running.stop();
    for (const [path, code, error, limitMs] of slow) {
      const hurried = world.start({ webhookExchangeMs: limitMs, webhookRetryDelaysMs: [0] });
      await meets([path, code, error], limitMs + 1_500 * patience);
      await hurried.stop();
    }
  });

  t('a closed port and a TLS handshake without an answer', async () => {
    const sockets = new Set<Socket>();
    const mute = createServer((socket) => void sockets.add(socket.on('error', () => undefined)));
    mute.listen(0, '127.0.0.1');
    await once(mute, 'listening');
    const address = mute.address();
    const port = address !== null && typeof address === 'object' ? address.port : 0;
    const running = world.start({ webhookExchangeMs: 700, webhookRetryDelaysMs: [0] });
    const stalled = await world.endpoint(`https://127.0.0.1:${port}/`);
    const [first = ''] = await world.queue(stalled);
    assert.equal((await world.settled(first)).attempts[0]?.error, 'timeout');
    assert.ok(sockets.size > 0);
    for (const socket of sockets) socket.destroy();
    mute.close();
    await once(mute, 'close');
    await running.stop();
    const unhurried = world.start({ ...patient, webhookRetryDelaysMs: [0] });
    const absent = await world.endpoint(`http://127.0.0.1:${port}/`);
    const [second = ''] = await world.queue(absent);
    assert.equal((await world.settled(second)).attempts[0]?.error, 'connection_failed');
    const plain = await receiver();
    const wrong = await world.endpoint(plain.url.replace('http:', 'https:'));
    const [third = ''] = await world.queue(wrong);
    assert.equal((await world.settled(third)).attempts[0]?.error, 'tls_failed');
    await unhurried.stop();
  });

  t('a 2xx after the time limit leads to a retry with the same id and a higher attempt', async () => {
    const held: (() => void)[] = [];
    const server = await receiver((response, got, count) => {
      if (count === 1) held.push(() => ok(response, got, count));
      else ok(response, got, count);
    });
    const endpoint = await world.endpoint(server.url);
    const [id = ''] = await world.queue(endpoint);
    // The limit of the first attempt is none for the second, whose answer is late on a busy machine too.
    const hurried = world.start({ webhookExchangeMs: 300, webhookRetryDelaysMs: [0, 60_000] });
    await world.reaches(id, ({ attempts: tried, queued }) => tried.length === 1 && queued?.leased === false);
    await hurried.stop();
    const running = world.start(patient);
    await world.lapse(id);
    const { attempts, status: now } = await world.settled(id);
    for (const release of held) release();
    assert.equal(now, 'delivered');
    assert.deepEqual(
      attempts.map((one) => [one.number, one.status, one.error]),
      [
        [1, null, 'timeout'],
        [2, 204, null],
      ],
    );
    assert.deepEqual(
      server.got.map((got) => got.attempt),
      [1, 2],
    );
    assert.equal(new Set(server.got.map((got) => got.id)).size, 1);
    await running.stop();
  });

  t('Retry-After: seconds and dates apply, invalid values are ignored, the maximum is a day', async () => {
    // So long that no retry comes before a look at the first attempt.
    const minute = 60_000;
    const running = world.start({ ...patient, webhookRetryDelaysMs: [0, minute, minute] }, { random: () => 0 });
    const hour = 3_600_000;
    const date = new Date(Date.now() + hour).toUTCString();
    const cases: readonly (readonly [string, number])[] = [
      ['600', 600_000],
      [date, hour],
      ['-600', minute],
      ['soon', minute],
      ['9'.repeat(30), 24 * hour],
    ];
    for (const [value, expected] of cases) {
      const server = await receiver(status(429, { 'retry-after': value }));
      const endpoint = await world.endpoint(server.url);
      const [id = ''] = await world.queue(endpoint);
      const { queued } = await world.reaches(
        id,
        ({ attempts, queued: now }) => attempts.length === 1 && now !== null,
        value,
      );
      assert.ok(Math.abs((queued?.dueIn ?? 0) - expected) < minute / 2, `${value}: due in ${queued?.dueIn} ms`);
      assert.deepEqual([queued?.lane, queued?.tries, queued?.leased], [1, 1, false]);
      // Everything else waits too, five minutes at the most; a hint that makes no sense holds up nothing.
      const openIn = (await world.health(endpoint))?.openIn ?? null;
      if (expected === minute) assert.equal(openIn, null);
      else assert.ok(openIn !== null && openIn > 0 && openIn <= 300_000, `${value}: rests ${openIn} ms`);
    }
    await running.stop();
  });

  t('during a Retry-After no other delivery is sent to the receiver, and none loses an attempt', async () => {
    const server = await receiver((response, got, count) =>
      (count === 1 ? status(503, { 'retry-after': '1' }) : ok)(response, got, count),
    );
    const endpoint = await world.endpoint(server.url);
    const running = world.start({ ...patient, webhookRetryDelaysMs: [0, 10, 10] });
    const [first = ''] = await world.queue(endpoint);
    // On a busy machine the second may be there already.
    await world.reaches(first, ({ attempts }) => attempts.length > 0);
    const others = await world.queue(endpoint, { count: 5 });
    await world.allSettled([first, ...others]);
    const [refused, ...later] = server.got;
    for (const { at } of later) assert.ok(at - (refused?.at ?? 0) >= 990, `${at - (refused?.at ?? 0)} ms`);
    for (const id of others) assert.equal((await world.delivery(id)).attempts.length, 1);
    await running.stop();
  });

  t('abort-message ends a failed delivery, not a successful one', async () => {
    const abort = { 'webhook-delivery': 'abort-message' };
    const refusing = await receiver(status(422, abort, 'never'));
    const taking = await receiver(status(200, abort));
    const running = world.start();
    const [one = ''] = await world.queue(await world.endpoint(refusing.url));
    const [two = ''] = await world.queue(await world.endpoint(taking.url));
    const failed = await world.settled(one);
    assert.deepEqual([failed.status, failed.attempts.length, failed.queued], ['failed', 1, null]);
    assert.equal((await world.settled(two)).status, 'delivered');
    await running.stop();
  });

  t('an address that is not allowed is recorded, and not reached', async () => {
    const server = await receiver();
    const { port } = new URL(server.url);
    const { EgressGuard } = await import('#runtime/egress/guard.ts');
    const { Exchange } = await import('#runtime/egress/exchange.ts');
    const exchange = new Exchange(new EgressGuard({ privateTargets: [], ownHosts: () => [] }));
    const running = world.start({ webhookRetryDelaysMs: [0] }, { exchange });
    const [id = ''] = await world.queue(await world.endpoint(`https://127.0.0.1:${port}/`));
    const { attempts } = await world.settled(id);
    assert.deepEqual([attempts[0]?.status, attempts[0]?.error], [null, 'url_not_allowed']);
    assert.equal(server.got.length, 0);
    await running.stop();
    await exchange.close();
  });

  t('an answer that the database refuses is recorded without its body and not retried for ever', async () => {
    // The sender makes a body well-formed before it writes it; here a constraint refuses it all the same.
    await world.pool.query(
      `alter table ops.webhook_deliveries add constraint no_bodies check (attempts::text not like '%refuse me%')`,
    );
    const server = await receiver(status(200, {}, 'refuse me'));
    const [id = ''] = await world.queue(await world.endpoint(server.url));
    const running = world.start();
    const { status: now, attempts } = await world.settled(id);
    assert.deepEqual([now, attempts[0]?.responseBody, server.got.length], ['delivered', null, 1]);
    await running.stop();
    await world.pool.query('alter table ops.webhook_deliveries drop constraint no_bodies');
  });

  t('a result is recorded once the database is back', async () => {
    const server = await receiver(status(200, {}, 'here'));
    const endpoint = await world.endpoint(server.url);
    const running = world.start();
    const client = await world.pool.connect();
    await client.query('begin; lock table ops.webhook_queue in access exclusive mode');
    const late = world.queue(endpoint);
    await client.query('rollback');
    client.release();
    const [id = ''] = await late;
    await world.settled(id);
    // Every session but this one ends, the one that listens among them.
    await world.pool.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid()`,
    );
    // Of the pool's connections each may be one that has ended and does not know it yet.
    let ids: readonly string[] | null = null;
    await until('the database to be back', async () => {
      ids = await world.queue(endpoint, { count: 3 }).catch(() => null);
      return ids !== null;
    });
    await world.allSettled(ids ?? []);
    await running.stop();
  });
});
