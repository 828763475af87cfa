/**
 * Observations generated inside the engine: workspaces of 5,000 targets on ten networks, each observed on 100 days,
 * 500,000 rows each. Figures grow along a curve of the target's age; each network reports only some counters.
 */
import type { ClickHouseClient } from '@clickhouse/client';
import { columnOf, tableOf } from '#projections/analytics/tables.ts';
import { platforms } from '#schemas/common.ts';
import { counters } from '#schemas/insights.ts';

export const days = 100;
export const firstDay = '2026-01-01';
export const lastDay = '2026-04-10';
export const targetsOf = { ordinary: 5_000, large: 50_000 } as const;

/** Of the n-th workspace. */
export const workspaceIdOf = (n: number): string => `00000000-0000-4000-8000-${n.toString(16).padStart(12, '0')}`;

const id = (kind: string, ...parts: readonly string[]): string =>
  `reinterpretAsUUID(MD5(concat('${kind}', ${parts.map((one) => `toString(${one})`).join(`, '.', `)})))`;

/** Null where this network does not report the counter. */
const counterOf = (at: number): string => {
  if (at === 0) return 'shown';
  const telling = platforms.map((_, network) => network).filter((network) => at < 4 || (network * 7 + at * 3) % 10 < 6);
  return `if(network in (${telling.join(', ')}), toInt64(shown * ${(0.9 / (at + 1)).toFixed(3)}), null)`;
};

/** One workspace's observations, by statements that each fit one partition's worth of memory. */
export const generate = async (
  client: ClickHouseClient,
  version: number,
  n: number,
  targets: number,
): Promise<void> => {
  const rows = targets * days;
  const columns = counters.map((counter, at) => `${counterOf(at)} as ${columnOf(counter)}`).join(', ');
  await client.command({
    query: `insert into ${tableOf('observations', version)}
      with intDiv(number, ${targets}) as d, number % ${targets} as t, cityHash64(${n}, t) as h, t % 10 as network,
        toInt64((20 + h % 400) * 25 * (1 - exp(-(d + 1) / 12.))) as shown, toDate('${firstDay}') + d as on_day
      select toUUID('${workspaceIdOf(n)}') as workspace_id, on_day as day, ${id('t', `${n}`, 't')} as target_id,
        toDateTime64(on_day, 3, 'UTC') + 7200 + h % 3600 as observed_at, ${id('e', `${n}`, 'number')} as event_id,
        toUInt64(${n}) * ${rows} + number as position, ${id('p', `${n}`, 'intDiv(t, 10)')} as post_id,
        ${id('c', `${n}`, 't % 20')} as client_id, ${id('a', `${n}`, 't % 200')} as account_id,
        [${platforms.map((one) => `'${one}'`).join(', ')}][network + 1] as platform,
        toDateTime64('${firstDay} 00:00:00', 3, 'UTC') as published_at, null as removed_at,
        ${2 ** counters.length - 1} as fetched, ${columns},
        '{}' as more, concat('{"impressions":', toString(shown), '}') as raw, 'bench/1' as source
      from numbers(${rows})`,
  });
};
