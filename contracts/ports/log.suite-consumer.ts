/**
 * The smallest correct consumer: position and effect in one transaction, fenced by an epoch; it recognises repeats by
 * revision. The suite's effect is a row per applied record, so that repeated and reordered records show.
 */
import { Pool } from 'pg';
import type { ConsumerHandlers, Lane, LaneBatch, LanePosition, LogRecord, Overrun } from './log.ts';

/** Ends the member's hold on the lane. */
class EpochLost extends Error {
  readonly code = 'fenced';
}

export interface Applied {
  readonly member: string;
  readonly stream: string;
  readonly revision: number;
  readonly id: string;
}

/** The consumers' database: positions, heads and effects of all groups. */
export class SuiteEffects {
  readonly #url: string;
  readonly pool: Pool;
  readonly #pools: Pool[] = [];

  constructor(url: string) {
    this.#url = url;
    this.pool = new Pool({ connectionString: url, max: 4 });
  }

  async create(): Promise<void> {
    await this.pool.query(`
      CREATE TABLE positions (grp text, lane text, next_offset bigint, position bigint, epoch bigint NOT NULL DEFAULT 0,
        PRIMARY KEY (grp, lane));
      CREATE TABLE heads (grp text, stream text, revision bigint NOT NULL, PRIMARY KEY (grp, stream));
      CREATE TABLE applied (seq bigserial PRIMARY KEY, grp text, member text, stream text, revision bigint, id uuid);
      CREATE INDEX ON applied (grp)`);
  }

  /** The group's effects, in the order of its transactions. */
  async applied(group: string): Promise<Applied[]> {
    const { rows } = await this.pool.query(
      'SELECT member, stream, revision::int, id FROM applied WHERE grp = $1 ORDER BY seq',
      [group],
    );
    return rows;
  }

  async count(group: string): Promise<number> {
    const { rows } = await this.pool.query('SELECT count(*)::int AS n FROM applied WHERE grp = $1', [group]);
    return rows[0].n;
  }

  async positions(group: string): Promise<Map<Lane, LanePosition>> {
    const { rows } = await this.pool.query('SELECT lane, next_offset, position FROM positions WHERE grp = $1', [group]);
    return new Map(rows.map((row) => [row.lane, positionOf(row)]));
  }

  /** Lets a group begin at these positions. */
  async place(group: string, positions: readonly LanePosition[]): Promise<void> {
    for (const { lane, nextOffset, position } of positions) {
      await this.pool.query(
        `INSERT INTO positions (grp, lane, next_offset, position) VALUES ($1, $2, $3, $4)
         ON CONFLICT (grp, lane) DO UPDATE SET next_offset = $3, position = $4`,
        [group, lane, nextOffset, position],
      );
    }
  }

