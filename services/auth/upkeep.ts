import { setTimeout as delay } from 'node:timers/promises';
import type { Pool } from 'pg';
import { oauthKeyVersions } from './oauth/tables.ts';
import type { PeopleDeps } from './people/deps.ts';
import { expirePeopleRows } from './people/expiry.ts';

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
