/**
 * Positions of each workspace's events in a store that cannot search for them: (workspace, position, stream, revision)
 * in Postgres, filled from the store's total order by one process. The tables can be emptied and filled again.
 */
import type pg from 'pg';
import { plainArray, textArray } from '#contracts/base/array-literals.ts';
import { bigintTypes } from './pool.ts';
import { forgetInPieces } from './workspace-index.sql.ts';

export interface EventPosition {
  readonly position: bigint;
  readonly stream: string;
  readonly revision: bigint;
}

export interface PositionToAdd extends EventPosition {
  readonly workspaceId: string;
  /** Of data and metadata together. */
  readonly bytes: number;
}

/** The last event that the index holds. Its id shows whether the store still has the same history. */
export interface IndexedUpTo {
  readonly position: bigint;
  readonly eventId: string;
}

export interface FoundPositions {
  readonly reached: IndexedUpTo | null;
  readonly positions: readonly EventPosition[];
  /** Whether more may follow up to the same position. */
  readonly isCut: boolean;
}

/** Rows that one statement takes out. */
const removedAtOnce = 10_000;
/** For so long a reading of the erased workspaces stands, milliseconds. */
const erasedMs = 1_000;

export class WorkspacePositions {
  readonly #pool: pg.Pool;
  #erased: { readonly at: number; readonly ids: ReadonlySet<string> } | null = null;

  constructor(pool: pg.Pool) {
    this.#pool = pool;
  }

  async reached(): Promise<IndexedUpTo | null> {
    const { rows } = await this.#pool.query<[bigint | null, string | null]>({
      ...{ name: `places-reached`, text: `select position, event_id from ops.workspace_index` },
      ...{ rowMode: 'array', types: bigintTypes },
    });
    return asReached(rows[0]);
  }

  /**
   * Adds positions and moves the end of the index behind them, or neither.
   * @returns false where another process has moved on from `from` meanwhile: nothing changes then
   */
  async add(from: IndexedUpTo | null, positions: readonly PositionToAdd[], to: IndexedUpTo): Promise<boolean> {
    const { rowCount } = await this.#pool.query({
      name: `places-add`,
      text: `
        with moved as (
          update ops.workspace_index set position = $2, event_id = $3
          where position is not distinct from $1::int8 returning 1
        ), added as (
          insert into ops.workspace_events (workspace, position, revision, bytes, stream)
          select p.* from unnest($4::uuid[], $5::int8[], $6::int8[], $7::int4[], $8::text[])
            as p (workspace, position, revision, bytes, stream) where exists (select from moved)
          order by 1, 2
          on conflict (workspace, position)
          do update set revision = excluded.revision, bytes = excluded.bytes, stream = excluded.stream
        )
        select from moved`,
      values: [
        from?.position ?? null,
        to.position,
        to.eventId,
        plainArray(positions.map(({ workspaceId }) => workspaceId)),
        plainArray(positions.map(({ position }) => position)),
        plainArray(positions.map(({ revision }) => revision)),
        plainArray(positions.map(({ bytes }) => bytes)),
        textArray(positions.map(({ stream }) => stream)),
      ],
    });
    return rowCount === 1;
  }

  /** Positions after a given one, up to and including the one that exceeds the bytes; read in one statement. */
  async find(
    workspaceId: string,
    { after, until, limit, bytes }: { after: bigint; until: bigint | null; limit: number; bytes: number },
  ): Promise<FoundPositions> {
    const { rows } = await this.#pool.query<
      [bigint | null, string | null, bigint | null, string | null, bigint | null, bigint | null]
    >({
      name: `places-find`,
      text: `
        select i.position, i.event_id, p.position, p.stream, p.revision, p.found
        from ops.workspace_index i left join lateral (
          select *, sum(w.bytes) over (order by w.position) as sum, count(*) over () as found from (
            select * from ops.workspace_events w
            where w.workspace = $1::uuid and w.position > $2::int8 and w.position <= i.position
              and ($3::int8 is null or w.position <= $3::int8)
            order by w.position limit $4::int8) as w
        ) as p on p.sum - p.bytes < $5::int8
        order by p.position`,
      values: [workspaceId, after, until, limit, bytes],
      rowMode: 'array',
      types: bigintTypes,
    });
    const positions = rows.flatMap(([, , position, stream, revision]) =>
      position === null || stream === null || revision === null ? [] : [{ position, stream, revision }],
    );
    const isCut = positions.length === limit || positions.length < Number(rows[0]?.[5] ?? 0);
    return { reached: asReached(rows[0]), positions, isCut };
  }

  /** Takes all of a workspace out, in pieces: its events were erased. */
  async remove(workspaceId: string): Promise<void> {
    const text = `delete from ops.workspace_events where workspace = $1::uuid and position = any(array(
      select position from ops.workspace_events where workspace = $1::uuid limit ${removedAtOnce}))`;
    while (((await this.#pool.query(text, [workspaceId])).rowCount ?? 0) === removedAtOnce);
  }

  /** Workspaces whose erasure has ended, as they were a second ago at most. The store has the bytes of their events still. */
  async erased(): Promise<ReadonlySet<string>> {
    const at = performance.now();
    if (this.#erased !== null && at < this.#erased.at + erasedMs) return this.#erased.ids;
    const { rows } = await this.#pool.query<{ id: string }>({
      name: 'places-erased',
      text: 'select workspace_id::text as id from ops.workspace_erasures where receipt is not null',
    });
    this.#erased = { at, ids: new Set(rows.map(({ id }) => id)) };
    return this.#erased.ids;
  }

  /** Deletes the rows of another history in pieces; until it is filled again, the index is empty. */
  async forget(signal: AbortSignal): Promise<void> {
    await this.#pool.query(`update ops.workspace_index set position = null, event_id = null`);
    await forgetInPieces(this.#pool, 'ops', signal);
  }
}

const asReached = (row: readonly unknown[] | undefined): IndexedUpTo | null => {
  const [position = null, eventId = null] = (row ?? []) as [bigint | null, string | null];
  return position === null || eventId === null ? null : { position, eventId };
};
