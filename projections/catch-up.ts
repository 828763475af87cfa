import { setTimeout as delay } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { Lane } from '#contracts/ports/log.ts';

/** Shared by the rebuilds: starting a new consumer group at the log's ends, and waiting until it reaches later ends. */

export type Ends = readonly { readonly lane: Lane; readonly nextOffset: bigint | null }[];

export const placePositions = async (pool: Pool, group: string, ends: Ends, position: bigint | null): Promise<void> => {
  await pool.query(
    `insert into ops.consumer_positions (consumer_group, lane, next_offset, position)
     select $1, lane, next_offset, $4::int8 from unnest($2::text[], $3::int8[]) as r (lane, next_offset)
     on conflict (consumer_group, lane) do update set next_offset = excluded.next_offset, position = excluded.position`,
    [group, ends.map((one) => one.lane), ends.map((one) => one.nextOffset), position],
  );
};

export const hasRead = async (pool: Pool, group: string, ends: Ends): Promise<boolean> => {
  const { rows } = await pool.query('select lane, next_offset from ops.consumer_positions where consumer_group = $1', [
    group,
  ]);
  const read = new Map<string, bigint>(rows.map((row) => [row.lane, BigInt(row.next_offset ?? 0)]));
  return ends.every(({ lane, nextOffset }) => (read.get(lane) ?? 0n) >= (nextOffset ?? 0n));
};

/** True when the condition holds, false after `limitMs`. */
export const until = async (
  signal: AbortSignal,
  holds: () => Promise<boolean>,
  limitMs = Infinity,
): Promise<boolean> => {
  for (const end = performance.now() + limitMs; performance.now() < end; ) {
    if (await holds()) return true;
    await delay(20, undefined, { signal });
  }
  return false;
};
