import type { Pool } from 'pg';
import { afterAllIds, type DueRow, few, type Holding, isTaken, networkOf, roomsOf, search } from './due.ts';

/**
 * Targets whose outcome is unknown and is to be asked for. When that is, the lease says that the last question left: its
 * row rests until then. A target without such a row (its worker died over it, or the rows were lost) is looked for by
 * the time at which its outcome became unknown.
 */

/** Leases whose rest is over that are looked at in one search. */
const restedRows = 1_000;
/** Targets that are looked at in one search, whether they have a lease or not; nearly all of them have one. */
const bareRows = 300;
/** Milliseconds from one such step to the next, and from one pass over all unknown outcomes to the next. */
const stepEveryMs = 250;
const passEveryMs = 1_000;

interface Cursor {
  readonly at: string;
  readonly id: string;
}

interface Found extends DueRow, Cursor {
  /** Rows of the search itself: `rested` and `bare` are the last rows looked at of either walk, if there may be more. */
  readonly kind: 'target' | 'rested' | 'bare';
}

/** NOTE: without `offset 0` the rows would be joined by the statistics, see `isTaken`. */
const unknownSql = `
with rested as materialized (
  select s.*, row_number() over () = $4 as "isEdge" from (
    select l.id, l.not_before as at from ops.work_leases l
    where l.kind = $1 and l.not_before is not null and (l.not_before, l.id) < (coalesce($2::timestamptz, now()), $3)
    order by l.not_before desc, l.id desc limit $4) s
), bare as materialized (
  select s.*, row_number() over () = $7 as "isEdge" from (
    select t.id, t.next_action_at as at from read.post_targets t
    where t.status = 'outcome_unknown' and t.next_action_at is not null
      and (t.next_action_at, t.id) < (coalesce($5::timestamptz, now()), $6::uuid)
    order by t.next_action_at desc, t.id desc limit $7) s
), free as (
  select t.*, coalesce(($8::jsonb ->> (t.workspace_id::text || t.platform))::int, $9) as room
  from (select id::uuid from rested union select b.id from bare b where not ${isTaken('b.id', '$1')}) c
  cross join lateral (
    select p.id, p.workspace_id, p.account_id, p.platform, p.status, p.revision, p.next_action_at
    from read.post_targets p where p.id = c.id offset 0
  ) t
  where t.status = 'outcome_unknown' and t.id not in (select unnest($10::uuid[]))
), ranked as (
  select f.*, row_number() over (partition by f.workspace_id, f.platform order by f.next_action_at, f.id) as rank
  from free f where f.room > 0
)
select r.id::text, r.workspace_id::text as "workspaceId", ${networkOf('r')} as network, r.revision, null as at, 'target' as kind
from ranked r where r.rank <= r.room + ${few}
union all select id, null, null, null, at::text, 'rested' from rested where "isEdge"
union all select id::text, null, null, null, at::text, 'bare' from bare where "isEdge"`;

export class UnknownSearch {
  readonly #pool: Pool;
  readonly #kind: string;
  readonly #rested: number;
  readonly #bare: number;
  readonly #stepEveryMs: number;
  readonly #passEveryMs: number;
  #restedFrom: Cursor | null = null;
  #bareFrom: Cursor | null = null;
  #goesOn = false;
  #bareAt = Number.NEGATIVE_INFINITY;

  /** @param kind of the leases */
  constructor(
    pool: Pool,
    kind: string,
    { rested = restedRows, bare = bareRows, stepEveryMs: stepMs = stepEveryMs, passEveryMs: passMs = passEveryMs } = {},
  ) {
    this.#pool = pool;
    this.#kind = kind;
    this.#rested = rested;
    this.#bare = bare;
    this.#stepEveryMs = stepMs;
    this.#passEveryMs = passMs;
  }

  /**
   * In no order. Where more are due than one search looks at, every other search begins with those whose rest ended last,
   * so that a new one is not behind a million others; the rest go on where the last one ended.
   */
  async find({ held, shares, left }: Holding): Promise<readonly DueRow[]> {
    const rested = this.#goesOn ? this.#restedFrom : null;
    const everyMs = this.#bareFrom === null ? this.#passEveryMs : this.#stepEveryMs;
    const looksForBare = performance.now() - this.#bareAt >= everyMs;
    const rows = await search<Found>(this.#pool, 'publisher-unknown', unknownSql, [
      this.#kind,
      rested?.at ?? null,
      rested?.id ?? '',
      this.#rested,
      this.#bareFrom?.at ?? null,
      this.#bareFrom?.id ?? afterAllIds,
      looksForBare ? this.#bare : 0,
      JSON.stringify(roomsOf(shares, left)),
      shares.roomOf({ workspaceId: '', network: '' }),
      held,
    ]);
    const edge = (kind: 'rested' | 'bare'): Cursor | null => rows.find((row) => row.kind === kind) ?? null;
    if (this.#goesOn || this.#restedFrom === null) this.#restedFrom = edge('rested');
    this.#goesOn = !this.#goesOn;
    if (looksForBare) {
      this.#bareFrom = edge('bare');
      this.#bareAt = performance.now();
    }
    return rows.filter((row) => row.kind === 'target' && !left.isPast(row));
  }
}
