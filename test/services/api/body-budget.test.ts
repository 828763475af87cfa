/** Bodies that are large, slow, or never end: what callers may have in memory, and whose turn it is. */
import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { BodyBudget, HeavyBodies } from '#services/api/call/bodies.ts';
import { readBody } from '#services/api/http/rest.ts';
import { type ApiServer, startServer } from '#services/api/server.ts';
import { type Answered, callerOf, startWorld, type World } from '#test/support/http.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const kib = 1_024;

suite('what bodies may hold', { alone: true }, (t) => {
  const take = (budget: BodyBudget, owner: string, bytes: number) => {
    const held = budget.hold(owner);
    held.take(bytes);
    return held;
  };

  t('one body of any size, or several up to the share of their workspace', () => {
    const budget = new BodyBudget({ each: 100, total: 1_000, least: 10 });
    const alone = budget.hold('a');
    for (let n = 0; n < 5; n += 1) alone.take(50);
    assert.throws(() => take(budget, 'a', 1), /not answered yet/);
    take(budget, 'b', 60);
    const second = take(budget, 'b', 40);
    assert.throws(() => second.take(1), /not answered yet/);
    second.release();
    take(budget, 'b', 40);
    alone.release();
    assert.equal(budget.held, 100);
  });

  t('when others fill the total, a small body still fits', () => {
    const budget = new BodyBudget({ each: 100, total: 200, least: 10 });
    const [a] = [take(budget, 'a', 100), take(budget, 'b', 95)];
    const small = take(budget, 'c', 10);
    assert.throws(() => small.take(1), /large bodies/);
    assert.throws(() => take(budget, 'd', 11), /large bodies/);
    a.release();
    small.take(1);
  });
});

suite('bodies over HTTP', (t) => {
  let world: World;
  let server: ApiServer;
  const budget = new BodyBudget({ each: 64 * kib, total: 128 * kib, least: 4 * kib });
  const heavyBodies = new HeavyBodies();
  const sockets: Socket[] = [];
  t.before(async () => {
    world = await startWorld();
    server = await startServer({ ...world.deps, bodyBudget: budget, heavyBodies }, { host: '127.0.0.1', port: 0 });
  });
  t.after(async () => {
    for (const socket of sockets) socket.destroy();
    await server?.stop(0);
    await world?.close();
  });

  const caller = (token: string) => callerOf(() => `http://127.0.0.1:${server.port}/v1`, token);
  /** A request whose body is said to have a length, or comes in chunks without one; as much of it is sent as is told. */
  const begin = (token: string, length: number | null) => {
    const socket = connect(server.port, '127.0.0.1');
    sockets.push(socket);
    let received = '';
    socket.on('data', (text) => {
      received += String(text);
    });
    socket.on('error', () => undefined);
    socket.write(
      `POST /v1/clients HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nIdempotency-Key: a\r\n${
        length === null ? 'Transfer-Encoding: chunked' : `Content-Length: ${length}`
      }\r\n\r\n`,
    );
    const send = (text: string): void =>
      void socket.write(length === null ? `${text.length.toString(16)}\r\n${text}\r\n` : text);
    const isHeld = (bytes: number) => until(`${bytes} bytes are held`, async () => budget.held === bytes);
    const hears = (words: RegExp) => until(`it hears ${words}`, async () => words.test(received));
    return { socket, send, hears, isHeld, received: () => received };
  };
  const text = (bytes: number) => `"${'x'.repeat(bytes - 1)}`;
  const body = { name: 'Acme', type: 'brand' };

  t('unfinished bodies hold the bytes that arrived, live and test data together, and release them', async () => {
    const [live, test] = [world.liveKey.secret, world.testKey.secret];
    for (const length of [1_000_000, null]) {
      const first = begin(live, length);
      first.send(text(40 * kib));
      await first.isHeld(40 * kib);
      const second = begin(test, length);
      second.send(text(20 * kib));
      await second.isHeld(60 * kib);
      second.send('x'.repeat(10 * kib));
      await second.hears(/^HTTP\/1\.1 503 [\s\S]*\r\nRetry-After: 2\r\n[\s\S]*"code":"unavailable"/);
      await second.isHeld(40 * kib);
      const stranger = await world.agency('Stranger');
      assert.equal((await caller(stranger.liveKey.secret).post('/clients', body)).status, 200);
      // Light ones of the workspace itself find room beside it, and its connection is let go at any time.
      assert.equal((await caller(live).post('/clients', { ...body, name: `Beside ${length}` })).status, 200);
      first.socket.destroy();
      await first.isHeld(0);
      second.socket.destroy();
    }
  });

  t('the rest of a refused body is dropped, and the next request of its connection is answered', async () => {
    const live = world.liveKey.secret;
    const first = begin(live, 1_000_000);
    first.send(text(64 * kib));
    await first.isHeld(64 * kib);
    const length = 600 * kib;
    const second = begin(live, length);
    second.send(text(length));
    await second.hears(/^HTTP\/1\.1 503 /);
    second.send(`GET /v1/agency HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${live}\r\n\r\n`);
    await second.hears(/HTTP\/1\.1 200 OK/);
    assert.equal(budget.held, 64 * kib);
    first.socket.destroy();
    await first.isHeld(0);
  });

  t('refused or answered bodies hold nothing', async () => {
    const owner = caller(world.liveKey.secret);
    assert.equal((await owner.post('/clients', { ...body, name: 'Held no longer' })).status, 200);
    assert.equal((await owner.post('/clients', { ...body, name: 1 })).status, 422);
    assert.equal(
      (await owner.post('/clients', undefined, { raw: '{', headers: { 'content-type': 'application/json' } })).status,
      400,
    );
    assert.equal((await owner.post('/clients', { ...body, more: Array(10_001).fill(1) })).status, 413);
    assert.equal(
      (await owner.post('/clients', undefined, { raw: 'a', headers: { 'content-type': 'text/plain' } })).status,
      415,
    );
    assert.equal(budget.held, 0);
  });

  t('a large one waits for the turn of its workspace, live or test, and holds its bytes meanwhile', async () => {
    const gate = Promise.withResolvers<void>();
    const first = heavyBodies.run(world.workspaceId, { bytes: 1_000_000, values: 1 }, () => gate.promise);
    const large = { ...body, name: 'x'.repeat(40 * kib) };
    let answered: Answered | null = null;
    const second = caller(world.testKey.secret)
      .post('/clients', large)
      .then((answer) => {
        answered = answer;
      });
    await until('its bytes are held', async () => budget.held > 40 * kib);
    const owner = caller(world.liveKey.secret);
    for (let n = 0; n < 20; n += 1) assert.equal((await owner.post('/clients', { ...body, name: 1 })).status, 422);
    assert.equal(answered, null, 'it did not wait');
    gate.resolve();
    await first;
    await second;
    assert.equal((answered as Answered | null)?.status, 422);
    assert.equal(budget.held, 0);
  });

  t('a body that arrives byte by byte is kept in few pieces', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const used = (): number => {
      collect();
      const { heapUsed, external } = process.memoryUsage();
      return heapUsed + external;
    };
    const bytes = 100_000;
    const before = used();
    let more = 0;
    async function* single() {
      for (let n = 0; n < bytes; n += 1) yield Buffer.alloc(1, 'x');
      more = used() - before;
    }
    const whole = await readBody({ headers: {}, iterator: single } as unknown as IncomingMessage, bytes);
    assert.equal(whole.toString(), 'x'.repeat(bytes));
    // Each by itself they take 150 times as much as they are.
    assert.ok(more < 10 * bytes, `${more} bytes of memory for ${bytes}`);
  });
});
