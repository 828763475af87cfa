import type { PeopleDeps } from './deps.ts';
import { recordEnds } from './sessions.ts';

/** Rows that are of no use any more. Each statement is bounded, so that none holds locks for long. */

const most = 1_000;
/** Statements for one table in a round: strangers who try many accounts make more rows than one statement deletes. */
const maxBatches = 20;
const dayMs = 86_400_000;
/** Ended sessions stay for so long for the person to look at; then device and address, which are personal, go. */
const keptSessionsMs = 30 * dayMs;

const statements: readonly (readonly [table: string, key: string, condition: string, ageMs: number])[] = [
  ['auth.attempts', 'key', 'last_at < $1', dayMs],
  ['auth.spent', 'hash', 'expires_at < $1', 0],
  ['auth.person_links', 'token_hash', 'expires_at < $1', 0],
  ['auth.sessions', 'id', 'expires_at < $1', keptSessionsMs],
  ['auth.sessions', 'id', 'ended_at < $1 and end_recorded', keptSessionsMs],
];

/** Appends the ends of sessions that no event tells yet, then deletes a bounded number of old rows. */
export const expirePeopleRows = async (deps: PeopleDeps): Promise<void> => {
  await recordEnds(deps);
  for (const [table, key, condition, ageMs] of statements) {
    for (let batch = 0; batch < maxBatches; batch += 1) {
      const { rowCount } = await deps.pool.query(
        `delete from ${table} where ${key} in (select ${key} from ${table} where ${condition} limit ${most})`,
        [new Date(deps.clock() - ageMs).toISOString()],
      );
      if ((rowCount ?? 0) < most) break;
    }
  }
};
