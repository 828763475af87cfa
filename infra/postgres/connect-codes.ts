/** One-time codes in Postgres, by the database's clock: one row each, which every statement changes by itself. */
import type pg from 'pg';
import { type ConnectCodes, codeLimits } from '#contracts/ports/connect-codes.ts';

/** Gaps in which a test kills the process. */
export type CodeGap = 'connect-codes.taken' | 'connect-codes.spoken';

export class PostgresConnectCodes implements ConnectCodes {
  readonly #pool: pg.Pool;
  readonly #faultPoint: ((name: CodeGap) => void) | undefined;

  constructor({ pool, faultPoint }: { readonly pool: pg.Pool; readonly faultPoint?: (name: CodeGap) => void }) {
    this.#pool = pool;
    this.#faultPoint = faultPoint;
  }

  /** NOTE: codes that are minted at the same instant do not count each other. */
  async mint(code: string, workspaceId: string): Promise<boolean> {
    const { rowCount } = await this.#pool.query(
      `insert into ops.connect_codes (code, workspace_id, expires_at)
       select $1, $2, now() + $3 * interval '1 millisecond'
       where (select count(*) from ops.connect_codes where workspace_id = $2 and expires_at > now()) < $4`,
      [code, workspaceId, codeLimits.lifeMs, codeLimits.openPerWorkspace],
    );
    return rowCount === 1;
  }

  async open(codes: readonly string[]): Promise<ReadonlySet<string>> {
    if (codes.length === 0) return new Set();
    const { rows } = await this.#pool.query<{ code: string }>(
      'select code from ops.connect_codes where code = any($1) and expires_at > now()',
      [codes],
    );
    return new Set(rows.map(({ code }) => code));
  }

  async take(code: string): Promise<boolean> {
    const { rowCount } = await this.#pool.query(
      `update ops.connect_codes set tries = tries + 1 where code = $1 and expires_at > now() and tries < $2`,
      [code, codeLimits.tries],
    );
    this.#faultPoint?.('connect-codes.taken');
    return rowCount === 1;
  }

  async spoke(code: string, place: string): Promise<void> {
    await this.#pool.query(
      `update ops.connect_codes set places = array_append(places, $2)
       where code = $1 and expires_at > now() and not $2 = any(places) and cardinality(places) < $3`,
      [code, place, codeLimits.places],
    );
    this.#faultPoint?.('connect-codes.spoken');
  }

  async placesOf(code: string): Promise<readonly string[] | null> {
    const { rows } = await this.#pool.query<{ places: readonly string[] }>(
      'select places from ops.connect_codes where code = $1 and expires_at > now()',
      [code],
    );
    return rows[0]?.places ?? null;
  }

  async forget(code: string): Promise<void> {
    await this.#pool.query('delete from ops.connect_codes where code = $1', [code]);
  }

  async sweep(): Promise<void> {
    await this.#pool.query('delete from ops.connect_codes where expires_at <= now()');
  }
}
