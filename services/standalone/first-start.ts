import { setTimeout as delay } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { Log } from '#contracts/ports/log.ts';
import { workspace } from '#domain/workspace.ts';
import { lagOf, PositionWatch } from '#projections/engine/positions.ts';
import { firstWorkspace } from '#projections/models/workspaces.ts';
import type { CommandContext, DomainStore, Positions } from '#runtime/eventing/domain-store.ts';
import type { Secrets } from '#runtime/identity/secrets.ts';
import { mintSession } from '#runtime/identity/sessions.ts';
import type { SelfReport } from '#runtime/process/telemetry.ts';
import { scopes } from '#schemas/apikey.ts';
import type { PeopleDeps } from '#services/auth/people/deps.ts';
import { mintPersonLink } from '#services/auth/people/person-links.ts';
import { createTeamInvite } from '#services/auth/people/team-invites.ts';
import { contextOf, createApiKey, createWorkspace, type Operator, tourName } from '#services/workflows/provision.ts';

/** The link by which the Owner of a new installation comes into the console. */

const dayMs = 86_400_000;

/**
 * The path of a link that works once, for a day: to choose an address and a password, or, once the Owner has done that,
 * to sign in.
 */
const ownersLink = async (
  deps: PeopleDeps,
  owner: { readonly workspaceId: string; readonly memberId: string },
  context: CommandContext,
): Promise<string> => {
  const { state } = await deps.store.load(workspace, owner.workspaceId);
  const member = state.status === 'none' ? undefined : state.members[owner.memberId];
  if (member?.personId !== undefined) {
    const { token } = await mintPersonLink(deps, member.personId, 'sign_in');
    return `/enter/${token}`;
  }
  const expiresAt = new Date(deps.clock() + dayMs).toISOString();
  const wanted = { memberId: owner.memberId, email: null, name: null, role: 'owner', expiresAt } as const;
  const { token } = await createTeamInvite(deps, wanted, context, new Map());
  return `/join/${token}`;
};

interface FirstStart {
  readonly made: { readonly workspaceId: string; readonly testKey: string; readonly liveKey: string } | null;
  /** Path of a link by which the Owner signs in, once. */
  ownersLink(): Promise<string>;
  /** Makes a workspace for one tour. */
  tourPlace(): Promise<TourPlace>;
}

/**
 * Where one tour takes place: a new workspace, so that no earlier tour stands in its way, its allowances are its own, and
 * no other workspace's sandbox clock moves.
 */
interface TourPlace {
  readonly timezone: string;
  readonly testKey: string;
  liveKey(): Promise<string>;
  /** A first-party session of its Owner in the sandbox twin. */
  session(): Promise<string>;
  /** Path of a link by which a person signs in as its Owner, once. */
  ownersLink(): Promise<string>;
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
const tourKeyMs = 30 * 86_400_000;
/** Projections that start, or wait for the database, are not ready for a moment; after this they count as broken. */
const patienceMs = 10_000;

const existing = async (pool: Pool): Promise<{ workspaceId: string; memberId: string; keys: number } | null> => {
  const found = await firstWorkspace(pool);
  const owner = Object.entries(found?.members ?? {}).find(([, member]) => member.role === 'owner');
  if (found === null || owner === undefined) return null;
  return { workspaceId: found.id, memberId: owner[0], keys: found.keys };
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

/**
 * Creates on the first start: a workspace with an Owner, a test key and a live key.
 *
 * After a crash between the workspace and the display of its keys, the next start makes new keys.
 */
export const firstStart = async (deps: Deps): Promise<FirstStart> => {
  const positions: Positions = new Map();
  const operator: Operator = {
    store: deps.store,
    pool: deps.pool,
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
  const ids = { workspaceId: owner.workspaceId, memberId: owner.memberId };
  const linkOf = (of: typeof ids) => (): Promise<string> =>
    ownersLink({ ...deps, clock: Date.now }, of, contextOf(operator, of.workspaceId));
  const tourPlace = async (): Promise<TourPlace> => {
    const place = await createWorkspace(operator, { name: tourName, timezone: newZone, ownerName: 'Owner' });
    const keyOf = async (mode: 'live' | 'test'): Promise<string> => {
      const { secret } = await newKey(place, mode, 'tour', tourKeyMs);
      await shown();
      return secret;
    };
    return {
      timezone: newZone,
      testKey: await keyOf('test'),
      liveKey: () => keyOf('live'),
      session: async () => (await mintSession({ ...deps, clock: Date.now }, { ...place, mode: 'test' })).token,
      ownersLink: linkOf(place),
    };
  };
  const common = { ownersLink: linkOf(ids), tourPlace };
  if (found !== null && found.keys > 0) return { ...common, made: null };
  const test = await newKey(ids, 'test', 'first test key', yearMs);
  const live = await newKey(ids, 'live', 'first live key', yearMs);
  await shown();
  return { ...common, made: { workspaceId: ids.workspaceId, testKey: test.secret, liveKey: live.secret } };
};
