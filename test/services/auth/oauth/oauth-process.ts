/** An authorization server over the database of a test, until it dies: `<database> <SECRET_KEY> <origin of the test>`. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Koa from 'koa';
import { pino } from 'pino';
import { PostgresEventStore } from '#infra/postgres/event-store.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { defaultPartitions } from '#schemas/topics.ts';
import { oauthPart } from '#services/auth/oauth/part.ts';
import { drainSignal } from '#test/support/drain-signal.ts';
import { many } from '#test/support/oauth.ts';
import { TestKeys } from '#test/support/projecting.ts';

const [url = '', key = '', origin = ''] = process.argv.slice(2);
const eventStore = await PostgresEventStore.open({ url, pollMs: 200 });
const pool = openPool({ url, max: 4, name: 'mortal' });
let own = '';
const part = oauthPart({ egress: null });
const middleware = part({
  deps: {
    store: new DomainStore(eventStore, new EventCodec(new TestKeys()), defaultPartitions),
    pool,
    secrets: new Secrets(key),
    logger: pino({ level: 'silent' }),
    clock: Date.now,
    // No projection runs beside it.
    caughtUp: async () => false,
    authUrl: () => own,
    baseUrl: () => `${origin}/v1`,
    mcpUrl: () => `${origin}/mcp`,
    consoleUrl: () => origin,
    rate: many,
  },
});
const server = createServer(new Koa().use(middleware).callback());
server.listen(0, '127.0.0.1', () => {
  own = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  process.stdout.write(`${own}\n`);
});
drainSignal().addEventListener('abort', () => process.exit());