  /** A member with connections of its own, as another process has them. */
  member(group: string, name: string, hooks: Hooks = {}): SuiteMember {
    const pool = new Pool({ connectionString: this.#url, max: 4 });
    this.#pools.push(pool);
    return new SuiteMember(pool, group, name, hooks);
  }

  async close(): Promise<void> {
    await Promise.all([this.pool, ...this.#pools].map((pool) => pool.end()));
  }
}

export interface Hooks {
  /** Before a batch's transaction. */
  readonly before?: (batch: LaneBatch) => Promise<void>;
  /** While true, it takes batches and does nothing with them, like a stopped lane. */
  readonly resting?: () => boolean;
  /** Records of the store after a commit position, in order, for a lane whose records the log lost. */
  readonly store?: (lane: Lane, after: bigint | null) => readonly LogRecord[];
}

const positionOf = (row: { lane: string; next_offset: string | null; position: string | null }): LanePosition => ({
  lane: row.lane,
  nextOffset: row.next_offset === null ? null : BigInt(row.next_offset),
  position: row.position === null ? null : BigInt(row.position),
});

export class SuiteMember implements ConsumerHandlers {
  readonly #pool: Pool;
  readonly #group: string;
  readonly #name: string;
  readonly #hooks: Hooks;
  readonly #epochs = new Map<Lane, string>();
  /** Lanes of each call of `assigned`. */
  readonly assignments: (readonly Lane[])[] = [];
  /** Batches that the epoch refused. */
  fenced = 0;
  /** Most records of one batch. */
  largest = 0;
  /** Records taken while resting. */
  ignored = 0;
  /** Lanes that were out of range. */
  readonly overrun: Lane[] = [];

  constructor(pool: Pool, group: string, name: string, hooks: Hooks) {
    this.#pool = pool;
    this.#group = group;
    this.#name = name;
    this.#hooks = hooks;
  }

  async assigned(lanes: readonly Lane[]): Promise<readonly LanePosition[]> {
    const { rows } = await this.#pool.query(
      `INSERT INTO positions (grp, lane, epoch) SELECT $1, lane, 1 FROM unnest($2::text[]) AS lane ORDER BY lane
       ON CONFLICT (grp, lane) DO UPDATE SET epoch = positions.epoch + 1
       RETURNING lane, next_offset, position, epoch`,
      [this.#group, lanes],
    );
    for (const row of rows) this.#epochs.set(row.lane, row.epoch);
    this.assignments.push(lanes);
    return rows.map(positionOf);
  }

  async batch(batch: LaneBatch): Promise<void> {
    const epoch = this.#epochs.get(batch.lane);
    this.largest = Math.max(this.largest, batch.records.length);
    if (this.#hooks.resting?.() === true) {
      this.ignored += batch.records.length;
      return;
    }
    await this.#hooks.before?.(batch);
    await this.#apply(batch, epoch);
  }

  async outOfRange(lanes: readonly Overrun[]): Promise<readonly LanePosition[]> {
    const moved: LanePosition[] = [];
    for (const { from, firstOffset } of lanes) {
      const { lane } = from;
      this.overrun.push(lane);
      const records = this.#hooks.store?.(lane, from.position) ?? [];
      const position = records.at(-1)?.position ?? from.position;
      await this.#apply({ lane, records, nextOffset: firstOffset, position }, this.#epochs.get(lane));
      moved.push({ lane, nextOffset: firstOffset, position });
    }
    return moved;
  }

  async #apply(batch: LaneBatch, epoch: string | undefined): Promise<void> {
    const client = await this.#pool.connect();
    try {
      await client.query('BEGIN');
      const moved = await client.query(
        'UPDATE positions SET next_offset = $4, position = $5 WHERE grp = $1 AND lane = $2 AND epoch = $3',
        [this.#group, batch.lane, epoch, batch.nextOffset, batch.position],
      );
      if (moved.rowCount === 0) {
        this.fenced += 1;
        throw new EpochLost(`${this.#name} does not own ${batch.lane}`);
      }
      const streams = [...new Set(batch.records.map((record) => record.stream))];
      const known = await client.query('SELECT stream, revision FROM heads WHERE grp = $1 AND stream = ANY ($2)', [
        this.#group,
        streams,
      ]);
      const heads = new Map<string, bigint>(known.rows.map((row) => [row.stream, BigInt(row.revision)]));
      const fresh: LogRecord[] = [];
      for (const record of batch.records) {
        const head = heads.get(record.stream) ?? -1n;
        if (record.revision <= head) continue;
        if (record.revision > head + 1n) throw new Error(`gap in ${record.stream}: ${head} then ${record.revision}`);
        heads.set(record.stream, record.revision);
        fresh.push(record);
      }
      await client.query(
        `INSERT INTO applied (grp, member, stream, revision, id)
         SELECT $1, $2, stream, revision, id FROM unnest($3::text[], $4::bigint[], $5::uuid[]) AS r (stream, revision, id)`,
        [this.#group, this.#name, fresh.map((r) => r.stream), fresh.map((r) => r.revision), fresh.map((r) => r.id)],
      );
      await client.query(
        `INSERT INTO heads (grp, stream, revision) SELECT $1, stream, revision FROM unnest($2::text[], $3::bigint[])
         AS r (stream, revision) ON CONFLICT (grp, stream) DO UPDATE SET revision = EXCLUDED.revision`,
        [this.#group, [...heads.keys()], [...heads.values()]],
      );
      await client.query('COMMIT');
    } catch (error) {
      await client.query('ROLLBACK').catch(() => undefined);
      throw error;
    } finally {
      client.release();
    }
  }
}
