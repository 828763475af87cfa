/** A world with a sender in it: endpoints whose receivers are real servers on loopback, deliveries minted for them. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { Registry } from 'prom-client';
import { deliveryIdOf } from '#domain/ids.ts';
import type { WebhookCommand } from '#domain/webhook.ts';
import { type MintedDelivery, mint } from '#projections/webhooks/mint.ts';
import { Exchange } from '#runtime/egress/exchange.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { readConfig } from '#runtime/process/config.ts';
import type { Attempt } from '#services/webhooks/delivery-decision.ts';
import type { SenderConfig, SenderDeps } from '#services/webhooks/deps.ts';
import { Sender } from '#services/webhooks/sender.ts';
import { ensureSender } from '#services/webhooks/statements.ts';
import { secretKey } from '#test/support/domain.ts';
import { afterFile } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { WebhookWorld } from '#test/support/webhook-world.ts';

export interface Got {
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly id: string;
  readonly attempt: number;
  /** Monotonic milliseconds. */
  readonly at: number;
}

export interface Receiver {
  readonly url: string;
  readonly got: readonly Got[];
  close(): Promise<void>;
}

export type Answering = (response: ServerResponse, got: Got, count: number) => void;

export const ok: Answering = (response) => void response.writeHead(204).end();
export const status =
  (code: number, headers: Readonly<Record<string, string>> = {}, body = ''): Answering =>
  (response) =>
    void response.writeHead(code, headers).end(body);

