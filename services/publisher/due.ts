import type { Pool } from 'pg';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { platforms } from '#schemas/common.ts';
import type { Shares, Taker } from './shares.ts';

/** A target whose next step is due, as the read model has it. The stream decides; this only says where to look. */
export interface DueRow extends Taker {
  readonly id: string;
  readonly revision: number;
}

/** Rows of one network that are looked at from the longest due on, beside those that this process holds. */
const frontRows = 1_000;
/** Rows looked at, of all networks together, where that was not the end of a network's rows. */
const behindRows = 4_000;

/** Rows of one workspace beyond its room that are answered: some may still show the past and be passed over. */
export const few = 16;

interface Found extends DueRow {
  readonly platform: string;
  readonly dueAt: Date;
  /** As Postgres writes it: a cursor keeps the microseconds. */
  readonly at: string;
  /** The last row that was looked at, where there may be more behind it; it is no answer. */
  readonly isEdge: boolean;
}

interface Step {
  readonly platform: string;
  readonly at: string;
  readonly id: string;
  readonly rows: number;
}

/** What a search has to know of this process. */
export interface Holding {
  /** Ids of targets that it holds: whatever the table shows of them, they are not looked for. */
  readonly held: readonly string[];
  readonly shares: Shares;
  readonly left: LeftBehind;
}

export const afterAllIds = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/**
 * Whether somebody has it, or it rests. NOTE: asked of each row by itself. As a join it would be planned by the statistics
 * of the leases, which never keep up, and might read a million that rest.
 */
export const isTaken = (id: string, kind: string): string => `coalesce((
    select l.until > now() or l.not_before > now() from ops.work_leases l
    where l.kind = ${kind} and l.id = ${id}::text), false)`;

/** Of which network the account of a row is; one that no read model shows yet counts as live. */
export const networkOf = (row: string): string =>
  `coalesce((select a.network from read.accounts a where a.id = ${row}.account_id), 'live') || '/' || ${row}.platform`;

/**
 * Of each workspace on each network no more than it may be given, so that one with a million rows fills no answer. NOTE: the
 * comparison of platforms is none of equality, or the order could be had from an index that begins with the time.
 */
const walkSql = (direction: 'asc' | 'desc'): string => `
with walked as materialized (
  select t.* from unnest($1::text[], $2::timestamptz[], $3::uuid[], $4::int[]) as n (platform, at, id, rows)
  cross join lateral (
    select s.*, row_number() over () = n.rows as "isEdge" from (
      select t.id, t.workspace_id, t.account_id, t.platform, t.revision, t.next_action_at
      from read.post_targets t
      where t.next_action_at is not null and t.status <> 'outcome_unknown' and t.platform >= n.platform
        and (t.platform, t.next_action_at, t.id) < (n.platform, n.at, n.id)
      order by t.platform ${direction}, t.next_action_at ${direction}, t.id ${direction}
      limit n.rows) s
  ) t
), free as (
  select w.*, coalesce(($6::jsonb ->> (w.workspace_id::text || w.platform))::int, ($5::jsonb ->> w.platform)::int) as room
  from walked w where w.id not in (select unnest($7::uuid[]))
), ranked as (
  select f.*, row_number() over (partition by f.workspace_id, f.platform order by f.next_action_at, f.id) as rank
  from free f where f.room > 0 and not ${isTaken('f.id', '$8')}
)
select r.id::text, r.workspace_id::text as "workspaceId", ${networkOf('r')} as network, r.platform, r.revision,
  r.next_action_at as "dueAt", r.next_action_at::text as at, false as "isEdge"
from ranked r where r.rank <= r.room + ${few}
union all
select w.id::text, w.workspace_id::text, null, w.platform, w.revision, w.next_action_at, w.next_action_at::text, true
from walked w where w."isEdge"`;

/**
 * Due targets whose outcome is not unknown, in the order of their time. Each search looks at a bounded number of rows. From the
 * longest due on, which is all there is in quiet times; where a network has more, also from the newest on, so that what is
 * due now is found behind any backlog, and in turn from where the last search ended, so that in the end every row is.
 */
export class DueSearch {
  readonly #pool: Pool;
  readonly #kind: string;
  readonly #front: number;
  readonly #behind: number;
  /** By platform: where to go on with what lies behind. */
  readonly #cursors = new Map<string, Step>();
  #goesOn = false;

  /** @param kind of the leases */
  constructor(pool: Pool, kind: string, { front = frontRows, behind = behindRows } = {}) {
    this.#pool = pool;
    this.#kind = kind;
    this.#front = front;
    this.#behind = behind;
  }

