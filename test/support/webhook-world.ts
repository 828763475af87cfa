/**
 * A world in which events become deliveries: Postgres event store and log, the dispatcher's tables. The test starts
 * dispatchers, as many as it wants; it sends nothing.
 */

import { randomUUID } from 'node:crypto';
import type { EventStore } from '#contracts/ports/event-store.ts';
import type { Log, LogRecord } from '#contracts/ports/log.ts';
import { type WebhookCommand, webhook } from '#domain/webhook.ts';
import { startDispatcher, webhooksGroup } from '#projections/webhooks/dispatcher.ts';
import type { Handover } from '#projections/webhooks/handover.ts';
import { ensureMint } from '#projections/webhooks/mint.ts';
import { ensureWeeks } from '#projections/webhooks/tables.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { type CommandContext, DomainStore, partitionKeyOf, uuidv7 } from '#runtime/eventing/domain-store.ts';
import { type Executed, execute } from '#runtime/eventing/execute.ts';
import { topicOf } from '#schemas/events.ts';
import { defaultPartitions, idOf, kindOf, partitionOf } from '#schemas/topics.ts';
import { noSender } from '#test/support/no-sender.ts';
import type { Given } from './projecting.ts';
import { type ProjectionWorld, projectionWorld } from './projection-world.ts';
import { until } from './until.ts';

export interface DeliveryRow {
  readonly id: string;
  readonly endpointId: string;
  readonly messageId: string;
  readonly type: string;
  readonly status: string;
  readonly position: bigint;
  readonly replayId: string | null;
  readonly eventTime: string;
  readonly envelope: {
    readonly id: string;
    readonly type: string;
    readonly created: string;
    readonly data: Readonly<Record<string, unknown>>;
  };
  /** The queue row; null when there is none. */
  readonly queued: {
    readonly lane: number;
    readonly leased: boolean;
    readonly attempt: number;
    readonly tries: number;
    readonly trigger: string;
    readonly forced: boolean;
  } | null;
}

export class WebhookWorld {
  readonly world: ProjectionWorld;
  readonly store: DomainStore;
  readonly events: EventStore;
  readonly workspaceId: string = randomUUID();
  readonly #running = new Set<{ stop(): Promise<void> }>();

  /** @param events another store than the one in Postgres; the test then delivers the log itself */
  static async open(events?: EventStore): Promise<WebhookWorld> {
    const world = await projectionWorld();
    await ensureWeeks(world.pool);
    await ensureMint(world.pool);
    return new WebhookWorld(world, events ?? world.store);
  }

  private constructor(world: ProjectionWorld, events: EventStore) {
    this.world = world;
    this.events = events;
    this.store = new DomainStore(events, world.codec, defaultPartitions);
  }

