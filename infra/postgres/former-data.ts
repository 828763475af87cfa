/**
 * Data of 0.1, moved out of a data folder: builds before the first release, whose tables `schema.ts` refuses. A database
 * with one of these tables is surely theirs; that none is there proves nothing, so nothing else is ever moved.
 */
import { existsSync, mkdirSync, renameSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { type EmbeddedOptions, type EmbeddedPostgres, startEmbedded } from './embedded.ts';
import { formerTables } from './schema.ts';
import { locate } from './server-files.ts';

/** Tables that builds of 0.1 made and no release makes. */
const markers = ['ops.metrics_accounts', 'ops.metrics_jobs', 'ops.heard_posts'];

const holdsFormerData = async (db: pg.Client): Promise<boolean> => {
  const { rows } = await db.query<{ found: boolean }>(
    'select bool_or(to_regclass(name) is not null) as found from unnest($1::text[]) as name',
    [markers],
  );
  return rows[0]?.found === true;
};

/** Folders of a data folder that belong to its database. */
const beside = ['blobs', 'analytics'];

/**
 * Moves what the data folder holds aside. The cluster goes last: after a crash in between the next start finds it, and
 * moves the rest. The password and the secret key stay, and serve what comes next too.
 * @param moved called after each move
 * @returns the folder of each part that was moved
 */
const moveAside = (dataDir: string, moved: (to: string) => void): readonly string[] => {
  const { cluster, home } = locate(dataDir);
  const instant = new Date().toISOString().replaceAll(/[-:.]/g, '');
  const aside = path.join(dataDir, `before-1.0-${instant}`);
  const parts = beside.map((name) => [path.join(dataDir, name), path.join(aside, name)] as const);
  // As root the cluster lies outside of the data folder, and `data list` shows what stands beside it.
  const to = home === dataDir ? path.join(aside, 'cluster') : path.join(home, `former-${instant}`);
  mkdirSync(aside);
  for (const [from, into] of [...parts, [cluster, to] as const]) {
    if (!existsSync(from)) continue;
    renameSync(from, into);
    moved(into);
  }
  return home === dataDir ? [aside] : [aside, to];
};

const asked = async (url: string): Promise<boolean> => {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await holdsFormerData(client);
  } finally {
    await client.end();
  }
};

/**
 * As `startEmbedded`; data of 0.1 is moved aside first, and `onProgress` says where it is.
 * @param moved called after each move
 */
export const startWithoutFormerData = async (
  options: EmbeddedOptions,
  moved: (to: string) => void = () => undefined,
): Promise<EmbeddedPostgres> => {
  const server = await startEmbedded(options);
  const isFormer = await asked(server.url).catch(async (error: unknown) => {
    await server.stop();
    throw error;
  });
  if (!isFormer) return server;
  await server.stop();
  const kept = moveAside(path.resolve(options.dataDir), moved);
  options.onProgress?.(
    `${formerTables}: they are kept in ${kept.join(' and ')}, and this start begins anew (UPGRADE.md)`,
  );
  return startEmbedded(options);
};
