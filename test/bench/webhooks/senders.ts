/** Bare ways to send a body of 1,024 bytes to an endpoint, for the limits. Each @throws when the answer is not a 204. */
import { randomBytes, randomUUID } from 'node:crypto';
import { Pool } from 'undici';
import { Exchange } from '#runtime/egress/exchange.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { deliveryHeaders, signingKey } from '#runtime/identity/webhook-signature.ts';

/** Requests under way to one endpoint, as ours has them. */
export const width = 64;

export type Send = (endpoint: number, body: Buffer) => Promise<void>;

const must = (status: number | null): void => {
  if (status !== 204) throw new Error(`the receiver answered with ${status}`);
};

/** undici as it comes. */
export const plainSender = (urls: readonly string[]): Send => {
  const clients = urls.map((url) => {
    const { origin, pathname } = new URL(url);
    return { path: pathname, pool: new Pool(origin, { connections: width, pipelining: 1 }) };
  });
  const headers = { 'content-type': 'application/json' };
  return async (endpoint, body) => {
    const client = clients[endpoint % clients.length];
    if (client === undefined) throw new Error('no endpoint');
    const answer = await client.pool.request({ method: 'POST', path: client.path, headers, body });
    await answer.body.dump();
    must(answer.statusCode);
  };
};

/** Our own client with its guard, and both signatures. */
export const signingSender = (urls: readonly string[]): Send => {
  const exchange = new Exchange(new EgressGuard({ privateTargets: ['*'], ownHosts: () => [] }));
  const keys = [signingKey(`whsec_${randomBytes(32).toString('base64')}`)];
  return async (endpoint, body) => {
    const timestamp = Math.floor(Date.now() / 1_000);
    const signed = { id: randomUUID(), body, attempt: 1, timestamp, consistencyToken: 'posts-0=1' };
    const { status } = await exchange.post(urls[endpoint % urls.length] ?? '', deliveryHeaders(keys, signed), body);
    must(status);
  };
};
