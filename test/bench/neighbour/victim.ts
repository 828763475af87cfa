/** What a tenant notices of its neighbours: its reads, its webhooks, and the times at which its posts are published. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { openLoop, wire } from '../load.ts';
import type { Standalone } from '../standalone.ts';

export interface Noticed {
  /** Milliseconds of each GET, from its intended start. */
  readonly gets: readonly number[];
  /** Milliseconds from the call that makes an event to its arrival. */
  readonly webhooks: readonly number[];
}

const getsPerSecond = 20;
const webhooksPerSecond = 4;

interface Reported {
  readonly data: { readonly id: string; readonly eventId: string };
}

export class Victim {
  readonly #world: Standalone;
  readonly #arrived: Map<string, PromiseWithResolvers<number>>;
  readonly #postId: string;
  readonly #webhookId: string;

  static async open(world: Standalone, stack: AsyncDisposableStack): Promise<Victim> {
    const arrived = new Map<string, PromiseWithResolvers<number>>();
    const receiver = createServer((request, response) => {
      const id = String(request.headers['webhook-id']);
      request.resume().once('end', () => response.writeHead(204).end());
      entry(arrived, id).resolve(performance.now());
    });
    receiver.listen(0, '127.0.0.1');
    await once(receiver, 'listening');
    stack.defer(async () => {
      receiver.closeAllConnections();
      receiver.close();
    });
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
    const victim = new Victim(world, arrived, '', '');
    const webhook = await victim.#post('/webhooks', { url, events: ['webhook.test'] });
    const post = await victim.#post('/posts', victim.#composed(new Date(Date.now() + 86_400_000)));
    const opened = new Victim(world, arrived, post.data.id, webhook.data.id);
    await opened.#shown();
    return opened;
  }

  /** Another key than the writer's does not wait for the write: it may get a 404 at first. */
  async #shown(): Promise<void> {
    const headers = { authorization: `Bearer ${this.#world.nextKey()}` };
    for (const deadline = performance.now() + 10_000; ; await delay(20)) {
      const answer = await fetch(`http://127.0.0.1:${this.#world.port}/v1/posts/${this.#postId}`, { headers });
      await answer.arrayBuffer();
      if (answer.status === 200) return;
      if (performance.now() > deadline) throw new Error(`the post is not shown: ${answer.status}`);
    }
  }

  private constructor(
    world: Standalone,
    arrived: Map<string, PromiseWithResolvers<number>>,
    postId: string,
    webhookId: string,
  ) {
    this.#world = world;
    this.#arrived = arrived;
    this.#postId = postId;
    this.#webhookId = webhookId;
  }

  #composed(due: Date): object {
    const { clientId } = this.#world;
    const schedule = { type: 'at', scheduledAt: due.toISOString() };
    return { clientId, content: 'A word from next door.', targets: { mode: 'group', clientId }, schedule };
  }

  async #post(path: string, body: object): Promise<Reported> {
    const answer = await fetch(`http://127.0.0.1:${this.#world.port}/v1${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${this.#world.nextKey()}`,
        'content-type': 'application/json',
        'idempotency-key': randomUUID(),
      },
      body: JSON.stringify(body),
    });
    if (answer.status !== 200) throw new Error(`${path} answered with ${answer.status}: ${await answer.text()}`);
    return (await answer.json()) as Reported;
  }

  async notice(ms: number): Promise<Noticed> {
    const next = () => wire({ method: 'GET', path: `/v1/posts/${this.#postId}`, key: this.#world.nextKey() });
    const reading = openLoop(this.#world.port, { rate: getsPerSecond, ms, next });
    reading.catch(() => undefined);
    const until = performance.now() + ms;
    const webhooks: Promise<number>[] = [];
    while (performance.now() < until) {
      webhooks.push(this.#webhook());
      await delay(1_000 / webhooksPerSecond);
    }
    return { gets: (await reading).latencies, webhooks: await Promise.all(webhooks) };
  }

  async #webhook(): Promise<number> {
    const from = performance.now();
    const { data } = await this.#post(`/webhooks/${this.#webhookId}/test`, {});
    const late = AbortSignal.timeout(30_000);
    const never = once(late, 'abort').then(() => Promise.reject(new Error('a webhook did not come within 30 s')));
    never.catch(() => undefined);
    return (await Promise.race([entry(this.#arrived, data.eventId).promise, never])) - from;
  }

  /** Posts that are due one after the other, for ten accounts each. @returns their ids */
  async schedule(count: number, firstInMs: number, everyMs: number): Promise<readonly string[]> {
    const first = Date.now() + firstInMs;
    const ids: string[] = [];
    for (let at = 0; at < count; at += 1) {
      ids.push((await this.#post('/posts', this.#composed(new Date(first + at * everyMs)))).data.id);
    }
    return ids;
  }

  /** How many milliseconds late each target of these posts began. @throws when one has not begun within a minute */
  async lateness(posts: readonly string[]): Promise<readonly number[]> {
    const wanted = posts.length * 10;
    for (const deadline = performance.now() + 60_000; ; await delay(250)) {
      const { rows } = await this.#world.pool.query<{ late: number }>(
        `select extract(epoch from e.created - (convert_from(s.data, 'UTF8')::jsonb ->> 'dueAt')::timestamptz)::float8 * 1000 as late
         from es.events s join es.events e on e.stream = s.stream and e.type = 'TargetPublishStarted'
         where s.type = 'TargetScheduled' and s.partition_key = any($1)`,
        [posts],
      );
      if (rows.length >= wanted) return rows.map(({ late }) => late);
      if (performance.now() > deadline) throw new Error(`${rows.length} of ${wanted} targets were begun`);
    }
  }
}

const entry = (all: Map<string, PromiseWithResolvers<number>>, id: string): PromiseWithResolvers<number> => {
  const known = all.get(id) ?? Promise.withResolvers<number>();
  all.set(id, known);
  return known;
};
