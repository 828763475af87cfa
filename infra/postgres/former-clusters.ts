/**
 * Clusters whose data folder was removed. As root a cluster may lie outside of its data folder (server-files.ts), so
 * `rm -rf data` leaves it: a new folder of the same name starts with a new cluster, and the former one is renamed. Only
 * an operator removes it.
 */
import { existsSync, lstatSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { homeOutside, OUTSIDE } from './server-files.ts';

export interface FormerCluster {
  /** As `removeFormerCluster` takes it: `<home>/former-<instant>`. */
  readonly name: string;
  readonly path: string;
  /** Its former data folder; null: its note is gone. */
  readonly dataFolder: string | null;
  readonly bytes: number;
  readonly movedAt: string;
}

/** Names that a start leaves in a data folder with a cluster: a folder with one of them is not new. */
const signs = ['pg.password', 'pg.location', 'cluster', 'blobs', 'analytics'];
const aside = /^former-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{3})Z$/;

/**
 * Renames the cluster that a removed data folder of the same path left outside. Runs before the new folder's
 * `pg.location` is written, so that after a crash here the next start finds the folder new again.
 * @param stopServer ends a server that still runs on that cluster
 * @returns the cluster's new path; null: there was none
 */
export const leaveFormerCluster = async (
  dataDir: string,
  stopServer: (cluster: string) => Promise<void>,
): Promise<string | null> => {
  // Only root has clusters outside of the data folder, and only root could move one.
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
  `this data folder is new; the database of the one that was removed is kept in ${former} (npm run admin -- data list shows it, data remove deletes it)`;

/** For all data folders of this machine, oldest first. */
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

/** @returns the removed cluster; null: none has that name */
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
