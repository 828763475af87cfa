import type { Pool } from 'pg';
import { batchesOf } from '#contracts/base/batches.ts';
import { BoundedMap } from '#contracts/base/bounded-map.ts';
import type { Slot } from '#domain/cadence.ts';
import type { TakenSlot } from '#domain/cadence-decision.ts';
import { capabilities, showsSomethingSql } from '#domain/platforms/index.ts';
import { cadenceReached } from '#domain/publish-failures.ts';
import type { CadenceRule } from '#schemas/cadence.ts';
import { platforms } from '#schemas/common.ts';
import type { CadenceSource } from '#services/workflows/cadence/check.ts';
import { bodyAtSql } from '../models/post-bodies.ts';
import { countedSql, slotAtSql, waitingSql } from '../models/sql.ts';
import { view } from '../shapes.ts';

/** What an operator set for the posts of a workspace. */

export interface PostingRules {
  /** Zone of the workspace: a quota counts the targets of a month in it. */
  readonly timezone: string;
  /** Targets that may be due in one month; null: as many as it likes. */
  readonly quota: number | null;
  /** Revision of the event that set the quota; null: none ever did, so no place was ever taken. */
  readonly quotaRevision: number | null;
  /** How often its accounts may publish; null: no rule was ever set. */
  readonly cadence: readonly CadenceRule[] | null;
}

/** Of a workspace that the read model does not have yet. */
const none: PostingRules = { timezone: 'UTC', quota: null, quotaRevision: null, cadence: null };

const loadRules = async (pool: Pool, ids: readonly string[]): Promise<ReadonlyMap<string, PostingRules>> => {
  const { rows } = await pool.query<PostingRules & { readonly id: string }>({
    name: 'posting-rules',
    text: `select id::text as id, timezone, posting_quota as quota, posting_quota_revision as "quotaRevision", cadence
           from ${view('workspaces')} as workspaces where id = any($1::uuid[])`,
    values: [[...ids]],
  });
  return new Map(rows.map(({ id, ...rules }) => [id, rules]));
};

/** Asks the read model now. */
export const readPostingRules = async (pool: Pool, workspaceId: string): Promise<PostingRules> =>
  (await loadRules(pool, [workspaceId])).get(workspaceId) ?? none;

/** What an operator sets takes effect within this many milliseconds. */
const believedMs = 750;
const maxRemembered = 10_000;
/** Readings of which each took longer than that: a database that is so slow keeps nobody from its last answer. */
const maxReadings = 3;

interface Remembered {
  readonly at: number;
  readonly rules: Promise<PostingRules | null>;
}

const rulesById = batchesOf(loadRules);
const remembered = new WeakMap<Pool, BoundedMap<string, Remembered>>();

const reading = (pool: Pool, known: BoundedMap<string, Remembered>, workspaceId: string): Remembered => {
  const now = performance.now();
  const entry = known.get(workspaceId);
  if (entry !== undefined && now - entry.at < believedMs) return entry;
  const rules = rulesById(pool, workspaceId);
  rules.catch(() => known.delete(workspaceId));
  const begun = { at: now, rules };
  known.set(workspaceId, begun);
  return begun;
};

/**
 * As this process has known them for less than a second: a workspace without any rule costs its posts no query. A reading over
 * which the process slept is old when it comes, and is made again.
 */
export const postingRulesOf = async (pool: Pool, workspaceId: string): Promise<PostingRules> => {
  const known = remembered.get(pool) ?? new BoundedMap<string, Remembered>(maxRemembered);
  remembered.set(pool, known);
  for (let readings = 1; ; readings += 1) {
    const { at, rules } = reading(pool, known, workspaceId);
    const found = (await rules) ?? none;
    if (performance.now() - at < believedMs || readings === maxReadings) return found;
  }
};

/** Workspaces in which places may be taken, in the order of their ids: at most 500 after this one. */
export const workspacesWithQuota = async (
  pool: Pool,
  after: string,
): Promise<readonly (PostingRules & { readonly id: string; readonly quotaRevision: number })[]> => {
  const { rows } = await pool.query(
    `select id::text as id, timezone, posting_quota as quota, posting_quota_revision as "quotaRevision", cadence
     from ${view('workspaces')} as workspaces where posting_quota_revision is not null and id > $1::uuid order by id limit 500`,
    [after],
  );
  return rows;
};

