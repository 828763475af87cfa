import { setTimeout as delay } from 'node:timers/promises';
import type { ClickHouseClient } from '@clickhouse/client';
import type { Pool } from 'pg';
import type { BlobStore } from '#contracts/ports/blob-store.ts';
import type { EventEraser, EventStore } from '#contracts/ports/event-store.ts';
import type { Secrets } from '#runtime/identity/secrets.ts';
import { withConnection } from '#runtime/postgres/transactions.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { Logger } from '#runtime/process/telemetry.ts';
import { inParallel } from '#runtime/work/in-parallel.ts';
import { hasNumbered } from './moments.ts';
import { feedEnd } from './read.ts';
import { statementAbout } from './sign.ts';

/**
 * Erases workspaces: those whose time of grace is over, without being asked, and then one that an operator names. Keys go first, so
 * that personal members cannot be read from then on; the events go once nothing else has to be found in them, and the rows behind
 * the events, so that no rebuild makes them again. Each step changes nothing when it is repeated, and is noted behind its work: if we
 * die in between, the next process does the step again. The receipt ends it: as long as there is none, the workspace stays closed.
 * One process at a time erases a workspace: it holds a lock of Postgres, which ends with its session.
 */

/** Where a workspace is erased. */
export interface Erasing {
  readonly pool: Pool;
  readonly eventStore: Pick<EventStore, 'readWorkspace' | 'head'>;
  readonly eraser: EventEraser;
  readonly dataKeys: { destroy(subject: string): Promise<void> };
  readonly blobs: Pick<BlobStore, 'head' | 'delete'>;
  /** Null where none is configured. */
  readonly analytics: ClickHouseClient | null;
  readonly secrets: Secrets;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  readonly signal: AbortSignal;
  /** Called with a line for each step. */
  readonly note: (text: string) => void;
}

const steps = ['keys', 'files', 'events', 'rows', 'figures'] as const;
type ErasureStep = (typeof steps)[number];

type Counts = Readonly<Record<string, number>>;

interface Erasure {
  readonly done: readonly ErasureStep[];
  readonly counts: Counts;
  readonly receipt: string | null;
}

export const erasureOf = async ({ pool }: Pick<Erasing, 'pool'>, workspaceId: string): Promise<Erasure | null> => {
  const { rows } = await pool.query<Erasure>(
    'select done, counts, receipt from ops.workspace_erasures where workspace_id = $1',
    [workspaceId],
  );
  return rows[0] ?? null;
};

const pageEvents = 500;

/** Another process erases the workspace. */
export class ErasureRuns extends Error {}

/** @throws ErasureRuns; Error where the session with the lock is gone, of the next step */
const alone = <T>(pool: Pool, workspaceId: string, work: (isHeld: () => Promise<unknown>) => Promise<T>): Promise<T> =>
  withConnection(pool, async (session, died) => {
    // A pooled session would keep the lock; the server frees it when the session ends.
    died(new Error('a session that held a lock is not reused'));
    const { rows } = await session.query('select pg_try_advisory_lock(hashtextextended($1, 0)) as ok', [
      `erase ${workspaceId}`,
    ]);
    if (rows[0]?.ok !== true)
      throw new ErasureRuns(`Another process erases workspace ${workspaceId} now: ask again for its receipt.`);
    return work(() => session.query('select 1'));
  });

/** @param workspaceId its erasure has begun @returns the receipt @throws ErasureRuns */
export const eraseWorkspace = (admin: Erasing, workspaceId: string): Promise<string> =>
  alone(admin.pool, workspaceId, async (isHeld) => {
    const known = await erasureOf(admin, workspaceId);
    if (known?.receipt != null) return known.receipt;
    await eraseSteps(admin, workspaceId, known?.done ?? [], isHeld);
    return sign(admin, workspaceId);
  });

