/** The least HTTP server that hands out a store's presigned URLs: what the api adds is tested with the api. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { type BlobStore, ServedRefusal } from '#contracts/ports/blob-store.ts';

const statuses = { url_invalid: 403, mismatch: 400, type: 415, method: 405, not_found: 404 } as const;

const answer = async (store: BlobStore, request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const { method = '', url = '', headers } = request;
  try {
    const given = await store.served?.handle({ method, url, headers, body: request });
    response.writeHead(given?.status ?? 404, given?.headers);
    if (given?.body instanceof Readable) given.body.pipe(response);
    else response.end(given?.body ?? undefined);
  } catch (error) {
    response.writeHead(error instanceof ServedRefusal ? statuses[error.code] : 500).end();
  }
};

export const front = async (store: () => BlobStore) => {
  const server = createServer((request, response) => void answer(store(), request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
};