/** When the targets of an account go out, or went out. */

/** The query reads at most this many targets of one account. */
const maxSlots = 2_000;

const names = (of: readonly string[]): string => of.map((name) => `'${name}'`).join(', ');
const withThreads = platforms.filter((platform) => capabilities(platform).thread);

/** Of a target that is not under way any more, or not yet: only the segments of its thread that are out were calls. */
const callsMade = `case when t.published_at is null and t.segments is not null and t.status not in ('publishing', 'processing', 'outcome_unknown')
  then jsonb_array_length(t.segments -> 'out') end`;
/** A network counts each post of a thread, and X a first comment as one more. */
const callsOfPost = `case when t.platform in (${names(withThreads)}) then (
  select coalesce(jsonb_array_length(nullif(b.body -> 'thread', 'null') -> 'segments'), 1)
    + (t.platform = 'x' and exists (select 1 from jsonb_array_elements(b.body -> 'variants') v
      where v ->> 'platform' = 'x' and ${showsSomethingSql("v -> 'overrides' ->> 'firstComment'")}))::int
  from ${view('posts')} p cross join lateral (select ${bodyAtSql} as body) b where p.id = t.post_id) end`;
/** Calls that a target `t` is, or was. */
export const callsSql = `coalesce(${callsMade}, ${callsOfPost}, 1)`;

const ms = (sql: string): string => `round(extract(epoch from ${sql}) * 1000)::float8`;

/** `$1`: keys, `$2`: accounts, `$3` and `$4`: from and to, one of each for a key. */
const slotsSql = `
  select a.key, t.id::text as "targetId", ${ms('t.at')} as at, ${callsSql} as calls
  from unnest($1::text[], $2::uuid[], $3::timestamptz[], $4::timestamptz[]) as a (key, account_id, lo, hi)
  cross join lateral (
    select id, platform, post_id, post_revision, status, published_at, segments, ${slotAtSql} as at from ${view('post_targets')} as post_targets
    where account_id = a.account_id and ${slotAtSql} > a.lo and ${slotAtSql} < a.hi and ${countedSql}
    order by ${slotAtSql}, id limit ${maxSlots}
  ) t`;

interface SlotsAsked {
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
  for (const { key, targetId, at, calls } of rows) {
    const known = found.get(key) ?? [];
    known.push({ targetId, at, calls });
    found.set(key, known);
  }
  return found;
};

const slotsByKey = batchesOf(load);

/** Concurrent questions share a query. */
export const slotsOf = async (pool: Pool, asked: SlotsAsked): Promise<readonly Slot[]> =>
  (await slotsByKey(pool, keyOf(asked))) ?? [];

/** A slot that a publisher has taken, as `ops.cadence_slots` keeps it until the row of its target shows more. */
export interface SlotEntry extends TakenSlot {
  /** Of the target's stream when the slot was taken. */
  readonly revision: number;
  /** Milliseconds since the epoch. */
  readonly until: number;
}

export interface AccountSlots {
  /** Null: the account has no row. */
  readonly version: string | null;
  /** Entries of targets whose rows do not show more yet. */
  readonly entries: readonly SlotEntry[];
  readonly rows: readonly TakenSlot[];
}

export interface AccountSlotsAsked {
  readonly workspaceId: string;
  readonly accountId: string;
  /** Milliseconds since the epoch, excluded: of what is out, and of what waits. */
  readonly out: { readonly from: number; readonly to: number };
  readonly waitingFrom: number;
}

/**
 * One statement, so that an entry is passed over exactly when the rows of the same instant show what became of it. Of
 * `$1`: keys, `$2`: workspaces, `$3`: accounts, `$4` and `$5`: from and to of what is out, `$6`: from of what waits.
 */
