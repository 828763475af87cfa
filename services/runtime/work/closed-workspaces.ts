import type { Pool } from 'pg';
import { Rejection } from '#domain/decider.ts';
import { Unavailable } from '../eventing/domain-store.ts';
import { Reading } from './reading.ts';

/**
 * Workspaces that answer no call and publish nothing: one was moved to another installation, of another the data are to be
 * erased. The row decides for every process, and comes before all else that an export or a deletion does.
 */

/** Each process reads all rows. */
const maxClosed = 10_000;

export interface Closed {
  readonly why: 'moved' | 'deleting' | 'erasing';
  readonly since: string;
  /** Name of the operator. */
  readonly by: string;
  /** When its data may be erased; null: it is moved. */
  readonly eraseAt: string | null;
}

type Queries = Pick<Pool, 'query'>;

interface Row {
  readonly workspace_id: string;
  readonly why: Closed['why'];
  readonly since: Date;
  readonly set_by: string;
  readonly erase_at: Date | null;
}

/**
 * Closes them. One that is closed already stays as it is, but that a moved one may be deleted.
 * @throws RangeError: too many workspaces are closed
 */
export const closeWorkspaces = async (
  pool: Queries,
  workspaceIds: readonly string[],
  { why, by, eraseAt }: Omit<Closed, 'since'>,
): Promise<void> => {
  const { rowCount } = await pool.query(
    `insert into ops.closed_workspaces (workspace_id, why, set_by, erase_at) select id, $2, $3, $4 from unnest($1::uuid[]) as id
     where (select count(*) from ops.closed_workspaces) < ${maxClosed}
     on conflict (workspace_id) do update set
       why = case when closed_workspaces.why = 'moved' then excluded.why else closed_workspaces.why end,
       erase_at = case when closed_workspaces.why = 'moved' then excluded.erase_at else closed_workspaces.erase_at end`,
    [workspaceIds, why, by, eraseAt],
  );
  if (rowCount === 0) throw new RangeError(`${maxClosed} workspaces are closed: delete those that were moved.`);
};

/** One whose erasure has begun stays closed. @returns whether one was opened */
export const reopenWorkspaces = async (pool: Queries, workspaceIds: readonly string[]): Promise<boolean> => {
  const { rowCount } = await pool.query(
    "delete from ops.closed_workspaces where workspace_id = any($1::uuid[]) and why <> 'erasing'",
    [workspaceIds],
  );
  return rowCount !== 0;
};

export const readClosed = async (pool: Queries): Promise<ReadonlyMap<string, Closed>> => {
  const { rows } = await pool.query<Row>('select * from ops.closed_workspaces');
  return new Map(
    rows.map(({ workspace_id: id, why, since, set_by: by, erase_at: eraseAt }) => [
      id,
      { why, by, since: since.toISOString(), eraseAt: eraseAt?.toISOString() ?? null },
    ]),
  );
};

const wordsFor = ({ why, since, eraseAt }: Closed): string =>
  why === 'moved'
    ? `This workspace was moved to another installation at ${since}: ask its operator for the new address.`
    : `This workspace is to be erased at ${eraseAt}: until then its operator can take that back.`;

/** What this process knows of them: at most a second old while the database answers. */
export class ClosedWorkspaces {
  readonly #closed: Reading<ReadonlyMap<string, Closed>>;

  constructor(pool: Queries) {
    this.#closed = new Reading('the closed workspaces', () => readClosed(pool));
  }

  /** @throws Rejection workspace_closed; Unavailable where the database has not answered for long */
  async requireOpen(workspaceId: string): Promise<void> {
    const all = await this.#closed.get().catch((cause: unknown) => {
      throw new Unavailable('Which workspaces are closed could not be read.', { cause });
    });
    const closed = all.get(workspaceId);
    if (closed !== undefined) throw new Rejection('workspace_closed', wordsFor(closed));
  }
}
