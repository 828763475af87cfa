import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { NetworkCall } from '#contracts/ports/network-http.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { GuardedNetworkHttp } from '#runtime/egress/network-http.ts';
import type { SeenCall } from '#runtime/egress/seen-call.ts';
import { freePort } from '#test/support/port.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const file = randomBytes(3_000_000);

suite('calls of networks', (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'postline-network-http-'));
  const place = path.join(folder, 'video.mp4');
  writeFileSync(place, file);
  let answer: RequestListener = (_, response) => void response.end();
  let received = 0;
  const server = createServer((request, response) => {
    received += 1;
    answer(request, response);
  });
  const seen: SeenCall[] = [];
  const http = new GuardedNetworkHttp(new EgressGuard({ privateTargets: ['*'], ownHosts: () => [] }), {
    report: (one) => void seen.push(one),
  });
  let origin = '';
  t.before(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  t.after(() => {
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const call = (over: Partial<NetworkCall> = {}): NetworkCall => ({
    ...{ method: 'POST', url: `${origin}/2/tweets`, headers: {}, body: [Buffer.from('{}')] },
    subject: { accountId: 'an account', targetId: 'a target' },
    ...over,
  });
  const patient = () => AbortSignal.timeout(10_000);
  const bodyOf = async (request: IncomingMessage): Promise<Buffer> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    return Buffer.concat(chunks);
  };

  t('sends the pieces of a body in their order, says how far it is, and answers what came', async () => {
    let got: Buffer = Buffer.alloc(0);
    let headers: IncomingMessage['headers'] = {};
    answer = async (request, response) => {
      headers = request.headers;
      got = await bodyOf(request);
      response.writeHead(201, { 'x-rate-limit-remaining': '7' }).end('{"ok":true}');
    };
    let sent = 0;
    const body = [Buffer.from('head'), { path: place, start: 1_000, end: 2_500_000 }, Buffer.from('tail')];
    const result = await http.send(call({ body, onSent: (bytes) => (sent += bytes) }), patient());
    assert.ok(result.kind === 'answered', JSON.stringify(result));
    assert.deepEqual([result.status, result.body.toString()], [201, '{"ok":true}']);
    assert.equal(result.headers['x-rate-limit-remaining'], '7');
    const whole = Buffer.concat([Buffer.from('head'), file.subarray(1_000, 2_500_000), Buffer.from('tail')]);
    assert.ok(got.equals(whole));
    assert.deepEqual([sent, headers['content-length']], [whole.length, String(whole.length)]);
    assert.equal(seen.at(-1)?.bodySha256, createHash('sha256').update(whole).digest('hex'));
    await http.send(call({ method: 'GET', body: [] }), patient());
    assert.deepEqual([headers['content-length'], got.length, seen.at(-1)?.bodySha256], [undefined, 0, null]);
  });

  t('sends the same bytes to a receiver that is slow to take them', async () => {
    let got: Buffer = Buffer.alloc(0);
    answer = async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) {
        chunks.push(Buffer.from(chunk));
        request.pause();
        for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      }
      got = Buffer.concat(chunks);
      response.end();
    };
    const ends = [0, 10, 300_000, 300_001, 1_400_000, 2_999_999, 3_000_000];
    const body = ends.slice(1).map((end, at) => ({ path: place, start: ends[at] ?? 0, end }));
    const result = await http.send(call({ body }), patient());
    assert.equal(result.kind, 'answered');
    assert.ok(got.equals(file));
    assert.equal(seen.at(-1)?.bodySha256, createHash('sha256').update(file).digest('hex'));
    const short = [{ path: place, start: 2_900_000, end: 3_000_001 }];
    assert.equal((await http.send(call({ body: short }), patient())).kind, 'silent', 'the file is too short');
  });

  t('sends a file as base64 within a text, of every length, and its length ahead', async () => {
    let got: Buffer = Buffer.alloc(0);
    let headers: IncomingMessage['headers'] = {};
    let method = '';
    answer = async (request, response) => {
      ({ headers, method = '' } = request);
      got = await bodyOf(request);
      response.end();
    };
    for (const [start, end] of [
      ...[0, 1, 2, 3, 4].map((length) => [7, 7 + length] as const),
      ...[196_607, 196_608, 196_609, 393_217].map((length) => [1, 1 + length] as const),
      [0, 3_000_000] as const,
    ]) {
      const body = [Buffer.from('{"data":"'), { path: place, start, end, as: 'base64' as const }, Buffer.from('"}')];
      let sent = 0;
      const result = await http.send(call({ method: 'PATCH', body, onSent: (bytes) => (sent += bytes) }), patient());
      assert.equal(result.kind, 'answered', `${end - start}`);
      const expected = JSON.stringify({ data: file.subarray(start, end).toString('base64') });
      assert.ok(got.toString() === expected, `${end - start} bytes`);
      assert.deepEqual([method, headers['content-length'], sent], ['PATCH', `${expected.length}`, expected.length]);
      assert.equal(seen.at(-1)?.bodySha256, createHash('sha256').update(expected).digest('hex'));
    }
  });

  t('reads no further into a file than its receiver has taken', async () => {
    const large = path.join(folder, 'large.mp4');
    writeFileSync(large, Buffer.alloc(48_000_000));
    let sent = 0;
    let [before, more] = [-1, () => {}];
    answer = (request, response) => {
      request.once('data', () => {
        request.pause();
        more = () => void request.resume().once('end', () => response.end());
      });
    };
    const body = [{ path: large, start: 0, end: 48_000_000, as: 'base64' as const }];
    const sending = http.send(call({ body, onSent: (bytes) => (sent += bytes) }), AbortSignal.timeout(60_000));
    const stands = () => {
      const isStill = sent > 0 && sent === before;
      before = sent;
      return isStill;
    };
    await until('nothing moves', stands, { everyMs: 100 });
    assert.ok(sent < 32_000_000, `${sent} bytes of 64,000,000 left before anybody read them`);
    more();
    assert.equal((await sending).kind, 'answered');
    assert.equal(sent, 64_000_000);
  });

  t('each call has a connection of its own, which ends with its answer, in a burst behind the burst', async () => {
    let connections = 0;
    server.on('connection', () => (connections += 1));
    const open = () => new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)));
    answer = (_, response) => void response.end('{}');
    for (let n = 0; n < 3; n += 1) {
      await http.send(call(), patient());
      await until('it is closed', async () => (await open()) === 0, { everyMs: 1 });
    }
    const waiting: (() => void)[] = [];
    answer = (_, response) => {
      waiting.push(() => response.end('{}'));
      if (waiting.length === 600) for (const one of waiting) one();
    };
    const results = await Promise.all(Array.from({ length: 600 }, () => http.send(call(), patient())));
    assert.ok(results.every(({ kind }) => kind === 'answered'));
    assert.equal(connections, 603);
    const isBehind = async () => {
      const left = await open();
      return left <= 512 ? { left } : null;
    };
    const { left } = await until('those beyond the bound are closed', isBehind, { everyMs: 1 });
    assert.ok(left > 0, 'the others wait for the end of the burst');
    await until('all are closed', async () => (await open()) === 0);
    assert.equal(connections, 603);
  });

  t('what never left is told apart from what may have arrived', async () => {
    const before = received;
    const closed = `http://127.0.0.1:${await freePort()}/`;
    assert.deepEqual(await http.send(call({ url: closed }), patient()), {
      kind: 'unsent',
      reason: 'connection_failed',
    });
    const public_ = new GuardedNetworkHttp(new EgressGuard({ privateTargets: [], ownHosts: () => [] }));
    assert.deepEqual(await public_.send(call(), patient()), { kind: 'unsent', reason: 'url_not_allowed' });
    assert.deepEqual(await http.send(call(), AbortSignal.abort()), { kind: 'unsent', reason: 'aborted' });
    assert.equal(received, before);
    const silent = async (reason: string, listener: RequestListener, signal = patient()) => {
      answer = listener;
      assert.deepEqual(await http.send(call(), signal), { kind: 'silent', reason });
    };
    await silent('connection_lost', (request) => request.socket.destroy());
    await silent('connection_lost', (_, response) => {
      response.writeHead(200, { 'content-length': '10' }).write('12345', () => response.destroy());
    });
    await silent('answer_too_long', (_, response) => void response.end('x'.repeat(1_100_000)));
    const stop = new AbortController();
    await silent('aborted', () => stop.abort(), stop.signal);
    assert.equal(received, before + 4);
  });

  t('a file that is shorter than announced is no whole request', async () => {
    answer = async (request, response) => {
      await bodyOf(request).catch(() => null);
      response.end('{}');
    };
    const result = await http.send(call({ body: [{ path: place, start: 0, end: 4_000_000 }] }), patient());
    assert.equal(result.kind, 'silent');
  });

  t('nothing of a report lets anybody in', async () => {
    answer = (_, response) =>
      void response.end('{"did":"did:plc:a","accessJwt":"eyJsecret-answer","refresh_token": "secret-refresh","n":1}');
    const secrets = ['secret-header', 'secret-query', 'secret-path', 'secret-answer', 'secret-refresh', 'secret-body'];
    const over = {
      url: `${origin}/botsecret-path/sendMessage?token=secret-query`,
      shownPath: '/bot…/sendMessage',
      headers: { authorization: 'Bearer secret-header', 'content-type': 'application/json' },
      body: [Buffer.from('{"a":"secret-body"}')],
    };
    await http.send(call(over), patient());
    const [shown, ...others] = seen.splice(0).slice(-1);
    assert.deepEqual(others, []);
    assert.equal(shown?.path, '/bot…/sendMessage?token=…');
    assert.deepEqual(shown?.headers, { authorization: '…', 'content-type': 'application/json' });
    assert.deepEqual([shown?.status, shown?.outcome, shown?.targetId], [200, 'answered', 'a target']);
    assert.match(shown?.answer ?? '', /"did":"did:plc:a".*"n":1/);
    await http.send(call({ ...over, isSecret: true }), patient());
    const reported = JSON.stringify([shown, ...seen]);
    assert.deepEqual([seen.at(-1)?.answer, seen.at(-1)?.bodySha256], [null, null]);
    for (const secret of secrets) assert.ok(!reported.includes(secret), secret);
  });

  t('an answer that repeats what lets somebody in is told without it', async () => {
    const own = 'secret-of-the-caller';
    const long = `secret-${'x'.repeat(9_000)}`;
    answer = (_, response) =>
      void response.end(`{"token":"${long}","jwt":"a\\/secret-behind-a-slash","error":"no ${own}, no secret-in-path"}`);
    const over = {
      url: `${origin}/botsecret-in-path/getMe`,
      shownPath: '/bot…/getMe',
      headers: { authorization: `DPoP ${own}` },
    };
    await http.send(call(over), patient());
    assert.equal(seen.at(-1)?.answer, '{"token":"…","jwt":"…","error":"no …, no …"}');
    answer = (_, response) => void response.end(`a${'ü'.repeat(4_000)}`);
    await http.send(call(), patient());
    assert.equal(seen.at(-1)?.answer, `a${'ü'.repeat(2_047)}`, 'at most 4 KiB, without half a character');
  });

  t('an address that is none is not sent, and told without a host', async () => {
    const result = await http.send(call({ url: 'https://' }), patient());
    assert.deepEqual(result, { kind: 'unsent', reason: 'url_not_allowed' });
    assert.deepEqual([seen.at(-1)?.host, seen.at(-1)?.path], ['', '']);
  });
});