/** @throws AbortError; Error where the lock is lost */
const eraseSteps = async (
  admin: Erasing,
  workspaceId: string,
  done: readonly ErasureStep[],
  isHeld: () => Promise<unknown>,
): Promise<void> => {
  const { pool } = admin;
  const left = steps.filter((step) => !done.includes(step));
  // The events name the keys and the files, and are still there.
  const found = left.includes('files') ? await find(admin, workspaceId) : null;
  const work: Record<ErasureStep, () => Promise<unknown>> = {
    keys: async () => {
      for (const subject of found?.subjects ?? []) await admin.dataKeys.destroy(subject);
    },
    files: async () => {
      for (const key of found?.files ?? []) await admin.blobs.delete(key);
    },
    events: () => eraseEvents(admin, workspaceId),
    rows: () => eraseRows(admin, workspaceId),
    figures: () => eraseFigures(admin, workspaceId),
  };
  for (const step of left) {
    admin.signal.throwIfAborted();
    await isHeld();
    await work[step]();
    faultPoint('erase:before-note');
    await pool.query('update ops.workspace_erasures set done = array_append(done, $2) where workspace_id = $1', [
      workspaceId,
      step,
    ]);
    admin.note(`${workspaceId}: ${step} erased`);
  }
  // A worker that had begun before may have stored an event since, and its row.
  await eraseEvents(admin, workspaceId);
  await eraseRows(admin, workspaceId);
  await isHeld();
};

/** From now on nobody opens one of them again. @throws Error where somebody has just done so */
export const beginErasure = async ({ pool }: Erasing, workspaceIds: readonly string[]): Promise<void> => {
  const { rows } = await pool.query<{ readonly begun: number }>(
    `with ours as (
       update ops.closed_workspaces set why = 'erasing' where workspace_id = any($1::uuid[]) and why <> 'moved'
       returning workspace_id
     ), begun as (
       insert into ops.workspace_erasures (workspace_id) select workspace_id from ours on conflict do nothing
     )
     select (select count(*) from ours)::int + count(receipt)::int as begun from ops.workspace_erasures
     where workspace_id = any($1::uuid[])`,
    [workspaceIds],
  );
  if (rows[0]?.begun !== workspaceIds.length)
    throw new Error(`Workspace ${workspaceIds[0]} is open again: nothing was erased.`);
  faultPoint('erase:after-begin');
};

/** Counts once how much there is, before any of it goes: a step that is repeated finds less. */
const noteCounts = async ({ pool }: Erasing, workspaceId: string, counts: Counts): Promise<void> => {
  await pool.query('update ops.workspace_erasures set counts = $2::jsonb || counts where workspace_id = $1', [
    workspaceId,
    JSON.stringify(counts),
  ]);
};

/** Whose data key seals members of the event. @param data of an event with such members */
export const subjectOf = (data: Uint8Array): string => {
  const { clientId, personId, inviteId } = JSON.parse(Buffer.from(data).toString('utf8')) as Record<string, unknown>;
  return String(clientId ?? personId ?? inviteId);
};

interface Found {
  readonly subjects: ReadonlySet<string>;
  readonly files: ReadonlySet<string>;
}

/** Files that are looked for at once. */
const filesAtOnce = 8;
/** A key of a file, as a member of an event. */
const blobKey = /"([0-9a-f-]{36}\/[A-Za-z0-9._/-]+)"/g;

/** What the events of the workspace name. */
const find = async (admin: Erasing, workspaceId: string): Promise<Found> => {
  const [subjects, files] = [new Set<string>(), new Set<string>()];
  let events = 0;
  for (let after: bigint | null = null; ; ) {
    admin.signal.throwIfAborted();
    const page = await admin.eventStore.readWorkspace(workspaceId, { after, limit: pageEvents });
    for (const { data } of page.events) {
      const text = Buffer.from(data).toString('utf8');
      if (text.includes('"$sealed"')) subjects.add(subjectOf(data));
      for (const [, name = ''] of text.matchAll(blobKey)) if (name.split('/')[0] === workspaceId) files.add(name);
    }
    events += page.events.length;
    if (page.isEnd) break;
    after = page.next;
  }
  // Events name files that were deleted long ago too: the receipt says how many were there to be erased.
  let present = 0;
  await inParallel([...files], filesAtOnce, async (key) => {
    admin.signal.throwIfAborted();
    if ((await admin.blobs.head(key)) !== null) present += 1;
  });
  await noteCounts(admin, workspaceId, { events, 'data keys': subjects.size, files: present });
  return { subjects, files };
};

const eraseEvents = async ({ eventStore, eraser, signal }: Erasing, workspaceId: string): Promise<void> => {
  for (let after: bigint | null = null; ; ) {
    signal.throwIfAborted();
    const page = await eventStore.readWorkspace(workspaceId, { after, limit: pageEvents });
    if (page.events.length > 0) await eraser.erase(page.events);
    faultPoint('erase:between-events');
    if (page.isEnd) return eraser.forget(workspaceId);
    after = page.next;
  }
};

