/** Callers at their worst, before anybody knows who they are: guesses, floods, connections held for nothing. */
import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import type { Context } from 'koa';
import { mintSecret } from '#runtime/identity/key-form.ts';
import { noProxies, readTrustedProxies, UnnamedProxies } from '#runtime/identity/proxies.ts';
import { createRegistry } from '#runtime/process/telemetry.ts';
import { Allowance } from '#services/api/call/allowances.ts';
import type { Deps } from '#services/api/call/deps.ts';
import { type ApiServer, type DoorOptions, openDoor } from '#services/api/server.ts';
import { pagesParts } from '#services/pages/part.ts';
import { startWorld, type World } from '#test/support/http.ts';
import { patience } from '#test/support/patience.ts';
import { watched } from '#test/support/pool.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const guess = () => mintSecret('live');

suite('limits of callers', (t) => {
  let world: World;
  const servers: ApiServer[] = [];
  t.before(async () => {
    world = await startWorld();
  });
  t.after(async () => {
    await Promise.all(servers.map((one) => one.stop(0)));
    await world?.close();
  });

  /** Another api of the same world, behind one proxy, which knows no key yet. Counts statements by name. */
  const behindProxy = async (more: Partial<Deps> = {}, door: Partial<DoorOptions> = {}) => {
    const asked: string[] = [];
    const deps: Deps = {
      ...world.deps,
      pool: watched(world.pool, ({ name }) => asked.push(name)),
      rate: { perMinute: 60, burst: 5 },
      trustedProxies: readTrustedProxies('1'),
      ...more,
    };
    const server = (await openDoor({ host: '127.0.0.1', port: 0, setting: 'PORT', ...door })).open(deps, pagesParts);
    servers.push(server);
    const ask = async (
      path: string,
      from: string,
      token: string | null = null,
      headers: Record<string, string> = {},
    ) => {
      const answer = await fetch(`http://127.0.0.1:${server.port}${path}`, {
        headers: {
          'x-forwarded-for': from,
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
          ...headers,
        },
      });
      await answer.arrayBuffer();
      return answer;
    };
    const statuses = async (times: number, one: () => Promise<Response>): Promise<readonly number[]> => {
      const all: number[] = [];
      for (let at = 0; at < times; at += 1) all.push((await one()).status);
      return all;
    };
    const lookUps = () => asked.filter((name) => name === 'find-keys').length;
    return { port: server.port, ask, statuses, lookUps };
  };

  t('each stranger behind the proxy has its own allowance, and a forged header gives it no other', async () => {
    const { ask, statuses } = await behindProxy();
    const five = [401, 401, 401, 401, 401];
    assert.deepEqual(await statuses(6, () => ask('/v1/agency', '203.0.113.1', guess())), [...five, 429]);
    assert.equal((await ask('/v1/agency', '203.0.113.2', guess())).status, 401);
    const spoofed = () => ask('/v1/agency', `192.0.2.${Math.trunc(Math.random() * 256)}, 203.0.113.3`, guess());
    assert.deepEqual(await statuses(6, spoofed), [...five, 429]);
    // One machine has a whole /64.
    const machine = () => ask('/v1/agency', `2001:db8::${Math.trunc(Math.random() * 65_536).toString(16)}`, guess());
    assert.deepEqual(await statuses(6, machine), [...five, 429]);
    assert.equal((await ask('/v1/agency', '2001:db8:0:1::1', guess())).status, 401);
  });

  t('guesses, pages and credentials spend nothing of each other', async () => {
    const { ask, statuses } = await behindProxy();
    const from = '203.0.113.9';
    const key = world.liveKey.secret;
    assert.deepEqual(await statuses(6, () => ask('/v1/errors', from)), [200, 200, 200, 200, 200, 429]);
    assert.equal((await ask('/invite/nothing', from)).status, 429, 'pages share one');
    assert.deepEqual(await statuses(6, () => ask('/v1/agency', from, guess())), [401, 401, 401, 401, 401, 429]);
    assert.equal((await ask('/v1/agency', from)).status, 429, 'no token at all is a guess, too');
    await until('the key is seen', async () => (await ask('/v1/agency', from, key)).status === 200);
    assert.equal((await ask('/v1/errors', '203.0.113.10')).status, 200);
  });

  t('an address without guesses costs no queries; a good key behind it is accepted', async () => {
    const { ask, statuses, lookUps } = await behindProxy({ rate: { perMinute: 6, burst: 5 } });
    const from = '203.0.113.1';
    const [seen, fresh] = [world.liveKey.secret, world.testKey.secret];
    assert.equal((await ask('/v1/agency', from, seen)).status, 200);
    await statuses(6, () => ask('/v1/agency', from, guess()));
    const before = lookUps();
    const began = performance.now();
    // What is no token by its form would never be looked up: these are, were they let.
    const flood = await Promise.all(Array.from({ length: 300 }, () => ask('/v1/agency', from, guess())));
    assert.deepEqual([...new Set(flood.map(({ status }) => status))], [429]);
    assert.equal((await ask('/v1/agency', from, seen)).status, 200, 'a key that was seen is heard amid the flood');
    // All that came in a second are one look-up.
    const most = 2 + (performance.now() - began) / 1_000;
    assert.ok(lookUps() - before <= most, `${lookUps() - before} look-ups for 300 guesses`);
    // One that was not is let in a moment later, long before the address has guesses again.
    const refused = await ask('/v1/agency', from, fresh);
    assert.equal(refused.status, 429);
    assert.ok(Number(refused.headers.get('retry-after')) > 10, String(refused.headers.get('retry-after')));
    await until('the key is seen', async () => (await ask('/v1/agency', from, fresh)).status === 200, {
      withinMs: 5_000,
    });
    assert.equal((await ask('/v1/agency', from, guess())).status, 429);
  });

  t('many keys at once behind one address, none of them seen before, are no guesses', async () => {
    const keys = await Promise.all(Array.from({ length: 12 }, () => world.keyOf(world.workspaceId, world.memberId)));
    const { ask } = await behindProxy();
    const answers = await Promise.all(keys.map(({ secret }) => ask('/v1/agency', '203.0.113.1', secret)));
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
  });

  t('a proxy that nobody named is noted and in the log; one that is named is not', async () => {
    const line =
      /"proxy":"127\.0\.0\.1","msg":"X-Forwarded-For came from an address that TRUSTED_PROXIES does not name/;
    const named = await behindProxy();
    await named.ask('/v1/errors', '203.0.113.1');
    assert.doesNotMatch(world.lines.join(''), line);
    const unnamedProxies = new UnnamedProxies(world.deps.logger);
    const unnamed = await behindProxy({ trustedProxies: noProxies, unnamedProxies });
    await unnamed.ask('/v1/errors', '203.0.113.1');
    assert.match(unnamedProxies.line() ?? '', /from 127\.0\.0\.1 \(1 requests\)/);
    const reported = world.lines.filter((one) => line.test(one));
    assert.equal(reported.length, 1);
    assert.doesNotMatch(reported.join(''), /203\.0\.113/, 'what the header says is not in it');
  });

  t('the memory of addresses is bounded: the one that spent least lately is forgotten', async () => {
    const allowance = new Allowance({ perMinute: 1, burst: 1 }, 1_000);
    const ctx = { set: () => undefined } as unknown as Context;
    const spend = (owner: string) =>
      allowance.spend(ctx, owner, 1).then(
        () => 'let',
        () => 'refused',
      );
    assert.deepEqual([await spend('first'), await spend('first')], ['let', 'refused']);
    for (let at = 0; at < 999; at += 1) await spend(`a${at}`);
    assert.equal(await spend('first'), 'refused', 'and is now the latest');
    for (let at = 0; at < 999; at += 1) await spend(`b${at}`);
    assert.equal(await spend('first'), 'refused');
    for (let at = 0; at < 3_000; at += 1) await spend(`c${at}`);
    assert.equal(await spend('first'), 'let');
  });

  t('sends HSTS only where the nearest proxy forwards https, or the base URL has it', async () => {
    const hsts = async (one: { ask: Awaited<ReturnType<typeof behindProxy>>['ask'] }, proto: string) =>
      (
        await one.ask('/v1/errors', '203.0.113.1', null, proto === '' ? {} : { 'x-forwarded-proto': proto })
      ).headers.get('strict-transport-security');
    const rate = world.deps.rate;
    const plain = await behindProxy({ rate });
    assert.equal(await hsts(plain, ''), null);
    assert.equal(await hsts(plain, 'http'), null);
    assert.equal(await hsts(plain, 'https'), 'max-age=31536000');
    assert.equal(await hsts(plain, 'https, http'), null, 'the nearest proxy has the last word');
    const direct = await behindProxy({ rate, trustedProxies: readTrustedProxies('10.0.0.0/8') });
    assert.equal(await hsts(direct, 'https'), null);
    const secure = await behindProxy({ rate, baseUrl: () => 'https://api.example/v1' });
    assert.equal(await hsts(secure, ''), 'max-age=31536000');
  });

  /** A connection that says what it is told to; resolves to all it was told when it is over. */
  const dial = (port: number, ...texts: readonly string[]) => {
    const socket: Socket = connect(port, '127.0.0.1', () => socket.write(texts.join('')));
    let received = '';
    let reported = (_text: string): void => undefined;
    const first = new Promise<string>((resolve) => {
      reported = resolve;
    });
    socket.on('data', (text) => {
      received += String(text);
      reported(received);
    });
    socket.on('error', () => undefined);
    const closed = new Promise<string>((resolve) => socket.once('close', () => resolve(received)));
    void closed.then(reported);
    /** `first`: what it was told first, or nothing when it was closed. */
    return { socket, closed, first };
  };
  const within = async <T>(ms: number, what: string, work: Promise<T>): Promise<T> => {
    const { promise, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => reject(new Error(`${what}: not within ${ms * patience} ms`)), ms * patience);
    return Promise.race([work, promise]).finally(() => clearTimeout(timer));
  };
  const get = 'GET /v1/errors HTTP/1.1\r\nHost: x\r\n\r\n';

  t('connections are limited per address and in total; one that ends frees its slot', async () => {
    const registry = createRegistry('test');
    const limits = { maxConnections: 5, maxConnectionsPerAddress: 3, registry };
    const { port } = await behindProxy({ rate: world.deps.rate }, limits);
    const held = [dial(port, get), dial(port, get), dial(port, get)];
    for (const one of held) assert.match(await one.first, /200 OK/);
    assert.equal(await within(5_000, 'a fourth is closed', dial(port, get).closed), '');
    held[0]?.socket.destroy();
    await until('there is room again', async () => {
      const next = dial(port, get);
      const reported = await next.first;
      next.socket.destroy();
      return reported.includes('200 OK');
    });
    const metrics = await registry.metrics();
    assert.match(metrics, /api_connections_refused_total\{limit="address"[^}]*\} [1-9]/);
    for (const one of held) one.socket.destroy();
    // Behind a proxy that is trusted every caller comes from one address.
    const trusting = { ...limits, registry: createRegistry('proxied'), trustedProxies: readTrustedProxies('1') };
    const proxied = await behindProxy({ rate: world.deps.rate }, trusting);
    const five = Array.from({ length: 5 }, () => dial(proxied.port, get));
    for (const one of five) assert.match(await one.first, /200 OK/);
    assert.equal(await within(5_000, 'a sixth is closed', dial(proxied.port, get).closed), '');
    assert.match(await trusting.registry.metrics(), /api_connections_refused_total\{limit="all"[^}]*\} [1-9]/);
    for (const one of five) one.socket.destroy();
  });

  t(
    'a caller that sends nothing, too little or too slowly is disconnected, and one that reads no answer too',
    async () => {
      const limits = { headersMs: 300, requestMs: 600, silentMs: 900, betweenMs: 300, lingerMs: 100 };
      const registry = createRegistry('patience');
      const { port } = await behindProxy({ rate: world.deps.rate }, { patience: limits, registry });
      const silent = dial(port);
      const halfLine = dial(port, 'GET /v1/err');
      const dripping = dial(port, 'GET /v1/errors HTTP/1.1\r\n');
      const drip = setInterval(() => dripping.socket.write('X-A: b\r\n'), 50);
      const body = dial(
        port,
        `POST /v1/clients HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${world.liveKey.secret}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{`,
      );
      const slowBody = setInterval(() => body.socket.write(' '), 50);
      const idle = dial(port, get);
      const wordsOf = (one: ReturnType<typeof dial>, what: string) => within(10_000, what, one.closed);
      try {
        for (const [slow, what] of [
          [halfLine, 'half a line'],
          [dripping, 'dripping headers'],
          [body, 'a dripping body'],
        ] as const) {
          const answer = await wordsOf(slow, what);
          assert.match(answer, /^HTTP\/1.1 408 Request Timeout\r\n/, what);
          assert.match(answer, /"code":"request_timeout"/, what);
        }
        // A browser opens connections ahead, and would show what it finds there as the answer to its next request.
        assert.equal(await wordsOf(silent, 'silence'), '');
        assert.match(await wordsOf(idle, 'between requests'), /^HTTP\/1.1 200 OK/);
        // Many answers asked for at once, none of them read. It does not see that it was let go.
        const deaf = dial(port);
        deaf.socket.pause();
        deaf.socket.write(get.repeat(4_000));
        const held = async () => (await registry.getSingleMetric('api_connections')?.get())?.values[0]?.value;
        await until('it is held', async () => (await held()) === 1, { withinMs: 10_000 });
        await until('an answer that nobody reads is given up', async () => (await held()) === 0, { withinMs: 10_000 });
        deaf.socket.destroy();
      } finally {
        clearInterval(drip);
        clearInterval(slowBody);
      }
      assert.match(
        await wordsOf(
          dial(port, `GET /v1/errors HTTP/1.1\r\nHost: x\r\nX-A: ${'a'.repeat(17_000)}\r\n\r\n`),
          'headers',
        ),
        /^HTTP\/1.1 400 /,
      );
      // Nobody else noticed.
      assert.match(
        await wordsOf(dial(port, get.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')), 'a good one'),
        /200 OK/,
      );
    },
  );
});
