import { deepEqual, equal, ok, rejects } from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { gunzipSync } from 'node:zlib';
import { EXCHANGE_DEFAULTS, Exchange, type ExchangeOptions, type ExchangeResult } from '#runtime/egress/exchange.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { type ReceiverPath, type Receivers, startReceivers } from '#test/support/egress-receivers.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const body = Buffer.from('{"hello":"world"}');
const guard = new EgressGuard({ privateTargets: ['*'], ownHosts: () => [] });

suite('egress exchange', { alone: true }, (t) => {
  let receivers: Receivers;
  const open: Exchange[] = [];
  const exchangeWith = (options: ExchangeOptions = {}): Exchange => {
    const exchange = new Exchange(guard, options);
    open.push(exchange);
    return exchange;
  };
  const post = (path: ReceiverPath, options: ExchangeOptions = {}): Promise<ExchangeResult> =>
    exchangeWith(options).post(receivers.url(path), {}, body);
  const outcome = ({ status, error, bodyStart }: ExchangeResult) => [status, error, bodyStart.toString('latin1')];

  t.before(async () => {
    receivers = await startReceivers();
  });
  t.after.each(() => Promise.all(open.splice(0).map((one) => one.close())));
  t.after(() => receivers.close());

  t('sends the request as given: method, path, headers in order, bytes, and no Accept-Encoding', async () => {
    const exchange = exchangeWith();
    const headers = {
      'Webhook-Id': 'evt_1',
      'content-type': 'application/json',
      'webhook-timestamp': '17',
      'x-z': 'ü',
    };
    const result = await exchange.post(`${receivers.url('/ok')}`, headers, body);
    deepEqual(outcome(result), [200, null, 'ok']);
    ok(result.durationMs >= 0 && Number.isInteger(result.durationMs));
    equal(
      (await receivers.seen('/ok')).lastRequest,
      [
        'POST /ok HTTP/1.1',
        `host: 127.0.0.1:${receivers.port}`,
        'connection: keep-alive',
        'Webhook-Id: evt_1',
        'content-type: application/json',
        'webhook-timestamp: 17',
        'x-z: ü',
        `content-length: ${body.length}`,
        '',
        body.toString(),
      ].join('\r\n'),
    );
  });

  t('has the documented limits', () => {
    const { connectMs, totalMs, maxBodyBytes, maxIdlePerOrigin } = EXCHANGE_DEFAULTS;
    deepEqual(
      { connectMs, totalMs, maxBodyBytes, maxIdlePerOrigin },
      { connectMs: 5_000, totalMs: 15_000, maxBodyBytes: 16_384, maxIdlePerOrigin: 64 },
    );
  });

  t('returns only the requested headers, of a repeated one the first', async () => {
    const { status, headers } = await post('/headers');
    equal(status, 429);
    deepEqual(headers, { 'retry-after': '7', 'webhook-delivery': 'disable' });
  });

  t('a status is the outcome, whatever the body does', async () => {
    const cases: readonly (readonly [path: ReceiverPath, status: number, body: string])[] = [
      ['/until-close', 200, 'all of it'],
      ['/early-hints', 204, ''],
      ['/status-then-reset', 200, 'part'],
      ['/status-then-close', 200, 'part'],
      ['/broken-chunks', 201, 'part'],
      ['/lie-about-keep-alive', 200, 'ok'],
    ];
    for (const [path, status, text] of cases) deepEqual(outcome(await post(path)), [status, null, text], path);
  });

  t('an exchange without a status has an error code', async () => {
    const cases: readonly (readonly [path: ReceiverPath, error: string])[] = [
      ['/reset', 'connection_failed'],
      ['/close', 'connection_failed'],
      ['/half-status', 'connection_failed'],
      ['/garbage', 'bad_response'],
      ['/no-such-status', 'bad_response'],
      ['/broken-header', 'bad_response'],
      ['/http2', 'bad_response'],
      ['/upgrade', 'bad_response'],
      ['/two-lengths', 'bad_response'],
      ['/large-headers', 'bad_response'],
      ['/endless-headers', 'bad_response'],
      ['/endless-header', 'bad_response'],
      ['/endless-reason', 'bad_response'],
      ['/endless-hints', 'bad_response'],
    ];
    for (const [path, error] of cases) deepEqual(outcome(await post(path)), [null, error, ''], path);
  });

  t('a closed port and an unknown name give the same error', async () => {
    const free = createServer().listen(0, '127.0.0.1');
    await once(free, 'listening');
    const address = free.address();
    const port = typeof address === 'object' ? address?.port : null;
    await new Promise((done) => free.close(done));
    const exchange = exchangeWith();
    const results = await Promise.all(
      [`http://127.0.0.1:${port}/`, 'http://no-such-name.invalid/'].map((url) => exchange.post(url, {}, body)),
    );
    for (const result of results) {
      deepEqual([result.status, result.error, result.durationMs], [null, 'connection_failed', 500]);
    }
  });

  t('a refused URL is a result without details and with a fixed duration', async () => {
    const strict = new Exchange(new EgressGuard({ privateTargets: [], ownHosts: () => [] }));
    const urls = ['http://127.0.0.1/', 'https://10.0.0.1/', 'https://localhost/', 'no url', 'https://u:p@example.com/'];
    for (const url of urls) {
      const { status, error, durationMs, headers, bodyStart } = await strict.post(url, {}, body);
      deepEqual([status, error, durationMs, headers, bodyStart.length], [null, 'url_not_allowed', 500, {}, 0], url);
    }
    await strict.close();
  });

  t('a redirect is an answer and is not followed', async () => {
    deepEqual(outcome(await post('/redirect')), [302, null, '']);
    equal((await receivers.seen('/redirect')).requests, 1);
  });

  t('reads a body up to its limit', async () => {
    const exchange = exchangeWith();
    const exact = await exchange.post(receivers.url('/exact'), {}, body);
    equal(exact.bodyStart.length, 16_384);
    const longer = await exchange.post(receivers.url('/one-more'), {}, body);
    deepEqual([longer.status, longer.error, longer.bodyStart.length], [200, null, 16_384]);
    await until('the longer one lost its connection', async () => (await receivers.seen('/one-more')).closed === 1);
    const own = await post('/exact', { maxBodyBytes: 10 });
    equal(own.bodyStart.toString(), 'xxxxxxxxxx');
  });

  t('disconnects from a body of 300 MB', async () => {
    for (const [path, status] of [
      ['/300mb', 200],
      ['/300mb-error', 500],
    ] as const) {
      const result = await post(path);
      deepEqual([result.status, result.error, result.bodyStart.length], [status, null, 16_384]);
      await until(`${path} is hung up on`, async () => (await receivers.seen(path)).closed === 1);
      const { bytesSent } = await receivers.seen(path);
      ok(bytesSent < 20 << 20, `${path} could send ${bytesSent} bytes`);
    }
  });

  t('inflates nothing', async () => {
    const small = await post('/small-gzip-bomb');
    ok(small.bodyStart.length < 16_384);
    equal(gunzipSync(small.bodyStart).length, 10 << 20);
    const big = await post('/gzip-bomb');
    deepEqual([big.status, big.bodyStart.length], [200, 16_384]);
    equal(big.bodyStart.readUInt16BE(0), 0x1f8b);
  });

  t('cuts endless chunk extensions and trailers', async () => {
    deepEqual(outcome(await post('/endless-chunk-extension')), [200, null, '']);
    deepEqual(outcome(await post('/endless-trailers')), [200, null, 'ok']);
  });

  t('ends at the total limit: without a status as a timeout, with one as that status', async () => {
    const cases: readonly (readonly [path: ReceiverPath, status: number | null, error: string | null])[] = [
      ['/silence', null, 'timeout'],
      ['/drip-headers', null, 'timeout'],
      ['/drip-body', 202, null],
    ];
    await Promise.all(
      cases.map(async ([path, status, error]) => {
        const started = performance.now();
        const result = await post(path, { totalMs: 400 });
        const took = performance.now() - started;
        deepEqual([result.status, result.error], [status, error], path);
        ok(took >= 399 && took < 1_400, `${path} took ${took} ms`);
        ok(result.durationMs >= 399 && result.durationMs <= took + 1);
        if (path === '/drip-body') ok(result.bodyStart.toString().startsWith('begin.'));
        await until(`${path} is hung up on`, async () => (await receivers.seen(path)).closed === 1);
      }),
    );
  });

  t('a server that accepts no connection costs the connect limit', async () => {
    const frozen = await startReceivers({ shortQueue: true });
    frozen.freeze();
    const waiting = Array.from({ length: 8 }, () => connect(frozen.port, '127.0.0.1').on('error', () => {}));
    // The queue holds two: once they are in, no other connection is answered.
    await until('its queue is full', () => waiting.filter((one) => one.readyState === 'open').length >= 2);
    const started = performance.now();
    const result = await exchangeWith({ connectMs: 300 }).post(frozen.url('/ok'), {}, body);
    const took = performance.now() - started;
    deepEqual(outcome(result), [null, 'timeout', '']);
    ok(took >= 299 && took < 1_500, `${took} ms`);
    for (const one of waiting) one.destroy();
    await frozen.close();
  });

  t('uses a connection again, one request at a time, and as many connections as requests', async () => {
    const exchange = exchangeWith({ idleMs: 60_000 });
    const before = await receivers.seen('/ok');
    for (let nth = 0; nth < 20; nth += 1) equal((await exchange.post(receivers.url('/ok'), {}, body)).status, 200);
    const one = await receivers.seen('/ok');
    deepEqual([one.requests - before.requests, one.connections - before.connections], [20, 1]);
    await Promise.all(Array.from({ length: 200 }, () => exchange.post(receivers.url('/ok'), {}, body)));
    const many = await receivers.seen('/ok');
    deepEqual([many.requests - one.requests, many.connections - one.connections], [200, 199]);
    equal(exchange.idle, 64);
    await until('the idle ones over 64 are closed', async () => (await receivers.open()) === 64);
  });

  t('keeps no more idle connections than it may, and closes those of the origin longest unused first', async () => {
    const exchange = exchangeWith({ maxIdle: 2 });
    const [a, b, c] = await Promise.all([0, 1, 2].map(() => startReceivers()));
    ok(a && b && c);
    for (const one of [a, b, a, c]) equal((await exchange.post(one.url('/ok'), {}, body)).status, 200);
    await until('the longest unused is closed', async () => (await b.seen('/ok')).closed === 1);
    deepEqual([(await a.seen('/ok')).closed, (await c.seen('/ok')).closed], [0, 0]);
    await Promise.all([a, b, c].map((one) => one.close()));
  });

  t('lets go of a connection that is idle for long, and of one that is old', async () => {
    const before = await receivers.seen('/ok');
    const idle = exchangeWith({ idleMs: 50 });
    await idle.post(receivers.url('/ok'), {}, body);
    await until('it is closed', async () => (await receivers.seen('/ok')).closed === before.closed + 1);
    const aged = exchangeWith({ maxAgeMs: 0 });
    for (let nth = 0; nth < 3; nth += 1) await aged.post(receivers.url('/ok'), {}, body);
    equal((await receivers.seen('/ok')).connections, before.connections + 4);
  });

  t('a connection that its server closed between two requests is opened again', async () => {
    const exchange = exchangeWith();
    for (let nth = 1; nth <= 5; nth += 1) {
      deepEqual(outcome(await exchange.post(receivers.url('/lie-about-keep-alive'), {}, body)), [200, null, 'ok']);
      await until('it is closed', async () => (await receivers.open()) === 0);
      equal(exchange.idle, 0);
    }
  });

  t('an extra answer is never taken for the answer to the next request', async () => {
    const exchange = exchangeWith();
    for (let nth = 0; nth < 5; nth += 1) {
      deepEqual(outcome(await exchange.post(receivers.url('/answer-twice'), {}, body)), [200, null, '']);
      deepEqual(outcome(await exchange.post(receivers.url('/headers'), {}, body)), [429, null, '']);
    }
  });

  t('stops at the caller’s signal, and rejects only then', async () => {
    const exchange = exchangeWith();
    const stop = new AbortController();
    const before = (await receivers.seen('/silence')).closed;
    const waiting = exchange.post(receivers.url('/silence'), {}, body, stop.signal);
    await until('it is there', async () => (await receivers.seen('/silence')).requests > before);
    stop.abort(new Error('enough'));
    await rejects(waiting, /enough/);
    await until('it is hung up on', async () => (await receivers.seen('/silence')).closed > before);
    await rejects(exchange.post(receivers.url('/ok'), {}, body, stop.signal), /enough/);
    await rejects(exchange.post(receivers.url('/ok'), { 'x-bad': 'a\r\nb: c' }, body), /invalid x-bad header/);
    equal((await exchange.post(receivers.url('/ok'), {}, body)).status, 200);
  });

  t('close waits for running requests, refuses new ones, and leaves no connection', async () => {
    const exchange = exchangeWith({ totalMs: 300, idleMs: 60_000 });
    await exchange.post(receivers.url('/ok'), {}, body);
    const slow = exchange.post(receivers.url('/drip-body'), {}, body);
    const closed = exchange.close().then(() => 'closed');
    await rejects(exchange.post(receivers.url('/ok'), {}, body), /closed/);
    equal(await Promise.race([slow.then(() => 'landed'), closed]), 'landed');
    equal(await closed, 'closed');
    await exchange.close();
    await until('all are closed', async () => (await receivers.open()) === 0);
  });

  t('memory stays flat whatever receivers send', async () => {
    setFlagsFromString('--expose-gc');
    const gc: () => void = runInNewContext('gc');
    const held = (): number => {
      gc();
      const { heapUsed, external } = process.memoryUsage();
      return heapUsed + external;
    };
    const paths: readonly ReceiverPath[] = [
      '/300mb',
      '/gzip-bomb',
      '/endless-headers',
      '/endless-header',
      '/endless-chunk-extension',
      '/drip-body',
    ];
    const exchange = exchangeWith({ totalMs: 1_000 });
    const all = async (path: ReceiverPath): Promise<void> => {
      const results = await Promise.all(Array.from({ length: 50 }, () => exchange.post(receivers.url(path), {}, body)));
      equal(results.length, 50);
    };
    await all('/ok');
    const before = held();
    let most = 0;
    const watch = setInterval(() => {
      const { heapUsed, external } = process.memoryUsage();
      most = Math.max(most, heapUsed + external - before);
    }, 5);
    for (const path of paths) await all(path);
    clearInterval(watch);
    const grown = held() - before;
    ok(grown < 30e6, `${(grown / 1e6).toFixed(1)} MB are still held`);
    ok(most < 60e6, `${(most / 1e6).toFixed(1)} MB at the worst moment, what was not yet collected included`);
  });
});