  /** @param before the instant up to which rows are looked for */
  async find(before: Date, holding: Holding): Promise<readonly DueRow[]> {
    const { shares } = holding;
    const from = { at: before.toISOString(), id: afterAllIds };
    const open = platforms.filter((platform) => roomOn(shares, platform) > 0);
    const steps = open.map((platform) => ({ ...from, platform, rows: this.#front + heldOn(shares, platform) }));
    const front = await this.#walk('asc', steps, holding);
    const more = front.filter(({ isEdge }) => isEdge).map(({ platform }) => platform);
    for (const platform of this.#cursors.keys()) if (!more.includes(platform)) this.#cursors.delete(platform);
    const behind = more.length === 0 ? [] : await this.#walkBehind(more, from, holding);
    const found = new Map<string, Found>();
    for (const row of [...front, ...behind]) if (!row.isEdge && !holding.left.isPast(row)) found.set(row.id, row);
    return [...found.values()].sort((a, b) => a.dueAt.getTime() - b.dueAt.getTime());
  }

  async #walkBehind(
    names: readonly string[],
    newest: Omit<Step, 'platform' | 'rows'>,
    holding: Holding,
  ): Promise<readonly Found[]> {
    const rows = Math.ceil(this.#behind / names.length);
    const steps = names.map((platform) => ({
      ...((this.#goesOn ? this.#cursors.get(platform) : undefined) ?? newest),
      platform,
      rows,
    }));
    const found = await this.#walk('desc', steps, holding);
    for (const { platform, at } of steps) {
      const edge = found.find((one) => one.isEdge && one.platform === platform);
      const cursor = this.#cursors.get(platform);
      // A walk from the newest on does not put back the one that goes on.
      if (cursor !== undefined && at !== cursor.at) continue;
      if (edge === undefined) this.#cursors.delete(platform);
      else this.#cursors.set(platform, { platform, at: edge.at, id: edge.id, rows });
    }
    this.#goesOn = !this.#goesOn;
    return found;
  }

  async #walk(direction: 'asc' | 'desc', steps: readonly Step[], holding: Holding): Promise<readonly Found[]> {
    if (steps.length === 0) return [];
    const { held, shares, left } = holding;
    const rooms = Object.fromEntries(steps.map(({ platform }) => [platform, roomOn(shares, platform)]));
    return search<Found>(this.#pool, `publisher-due-${direction}`, walkSql(direction), [
      steps.map(({ platform }) => platform),
      steps.map(({ at }) => at),
      steps.map(({ id }) => id),
      steps.map(({ rows }) => rows),
      JSON.stringify(rooms),
      JSON.stringify(roomsOf(shares, left)),
      held,
      this.#kind,
    ]);
  }
}

/** By indexes alone: a plan is kept for as long as its session lives, and the first is made while the tables are small. */
export const search = <Row extends object>(
  pool: Pool,
  name: string,
  text: string,
  values: unknown[],
): Promise<readonly Row[]> =>
  inTransaction(pool, async (tx) => ({ commit: true, result: (await tx.query<Row>({ name, text, values })).rows }));

const modes = ['live', 'sandbox'] as const;
const platformOf = (network: string): string => network.slice(network.indexOf('/') + 1);

/** For a workspace that holds none there; of the two networks of a name the one with more room. */
const roomOn = (shares: Shares, platform: string): number =>
  Math.max(...modes.map((mode) => shares.roomOf({ workspaceId: '', network: `${mode}/${platform}` })));

const heldOn = (shares: Shares, platform: string): number =>
  modes.reduce((sum, mode) => sum + shares.heldOn(`${mode}/${platform}`), 0);

/** Workspace and platform → how many more it may be given, those added that will be passed over. */
export const roomsOf = (shares: Shares, left: LeftBehind): Readonly<Record<string, number>> => {
  const rooms: Record<string, number> = {};
  for (const taker of shares.takers()) {
    const key = taker.workspaceId + platformOf(taker.network);
    rooms[key] = Math.max(rooms[key] ?? 0, shares.roomOf(taker));
  }
  for (const [{ workspaceId, network }, rows] of left.many()) {
    const key = workspaceId + platformOf(network);
    const room = rooms[key] ?? shares.roomOf({ workspaceId, network });
    if (room > 0) rooms[key] = room + rows;
  }
  return rooms;
};

/** How long it is remembered at which revision a target was left, milliseconds: the read model is there by then. */
const rememberMs = 30_000;
/** Targets whose rows still show what this process did already. */
export class LeftBehind {
  readonly #at = new Map<string, { readonly row: DueRow; readonly revision: number; readonly since: number }>();
  readonly #of = new Map<string, { readonly taker: Taker; rows: number }>();

  /** The row showed less than the stream had at this revision. */
  add(row: DueRow, revision: number): void {
    this.#delete(row.id);
    this.#at.set(row.id, { row, revision, since: performance.now() });
    const key = `${row.workspaceId} ${row.network}`;
    const of = this.#of.get(key) ?? { taker: row, rows: 0 };
    of.rows += 1;
    this.#of.set(key, of);
  }

  /** Whether a row is of an earlier revision than its target was left at. */
  isPast({ id, revision }: Pick<DueRow, 'id' | 'revision'>): boolean {
    return revision < (this.#at.get(id)?.revision ?? 0);
  }

  forget(): void {
    const before = performance.now() - rememberMs;
    for (const [id, { since }] of this.#at) {
      if (since > before) break;
      this.#delete(id);
    }
  }

  many(): readonly (readonly [Taker, number])[] {
    return [...this.#of.values()].filter(({ rows }) => rows > few).map(({ taker, rows }) => [taker, rows]);
  }

  #delete(id: string): void {
    const known = this.#at.get(id);
    if (known === undefined) return;
    this.#at.delete(id);
    const key = `${known.row.workspaceId} ${known.row.network}`;
    const of = this.#of.get(key);
    if (of === undefined) return;
    of.rows -= 1;
    if (of.rows === 0) this.#of.delete(key);
  }
}
