import type { Pool } from 'pg';
import { batchesOf } from '#contracts/ports/batches.ts';
import type { Slot } from '#domain/cadence.ts';
import type { CadenceSource } from '#services/workflows/cadence/check.ts';
import { postingRulesOf } from './posting-rules.ts';

/** When the targets of an account go out, or went out. */

/** Targets of one account that are looked at: more of them are no longer told apart. */
const maxSlots = 2_000;

/** X counts each post of a thread, and a first comment as one more. */
const callsOnX = `coalesce(jsonb_array_length(nullif(p.body -> 'thread', 'null') -> 'segments'), 1)
  + exists (select 1 from jsonb_array_elements(p.body -> 'variants') v
            where v ->> 'platform' = 'x' and btrim(v -> 'overrides' ->> 'firstComment') <> '')::int`;

/** `$1`: keys, `$2`: accounts, `$3` and `$4`: from and to, one of each for a key. */
export const slotsSql = `
  select a.key, t.id::text as "targetId", extract(epoch from t.at)::float8 * 1000 as at,
    t.status in ('published', 'publishing', 'outcome_unknown') as "isOut",
    case when t.platform = 'x' then (select ${callsOnX} from read.posts p where p.id = t.post_id) else 1 end as calls
  from unnest($1::text[], $2::uuid[], $3::timestamptz[], $4::timestamptz[]) as a (key, account_id, lo, hi)
  cross join lateral (
    select id, platform, post_id, status, coalesce(published_at, retry_at, due_at) as at from read.post_targets
    where account_id = a.account_id and due_at > a.lo and due_at < a.hi and status <> all('{failed,canceled}'::text[])
    order by due_at, id limit ${maxSlots}
  ) t`;

export interface SlotsAsked {
  readonly accountId: string;
  /** Milliseconds since the epoch, both excluded. */
  readonly from: number;
  readonly to: number;
}

const keyOf = ({ accountId, from, to }: SlotsAsked): string =>
  [accountId, new Date(from).toISOString(), new Date(to).toISOString()].join(' ');

const load = async (pool: Pool, keys: readonly string[]): Promise<ReadonlyMap<string, readonly Slot[]>> => {
  const parts = keys.map((key) => key.split(' '));
  const { rows } = await pool.query<Slot & { readonly key: string }>({
    name: 'cadence-slots',
    text: slotsSql,
    values: [[...keys], ...[0, 1, 2].map((at) => parts.map((part) => part[at]))],
  });
  const found = new Map<string, Slot[]>();
  for (const { key, targetId, at, calls, isOut } of rows) {
    const known = found.get(key) ?? [];
    known.push({ targetId, at, calls: calls ?? 1, isOut });
    found.set(key, known);
  }
  return found;
};

const slotsByKey = batchesOf(load);

/** Concurrent questions share a query. */
export const slotsOf = async (pool: Pool, asked: SlotsAsked): Promise<readonly Slot[]> =>
  (await slotsByKey(pool, keyOf(asked))) ?? [];

/** What the checks of a workspace read. */
export const cadenceSource = async (pool: Pool, workspaceId: string): Promise<CadenceSource> => ({
  rules: (await postingRulesOf(pool, workspaceId)).cadence,
  slots: (asked) => slotsOf(pool, asked),
});

/** What limits the times to which a shift moves targets. */
export const shiftRules = async (pool: Pool, workspaceId: string) => ({
  ...(await postingRulesOf(pool, workspaceId)),
  cadence: await cadenceSource(pool, workspaceId),
});
