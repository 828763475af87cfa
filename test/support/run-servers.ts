/**
 * Servers that a run starts as soon as one of its files asks for them, and that end with the run. `TEST_SERVERS`, which
 * `test/run.ts` sets for its files, is where they ask; a file that is run alone starts its own.
 */
import { once } from 'node:events';
import { createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** Where the server of this name is, as it was when it started; null outside of a run. */
export const serverOfRun = async <Place>(
  name: string,
  here: string | null = process.env.TEST_SERVERS ?? null,
): Promise<Place | null> => {
  if (here === null) return null;
  // NOTE: not `fetch`, which waits five minutes for an answer: a start may install something first.
  const [answer] = await once(get(`${here}/${name}`, { agent: false }), 'response');
  const said = await text(answer);
  if (answer.statusCode !== 200) throw new Error(`the run has no ${name}: ${said}`);
  return JSON.parse(said) as Place;
};

/** @param starts by name, each called once; what it resolves with tells a file where the server is */
export const offerServers = async (
  starts: Readonly<Record<string, () => Promise<unknown>>>,
): Promise<{ readonly url: string; close(): void }> => {
  const started = new Map<string, Promise<unknown>>();
  const server = createServer(async (request, answer) => {
    const name = request.url?.slice(1) ?? '';
    const begun = started.get(name) ?? starts[name]?.() ?? Promise.reject(new Error('nobody starts it'));
    started.set(name, begun);
    try {
      const place = JSON.stringify(await begun);
      answer.writeHead(200).end(place);
    } catch (error) {
      answer.writeHead(500).end(String(error));
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
};
