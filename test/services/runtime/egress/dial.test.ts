/** Where connections really go: names come from a name server on loopback, and the "public" addresses lead to servers of ours. */
import { deepEqual, equal, ok } from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { createServer as createTcp, type Server, type Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Target } from '#runtime/egress/dial.ts';
import { isPinned } from '#runtime/egress/dial.ts';
import { Exchange, type ExchangeOptions, type ExchangeResult } from '#runtime/egress/exchange.ts';
import { EgressGuard, resolveByDns } from '#runtime/egress/guard.ts';
import { type DnsAnswer, type DnsDouble, dnsDouble } from '#test/support/dns-double.ts';
import { certificateFor, trust } from '#test/support/egress-certificate.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const FIRST = '93.184.215.14';
const SECOND = '93.184.215.15';
const V6 = '2606:4700::1111';
const trusted = certificateFor(['hooks.example.com', 'www.example.com']);
const unknown = certificateFor(['hooks.example.com']);
const expired = certificateFor(['hooks.example.com'], { expired: true });
trust(trusted, expired);

suite('egress connections', (t) => {
  let dns: DnsDouble;
  let guard: EgressGuard;
  /** A server of ours behind the public address; every request it had, as `SNI Host path`. */
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  const servers: Server[] = [];
  const exchanges: Exchange[] = [];
  const dialled: Target[] = [];
  /** Behind an address that is not public: no request may arrive here. */
  let strays = 0;
  let port = 0;
  let strayPort = 0;

  const listen = async (server: Server): Promise<number> => {
    servers.push(server);
    server.on('connection', (socket: Socket) => {
      sockets.add(socket);
      socket.on('error', () => {}).once('close', () => sockets.delete(socket));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    return address !== null && typeof address === 'object' ? address.port : 0;
  };
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const sni = (request.socket as TLSSocket).servername;
    requests.push(`${String(sni)} ${request.headers.host} ${request.url}`);
    request.resume().once('end', () => {
      if (request.url === '/redirect') response.writeHead(302, { location: 'https://10.0.0.1/' });
      response.end('ok');
    });
  };
  const leadTo =
    (toPort: () => number) =>
    (judged: Target): Target => {
      dialled.push(judged);
      const isPublic = judged.addresses.every((one) => [FIRST, SECOND, V6].includes(one));
      return { addresses: ['127.0.0.1'], port: isPublic ? toPort() : strayPort };
    };
  const exchangeWith = (options: ExchangeOptions = {}, toPort = () => port): Exchange => {
    const exchange = new Exchange(guard, { connectTo: leadTo(toPort), ...options });
    exchanges.push(exchange);
    return exchange;
  };
  const post = (exchange: Exchange, path = '/'): Promise<ExchangeResult> =>
    exchange.post(`https://hooks.example.com${path}`, {}, Buffer.from('{}'));
  const outcome = ({ status, error }: ExchangeResult) => [status, error];
  const hooksAre = (a: DnsAnswer, aaaa: DnsAnswer = []): void => dns.answer((_name, type) => (type === 'A' ? a : aaaa));

  t.before(async () => {
    dns = await dnsDouble();
    guard = new EgressGuard({
      privateTargets: [],
      ownHosts: () => [],
      resolve: resolveByDns([dns.server]),
      dnsMs: 400,
    });
    port = await listen(createHttps(trusted, answer));
    strayPort = await listen(createTcp(() => (strays += 1)));
  });
  t.before.each(() => {
    hooksAre([FIRST]);
    requests.length = 0;
    dialled.length = 0;
  });
  t.after.each(async () => {
    await Promise.all(exchanges.splice(0).map((one) => one.close()));
    equal(strays, 0);
  });
  t.after(async () => {
    for (const socket of sockets) socket.destroy();
    await Promise.all(servers.map((one) => new Promise((done) => one.close(done))));
    await dns.close();
  });

  t('go to the checked addresses, with the name in Host and SNI', async () => {
    hooksAre([FIRST, SECOND], [V6]);
    deepEqual(outcome(await post(exchangeWith(), '/hook?a=1')), [200, null]);
    deepEqual(dialled, [{ addresses: [FIRST, SECOND, V6], port: 443 }]);
    deepEqual(requests, ['hooks.example.com hooks.example.com /hook?a=1']);
  });

  t('try the next address when one refuses', async () => {
    const free = await listen(createTcp());
    await new Promise((done) => servers.pop()?.close(done));
    const addresses = ['127.0.0.2', '127.0.0.1'];
    const elsewhere = exchangeWith({ connectTo: () => ({ addresses, port }) });
    deepEqual(outcome(await post(elsewhere)), [200, null]);
    deepEqual(outcome(await post(exchangeWith({ connectTo: () => ({ addresses, port: free }) }))), [
      null,
      'connection_failed',
    ]);
  });

  t('are refused when any address is private, and the result does not say which', async () => {
    const answers: readonly (readonly [a: DnsAnswer, aaaa: DnsAnswer])[] = [
      [['127.0.0.1'], []],
      [[FIRST, '192.168.1.1'], []],
      [[FIRST], ['::1']],
      [[], ['64:ff9b::7f00:1']],
    ];
    for (const [a, aaaa] of answers) {
      hooksAre(a, aaaa);
      const { status, error, durationMs, headers, bodyStart } = await post(exchangeWith());
      deepEqual([status, error, durationMs, headers, bodyStart.length], [null, 'url_not_allowed', 500, {}, 0]);
    }
    deepEqual(dialled, []);
  });

  t('use the checked addresses: one lookup a connection, whatever the name resolves to later', async () => {
    dns.answer((name, type, nth) => {
      if (type === 'AAAA' || name !== 'www.example.com') return [];
      return nth === 0 ? [FIRST] : ['127.0.0.1'];
    });
    const exchange = exchangeWith({ maxAgeMs: 0 });
    const rebinding = (): Promise<ExchangeResult> => exchange.post('https://www.example.com/', {}, Buffer.from('{}'));
    deepEqual(outcome(await rebinding()), [200, null]);
    equal(dns.questions.filter((one) => one === 'A www.example.com').length, 1);
    deepEqual(dialled, [{ addresses: [FIRST], port: 443 }]);
    deepEqual(outcome(await rebinding()), [null, 'url_not_allowed']);
    equal(dialled.length, 1);
  });

  t('are checked again after the registration', async () => {
    const url = guard.checkUrl('https://hooks.example.com/');
    equal(await guard.vet(url), 'resolved');
    hooksAre(['10.0.0.1']);
    deepEqual(outcome(await post(exchangeWith())), [null, 'url_not_allowed']);
    deepEqual(dialled, []);
  });

  t('stay open while they are kept alive; the next one is checked again', async () => {
    const exchange = exchangeWith();
    deepEqual(outcome(await post(exchange)), [200, null]);
    const asked = dns.questions.length;
    hooksAre(['127.0.0.1']);
    for (let nth = 0; nth < 5; nth += 1) deepEqual(outcome(await post(exchange)), [200, null]);
    deepEqual([dns.questions.length, dialled.length, requests.length], [asked, 1, 6]);
    for (const socket of sockets) socket.destroy();
    await until('the connection is gone', () => sockets.size === 0);
    deepEqual(outcome(await post(exchange)), [null, 'url_not_allowed']);
    ok(dns.questions.length > asked);
    deepEqual([dialled.length, requests.length], [1, 6]);
  });

  t('do not follow a redirect to a private address', async () => {
    deepEqual(outcome(await post(exchangeWith(), '/redirect')), [302, null]);
    deepEqual([dialled.length, requests.length], [1, 1]);
  });

  t('of one name are not reused for another', async () => {
    const exchange = exchangeWith();
    await post(exchange);
    hooksAre(['10.0.0.1']);
    const other = await exchange.post('https://www.example.com/', {}, Buffer.from('{}'));
    deepEqual(outcome(other), [null, 'url_not_allowed']);
  });

  t('fail when no name server answers in time or knows the name', async () => {
    hooksAre('no such name', 'no such name');
    const unknownName = await post(exchangeWith());
    hooksAre('silence', 'silence');
    const silent = await post(exchangeWith());
    for (const one of [unknownName, silent])
      deepEqual([...outcome(one), one.durationMs], [null, 'connection_failed', 500]);
    deepEqual(dialled, []);
  });

  t('count their lookup into the total limit', async () => {
    hooksAre('silence', 'silence');
    const { error, durationMs } = await post(exchangeWith({ totalMs: 100 }));
    equal(error, 'timeout');
    ok(durationMs >= 100 && durationMs < 400, `${durationMs} ms`);
  });

  t('need a certificate for the name, of a known authority, that is still good; and TLS at all', async () => {
    const wrong: readonly (readonly [what: string, server: Server])[] = [
      ['unknown authority', createHttps(unknown, answer)],
      ['expired', createHttps(expired, answer)],
      ['another name', createHttps(trustedFor('other.example.com'), answer)],
      ['an address instead of the name', createHttps(trustedFor('93.184.215.14'), answer)],
      ['plain http', createTcp((socket) => socket.resume().end('HTTP/1.1 400 Bad Request\r\n\r\n'))],
    ];
    for (const [what, server] of wrong) {
      const there = await listen(server);
      deepEqual(outcome(await post(exchangeWith({}, () => there))), [null, 'tls_failed'], what);
    }
    deepEqual(requests, []);
  });

  t('that are closed or reset in the handshake failed as connections', async () => {
    const closing = await listen(createTcp((socket) => socket.once('data', () => socket.resume().end())));
    const resetting = await listen(createTcp((socket) => socket.once('data', () => socket.resetAndDestroy())));
    for (const there of [closing, resetting]) {
      deepEqual(outcome(await post(exchangeWith({}, () => there))), [null, 'connection_failed']);
    }
  });

  t('that stall in the TLS handshake end at the connect limit, and their socket with them', async () => {
    const stalling = await listen(createTcp((socket) => socket.resume()));
    const started = performance.now();
    const result = await post(exchangeWith({ connectMs: 200 }, () => stalling));
    const took = performance.now() - started;
    deepEqual(outcome(result), [null, 'timeout']);
    ok(took >= 199 && took < 1_200, `${took} ms`);
    await until('it is hung up on', () => sockets.size === 0);
  });

  t('end with the exchange that wanted them', async () => {
    const stalling = await listen(createTcp((socket) => socket.resume()));
    deepEqual(outcome(await post(exchangeWith({ totalMs: 150 }, () => stalling))), [null, 'timeout']);
    await until('it is hung up on', () => sockets.size === 0);
  });

  t('must have a checked remote address', () => {
    equal(isPinned('93.184.215.14', [FIRST, V6]), true);
    equal(isPinned('2606:4700:0:0::1111', [FIRST, V6]), true);
    equal(isPinned('127.0.0.1', [FIRST, V6]), false);
    equal(isPinned('::ffff:93.184.215.14', [FIRST, V6]), false);
    equal(isPinned(undefined, [FIRST]), false);
  });
});

/** A certificate that is trusted, but for another name. */
function trustedFor(name: string) {
  const one = certificateFor([name]);
  trust(one);
  return one;
}
