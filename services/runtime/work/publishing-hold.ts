import type { Pool } from 'pg';
import { Reading } from './reading.ts';

/**
 * Whether an operator lets nothing go out: by PUBLISHING=hold, for a process, or by rows that every process reads, for
 * all workspaces or for one. The setting is there beside the rows because a restored database brings back the rows of
 * its day.
 */

/** Names the row for all workspaces; every other row is named by its workspace. */
export const everyWorkspace = 'all';

/** Workspaces that may be held one by one: each process reads all rows. */
export const maxHeldWorkspaces = 10_000;

export interface Hold {
  /** Null: a setting of this process. */
  readonly since: string | null;
  /** Name of the operator, or of the setting. */
  readonly by: string;
}

type Queries = Pick<Pool, 'query'>;

/** Sets the hold. One that is set already keeps its instant and its operator. @throws RangeError: too many workspaces */
export const holdPublishing = async (pool: Queries, scope: string, by: string): Promise<void> => {
  const { rowCount } = await pool.query(
    `insert into ops.publishing_holds (scope, since, set_by) select $1, now(), $2
     where $1 = $3 or (select count(*) from ops.publishing_holds) <= $4
     on conflict (scope) do update set scope = excluded.scope`,
    [scope, by, everyWorkspace, maxHeldWorkspaces],
  );
  if (rowCount === 0) {
    throw new RangeError(`${maxHeldWorkspaces} workspaces are held: hold all of them instead, without --workspace.`);
  }
};

/** Ends the hold of that scope. A workspace that is held alone stays so when the hold of all ends. */
export const resumePublishing = async (pool: Queries, scope: string): Promise<void> => {
  await pool.query('delete from ops.publishing_holds where scope = $1', [scope]);
};

/** The holds by their scope; a closed workspace is held as well, and stays so after `resumePublishing`. */
export const readHolds = async (pool: Queries): Promise<ReadonlyMap<string, Hold>> => {
  const { rows } = await pool.query<{ scope: string; since: Date; by: string }>(
    `select scope, since, set_by as by from ops.publishing_holds
     union all select workspace_id::text, since, set_by from ops.closed_workspaces`,
  );
  return new Map(rows.map(({ scope, since, by }) => [scope, { since: since.toISOString(), by }]));
};

/** What this process knows of the holds: at most a second old while the database answers. */
export class PublishingHold {
  /** Whether PUBLISHING=hold keeps all of this process back. */
  readonly bySetting: boolean;
  readonly #holds: Reading<ReadonlyMap<string, Hold>>;

  constructor(pool: Queries, publishing: 'on' | 'hold') {
    this.bySetting = publishing === 'hold';
    this.#holds = new Reading('the holds of publishing', () => readHolds(pool));
  }

  /** Why nothing of the workspace goes out; null: it may. @throws where the database has not answered for long */
  async of(workspaceId: string): Promise<Hold | null> {
    return (await this.ofAll()) ?? (this.bySetting ? null : ((await this.#holds.get()).get(workspaceId) ?? null));
  }

  /** Why nothing goes out at all. */
  async ofAll(): Promise<Hold | null> {
    if (this.bySetting) return { since: null, by: 'PUBLISHING=hold' };
    return (await this.#holds.get()).get(everyWorkspace) ?? null;
  }

  /** The line for /readyz; null: publishing is on. */
  async line(): Promise<string | null> {
    const hold = await this.ofAll();
    if (hold !== null) return `hold, by ${hold.by}${hold.since === null ? '' : ` since ${hold.since}`}`;
    const workspaces = (await this.#holds.get()).size;
    return workspaces === 0 ? null : `hold of ${workspaces} workspaces`;
  }
}
