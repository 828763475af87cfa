import { setTimeout as delay } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { DomainStore, Positions } from '#runtime/domain-store.ts';
import { createApiKey, createWorkspace, type Operator, revokeApiKey } from '#runtime/provision.ts';
import type { SelfReport } from '#runtime/telemetry.ts';
import { scopes } from '#schemas/apikey.ts';

/** What the first start makes: a workspace with an Owner, a test key and a live key. */

export interface FirstStart {
  readonly made: { readonly workspaceId: string; readonly testKey: string; readonly liveKey: string } | null;
  /** A test key for the tour: the one just made, or one for this hour. */
  tourKey(): Promise<string>;
  forgetTourKey(): Promise<void>;
}

interface Deps {
  readonly store: DomainStore;
  readonly pool: Pool;
  readonly readiness: SelfReport;
}

const yearMs = 365 * 86_400_000;
const hourMs = 3_600_000;
/** Projections that start, or wait for the database, are ill for a moment; after this they are broken. */
const patienceMs = 10_000;

const existing = async (pool: Pool): Promise<{ workspaceId: string; memberId: string; keys: number } | null> => {
  const { rows } = await pool.query<{ id: string; members: Record<string, { role: string }>; keys: string }>(
    `select w.id::text, w.members, (select count(*) from read.api_keys k where k.workspace_id = w.id) as keys
     from read.workspaces w where w.mode = 'live' order by w.created_at, w.id limit 1`,
  );
  const [row] = rows;
  const owner = Object.entries(row?.members ?? {}).find(([, member]) => member.role === 'owner');
  if (row === undefined || owner === undefined) return null;
  return { workspaceId: row.id, memberId: owner[0], keys: Number(row.keys) };
};

/** The read models must have come to the end of the log before anything is concluded from their emptiness. */
const settled = async ({ pool, readiness }: Deps): Promise<void> => {
  const { rows } = await pool.query<{ head: string | null }>('select max(position)::text as head from es.events');
  const head = rows[0]?.head ?? null;
  if (head === null) return;
  for (let well = performance.now(); ; ) {
    const behind = await pool.query(
      `select 1 from ops.projections p
       left join ops.consumer_positions c on c.consumer_group = 'projection-' || p.name || '-v' || p.live
       where p.name = 'workspaces' and coalesce(c.position, 0) <
         (select coalesce(max(position), 0) from es.events where topic = 'workspace')`,
    );
    if (behind.rows.length === 0) return;
    const ill = (await readiness.checks()).find((one) => !one.ok);
    if (ill?.name !== 'projections') well = performance.now();
    else if (performance.now() > well + patienceMs) throw new Error(`the projections do not run: ${ill.detail ?? ''}`);
    await delay(20);
  }
};

/** If we die after the workspace and before its keys are shown, the next start makes the keys. */
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
  await settled(deps);
  const known = await existing(deps.pool);
  const owner =
    known ?? (await createWorkspace(operator, { name: 'My agency', timezone: 'Europe/Berlin', ownerName: 'Owner' }));
  const ids = { workspaceId: owner.workspaceId, memberId: owner.memberId };
  if (known === null || known.keys === 0) {
    const test = await newKey(ids, 'test', 'first test key', yearMs);
    const live = await newKey(ids, 'live', 'first live key', yearMs);
    await settled(deps);
    const made = { workspaceId: ids.workspaceId, testKey: test.secret, liveKey: live.secret };
    return { made, tourKey: async () => made.testKey, forgetTourKey: async () => undefined };
  }
  let temporary: string | null = null;
  return {
    made: null,
    tourKey: async () => {
      const { id, secret } = await newKey(ids, 'test', 'tour', hourMs);
      temporary = id;
      await settled(deps);
      return secret;
    },
    forgetTourKey: async () => {
      if (temporary !== null) await revokeApiKey(operator, ids.workspaceId, temporary);
    },
  };
};
