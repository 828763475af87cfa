import { DatabaseError, type Pool, type PoolClient } from 'pg';
import { plainArray } from '#contracts/base/array-literals.ts';
import { type Move, NotMoved, notMoved } from '#runtime/consuming/positions.ts';
import { Unavailable } from '#runtime/eventing/domain-store.ts';
import { ensureFunctions } from '#runtime/postgres/migrate.ts';
import { ensurePartitions, forgetPartitions, hasPartition } from './tables.ts';

/**
 * Mints deliveries: envelope, delivery and queue row, or nothing where they exist. Everything happens in the caller's
 * transaction, in one call. The call locks the endpoints first: a transaction that disables one either waits and then
 * cancels these deliveries, or commits first and this call sees that its interval has ended.
 */

export interface Minted {
  /** `created` of the envelope, ISO 8601. */
  readonly eventTime: string;
  readonly messageId: string;
  readonly workspaceId: string;
  readonly type: string;
  readonly position: bigint;
  /** `<topic>-<partition>` of the event. */
  readonly lane: string;
  /** The client of the event; null: it belongs to none. */
  readonly clientId: string | null;
  readonly body: Buffer;
  readonly deliveries: readonly MintedDelivery[];
}

export interface MintedDelivery {
  readonly id: string;
  readonly endpointId: string;
  readonly replayId: string | null;
  readonly trigger: 'scheduled' | 'test' | 'replay';
  /** A slot is reserved for it in the sender of this thread. */
  readonly leased: boolean;
}

/** Raise it whenever a function below changes what it does: both are then made again under the new number. */
const version = 3;

const mintFunctions = `
create function ops.webhook_mint_${version}(
  lease_ms float8, bodies bytea,
  m_time timestamptz[], m_id uuid[], m_workspace uuid[], m_type text[], m_position int8[], m_lane text[],
  m_client uuid[], m_start int4[], m_length int4[],
  d_message int4[], d_id uuid[], d_endpoint uuid[], d_replay uuid[], d_trigger text[], d_leased bool[]
) returns setof uuid language plpgsql as $$
declare
  minted uuid[];
  waits bool;
begin
  perform 1 from ops.webhook_endpoints e where e.id = any(d_endpoint) order by e.id for share;

  insert into ops.webhook_messages (event_time, id, workspace_id, type, position, lane, body)
  select m.event_time, m.id, m.workspace_id, m.type, m.position, m.lane, substr(bodies, m.start, m.length)
  from unnest(m_time, m_id, m_workspace, m_type, m_position, m_lane, m_start, m_length)
    as m (event_time, id, workspace_id, type, position, lane, start, length)
  order by m.event_time, m.id
  on conflict do nothing;

  with asked as materialized (
    select d.id, d.endpoint_id, d.replay_id, d.trigger, d.leased,
      m_time[d.message] as event_time, m_id[d.message] as message_id, m_workspace[d.message] as workspace_id,
      m_type[d.message] as type, m_position[d.message] as position, m_client[d.message] as client_id
    from unnest(d_message, d_id, d_endpoint, d_replay, d_trigger, d_leased)
      as d (message, id, endpoint_id, replay_id, trigger, leased)
  ), born as (
    insert into ops.webhook_deliveries
      (event_time, id, endpoint_id, workspace_id, message_id, type, position, client_id, replay_id, created_at,
        updated_at)
    select a.event_time, a.id, a.endpoint_id, a.workspace_id, a.message_id, a.type, a.position, a.client_id, a.replay_id,
      -- For a test, the instant that its caller got in the answer.
      case when a.trigger = 'test' then a.event_time else clock_timestamp() end, clock_timestamp()
    from asked a
    -- A delivery that a person requested is minted whatever the endpoint subscribes to.
    where a.trigger <> 'scheduled' or exists (
      select from ops.webhook_intervals i
      where i.endpoint_id = a.endpoint_id and i.from_position <= a.position
        and (i.to_position is null or a.position < i.to_position)
        -- A member that does not know yet that the limit became narrower sends nothing beyond it.
        and (i.client_ids is null or a.client_id = any(i.client_ids)))
    order by a.event_time, a.id
    on conflict do nothing
    returning id
  ), queued as (
    insert into ops.webhook_queue (delivery_id, event_time, message_id, endpoint_id, workspace_id, lane, next_at,
      leased, attempt, tries, trigger, forced)
    select a.id, a.event_time, a.message_id, a.endpoint_id, a.workspace_id,
      case when a.trigger = 'replay' then 2 else 0 end,
      case when a.leased then clock_timestamp() + lease_ms * interval '1 millisecond' else clock_timestamp() end,
      a.leased, a.leased::int, 0, a.trigger, a.trigger = 'test'
    from asked a join born b using (id)
    returning delivery_id, leased
  )
  select array_agg(q.delivery_id), bool_or(not q.leased) into minted, waits from queued q;

  if waits then perform pg_notify('webhook_queue', ''); end if;
  return query select unnest(minted);
end $$;

create function ops.webhook_mint_and_move_${version}(
  m_group text, m_consumed text, m_epoch int8, m_next int8, m_to int8, m_event uuid,
  lease_ms float8, bodies bytea,
  m_time timestamptz[], m_id uuid[], m_workspace uuid[], m_type text[], m_position int8[], m_lane text[],
  m_client uuid[], m_start int4[], m_length int4[],
  d_message int4[], d_id uuid[], d_endpoint uuid[], d_replay uuid[], d_trigger text[], d_leased bool[]
) returns setof uuid language plpgsql set enable_seqscan = off as $$
begin
  if not ops.consume_move(m_group, m_consumed, m_epoch, m_next, m_to, m_event) then
    raise exception 'the lane is not ours, or there already' using errcode = '${notMoved}';
  end if;
  return query select * from ops.webhook_mint_${version}(lease_ms, bodies, m_time, m_id, m_workspace, m_type,
    m_position, m_lane, m_client, m_start, m_length, d_message, d_id, d_endpoint, d_replay, d_trigger, d_leased);
end $$`;

