/** What the worlds of simulated networks share. */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { NetworkCall, NetworkHttp } from '#contracts/ports/network-http.ts';
import type { PublishMedia } from '#contracts/ports/platform.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { GuardedNetworkHttp } from '#runtime/egress/network-http.ts';

const real = new GuardedNetworkHttp(new EgressGuard({ privateTargets: ['*'], ownHosts: () => [] }));

/** Marks each call with its target, which the network's ledger keeps. */
export class TaggedHttp implements NetworkHttp {
  readonly calls: NetworkCall[] = [];

  send(call: NetworkCall, signal: AbortSignal) {
    this.calls.push(call);
    const { targetId } = call.subject;
    const tag = targetId === null ? {} : { 'x-test-tag': targetId };
    return real.send({ ...call, headers: { ...call.headers, ...tag } }, signal);
  }
}

/** Where a network fetches files. */
export interface FileServer {
  readonly origin: string;
  /** Answers of this file that are 404 first. */
  readonly missing: Map<string, number>;
  close(): void;
}

export const startFiles = async (): Promise<FileServer> => {
  const missing = new Map<string, number>();
  const server = createServer(({ url = '' }, response) => {
    const [, kind = '', name = ''] = url.split('/');
    const left = missing.get(name) ?? 0;
    missing.set(name, left - 1);
    response.writeHead(left > 0 ? 404 : 200, { 'content-type': kind.replace('-', '/') }).end('bytes');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    ...{ origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, missing },
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
};

/** A file of nothing but its size; the simulators look into none. */
export const mediaOf = (
  file: string,
  over: Partial<PublishMedia> & Pick<PublishMedia, 'kind' | 'contentType' | 'bytes'>,
): PublishMedia => ({
  ...{ mediaId: randomUUID(), use: 'feed', sha256: '0'.repeat(64), width: 640, height: 480, durationMs: null },
  ...{ altText: null, file: async () => file, url: async () => '' },
  ...over,
});
