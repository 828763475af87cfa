/** The tour's text for a refusal: built from the answer alone. */
import { deepEqual, equal, rejects } from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { TourClient } from '#services/standalone/tour-client.ts';
import { showReal } from '#services/standalone/tour-real.ts';
import { suite } from '#test/support/suite.ts';

const problem = { title: 'A part is unavailable', code: 'unavailable', detail: 'The event store does not answer.' };

suite('tour client', (t) => {
  t('an error shows the message of the answer', async () => {
    let [status, body] = [200, ''];
    const server = createServer((_request, response) => response.writeHead(status).end(body)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const http = new TourClient(`http://127.0.0.1:${port}`, 'key', new AbortController().signal);
    const { detail, code, title } = problem;
    const cases: readonly (readonly [number, string, string])[] = [
      [503, JSON.stringify(problem), ' unavailable: The event store does not answer.'],
      [503, JSON.stringify({ code, title }), ' unavailable: A part is unavailable'],
      [422, JSON.stringify({ ...problem, errors: [{ path: '/x' }] }), ` unavailable: ${detail} [{"path":"/x"}]`],
      [502, '<h1>Bad gateway</h1>', ': <h1>Bad gateway</h1>'],
      [503, '', ''],
      [500, 'null', ': null'],
    ];
    for (const [refused, text, words] of cases) {
      [status, body] = [refused, text];
      await rejects(http.get('/posts'), { message: `GET /posts was answered with ${refused}${words}` });
    }
    [status, body] = [200, '{"data":{"id":"1"}}'];
    equal((await http.get<{ id: string }>('/posts')).id, '1');
    server.close();
  });

  t('a call above the allowance is sent again, under its key', async () => {
    const keys: unknown[] = [];
    const server = createServer((request, response) => {
      keys.push(request.headers['idempotency-key']);
      const refused = keys.length < 3;
      if (refused) response.setHeader('Retry-After', '0');
      response.writeHead(refused ? 429 : 200).end(refused ? '{"code":"rate_limited"}' : '{"data":{"id":"1"}}');
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const http = new TourClient(`http://127.0.0.1:${port}`, 'key', new AbortController().signal);
    equal((await http.post<{ id: string }>('/posts', {})).id, '1');
    deepEqual(keys, Array(3).fill(keys[0]));
    server.close();
  });

  t('a form that the page refuses: its words, and the tour goes on', async () => {
    const server = createServer((request, response) => {
      if (request.url === '/invite') {
        const words = '<p class="alert" tabindex="-1" autofocus role="alert">Bluesky does not take this password.</p>';
        return response.writeHead(request.method === 'GET' ? 200 : 422).end(`value="bluesky" ${words}`);
      }
      const data = request.method === 'GET' ? [] : { id: '1', url: `http://${request.headers.host}/invite` };
      return response.writeHead(200).end(JSON.stringify({ data }));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const http = new TourClient(`http://127.0.0.1:${port}`, 'key', new AbortController().signal);
    const lines: string[] = [];
    const screen = { event: (...line: readonly string[]) => void lines.push(line.join(' ')) };
    const real = { handle: 'ann.bsky.social', password: 'of-another' };
    equal(await showReal({ http, real, content: 'Hello', screen }), false);
    deepEqual(lines, [
      'bluesky not connected connecting bluesky was answered with 422 Bluesky does not take this password. failed',
    ]);
    server.close();
  });
});
