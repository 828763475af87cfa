/**
 * Clusters whose data folder was removed. As root they may lie outside of it (server-files.ts), so `rm -rf data` leaves
 * them: a new folder of the same name starts anew, and the cluster of its former life is put aside by name. Nothing but
 * an operator's word removes one.
 */
import { existsSync, lstatSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { homeOutside, OUTSIDE } from './server-files.ts';

export interface FormerCluster {
  /** As `removeFormerCluster` takes it: `<home>/former-<instant>`. */
  readonly name: string;
  readonly path: string;
  /** The folder it belonged to; null: of an earlier release, which did not note it. */
  readonly dataFolder: string | null;
  readonly bytes: number;
  readonly movedAt: string;
}

/** What a start leaves in a data folder that has a cluster: where one of these is, the folder is not new. */
const signs = ['pg.password', 'pg.location', 'cluster', 'blobs', 'analytics'];
const aside = /^former-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{3})Z$/;

/**
 * Where a wholly new data folder has a cluster outside that it had in a former life, puts that aside. Before the folder's
 * `pg.location` is written: a start that dies here finds the folder new again.
 * @param stopServer ends one that still runs on it
 * @returns the path it has now; null: there is none
 */
export const leaveFormerCluster = async (
  dataDir: string,
  stopServer: (cluster: string) => Promise<void>,
): Promise<string | null> => {
  // Nobody else has one outside, or could move it.
  if (process.getuid?.() !== 0) return null;
  const home = homeOutside(dataDir);
  const cluster = path.join(home, 'cluster');
  if (signs.some((name) => existsSync(path.join(dataDir, name))) || !existsSync(cluster)) return null;
  await stopServer(cluster);
  const to = path.join(home, `former-${new Date().toISOString().replaceAll(/[-:.]/g, '')}`);
  renameSync(cluster, to);
  return to;
};

export const formerWords = (former: string): string =>
  `this data folder is new; the database of its former life is kept in ${former} (npm run admin -- data lists and removes such)`;

/** Of all data folders of this machine, oldest first. */
export const formerClusters = (outside = OUTSIDE): readonly FormerCluster[] => {
  if (!existsSync(outside)) return [];
  const homes = readdirSync(outside).filter((name) => /^[0-9a-f]{16}$/.test(name));
  const found = homes.flatMap((home) =>
    readdirSync(path.join(outside, home)).flatMap((name): FormerCluster[] => {
      const [, ...parts] = aside.exec(name) ?? [];
      const [year, month, day, hour, minute, second, ms] = parts;
      if (ms === undefined) return [];
      const folder = path.join(outside, home, name);
      const note = path.join(outside, home, 'data-folder');
      return [
        {
          name: `${home}/${name}`,
          path: folder,
          dataFolder: existsSync(note) ? readFileSync(note, 'utf8').trim() : null,
          bytes: sizeOf(folder),
          movedAt: `${year}-${month}-${day}T${hour}:${minute}:${second}.${ms}Z`,
        },
      ];
    }),
  );
  return found.sort((one, other) => one.movedAt.localeCompare(other.movedAt));
};

/** @returns the one removed; null: none is called so */
export const removeFormerCluster = (name: string, outside = OUTSIDE): FormerCluster | null => {
  const found = formerClusters(outside).find((one) => one.name === name) ?? null;
  if (found !== null) rmSync(found.path, { recursive: true });
  return found;
};

const sizeOf = (folder: string): number =>
  readdirSync(folder, { withFileTypes: true }).reduce((sum, entry) => {
    const file = path.join(folder, entry.name);
    return sum + (entry.isDirectory() ? sizeOf(file) : lstatSync(file).size);
  }, 0);