/** What is kept of a workspace: that it had these events, and what was signed of them. */
const kept = [
  ...['feed_events', 'feed_heads', 'feed_subtrees', 'feed_kept', 'feed_checkpoints'],
  ...['closed_workspaces', 'workspace_erasures', 'workspace_moves', 'moved_times'],
];

/** Ids of the streams of a kind. The feed keeps them. */
const idsOf = (kind: string): string =>
  `select substr(stream, ${kind.length + 2}) from ops.feed_events where workspace_id = $1 and stream like '${kind}-%' and revision = 0`;

/** Rows that name no workspace: by the column with the id of what they belong to. */
const belonging: readonly (readonly [table: string, column: string, ids: string])[] = [
  ['ops.webhook_health', 'endpoint_id', idsOf('webhook')],
  ['ops.webhook_rotations', 'endpoint_id', idsOf('webhook')],
  ['ops.insights_refresh_accounts', 'refresh_id', idsOf('refresh')],
  ['ops.media_offers', 'asset_id', idsOf('media')],
  ['ops.media_imports', 'asset_id', idsOf('media')],
  ['ops.media_usage', 'asset_id', idsOf('media')],
  ['ops.media_customers', 'customer_id', 'select $1::text'],
  ['ops.restore_words', 'account_id', idsOf('account')],
  ['ops.publishing_holds', 'scope', 'select $1::text'],
  ['auth.last_uses', 'credential_id', `${idsOf('apikey')} union all ${idsOf('grant')}`],
  ['auth.oauth_artifacts', 'grant_id', idsOf('grant')],
  ['auth.withdrawals', 'subject', `select $1::text union all ${idsOf('apikey')} union all ${idsOf('grant')}`],
  ['sandbox.workspace_clocks', 'workspace_id', 'select $1::text'],
];

/** All rows of the workspace, table by table; those of the sandbox are a network's, and posts stay on networks. Each statement deletes and counts: both or neither. */
const eraseRows = async (admin: Erasing, workspaceId: string): Promise<void> => {
  const { pool, signal } = admin;
  const { rows: tables } = await pool.query<{ readonly name: string; readonly schema: string; readonly type: string }>(
    `select n.nspname as schema, c.relname as name, format_type(a.atttypid, null) as type
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
       join pg_attribute a on a.attrelid = c.oid and a.attname = 'workspace_id' and not a.attisdropped
     where n.nspname in ('ops', 'read', 'auth') and c.relkind in ('r', 'p') and not c.relispartition
       and not (n.nspname = 'ops' and c.relname = any($1)) and not (n.nspname = 'auth' and c.relname = 'sessions')
     order by 1, 2`,
    [kept],
  );
  // A session is of a person, who may be a member elsewhere.
  await pool.query('update auth.sessions set workspace_id = null where workspace_id = $1', [workspaceId]);
  const remove = async (name: string, where: string): Promise<void> => {
    signal.throwIfAborted();
    await pool.query(
      `with gone as (delete from ${name} where ${where} returning 1), counted as (select count(*)::int as n from gone)
       update ops.workspace_erasures e set counts = jsonb_set(e.counts, array[$2::text],
         to_jsonb(coalesce((e.counts ->> $2::text)::int, 0) + counted.n))
       from counted where e.workspace_id = $1::uuid and counted.n > 0`,
      [workspaceId, `rows of ${name}`],
    );
    faultPoint('erase:between-tables');
  };
  for (const [table, column, ids] of belonging)
    await remove(table, `${column}::text in (${ids.replaceAll('$1', '$1::uuid')})`);
  for (const { schema, name, type } of tables)
    await remove(`${schema}.${name}`, `workspace_id = ${type === 'uuid' ? '$1::uuid' : '$1::text'}`);
};

const eraseFigures = async (admin: Erasing, workspaceId: string): Promise<void> => {
  const { analytics: client } = admin;
  if (client === null) return;
  const tables = await client.query({
    query:
      "select table from system.columns where database = currentDatabase() and name = 'workspace_id' order by table",
    format: 'JSONEachRow',
  });
  for (const { table } of await tables.json<{ readonly table: string }>()) {
    const query_params = { workspaceId };
    const where = 'workspace_id = {workspaceId: UUID}';
    const counted = await client.query({
      ...{ query: `select count() as n from "${table}" where ${where}`, query_params, format: 'JSONEachRow' as const },
    });
    const [row] = await counted.json<{ readonly n: string | number }>();
    if (Number(row?.n ?? 0) > 0) await noteCounts(admin, workspaceId, { [`figures of ${table}`]: Number(row?.n) });
    await client.command({
      ...{ query: `alter table "${table}" delete where ${where}`, query_params },
      clickhouse_settings: { mutations_sync: '1' },
    });
  }
};