/** A server that remembers what it got; it answers as told, which may change while it runs. */
export const receiver = async (answer: Answering | { current: Answering } = ok): Promise<Receiver> => {
  const got: Got[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => undefined);
    request.on('end', () => {
      const { headers } = request;
      const one: Got = {
        headers,
        body: Buffer.concat(chunks),
        id: String(headers['webhook-id']),
        attempt: Number(headers['x-service-attempt']),
        at: performance.now(),
      };
      got.push(one);
      (typeof answer === 'function' ? answer : answer.current)(response, one, got.length);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = address !== null && typeof address === 'object' ? address.port : 0;
  let closed: Promise<void> | null = null;
  const close = (): Promise<void> => {
    closed ??= new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
    return closed;
  };
  afterFile(close);
  return { url: `http://127.0.0.1:${port}/hook`, got, close };
};

export interface DeliveryState {
  readonly status: string;
  readonly deliveredAt: Date | null;
  readonly attempts: readonly Attempt[];
  readonly queued: {
    readonly lane: number;
    readonly leased: boolean;
    readonly attempt: number;
    readonly tries: number;
    /** Milliseconds until it is due. */
    readonly dueIn: number;
  } | null;
}

/** Quick enough for a test, and each step long enough to be seen. */
export const quick: Partial<SenderConfig> = {
  webhookRetryDelaysMs: [0, 20, 20, 20],
  webhookExchangeMs: 2_000,
  webhookLeaseMs: 6_000,
  webhookBreakerFailures: 1_000,
  webhookHostFailures: 10_000,
  sweepIntervalMs: 100,
};

export interface Running {
  readonly sender: Sender;
  readonly registry: Registry;
  stop(): Promise<void>;
}

export class SenderWorld {
  readonly webhooks: WebhookWorld;
  readonly secretKey: string = secretKey();
  readonly secrets = new Secrets(this.secretKey);
  readonly #running = new Set<Running>();

  static async open(): Promise<SenderWorld> {
    const webhooks = await WebhookWorld.open();
    await ensureSender(webhooks.world.pool);
    webhooks.dispatch();
    return new SenderWorld(webhooks);
  }

  private constructor(webhooks: WebhookWorld) {
    this.webhooks = webhooks;
  }

  get pool() {
    return this.webhooks.world.pool;
  }

  async close(): Promise<void> {
    await this.stopAll();
    await this.webhooks.close();
  }

  /** A sender that a failed test leaves behind would take what the next one queues. */
  async stopAll(): Promise<void> {
    for (const one of [...this.#running]) await one.stop();
  }

  /** The time of the lease of a delivery passes. */
  async lapse(id: string): Promise<void> {
    await this.pool.query('update ops.webhook_queue set next_at = clock_timestamp() where delivery_id = $1', [id]);
  }

  /** Registers an endpoint that hears nothing of what other tests do, and waits until the dispatcher has it. */
  async endpoint(url: string, workspaceId = this.webhooks.workspaceId): Promise<string> {
    const id = randomUUID();
    const command: WebhookCommand = {
      type: 'Register',
      url,
      events: ['client.*'],
      description: null,
      clientIds: null,
      keyVersion: 'v1',
    };
    await this.webhooks.act(id, command, { workspaceId });
    await this.applied(id, 'true');
    return id;
  }

  /** Waits until the dispatcher's row of an endpoint is as `condition` says. */
  async applied(id: string, condition: string): Promise<void> {
    await until(`the endpoint to be applied: ${condition}`, async () => {
      const sql = `select 1 from ops.webhook_endpoints where id = $1 and ${condition}`;
      return (await this.pool.query(sql, [id])).rowCount === 1;
    });
  }

  /** Mints deliveries of made-up events, a message each, queued for whoever comes. Returns their ids. */
  async queue(
    endpointIds: string | readonly string[],
    {
      count = 1,
      trigger = 'scheduled',
      data = {},
      eventTime = new Date().toISOString(),
      workspaceId = this.webhooks.workspaceId,
      leaseMs = null,
    }: {
      readonly count?: number;
      readonly trigger?: MintedDelivery['trigger'];
      readonly data?: unknown;
      readonly eventTime?: string;
      readonly workspaceId?: string;
      /** Begun for somebody who is handed them. */
      readonly leaseMs?: number | null;
    } = {},
  ): Promise<readonly string[]> {
    const ids = typeof endpointIds === 'string' ? [endpointIds] : endpointIds;
    const replayId = trigger === 'replay' ? randomUUID() : null;
    // As of an event at the moment from which all of them hear: what turns one off later is later than that.
    const { rows } = await this.pool.query<{ position: string }>(
      'select max(from_position)::text as position from ops.webhook_intervals where endpoint_id = any($1)',
      [ids],
    );
    const position = BigInt(rows[0]?.position ?? 0);
    const messages = Array.from({ length: count }, () => {
      const messageId = randomUUID();
      const envelope = { id: messageId, type: 'client.created', created: eventTime, data };
      return {
        eventTime,
        messageId,
        workspaceId,
        type: 'client.created',
        position,
        lane: 'workspace-1',
        clientId: null,
        body: Buffer.from(JSON.stringify(envelope)),
        deliveries: ids.map((endpointId) => ({
          id: deliveryIdOf(messageId, endpointId, replayId ?? ''),
          endpointId,
          replayId,
          trigger,
          leased: leaseMs !== null,
        })),
      };
    });
    const { pool } = this;
    await inTransaction(pool, async (tx) => ({ commit: true, result: await mint(pool, tx, messages, leaseMs ?? 0) }));
    return messages.flatMap(({ deliveries }) => deliveries.map(({ id }) => id));
  }

  /** Mints one delivery that is leased already and hands it over, as a dispatcher of the same thread does. */
  async lease(endpointId: string, sender: Sender, leaseMs = sender.leaseMs): Promise<readonly string[]> {
    const leaseEnds = performance.now() + leaseMs;
    const ids = await this.queue(endpointId, { leaseMs });
    const { rows } = await this.pool.query(
      `select d.workspace_id, d.event_time, d.message_id, d.position::text, m.body, m.lane
       from ops.webhook_deliveries d join ops.webhook_messages m on m.event_time = d.event_time and m.id = d.message_id
       where d.id = $1`,
      [ids[0]],
    );
    const [row] = rows;
    sender.send([
      {
        deliveryId: ids[0] ?? '',
        eventTime: row.event_time.toISOString(),
        endpointId,
        workspaceId: row.workspace_id,
        messageId: row.message_id,
        body: row.body,
        position: BigInt(row.position),
        lane: row.lane,
        attempt: 1,
        tries: 0,
        trigger: 'scheduled',
        leaseEnds,
      },
    ]);
    return ids;
  }

  start(config: Partial<SenderConfig> = {}, over: Partial<SenderDeps> = {}): Running {
    const all = { ...readConfig({}), ...quick, ...config };
    const { url, logger } = this.webhooks.world;
    const guard = new EgressGuard({ privateTargets: ['*'], ownHosts: () => [] });
    const exchange = new Exchange(guard, { totalMs: all.webhookExchangeMs, maxIdlePerOrigin: all.webhookPerTenant });
    const registry = new Registry();
    const sender = new Sender({
      databaseUrl: url,
      pool: this.pool,
      store: this.webhooks.store,
      secrets: this.secrets,
      exchange,
      config: all,
      logger,
      registry,
      ...over,
    });
    const controller = new AbortController();
    const done = sender.run(controller.signal);
    const running: Running = {
      sender,
      registry,
      stop: async () => {
        controller.abort();
        this.#running.delete(running);
        await done;
        await exchange.close();
      },
    };
    this.#running.add(running);
    return running;
  }

  async delivery(id: string): Promise<DeliveryState> {
    const { rows } = await this.pool.query(
      `select d.status, d.delivered_at as "deliveredAt", d.attempts,
         case when q.delivery_id is null then null else json_build_object('lane', q.lane, 'leased', q.leased,
           'attempt', q.attempt, 'tries', q.tries,
           'dueIn', extract(epoch from q.next_at - clock_timestamp()) * 1000) end as queued
       from ops.webhook_deliveries d left join ops.webhook_queue q on q.delivery_id = d.id
       where d.id = $1`,
      [id],
    );
    if (rows[0] === undefined) throw new Error(`there is no delivery ${id}`);
    return rows[0];
  }

  /** Waits until the delivery is as wanted, and returns it. */
  async reaches(id: string, holds: (state: DeliveryState) => boolean, what = 'the delivery'): Promise<DeliveryState> {
    let state = await this.delivery(id);
    await until(`${what} as wanted`, async () => {
      state = await this.delivery(id);
      return holds(state);
    });
    return state;
  }

  settled(id: string): Promise<DeliveryState> {
    return this.reaches(id, ({ status: now }) => now !== 'pending', 'the delivery settled');
  }

  async allSettled(ids: readonly string[]): Promise<void> {
    await until('all deliveries settled', async () => {
      const sql = "select 1 from ops.webhook_deliveries where id = any($1) and status = 'pending' limit 1";
      return (await this.pool.query(sql, [ids])).rowCount === 0;
    });
  }

  async health(endpointId: string): Promise<{
    readonly consecutive: number;
    readonly opened: number;
    readonly openIn: number | null;
    readonly failingSince: Date | null;
    readonly disable: string | null;
  } | null> {
    const { rows } = await this.pool.query(
      `select consecutive, opened, extract(epoch from open_until - clock_timestamp())::float8 * 1000 as "openIn",
         failing_since as "failingSince", disable from ops.webhook_health where endpoint_id = $1`,
      [endpointId],
    );
    return rows[0] ?? null;
  }
}
