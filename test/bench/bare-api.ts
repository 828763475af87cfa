/**
 * The limits of the api's bench, as a process: a bare Koa route that appends the events of a POST /posts and returns
 * the same bytes, and one that finds an answer by key. It checks, reads and projects nothing. Its parent sends the
 * events; it prints its port.
 */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Router from '@koa/router';
import Koa from 'koa';
import pg from 'pg';
import type { EventToAppend } from '#contracts/ports/event-store.ts';
import { PostgresEventStore } from '#infra/postgres/event-store.ts';

const [url = '', sample = '{}'] = process.argv.slice(2);
/** Base64 of stored events and the answer, as a POST left them. */
const { post, targets, answer } = JSON.parse(sample) as Record<'post', [string, string]> & {
  targets: [string, string][];
  answer: string;
};

const bytes = ([data, metadata]: [string, string]) => ({
  data: Buffer.from(data, 'base64'),
  metadata: Buffer.from(metadata, 'base64'),
});
const postBytes = bytes(post);
const targetBytes = targets.map(bytes);

const store = await PostgresEventStore.open({ url, schema: 'bare' });
const pool = new pg.Pool({ connectionString: url, max: 10 });
await pool.query('create table if not exists bare.answers (id uuid primary key, answer text not null)');

const event = (type: string, stored: ReturnType<typeof bytes>, partitionKey: string): EventToAppend => ({
  id: randomUUID(),
  type,
  ...stored,
  partitionKey,
});

const router = new Router();
router.post('/posts', async (ctx) => {
  const chunks: Buffer[] = [];
  for await (const chunk of ctx.req) chunks.push(chunk);
  JSON.parse(Buffer.concat(chunks).toString('utf8'));
  const id = randomUUID();
  await store.append(`post-${id}`, 'none', [event('PostScheduled', postBytes, id)]);
  await Promise.all(
    targetBytes.map((stored) => store.append(`target-${randomUUID()}`, 'none', [event('TargetScheduled', stored, id)])),
  );
  ctx.type = 'application/json';
  ctx.body = answer;
});
router.get('/posts/:id', async (ctx) => {
  const { rows } = await pool.query({
    name: 'answer',
    text: 'select answer from bare.answers where id = $1',
    values: [ctx.params.id],
  });
  ctx.type = 'application/json';
  ctx.body = rows[0]?.answer;
});

const app = new Koa();
app.use(router.routes());
const server = createServer(app.callback());
server.listen(0, '127.0.0.1', () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
process.once('SIGTERM', async () => {
  server.closeAllConnections();
  server.close();
  await store.close();
  await pool.end();
});
