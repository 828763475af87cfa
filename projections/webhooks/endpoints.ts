import type { PoolClient } from 'pg';
import type { Lane } from '#contracts/ports/log.ts';
import { type LiveWebhook, type WebhookState, webhook } from '#domain/webhook.ts';
import type { FailureAction } from '#runtime/consuming/options.ts';
import { isBridged, skippedRevisions } from '#runtime/consuming/parking.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { asFacts } from '#runtime/eventing/domain-store.ts';
import { idOf } from '#schemas/topics.ts';
import type { WebhookEvent } from '#schemas/webhook.ts';
import { dispatcher } from '../engine/positions.ts';
import { disorderMs } from './marks.ts';
import { cancelBeyond, cancelReplay, lastBegunSql, revive } from './unsent.ts';

/**
 * Applies the events of an endpoint's own stream: the interval of its subscription, cancellations, catch-ups.
 * Everything runs under the lock of the version's row, so changes come one after the other, and a reader that saw a
 * version has seen every lower one.
 */

/** An event that requests a delivery to one endpoint, whatever its subscription. */
export interface RequestedTest {
  readonly event: DecodedEvent;
  readonly eventType: string;
  /** The limit of the endpoint. */
  readonly clientIds: readonly string[] | null;
}

interface Known {
  readonly state: WebhookState;
  readonly revision: number;
  readonly disabled: Disabled | null;
}

/** The event that turned an endpoint off by itself. */
interface Disabled {
  readonly position: bigint;
  readonly at: string;
}

/** Finds a position before every event recorded at or after an instant (milliseconds); null: the start. */
export type PositionBefore = (instant: number) => Promise<bigint | null>;

/** Where an interval begins, and whether an event has that position: no event has a position computed from a mark. */
interface Start {
  readonly position: bigint;
  readonly isEvent: boolean;
  /** No event behind the position was recorded before this instant. */
  readonly occurredAt: string;
}

/** How far back an automatic disable is caught up, milliseconds. */
const catchUpMs = 72 * 3_600_000;

export interface EndpointChanges {
  readonly failure: FailureAction | null;
  readonly tests: readonly RequestedTest[];
}

/**
 * Applies the events in order. Skips events at or below the revision of the endpoint; parks the stream at a gap.
 * @param onlyLane the lane that carries all events in the order of the store; null where there are several
 */
export const applyEndpointEvents = async (
  tx: PoolClient,
  events: readonly DecodedEvent[],
  positionBefore: PositionBefore,
  onlyLane: Lane | null,
): Promise<EndpointChanges> => {
  const { rows } = await tx.query<{ version: string }>(
    'update ops.webhook_version set version = version + 1 returning version::text',
  );
  const change = new Change(tx, rows[0]?.version ?? '0', positionBefore, onlyLane);
  await change.load([...new Set(events.map(({ stream }) => idOf(stream)))]);
  for (const event of events) {
    const failure = await change.apply(event);
    if (failure !== null) return { failure, tests: [] };
  }
  await change.save();
  return { failure: null, tests: change.tests.filter(({ event }) => change.isLive(idOf(event.stream))) };
};

class Change {
  readonly tests: RequestedTest[] = [];
  readonly #tx: PoolClient;
  readonly #version: string;
  readonly #positionBefore: PositionBefore;
  readonly #onlyLane: Lane | null;
  readonly #known = new Map<string, Known>();
  readonly #workspaces = new Map<string, string>();
  readonly #moves = new Map<string, bigint>();

  constructor(tx: PoolClient, version: string, positionBefore: PositionBefore, onlyLane: Lane | null) {
    this.#tx = tx;
    this.#version = version;
    this.#positionBefore = positionBefore;
    this.#onlyLane = onlyLane;
  }