  async close(): Promise<void> {
    for (const one of [...this.#running]) await one.stop();
    await this.world.close();
  }

  dispatch({ handover = noSender, log = this.world.log }: { handover?: Handover; log?: Log } = {}) {
    const { pool, codec, logger } = this.world;
    const eventStore = this.events;
    const controller = new AbortController();
    const deps = { log, eventStore, store: this.store, codec, pool, handover, logger };
    const dispatcher = startDispatcher(deps, controller.signal);
    const running = {
      dispatcher,
      stop: async (): Promise<void> => {
        controller.abort();
        this.#running.delete(running);
        await dispatcher.done;
      },
    };
    this.#running.add(running);
    return running;
  }

  context(workspaceId = this.workspaceId, now: string = new Date().toISOString()): CommandContext {
    const id = uuidv7();
    return {
      workspaceId,
      actor: { type: 'service', id: 'test' },
      correlationId: id,
      causationId: id,
      commandId: id,
      now,
    };
  }

  async register(events: readonly string[], workspaceId = this.workspaceId): Promise<string> {
    const id = randomUUID();
    const url = `https://receiver.example/${id}`;
    await this.act(
      id,
      { type: 'Register', url, events: [...events], description: null, clientIds: null, keyVersion: 'v1' },
      { workspaceId },
    );
    return id;
  }

  act(
    id: string,
    command: WebhookCommand,
    { workspaceId = this.workspaceId, now }: { readonly workspaceId?: string; readonly now?: string } = {},
  ): Promise<Executed<unknown>> {
    return execute(this.store, webhook, id, command, this.context(workspaceId, now));
  }

  /** Appends events, each at the head of its stream; targets and requests for approval under the key of their post. */
  async append(events: readonly Given[], workspaceId = this.workspaceId): Promise<readonly DecodedEvent[]> {
    const appended: DecodedEvent[] = [];
    for (const { stream, type, data, at } of events) {
      const { length } = await this.store.readStream(stream);
      const postId = (data as { postId?: string }).postId;
      const key = ['target', 'approval'].includes(kindOf(stream))
        ? (postId ?? stream)
        : partitionKeyOf(kindOf(stream), idOf(stream));
      const context = this.context(workspaceId, at);
      appended.push(...(await this.store.append(stream, length - 1, [{ type, data }], context, key)));
    }
    return appended;
  }

  async deliveries(endpointId?: string): Promise<readonly DeliveryRow[]> {
    const { rows } = await this.world.pool.query(
      `select d.id, d.endpoint_id as "endpointId", d.message_id as "messageId", d.type, d.status,
         d.position::text as position, d.replay_id as "replayId", d.event_time as "eventTime", m.body,
         case when q.delivery_id is null then null else json_build_object('lane', q.lane, 'leased', q.leased,
           'attempt', q.attempt, 'tries', q.tries, 'trigger', q.trigger, 'forced', q.forced) end as queued
       from ops.webhook_deliveries d
       join ops.webhook_messages m on m.event_time = d.event_time and m.id = d.message_id
       left join ops.webhook_queue q on q.delivery_id = d.id
       where $1::uuid is null or d.endpoint_id = $1
       order by d.position, d.type, d.endpoint_id, d.replay_id nulls first`,
      [endpointId ?? null],
    );
    return rows.map(({ position, eventTime, body, ...row }) => ({
      ...row,
      position: BigInt(position),
      eventTime: eventTime.toISOString(),
      envelope: JSON.parse(body.toString('utf8')),
    }));
  }

  /**
   * Waits until the dispatcher has applied every stored event, every catch-up has read once, and every replay has
   * ended.
   */
  async settled(): Promise<void> {
    const head = (await this.world.store.head()) ?? 0n;
    const { pool } = this.world;
    await until('the dispatcher at the head', async () => {
      const { rows } = await pool.query(
        'select position::text from ops.consumer_positions where consumer_group = $1 and position >= $2',
        [webhooksGroup, head],
      );
      return rows.length > 0;
    });
    await this.jobsDone();
  }

  /** Waits until every catch-up has read once, and every replay has ended. */
  async jobsDone(): Promise<void> {
    await until('all jobs', async () => {
      const { rows } = await this.world.pool.query(
        `select 1 from ops.webhook_jobs where status = 'running' and (kind <> 'catch_up' or settle_at is null)`,
      );
      return rows.length === 0;
    });
  }

  /** Everything stored, as a log would carry it. */
  async records(): Promise<readonly LogRecord[]> {
    const stored = await this.events.readAll({ after: null, limit: 10_000 });
    return stored.flatMap((one): LogRecord[] => {
      const topic = topicOf(one.stream);
      if (topic === null) return [];
      const { partitionKey } = JSON.parse(Buffer.from(one.metadata).toString('utf8')) as { partitionKey: string };
      const { stream, id, type, revision, position, data: value, metadata } = one;
      const partition = partitionOf(partitionKey, defaultPartitions);
      const time = one.created.toISOString();
      return [{ topic, partition, key: partitionKey, stream, id, type, revision, position, time, value, metadata }];
    });
  }
}
