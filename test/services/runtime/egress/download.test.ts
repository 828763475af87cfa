import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { createServer as createHttp, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createHttps } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Target } from '#runtime/egress/dial.ts';
import {
  DOWNLOAD_DEFAULTS,
  DownloadError,
  type Downloaded,
  type DownloadOptions,
  download,
} from '#runtime/egress/download.ts';
import { EgressGuard, resolveByDns } from '#runtime/egress/guard.ts';
import { type DnsDouble, dnsDouble } from '#test/support/dns-double.ts';
import { certificateFor, trust } from '#test/support/egress-certificate.ts';
import { type ReceiverPath, type Receivers, startReceivers } from '#test/support/egress-receivers.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const PUBLIC = '93.184.215.14';
const trusted = certificateFor(['files.example.com', 'cdn.example.com', 'inside.example.com']);
const unknown = certificateFor(['files.example.com']);
trust(trusted);

const content = randomBytes(3_000_000);
const sha256 = createHash('sha256').update(content).digest('hex');
const anyPrivate = new EgressGuard({ privateTargets: ['*'], ownHosts: () => [] });

suite('download', (t) => {
  let folder: string;
  let receivers: Receivers;
  let origin = '';
  /** What the next requests are answered with, by path. */
  let routes: Readonly<Record<string, RequestListener>> = {};
  const asked: IncomingMessage[] = [];
  const servers: Server[] = [];
  let count = 0;

  const listen = async (server: Server): Promise<number> => {
    servers.push(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  };
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    asked.push(request);
    const route = routes[new URL(request.url ?? '/', 'http://x').pathname];
    if (route === undefined) response.writeHead(404).end();
    else route(request, response);
  };
  const to = () => path.join(folder, String(count));
  const get = (
    url: string,
    more: Partial<DownloadOptions> = {},
    guard: EgressGuard = anyPrivate,
  ): Promise<Downloaded> => {
    count += 1;
    const signal = new AbortController().signal;
    return download(guard, url, { to: to(), maxBytes: 10_000_000, signal, resumeDelayMs: 1, ...more });
  };
  const fails = async (code: string, retryable: boolean, downloading: Promise<unknown>): Promise<void> => {
    await rejects(downloading, (error: unknown) => {
      ok(error instanceof DownloadError, String(error));
      deepEqual([error.code, error.retryable], [code, retryable]);
      equal(error.message, code);
      return true;
    });
    ok(!existsSync(to()), 'nothing is left');
  };
  const arrived = async ({ bytes, sha256: sum }: Downloaded): Promise<void> => {
    deepEqual([bytes, sum], [content.length, sha256]);
    ok(content.equals(await readFile(to())));
  };
  const send =
    (headers: Readonly<Record<string, string>> = {}, body: Buffer = content): RequestListener =>
    (_request, response) =>
      void response.writeHead(200, { 'content-length': String(body.length), ...headers }).end(body);
  const redirect =
    (location: string, status = 302): RequestListener =>
    (_request, response) =>
      void response.writeHead(status, { location }).end('moved');
  /** As a server does that knows ranges; the first `breaks` answers end in the middle. */
  const breaking = (breaks: number, headers: Readonly<Record<string, string>>): RequestListener => {
    let left = breaks;
    return (request, response) => {
      const ifRange = request.headers['if-range'];
      const valid = ifRange !== undefined && Object.values(headers).includes(String(ifRange));
      const start = valid ? Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0) : 0;
      const last = content.length - 1;
      const range = start > 0 ? { 'content-range': `bytes ${start}-${last}/${content.length}` } : {};
      const length = String(content.length - start);
      response.writeHead(start > 0 ? 206 : 200, { 'content-length': length, ...range, ...headers });
      if (left === 0) return void response.end(content.subarray(start));
      left -= 1;
      response.write(content.subarray(start, start + 1_000_000), () => response.destroy());
    };
  };

  t.before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'download-'));
    receivers = await startReceivers();
    origin = `http://127.0.0.1:${await listen(createHttp(answer))}`;
  });
  t.before.each(() => {
    asked.length = 0;
    routes = {};
  });
  t.after(async () => {
    for (const server of servers) {
      if ('closeAllConnections' in server) (server as ReturnType<typeof createHttp>).closeAllConnections();
      await new Promise((done) => server.close(done));
    }
    await receivers.close();
    await rm(folder, { recursive: true, force: true });
  });

  t('downloads the file, with the name and type that the server gives', async () => {
    routes = { '/a/b.png': send({ 'content-type': 'image/png' }) };
    const done = await get(`${origin}/a/b.png?token=secret#part`);
    await arrived(done);
    deepEqual(
      [done.contentType, done.fileName, done.finalUrl],
      ['image/png', 'b.png', `${origin}/a/b.png?token=secret`],
    );
    const { method, url, headers } = asked[0] as IncomingMessage;
    deepEqual([method, url, headers['accept-encoding']], ['GET', '/a/b.png?token=secret', 'identity']);
    deepEqual([headers.range, headers.cookie, headers.referer, headers.authorization], Array(4).fill(undefined));
  });

  t('takes a valid name from Content-Disposition', async () => {
    const names: readonly (readonly [disposition: string, name: string | null])[] = [
      ['attachment; filename="a photo.jpg"', 'a photo.jpg'],
      ['attachment; filename=plain.jpg', 'plain.jpg'],
      ["attachment; filename=x.jpg; filename*=UTF-8''caf%C3%A9.jpg", 'café.jpg'],
      ['attachment; filename="../../etc/passwd"', 'passwd'],
      ['attachment; filename="C:\\\\temp\\\\a.jpg"', 'a.jpg'],
      ['attachment; filename=".."', null],
      ["attachment; filename*=UTF-8''%zz", null],
      [`attachment; filename="${'x'.repeat(500)}"`, 'x'.repeat(200)],
    ];
    for (const [disposition, name] of names) {
      routes = { '/': send({ 'content-disposition': disposition }) };
      equal((await get(`${origin}/`)).fileName, name, disposition);
    }
  });

  t('has the documented limits', () => {
    deepEqual(DOWNLOAD_DEFAULTS, {
      ...{ maxRedirects: 5, maxResumes: 5, resumeDelayMs: 500 },
      ...{ connectMs: 10_000, totalMs: 1_800_000, idleMs: 30_000 },
      ...{ headStartMs: 120_000, minRate: 262_144, windowMs: 30_000, minWindowRate: 65_536 },
    });
  });

  t('follows at most five redirects', async () => {
    const hops = (last: number) =>
      Object.fromEntries(
        Array.from({ length: last }, (_, at) => [`/${at}`, redirect(`/${at + 1}`, [301, 302, 303, 307, 308][at % 5])]),
      );
    routes = { ...hops(5), '/5': send() };
    const done = await get(`${origin}/0`);
    await arrived(done);
    equal(done.finalUrl, `${origin}/5`);
    routes = { ...hops(6), '/6': send() };
    await fails('import_too_many_redirects', false, get(`${origin}/0`));
    routes = { '/loop': redirect('/loop') };
    asked.length = 0;
    await fails('import_too_many_redirects', false, get(`${origin}/loop`));
    equal(asked.length, 6);
    routes = { '/': redirect('http://[') };
    await fails('import_refused', false, get(`${origin}/`));
  });

  t('refuses a URL that the guard refuses, also after a redirect', async () => {
    const strict = new EgressGuard({ privateTargets: [new URL(origin).host], ownHosts: () => ['api.example.com'] });
    const urls = [
      'http://127.0.0.1:1/',
      'https://10.0.0.1/',
      'https://localhost/',
      'https://user:pass@example.com/a',
      'ftp://example.com/',
      'file:///etc/passwd',
      'https://api.example.com/v1',
      'https://example.com:8443/',
      'http://example.com/',
    ];
    for (const url of urls) {
      await fails('import_url_not_allowed', false, get(url, {}, strict));
      routes = { '/0': redirect('/1'), '/1': redirect('/2'), '/2': redirect(url) };
      await fails('import_url_not_allowed', false, get(`${origin}/0`, {}, strict));
    }
  });

  t('stops at the limit of bytes: at once by the announced length, else at the byte', async () => {
    routes = { '/said': send(), '/chunked': (_request, response) => void response.end(content) };
    await arrived(await get(`${origin}/said`, { maxBytes: content.length }));
    await fails('import_too_large', false, get(`${origin}/said`, { maxBytes: content.length - 1 }));
    await arrived(await get(`${origin}/chunked`, { maxBytes: content.length }));
    await fails('import_too_large', false, get(`${origin}/chunked`, { maxBytes: content.length - 1 }));
    routes = {
      '/endless': (_request, response) => {
        response.writeHead(200);
        const more = (): void => void (response.destroyed || response.write(content, more));
        more();
      },
    };
    await fails('import_too_large', false, get(`${origin}/endless`));
  });

  t('ends at the limits of silence and of total time', async () => {
    const cases: readonly (readonly [ReceiverPath, Partial<DownloadOptions>, boolean])[] = [
      ['/silence', { idleMs: 150 }, true],
      ['/drip-headers', { idleMs: 150 }, true],
      ['/endless-hints', { totalMs: 300 }, false],
    ];
    await Promise.all(
      cases.map(async ([at, limits, retryable]) => {
        const own = path.join(folder, at.slice(1));
        await rejects(
          download(anyPrivate, receivers.url(at), {
            to: own,
            maxBytes: 1 << 20,
            signal: new AbortController().signal,
            ...limits,
          }),
          { code: 'import_timeout', retryable },
        );
        ok(!existsSync(own));
        await until(`${at} is hung up on`, async () => (await receivers.seen(at)).closed === 1);
      }),
    );
  });

  t('a slow body that is never silent ends at the limit of total time', async () => {
    routes = {
      '/': (_request, response) => {
        response.writeHead(200, { 'content-length': '100000' });
        const timer = setInterval(() => response.write('.'), 10);
        response.once('close', () => clearInterval(timer));
      },
    };
    await fails('import_timeout', false, get(`${origin}/`, { totalMs: 400, idleMs: 300 }));
  });

  /** Stands still until it is put forward. */
  const clockByHand = () => {
    let at = 0;
    let looks = 0;
    return {
      now: (): number => {
        looks += 1;
        return at;
      },
      /** Resolves when the limits were held against it. */
      put: async (ms: number): Promise<void> => {
        at = ms;
        looks = 0;
        await until('the clock is looked at', async () => looks > 2 || !existsSync(to()));
      },
    };
  };
  const written = (bytes: number): Promise<unknown> =>
    until(`${bytes} bytes are there`, async () => existsSync(to()) && (await stat(to())).size === bytes);

  /** Sends what the test writes, when the test writes it. */
  const served = (length: number) => {
    const open: ServerResponse[] = [];
    const file = randomBytes(length);
    routes = {
      '/': (_request, response) => {
        open.push(response);
        response.writeHead(200, { 'content-length': String(length) }).flushHeaders();
      },
    };
    return { file, open };
  };

  t('a body below the minimum rate fails for good, exactly at the limit', async () => {
    const limits = { headStartMs: 60_000, minRate: 10_000, windowMs: 30_000, minWindowRate: 1_000 };
    const arriving = async (first: number, clockMs: number): Promise<Downloaded> => {
      const clock = clockByHand();
      const { file, open } = served(1_000_000);
      const done = get(`${origin}/`, { now: clock.now, idleMs: 3_600_000, ...limits });
      done.catch(() => undefined);
      await until('it is asked', async () => open.length === 1);
      open[0]?.write(file.subarray(0, first));
      await written(first);
      await clock.put(clockMs);
      open[0]?.end(file.subarray(first));
      return done;
    };
    // Over the window, here all that there was.
    await fails('import_timeout', false, arriving(29_999, 30_000));
    equal((await arriving(30_000, 30_000)).bytes, 1_000_000);
    equal((await arriving(1, 29_999)).bytes, 1_000_000);
    // Since the start: a minute, and a second more for each 10,000 bytes.
    await fails('import_timeout', false, arriving(100_000, 70_000));
    equal((await arriving(100_000, 69_999)).bytes, 1_000_000);
  });

  t('bytes received before a restart count for the rate', async () => {
    const clock = clockByHand();
    const part = 2_000_000;
    const open: ServerResponse[] = [];
    routes = {
      '/': (_request, response) => {
        open.push(response);
        response.writeHead(200, { 'content-length': String(content.length) }).write(content.subarray(0, part));
      },
    };
    const limits = { headStartMs: 1_000, minRate: 1_000_000 };
    const done = get(`${origin}/`, { now: clock.now, idleMs: 3_600_000, ...limits });
    done.catch(() => undefined);
    await written(part);
    open[0]?.destroy();
    await until('it is asked for again', () => Promise.resolve(asked.length === 2));
    await written(part);
    await clock.put(4_999);
    open[1]?.end(content.subarray(part));
    await arrived(await done);
  });

  t('stops at its signal and leaves no file', async () => {
    const stop = new AbortController();
    routes = {
      '/': (_request, response) => void response.writeHead(200).write('x', () => stop.abort(new Error('no more use'))),
    };
    await rejects(get(`${origin}/`, { signal: stop.signal }), /no more use/);
    ok(!existsSync(to()));
    await rejects(get(`${origin}/`, { signal: stop.signal }), /no more use/);
    equal(asked.length, 1);
  });

  t('each status of the server is a permanent or a temporary failure', async () => {
    for (const [status, retryable] of [
      [401, false],
      [403, false],
      [404, false],
      [410, false],
      [204, false],
      [206, false],
      [304, false],
      [429, true],
      [408, true],
      [500, true],
      [503, true],
    ] as const) {
      routes = { '/': (_request, response) => void response.writeHead(status).end() };
      await fails('import_refused', retryable, get(`${origin}/`));
    }
    const bad: readonly (readonly [ReceiverPath, string, boolean])[] = [
      ['/garbage', 'import_refused', false],
      ['/large-headers', 'import_refused', false],
      ['/endless-headers', 'import_refused', false],
      ['/reset', 'import_unreachable', true],
      ['/close', 'import_unreachable', true],
    ];
    for (const [at, code, retryable] of bad) await fails(code, retryable, get(receivers.url(at)));
  });

  t('refuses a compressed answer and inflates nothing', async () => {
    await fails('import_not_media', false, get(receivers.url('/gzip-bomb')));
    routes = {
      '/': send({ 'content-encoding': 'gzip' }, gzipSync(content)),
      '/identity': send({ 'content-encoding': 'identity' }),
    };
    await fails('import_not_media', false, get(`${origin}/`));
    await arrived(await get(`${origin}/identity`));
  });

  t('resumes an interrupted download twice, by ETag or by date', async () => {
    for (const headers of [{ etag: '"one"' }, { 'last-modified': 'Wed, 21 Oct 2015 07:28:00 GMT' }]) {
      routes = { '/start': redirect('/file'), '/file': breaking(2, headers) };
      asked.length = 0;
      await arrived(await get(`${origin}/start`));
      const ranges = asked.filter(({ url }) => url === '/file').map(({ headers: sent }) => sent.range);
      equal(ranges.length, 3);
      equal(ranges[0], undefined);
      for (const range of ranges.slice(1)) match(String(range), /^bytes=[1-9]\d*-$/);
      equal(asked.at(-1)?.headers['if-range'], Object.values(headers)[0]);
    }
  });

  t('starts again where the file may have changed', async () => {
    routes = { '/': breaking(2, { etag: 'W/"weak"' }) };
    await arrived(await get(`${origin}/`));
    ok(asked.every(({ headers }) => headers.range === undefined));

    const other = randomBytes(content.length);
    const first = breaking(1, { etag: '"one"' });
    let requests = 0;
    const then =
      (listener: RequestListener): RequestListener =>
      (request, response) => {
        requests += 1;
        (requests === 1 ? first : listener)(request, response);
      };
    // It has changed: a server that knows If-Range sends all of the new one.
    routes = { '/': then(send({ etag: '"two"' }, other)) };
    equal((await get(`${origin}/`)).sha256, createHash('sha256').update(other).digest('hex'));
  });

  t('never joins two files: a range with another ETag or date is refused', async () => {
    const other = randomBytes(content.length);
    const date = 'Wed, 21 Oct 2015 07:28:00 GMT';
    const later = 'Thu, 22 Oct 2015 07:28:00 GMT';
    for (const [was, is] of [
      [{ etag: '"one"' }, { etag: '"two"' }],
      [{ etag: '"one"' }, { etag: 'W/"two"' }],
      [{ 'last-modified': date }, { 'last-modified': later }],
    ] as const) {
      let requests = 0;
      const first = breaking(1, was);
      routes = {
        '/': (request, response) => {
          requests += 1;
          if (requests === 1) return first(request, response);
          const [, start] = /^bytes=(\d+)-$/.exec(request.headers.range ?? '') ?? [];
          if (start === undefined) return send(is, other)(request, response);
          const range = `bytes ${start}-${other.length - 1}/${other.length}`;
          response.writeHead(206, { 'content-range': range, ...is }).end(other.subarray(Number(start)));
        },
      };
      await get(`${origin}/`);
      equal(requests, 3);
      ok(other.equals(await readFile(to())), JSON.stringify(is));
    }
  });

  t('a range without a validator continues by that of the first answer', async () => {
    let requests = 0;
    routes = {
      '/': (request, response) => {
        requests += 1;
        const start = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0);
        const range = `bytes ${start}-${content.length - 1}/${content.length}`;
        if (start === 0) response.writeHead(200, { 'content-length': String(content.length), etag: '"one"' });
        else response.writeHead(206, { 'content-range': range });
        if (requests === 3) response.end(content.subarray(start));
        else response.write(content.subarray(start, start + 1_000_000), () => response.destroy());
      },
    };
    await arrived(await get(`${origin}/`));
    deepEqual(
      asked.map(({ headers }) => headers['if-range']),
      [undefined, '"one"', '"one"'],
    );
  });

  t('refuses a range that it did not request', async () => {
    const lies: readonly string[] = [
      'bytes 0-99/100',
      'bytes 5-2999999/3000000',
      `bytes */${content.length}`,
      'nonsense',
    ];
    for (const range of lies) {
      const first = breaking(1, { etag: '"one"' });
      let requests = 0;
      routes = {
        '/': (request, response) => {
          requests += 1;
          if (requests === 1) first(request, response);
          else if (request.headers.range === undefined) send({ etag: '"one"' })(request, response);
          else response.writeHead(206, { 'content-range': range }).end(content);
        },
      };
      await arrived(await get(`${origin}/`));
      equal(requests, 3, range);
    }
    const first = breaking(1, { etag: '"one"' });
    let requests = 0;
    routes = {
      '/': (request, response) => {
        requests += 1;
        if (requests === 1) first(request, response);
        else if (request.headers.range === undefined) send()(request, response);
        else response.writeHead(416).end();
      },
    };
    await arrived(await get(`${origin}/`));
  });

  t('fails after too many interruptions, and when the body is shorter than announced', async () => {
    routes = { '/': breaking(99, {}) };
    await fails('import_unreachable', true, get(`${origin}/`, { maxResumes: 3 }));
    equal(asked.length, 4);
    await fails('import_unreachable', true, get(receivers.url('/status-then-close'), { maxResumes: 1 }));
    equal((await receivers.seen('/status-then-close')).requests, 2);
  });

  t('a closed port and an unknown name are unreachable', async () => {
    const port = await listen(createHttp());
    await new Promise((done) => servers.pop()?.close(done));
    await fails('import_unreachable', true, get(`http://127.0.0.1:${port}/`));
    await fails('import_unreachable', true, get('http://no-such-name.invalid/'));
  });
});