  async load(ids: readonly string[]): Promise<void> {
    const { rows } = await this.#tx.query<{
      id: string;
      workspace_id: string;
      revision: number;
      state: WebhookState;
      disabled_position: string | null;
      disabled_at: Date | null;
    }>(
      `select id, workspace_id, revision, state, disabled_position::text, disabled_at from ops.webhook_endpoints
       where id = any($1::uuid[]) order by id for update`,
      [ids],
    );
    for (const { id, workspace_id, revision, state, disabled_position, disabled_at } of rows) {
      const at = disabled_at?.toISOString();
      const disabled =
        disabled_position === null || at === undefined ? null : { position: BigInt(disabled_position), at };
      this.#known.set(id, { state, revision, disabled });
      this.#workspaces.set(id, workspace_id);
    }
  }

  async apply(event: DecodedEvent): Promise<FailureAction | null> {
    const id = idOf(event.stream);
    const known = this.#known.get(id) ?? { state: webhook.initial, revision: -1, disabled: null };
    if (event.revision <= known.revision) return null;
    if (event.revision !== known.revision + 1 && !(await this.#isBridged(event, known.revision))) {
      const reason = `${event.stream} is at revision ${known.revision} and the next event is ${event.revision}: there is a gap`;
      return { action: 'park', eventId: event.id, reason };
    }
    this.#workspaces.set(id, event.metadata.workspaceId);
    const [only] = asFacts<WebhookEvent>([event]);
    if (only === undefined) return null;
    const state = webhook.evolve(known.state, only.event, only.fact);
    const disabled = await this.#effects(id, known, state, event, only.event);
    this.#known.set(id, { state, revision: event.revision, disabled });
    return null;
  }

  async #isBridged({ stream, revision }: DecodedEvent, after: number): Promise<boolean> {
    return isBridged(after, revision, await skippedRevisions(this.#tx, dispatcher.group, stream));
  }

  /** Returns the automatic disable that the next enabling catches up from. */
  async #effects(
    id: string,
    before: Known,
    after: WebhookState,
    event: DecodedEvent,
    fact: WebhookEvent,
  ): Promise<Disabled | null> {
    const { position } = event;
    const { occurredAt } = event.metadata;
    if (after.status === 'none') return null;
    switch (fact.type) {
      case 'WebhookRegistered':
        await this.#open(id, { position, isEvent: true, occurredAt }, after, event);
        return null;
      case 'WebhookUpdated':
        if (fact.data.url !== undefined) await this.#forgetHealth(id);
        if ((fact.data.events !== undefined || fact.data.clientIds !== undefined) && after.active)
          await this.#refilter(id, position, after, event);
        return before.disabled;
      case 'WebhookDisabled':
        await this.#close(id, position);
        await cancelBeyond(this.#tx, id, { position, occurredAt }, null);
        return fact.data.by === 'service' ? { position, at: occurredAt } : null;
      case 'WebhookEnabled': {
        await this.#forgetHealth(id);
        const own: Start = { position, isEvent: true, occurredAt };
        // mutant: enabled without catching up
        const from = before.disabled === null ? own : await this.#since(before.disabled, event);
        await this.#open(id, from, after, event);
        return null;
      }
      case 'WebhookDeleted':
        await this.#delete(id);
        return null;
      case 'WebhookTestRequested':
        if (!(await this.#cameWithMove(event)))
          this.tests.push({ event, eventType: fact.data.eventType, clientIds: after.clientIds });
        return before.disabled;
      case 'WebhookResendRequested':
        await this.#resend(id, fact.data.deliveryId, fact.data.eventTime);
        return before.disabled;
      case 'WebhookReplayRequested': {
        if (await this.#cameWithMove(event)) return before.disabled;
        const { replayId, from, to, types } = fact.data;
        await this.#tx.query(
          `insert into ops.webhook_jobs (id, kind, endpoint_id, workspace_id, from_time, to_time, types, created_at)
           values ($1, 'replay', $2, $3, $4, $5, $6, $7) on conflict do nothing`,
          [replayId, id, event.metadata.workspaceId, from, to, types, event.metadata.occurredAt],
        );
        return before.disabled;
      }
      case 'WebhookReplayCanceled':
        await cancelReplay(this.#tx, id, fact.data.replayId);
        return before.disabled;
      case 'WebhookSecretRotated':
        return before.disabled;
    }
  }

  isLive(id: string): boolean {
    return this.#known.get(id)?.state.status === 'live';
  }

  async #since({ position, at }: Disabled, event: DecodedEvent): Promise<Start> {
    const earliest = Date.parse(event.metadata.occurredAt) - catchUpMs;
    const before = await this.#positionBefore(earliest);
    if (before === null || position > before) return { position, isEvent: true, occurredAt: at };
    return { position: before + 1n, isEvent: false, occurredAt: at };
  }

  /** Up to where the workspace came from another installation, which has delivered that; −1: it was made here. */
  async #movedUpTo(workspaceId: string): Promise<bigint> {
    const known = this.#moves.get(workspaceId);
    if (known !== undefined) return known;
    const { rows } = await this.#tx.query<{ position: string | null }>(
      'select position::text from ops.workspace_moves where workspace_id = $1',
      [workspaceId],
    );
    const position = BigInt(rows[0]?.position ?? -1);
    this.#moves.set(workspaceId, position);
    return position;
  }

  async #cameWithMove({ position, metadata: { workspaceId } }: DecodedEvent): Promise<boolean> {
    return position <= (await this.#movedUpTo(workspaceId));
  }

  /** Subscribes from `start` on; a catch-up reads the store between there and the head once more. */
  async #open(id: string, start: Start, state: LiveWebhook, event: DecodedEvent): Promise<void> {
    const moved = await this.#movedUpTo(event.metadata.workspaceId);
    const from = start.position > moved ? start : { ...start, position: moved + 1n, isEvent: false };
    await this.#tx.query(
      `insert into ops.webhook_intervals (endpoint_id, from_position, to_position, workspace_id, events, client_ids, version)
       values ($1, $2, null, $3, $4, $5, $6)
       on conflict (endpoint_id, from_position) do update
         set to_position = null, events = excluded.events, client_ids = excluded.client_ids, version = excluded.version`,
      [id, from.position, event.metadata.workspaceId, state.events, state.clientIds, this.#version],
    );
    const oldest = new Date(Date.parse(event.metadata.occurredAt) - catchUpMs - disorderMs);
    await revive(this.#tx, id, from, oldest, state);
    await this.#catchUp(id, from, event);
  }

  /**
   * NOTE: the catch-up is named after the event, so that a repeat of the event makes no second one. A catch-up that begins at this very event
   * records the epoch of the lane's owner: while the lane keeps that owner nothing is missed, and nothing is read. Only
   * the transaction that moves the lane records it, since it has written the lane's row. A parked event is applied
   * after its lane has passed on without its interval.
   */
  async #catchUp(id: string, { position, isEvent }: Start, event: DecodedEvent): Promise<void> {
    await this.#tx.query(
      `insert into ops.webhook_jobs (id, kind, endpoint_id, workspace_id, cursor, from_inclusive, known_epoch)
       select $1, 'catch_up', $2, $3, case when not $5 then $4::int8 - 1 end, case when $5 then $4::int8 end,
         (select p.epoch from ops.consumer_positions p
          where p.consumer_group = $6 and p.lane = $7 and p.xmin = pg_current_xact_id()::xid)
       on conflict do nothing`,
      [
        event.id,
        id,
        event.metadata.workspaceId,
        position,
        isEvent,
        dispatcher.group,
        position === event.position ? this.#onlyLane : null,
      ],
    );
  }

  async #close(id: string, position: bigint): Promise<void> {
    await this.#tx.query(
      `update ops.webhook_intervals set to_position = $2, version = $3
       where endpoint_id = $1 and to_position is null`,
      [id, position, this.#version],
    );
  }

  /**
   * Replaces the filter from here on: deliveries that a late lane minted by the old filter beyond here, and that the
   * new one excludes, are canceled.
   */
  async #refilter(id: string, position: bigint, state: LiveWebhook, event: DecodedEvent): Promise<void> {
    await this.#close(id, position);
    const { occurredAt } = event.metadata;
    await this.#open(id, { position, isEvent: true, occurredAt }, state, event);
    await cancelBeyond(this.#tx, id, { position, occurredAt }, state);
  }

  /**
   * Stops all sending: no sender takes a row of an endpoint that is not live, so the rows may stay until a job deletes
   * queue and deliveries piece by piece. The job is made in this transaction, and a crash between its steps leaves it.
   */
  async #delete(id: string): Promise<void> {
    // Closes every interval at 0: a late lane mints no event before the deletion either.
    await this.#tx.query(
      'update ops.webhook_intervals set to_position = from_position, version = $2 where endpoint_id = $1',
      [id, this.#version],
    );
    // Waits for a step under way: what a job mints must be in the queue before the deletion reads it.
    await this.#tx.query(
      `update ops.webhook_jobs set status = 'canceled', updated_at = clock_timestamp()
       where workspace_id = $2 and endpoint_id = $1 and status = 'running'`,
      [id, this.#workspaces.get(id)],
    );
    await this.#tx.query('delete from ops.webhook_health where endpoint_id = $1', [id]);
    await this.#tx.query('delete from ops.webhook_rotations where endpoint_id = $1', [id]);
    await this.#tx.query(
      `insert into ops.webhook_jobs (id, kind, endpoint_id, workspace_id) values ($1, 'purge', $1, $2)
       on conflict do nothing`,
      [id, this.#workspaces.get(id)],
    );
  }

  /**
   * Puts the delivery back into the queue, or moves it forward. Its attempt numbers go on; its schedule of retries
   * starts again. Retention may have deleted it after the request.
   */
  async #resend(id: string, deliveryId: string, eventTime: string): Promise<void> {
    await this.#tx.query(
      `with again as (
         update ops.webhook_deliveries set status = 'pending', updated_at = clock_timestamp()
         where event_time = $1 and id = $2 and endpoint_id = $3
         returning *
       )
       insert into ops.webhook_queue (delivery_id, event_time, message_id, endpoint_id, workspace_id, lane, next_at,
         leased, attempt, tries, trigger, forced)
       select id, event_time, message_id, endpoint_id, workspace_id, 0, clock_timestamp(), false,
         ${lastBegunSql}, 0, 'resend', true
       from again
       on conflict (delivery_id) do update set
         -- A running attempt goes on; if it fails, the next attempt is due at once.
         next_at = case when webhook_queue.leased then webhook_queue.next_at else excluded.next_at end,
         lane = 0, tries = 0, trigger = 'resend', forced = true`,
      [eventTime, deliveryId, id],
    );
    await this.#tx.query("select pg_notify('webhook_queue', '')");
  }

  async #forgetHealth(id: string): Promise<void> {
    await this.#tx.query('delete from ops.webhook_health where endpoint_id = $1', [id]);
  }

  async save(): Promise<void> {
    for (const [id, { state, revision, disabled }] of [...this.#known].sort(([a], [b]) => (a < b ? -1 : 1))) {
      await this.#tx.query(
        `insert into ops.webhook_endpoints (id, workspace_id, revision, state, active, disabled_position, version, disabled_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8)
         on conflict (id) do update set revision = excluded.revision, state = excluded.state, active = excluded.active,
           disabled_position = excluded.disabled_position, version = excluded.version, disabled_at = excluded.disabled_at`,
        [
          id,
          this.#workspaces.get(id),
          revision,
          JSON.stringify(state),
          state.status === 'live' && state.active,
          disabled?.position ?? null,
          this.#version,
          disabled?.at ?? null,
        ],
      );
    }
    await this.#tx.query("select pg_notify('webhook_queue', '')");
  }
}
