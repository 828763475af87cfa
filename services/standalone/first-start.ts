import { setTimeout as delay } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { Log } from '#contracts/ports/log.ts';
import { lagOf, PositionWatch } from '#projections/positions.ts';
import { firstWorkspace } from '#projections/workspaces.ts';
import type { DomainStore, Positions } from '#runtime/eventing/domain-store.ts';
import type { Secrets } from '#runtime/identity/secrets.ts';
import { mintSession } from '#runtime/identity/sessions.ts';
import type { SelfReport } from '#runtime/process/telemetry.ts';
import { scopes } from '#schemas/apikey.ts';
import type { PeopleDeps } from '#services/auth/people/deps.ts';
import {
  contextOf,
  createApiKey,
  createWorkspace,
  type Operator,
  revokeApiKey,
} from '#services/workflows/provision.ts';
import { ownersLink } from './sign-in-link.ts';

/** Creates on the first start: a workspace with an Owner, a test key and a live key. */

export interface FirstStart {
  readonly made: { readonly workspaceId: string; readonly testKey: string; readonly liveKey: string } | null;
  /** A key for the tour: the new one, or one for this hour. */
  tourKey(mode: 'live' | 'test'): Promise<string>;
  forgetTourKeys(): Promise<void>;
  /** A first-party session of the Owner in the sandbox twin, for the tour. */
  tourSession(): Promise<string>;
  /** Path of a link by which the Owner signs in, once. */
  ownersLink(): Promise<string>;
  /** Of the workspace. */
  readonly timezone: string;
}

interface Deps {
  readonly logger: PeopleDeps['logger'];
  readonly store: DomainStore;
  readonly pool: Pool;
  readonly log: Log;
  readonly secrets: Secrets;
  readonly readiness: SelfReport;
}

/** The projection of the workspaces and their keys. */
const projection = 'workspaces';
const newZone = 'Europe/Berlin';
const yearMs = 365 * 86_400_000;
const hourMs = 3_600_000;
/** Projections that start, or wait for the database, are not ready for a moment; after this they count as broken. */
const patienceMs = 10_000;

const existing = async (
  pool: Pool,
): Promise<{ workspaceId: string; memberId: string; timezone: string; keys: number } | null> => {
  const found = await firstWorkspace(pool);
  const owner = Object.entries(found?.members ?? {}).find(([, member]) => member.role === 'owner');
  if (found === null || owner === undefined) return null;
  return { workspaceId: found.id, memberId: owner[0], timezone: found.timezone, keys: found.keys };
};

/** Repeats the query until it succeeds. @throws when the projections stay unready meanwhile */
const patiently = async ({ readiness }: Deps, look: () => Promise<boolean>): Promise<void> => {
  for (let well = performance.now(); !(await look()); await delay(20)) {
    const ill = (await readiness.checks()).find((one) => !one.ok);
    if (ill?.name !== 'projections') well = performance.now();
    else if (performance.now() > well + patienceMs) throw new Error(`the projections do not run: ${ill.detail ?? ''}`);
  }
};

/**
 * Empty read models prove nothing before they have reached the end of the log. Rows prove their content at once: a
 * later start need not wait, and the embedded log reports its end a second or two late.
 */
const known = async (deps: Deps): ReturnType<typeof existing> => {
  const found = await existing(deps.pool);
  if (found !== null && found.keys > 0) return found;
  await patiently(deps, async () => (await lagOf(deps.pool, deps.log, projection)) <= 0n);
  return existing(deps.pool);
};

/** After a crash between the workspace and the display of its keys, the next start makes new keys. */
export const firstStart = async (deps: Deps): Promise<FirstStart> => {
  const positions: Positions = new Map();
  const operator: Operator = {
    store: deps.store,
    actor: { type: 'admin', id: 'standalone' },
    clock: Date.now,
    positions,
  };
  const newKey = async (
    owner: { workspaceId: string; memberId: string },
    mode: 'live' | 'test',
    name: string,
    lifeMs: number,
  ) =>
    createApiKey(operator, {
      ...owner,
      name,
      mode,
      scopes: [...scopes],
      expiresAt: new Date(Date.now() + lifeMs).toISOString(),
    });
  const watch = new PositionWatch(deps.pool, deps.log);
  const shown = () => patiently(deps, () => watch.waitFor([projection], positions, { timeoutMs: 1_000 }));
  const found = await known(deps);
  const owner =
    found ?? (await createWorkspace(operator, { name: 'My agency', timezone: newZone, ownerName: 'Owner' }));
  const timezone = found?.timezone ?? newZone;
  const tourSession = async (): Promise<string> => {
    const { token } = await mintSession({ ...deps, clock: Date.now }, { ...ids, mode: 'test' });
    return token;
  };
  const ids = { workspaceId: owner.workspaceId, memberId: owner.memberId };
  const link = (): Promise<string> =>
    ownersLink({ ...deps, clock: Date.now }, ids, contextOf(operator, ids.workspaceId));
  if (found === null || found.keys === 0) {
    const test = await newKey(ids, 'test', 'first test key', yearMs);
    const live = await newKey(ids, 'live', 'first live key', yearMs);
    await shown();
    const made = { workspaceId: ids.workspaceId, testKey: test.secret, liveKey: live.secret };
    const common = { made, timezone, tourSession, ownersLink: link };
    return {
      ...common,
      tourKey: async (mode) => (mode === 'live' ? made.liveKey : made.testKey),
      forgetTourKeys: async () => undefined,
    };
  }
  const temporary: string[] = [];
  return {
    made: null,
    timezone,
    tourSession,
    ownersLink: link,
    tourKey: async (mode) => {
      const { id, secret } = await newKey(ids, mode, 'tour', hourMs);
      temporary.push(id);
      await shown();
      return secret;
    },
    forgetTourKeys: async () => {
      for (const id of temporary) await revokeApiKey(operator, ids.workspaceId, id);
    },
  };
};