suite('download from names', (t) => {
  let dns: DnsDouble;
  let guard: EgressGuard;
  let folder: string;
  let port = 0;
  let unknownPort = 0;
  let strays = 0;
  let strayPort = 0;
  const asked: string[] = [];
  const servers: ReturnType<typeof createHttps>[] = [];
  const listen = async (server: ReturnType<typeof createHttps>): Promise<number> => {
    servers.push(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  };
  const files: RequestListener = (request, response) => {
    asked.push(`${request.headers.host}${request.url}`);
    const moved = new Map([
      ['/moved', 'https://cdn.example.com/file'],
      ['/1', '/2'],
      ['/2', 'https://cdn.example.com/3'],
      ['/3', 'https://inside.example.com/secret'],
      ['/plain', 'http://cdn.example.com/file'],
    ]).get(request.url ?? '');
    if (moved !== undefined) response.writeHead(302, { location: moved }).end();
    else response.end(content);
  };
  const get = (url: string, toPort = () => port): Promise<Downloaded> =>
    download(guard, url, {
      to: path.join(folder, 'file'),
      maxBytes: 10_000_000,
      signal: new AbortController().signal,
      connectTo: ({ addresses }: Target) => ({
        addresses: ['127.0.0.1'],
        port: addresses.every((one) => one === PUBLIC) ? toPort() : strayPort,
      }),
    });

  t.before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'download-'));
    dns = await dnsDouble();
    guard = new EgressGuard({
      privateTargets: [],
      ownHosts: () => [],
      resolve: resolveByDns([dns.server]),
      dnsMs: 1_000,
    });
    port = await listen(createHttps(trusted, files));
    unknownPort = await listen(createHttps(unknown, files));
    strayPort = await listen(createHttps(trusted, () => (strays += 1)));
  });
  t.before.each(() => {
    asked.length = 0;
    dns.answer((name, type) => (type === 'AAAA' ? [] : name === 'inside.example.com' ? ['10.1.2.3'] : [PUBLIC]));
  });
  t.after(async () => {
    for (const server of servers) {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    }
    await dns.close();
    await rm(folder, { recursive: true, force: true });
  });

  t('connects over TLS to the checked address, also after a redirect to another host', async () => {
    const done = await get('https://files.example.com/moved');
    equal(done.sha256, sha256);
    deepEqual(asked, ['files.example.com/moved', 'cdn.example.com/file']);
  });

  t('a redirect to a private name is refused, also at the third hop', async () => {
    await rejects(get('https://files.example.com/1'), { code: 'import_url_not_allowed', retryable: false });
    deepEqual(asked, ['files.example.com/1', 'files.example.com/2', 'cdn.example.com/3']);
    equal(strays, 0);
  });

  t('a name that is public first and private at the next lookup is refused', async () => {
    const before = dns.questions.filter((one) => one === 'A cdn.example.com').length;
    dns.answer((name, type, nth) => {
      if (type === 'AAAA') return [];
      return name === 'cdn.example.com' && nth > before ? ['127.0.0.1'] : [PUBLIC];
    });
    equal((await get('https://cdn.example.com/file')).sha256, sha256);
    await rejects(get('https://files.example.com/moved'), { code: 'import_url_not_allowed' });
    equal(strays, 0);
  });

  t('a redirect to plain http is refused', async () => {
    await rejects(get('https://files.example.com/plain'), { code: 'import_url_not_allowed' });
  });

  t('an untrusted certificate fails for good', async () => {
    await rejects(
      get('https://files.example.com/file', () => unknownPort),
      { code: 'import_unreachable', retryable: false },
    );
  });
});
