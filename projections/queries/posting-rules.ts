import type { Pool } from 'pg';
import { batchesOf } from '#contracts/base/batches.ts';
import { BoundedMap } from '#contracts/base/bounded-map.ts';
import type { CadenceRule } from '#schemas/cadence.ts';
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

interface Remembered {
  readonly at: number;
  readonly rules: Promise<PostingRules | null>;
}

const rulesById = batchesOf(loadRules);
const remembered = new WeakMap<Pool, BoundedMap<string, Remembered>>();

/** As this process has known them for less than a second: a workspace without any rule costs its posts no query. */
export const postingRulesOf = async (pool: Pool, workspaceId: string): Promise<PostingRules> => {
  const known = remembered.get(pool) ?? new BoundedMap<string, Remembered>(maxRemembered);
  remembered.set(pool, known);
  const now = performance.now();
  const entry = known.get(workspaceId);
  if (entry !== undefined && now - entry.at < believedMs) return (await entry.rules) ?? none;
  const rules = rulesById(pool, workspaceId);
  rules.catch(() => known.delete(workspaceId));
  known.set(workspaceId, { at: now, rules });
  return (await rules) ?? none;
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