const takenSql = `
  with asked as (
    select * from unnest($1::text[], $2::uuid[], $3::uuid[], $4::timestamptz[], $5::timestamptz[], $6::timestamptz[])
      as a (key, workspace_id, account_id, lo, hi, waiting)
  ), held as (
    select a.key, s.version, s.entries from asked a
    join ops.cadence_slots s on s.workspace_id = a.workspace_id and s.account_id = a.account_id
  )
  select key, version::text, entries, null::text as "targetId", null::float8 as at, null::int4 as calls,
    null::text as state from held
  union all
  select h.key, null::text, null::jsonb, t.id::text, null::float8, t.revision, 'shown'
  from held h cross join lateral jsonb_array_elements(h.entries) e join ${view('post_targets')} t on t.id = (e ->> 'targetId')::uuid
  union all
  select a.key, null, null, t.id::text, ${ms('t.at')}, ${callsSql},
    case when t.status = 'publishing' and t.schedule_mode <> 'native' then 'under_way' else 'out' end
  from asked a cross join lateral (
    select id, platform, post_id, post_revision, status, schedule_mode, published_at, segments, ${slotAtSql} as at from ${view('post_targets')} as post_targets
    where account_id = a.account_id and workspace_id = a.workspace_id
      and ${slotAtSql} > a.lo and ${slotAtSql} < a.hi and ${countedSql}
      and (segments is not null or status in ('published', 'publishing', 'processing', 'outcome_unknown', 'handed_to_platform'))
    order by ${slotAtSql} desc, id desc limit ${maxSlots}
  ) t
  union all
  select a.key, null, null, t.id::text, ${ms('t.retry_at')}, ${callsSql}, 'waiting'
  from asked a cross join lateral (
    select id, platform, post_id, post_revision, status, published_at, segments, retry_at from ${view('post_targets')} as post_targets
    where account_id = a.account_id and workspace_id = a.workspace_id and retry_at > a.waiting
      and ${waitingSql} and segments is null and failure ->> 'code' = '${cadenceReached.code}'
    order by retry_at, id limit ${maxSlots}
  ) t`;

type TakenRow = { readonly key: string } & (
  | { readonly state: null; readonly version: string; readonly entries: readonly SlotEntry[] }
  /** The row of an entry's target; `calls` is its revision. */
  | { readonly state: 'shown'; readonly targetId: string; readonly calls: number }
  | TakenSlot
);

const loadTaken = async (pool: Pool, keys: readonly string[]): Promise<ReadonlyMap<string, AccountSlots>> => {
  const asked = keys.map((key) => JSON.parse(key) as AccountSlotsAsked);
  const iso = (of: (one: AccountSlotsAsked) => number) => asked.map((one) => new Date(of(one)).toISOString());
  const { rows } = await pool.query<TakenRow>({
    name: 'cadence-taken',
    text: takenSql,
    values: [
      [...keys],
      asked.map(({ workspaceId }) => workspaceId),
      asked.map(({ accountId }) => accountId),
      ...[iso(({ out }) => out.from), iso(({ out }) => out.to), iso(({ waitingFrom }) => waitingFrom)],
    ],
  });
  const byKey = Map.groupBy(rows, ({ key }) => key);
  return new Map([...byKey].map(([key, some]) => [key, slotsIn(some)]));
};

const slotsIn = (rows: readonly TakenRow[]): AccountSlots => {
  const shown = new Map(rows.flatMap((row) => (row.state === 'shown' ? [[row.targetId, row.calls] as const] : [])));
  const held = rows.find((row) => row.state === null);
  const entries = (held?.entries ?? []).filter(({ targetId, revision }) => (shown.get(targetId) ?? -1) <= revision);
  return {
    version: held?.version ?? null,
    entries,
    rows: rows.flatMap((row) => (row.state === null || row.state === 'shown' ? [] : [row])),
  };
};

const takenByKey = batchesOf(loadTaken);

/** What publishers count at a claim. Concurrent questions share a query. */
export const takenSlotsOf = async (pool: Pool, asked: AccountSlotsAsked): Promise<AccountSlots> =>
  (await takenByKey(pool, JSON.stringify(asked))) ?? { version: null, entries: [], rows: [] };

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