/** Makes the functions of this build beside those of others. */
export const ensureMint = (pool: Pool): Promise<void> =>
  ensureFunctions(pool, `webhook_mint_${version}`, mintFunctions);

/** Makes the partitions for these event times, outside of the transaction that mints. */
const ensureRoom = async (pool: Pool, messages: readonly Minted[]): Promise<void> => {
  const missing = messages.map(({ eventTime }) => Date.parse(eventTime)).filter((one) => !hasPartition(pool, one));
  if (missing.length > 0) await ensurePartitions(pool, missing);
};

/** Postgres: no partition for a row. */
const noPartition = '23514';

/**
 * Returns the ids of the deliveries that are new and queued now.
 * @param pool of `tx`: a missing partition is made on another connection
 * @throws Unavailable when another process dropped a partition meanwhile: repeat the call
 */
export const mint = (
  pool: Pool,
  tx: PoolClient,
  messages: readonly Minted[],
  leaseMs: number,
): Promise<ReadonlySet<string>> => withRoom(pool, messages, () => insert(tx, messages, leaseMs, null));

/** Mints and moves a consumer's position in one statement that is durable when it returns. @throws NotMoved */
export const mintAndMove = async (
  pool: Pool,
  messages: readonly Minted[],
  leaseMs: number,
  move: Move,
): Promise<ReadonlySet<string>> => {
  try {
    return await withRoom(pool, messages, () => insert(pool, messages, leaseMs, move));
  } catch (error) {
    throw error instanceof DatabaseError && error.code === notMoved ? new NotMoved() : error;
  }
};

const withRoom = async <T>(pool: Pool, messages: readonly Minted[], minting: () => Promise<T>): Promise<T> => {
  await ensureRoom(pool, messages);
  try {
    return await minting();
  } catch (error) {
    if (!(error instanceof DatabaseError) || error.code !== noPartition) throw error;
    forgetPartitions(pool);
    throw new Unavailable('A partition of deliveries is not there any more.', { cause: error });
  }
};

const parameters = {
  move: ['text', 'text', 'int8', 'int8', 'int8', 'uuid'],
  mint: [
    'float8',
    'bytea',
    'timestamptz[]',
    'uuid[]',
    'uuid[]',
    'text[]',
    'int8[]',
    'text[]',
    'uuid[]',
    'int4[]',
    'int4[]',
  ].concat(['int4[]', 'uuid[]', 'uuid[]', 'uuid[]', 'text[]', 'bool[]']),
};
const call = (name: string, types: readonly string[]): string =>
  `select * from ops.${name}_${version}(${types.map((type, at) => `$${at + 1}::${type}`).join(', ')})`;
const mintText = call('webhook_mint', parameters.mint);
const mintAndMoveText = call('webhook_mint_and_move', [...parameters.move, ...parameters.mint]);

const insert = async (
  db: Pool | PoolClient,
  messages: readonly Minted[],
  leaseMs: number,
  move: Move | null,
): Promise<ReadonlySet<string>> => {
  const starts: number[] = [];
  let end = 1;
  for (const { body } of messages) {
    starts.push(end);
    end += body.length;
  }
  const deliveries = messages.flatMap((message, at) => message.deliveries.map((one) => ({ ...one, message: at + 1 })));
  const { rows } = await db.query<[string]>({
    name: move === null ? 'webhook-mint' : 'webhook-mint-and-move',
    text: move === null ? mintText : mintAndMoveText,
    values: [
      ...(move === null ? [] : [move.group, move.lane, move.epoch, move.nextOffset, move.position, move.eventId]),
      leaseMs,
      messages.length === 1 ? messages[0]?.body : Buffer.concat(messages.map(({ body }) => body)),
      plainArray(messages.map(({ eventTime }) => eventTime)),
      plainArray(messages.map(({ messageId }) => messageId)),
      plainArray(messages.map(({ workspaceId }) => workspaceId)),
      plainArray(messages.map(({ type }) => type)),
      plainArray(messages.map(({ position }) => position)),
      plainArray(messages.map(({ lane }) => lane)),
      plainArray(messages.map(({ clientId }) => clientId)),
      plainArray(starts),
      plainArray(messages.map(({ body }) => body.length)),
      plainArray(deliveries.map(({ message }) => message)),
      plainArray(deliveries.map(({ id }) => id)),
      plainArray(deliveries.map(({ endpointId }) => endpointId)),
      plainArray(deliveries.map(({ replayId }) => replayId)),
      plainArray(deliveries.map(({ trigger }) => trigger)),
      plainArray(deliveries.map(({ leased }) => leased)),
    ],
    rowMode: 'array',
  });
  return new Set(rows.map(([id]) => id));
};
