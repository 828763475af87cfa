import { setTimeout as delay } from 'node:timers/promises';
import type { Pool } from 'pg';
import { oauthKeyVersions } from './oauth/tables.ts';
import type { PeopleDeps } from './people/deps.ts';
import { recordEnds } from './people/sessions.ts';

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

/** Work on the tables of people and apps that nobody waits for. Every process does it; what one has done, another finds done. */

const everyMs = 60_000;

interface UpkeepOptions {
  /** Further rounds, such as the sweep of the authorization server. */
  readonly also?: readonly (() => Promise<unknown>)[];
}

interface Upkeep {
  stop(): Promise<void>;
}

export const startUpkeep = (deps: PeopleDeps, { also = [] }: UpkeepOptions = {}): Upkeep => {
  const stopping = new AbortController();
  const { signal } = stopping;
  const rounds = [() => expirePeopleRows(deps), ...also];
  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      // Processes that started together do not work together.
      await delay(everyMs * (0.5 + Math.random()), undefined, { signal, ref: false }).catch(() => undefined);
      for (const round of rounds) {
        if (signal.aborted) return;
        await round().catch((err: unknown) => deps.logger.warn({ err }, 'a round of upkeep failed: it is repeated'));
      }
    }
  };
  const running = run();
  return {
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
};

/**
 * How many records need each version of the secret key to sign people and apps in: addresses, second factors and
 * recovery codes of persons, and the keys and clients of the authorization server.
 */
export const signInKeyUses = async (pool: Pool): Promise<ReadonlyMap<string, number>> => {
  const { rows } = await pool.query<{ version: string; n: number }>(`
    select version, count(*)::int as n from (
      select mac_version as version from auth.people
      union all select totp_version from auth.people
      union all select recovery_version from auth.people
    ) uses where version is not null group by 1`);
  const uses = new Map(await oauthKeyVersions(pool));
  for (const { version, n } of rows) uses.set(version, (uses.get(version) ?? 0) + n);
  return uses;
};
