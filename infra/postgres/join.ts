/** Opens the server of a data folder briefly: that of a running process, else a new one of its own. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { databaseUrl, livePostmaster, startEmbedded } from './embedded.ts';
import { ownerOf } from './owner.ts';
import { locate } from './server-files.ts';

export interface JoinedPostgres {
  /** Connection string of the database `postline`, password included. */
  readonly url: string;
  /** Stops a server that this call started; leaves a joined one running. */
  stop(): Promise<void>;
}

/** Milliseconds that a process which holds the folder may take to start its server. */
const PATIENCE_MS = 20_000;

/** @throws where the folder holds no data, or where its holder runs no server */
export async function joinEmbedded(folder: string): Promise<JoinedPostgres> {
  const dataDir = path.resolve(folder);
  if (!existsSync(path.join(dataDir, 'pg.password'))) {
    throw new Error(`There is no data in ${dataDir}. Run 'npm start' once, name its folder, or set DATABASE_URL.`);
  }
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const owner = ownerOf(dataDir);
    if (owner === undefined) return startEmbedded({ dataDir });
    const port = livePostmaster(locate(dataDir).cluster)?.port;
    if (port !== undefined) return { url: databaseUrl(dataDir, port), stop: async () => undefined };
    if (performance.now() > deadline) {
      throw new Error(`The data folder ${dataDir} is held by process ${owner}, which runs no Postgres there.`);
    }
    await delay(50);
  }
}