/** The receipt and the end of the closing: both or neither. */
const sign = async (admin: Erasing, workspaceId: string): Promise<string> => {
  const { pool, secrets, clock, eraser } = admin;
  const end = await feedEnd(pool, workspaceId);
  const { rows } = await pool.query<{ readonly n: number }>(
    'select count(*)::int as n from ops.feed_checkpoints where workspace_id = $1',
    [workspaceId],
  );
  const counts = (await erasureOf(admin, workspaceId))?.counts ?? {};
  const receipt = await statementAbout(pool, secrets, { workspaceId, ...end }, clock(), [
    ...Object.entries(counts)
      .sort()
      .map(([what, count]) => `erased ${count} ${what}`),
    `keeps ${end.size} leaves: number, id, stream, revision, type, time and hash of each event, and nothing that it said`,
    `keeps ${rows[0]?.n ?? 0} signed checkpoints`,
    ...(eraser.stays === null ? [] : [eraser.stays]),
    'keeps copies that others made: backups and topics of the log until their retention, exports, deliveries, posts on networks and on the sandbox',
  ]);
  await pool.query(
    `with signed as (update ops.workspace_erasures set receipt = coalesce(receipt, $2) where workspace_id = $1)
     delete from ops.closed_workspaces where workspace_id = $1`,
    [workspaceId, receipt],
  );
  return (await erasureOf(admin, workspaceId))?.receipt ?? receipt;
};

/** How often a process looks for workspaces whose time is over, milliseconds. */
const lookMs = 60_000;

/** Those whose time is over, a workspace and its twin in one statement: from then on nobody opens them again. */
const beginDue = async (pool: Pool): Promise<void> => {
  await pool.query(
    `with due as (
       update ops.closed_workspaces set why = 'erasing' where why = 'deleting' and erase_at <= now() returning workspace_id
     )
     insert into ops.workspace_erasures (workspace_id) select workspace_id from due on conflict do nothing`,
  );
  faultPoint('erase:after-begin');
};

/**
 * Erases what is due, and goes on with what a process began that died. One that fails is left for the next look, and the others
 * are erased.
 */
export const eraseDue = async (
  erasing: Erasing,
  failed: (workspaceId: string, error: unknown) => void,
): Promise<void> => {
  const { pool, eventStore, signal } = erasing;
  const { rows: due } = await pool.query(
    "select from ops.closed_workspaces where why = 'deleting' and erase_at <= now() limit 1",
  );
  // An event without its number would leave no leaf.
  if (due.length > 0 && (await isNumbered(pool, await eventStore.head(), signal))) await beginDue(pool);
  const { rows } = await pool.query<{ readonly id: string }>(
    "select workspace_id::text as id from ops.closed_workspaces where why = 'erasing' order by since, workspace_id",
  );
  for (const { id } of rows) {
    signal.throwIfAborted();
    try {
      await eraseWorkspace(erasing, id);
    } catch (error) {
      if (!(error instanceof ErasureRuns)) failed(id, error);
    }
  }
};

/** Waits a moment for the numbering, which goes on beside. */
const isNumbered = async (pool: Pool, head: bigint | null, signal: AbortSignal): Promise<boolean> => {
  for (let asked = 0; asked < 50 && !signal.aborted; asked += 1) {
    if (await hasNumbered(pool, head)) return true;
    await delay(100, undefined, { signal }).catch(() => undefined);
  }
  return false;
};

/** Looks until the signal. A failure ends a look, and never what runs beside. */
export const eraseInTime = async (
  options: Omit<Erasing, 'note'> & { readonly logger: Pick<Logger, 'info' | 'warn'> },
): Promise<void> => {
  const { signal, logger } = options;
  const warn = (workspaceId: string | null, err: unknown): void => {
    if (!signal.aborted) logger.warn({ err, workspaceId }, 'a workspace could not be erased; retrying');
  };
  while (!signal.aborted) {
    const note = (text: string): void => logger.info(text);
    await eraseDue({ ...options, note }, warn).catch((error: unknown) => warn(null, error));
    await delay(lookMs, undefined, { signal }).catch(() => undefined);
  }
};
