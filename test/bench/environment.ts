/** The machine of a measurement. A server that does not wait for its disk makes every figure worthless. */
import { closeSync, fdatasyncSync, mkdtempSync, openSync, readFileSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { type Spread, spread } from './row.ts';

const filesystems: Readonly<Record<string, string>> = {
  ef53: 'ext4',
  '9123683e': 'btrfs',
  '58465342': 'xfs',
  '1021994': 'tmpfs',
  '794c7630': 'overlayfs',
  '2fc12fc1': 'zfs',
};

const filesystemOf = (folder: string): string => {
  const type = statfsSync(folder).type.toString(16);
  return filesystems[type] ?? `0x${type}`;
};

const fdatasyncMs = (folder: string): Spread => {
  const own = mkdtempSync(join(folder, 'bench-'));
  const file = openSync(join(own, 'file'), 'w');
  try {
    const times = Array.from({ length: 200 }, () => {
      const start = performance.now();
      writeSync(file, Buffer.alloc(8_192));
      fdatasyncSync(file);
      return performance.now() - start;
    });
    return spread(times);
  } finally {
    closeSync(file);
    rmSync(own, { recursive: true });
  }
};

/** One line each. @throws when Postgres does not wait for its disk */
export const environment = async (databaseUrl: string): Promise<readonly string[]> => {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const { rows } = await client.query<{ name: string; setting: string }>(
      `select name, setting from pg_settings
       where name in ('fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers', 'server_version') order by name`,
    );
    const settings = rows.map(({ name, setting }) => `${name}=${setting}`).join(' ');
    const durable = ['fsync', 'synchronous_commit', 'full_page_writes'];
    if (rows.some(({ name, setting }) => durable.includes(name) && setting !== 'on')) {
      throw new Error(`the bench needs a server that waits for its disk; this one has ${settings}`);
    }
    const { median, max } = fdatasyncMs(tmpdir());
    return [
      `cpu: ${cpus()[0]?.model ?? 'unknown'}, ${availableParallelism()} cores; load average ${loadavg()[0]?.toFixed(2)}`,
      `node: ${process.version}`,
      `postgres: ${settings}`,
      `disk: ${filesystemOf(tmpdir())}, fdatasync of 8 KiB: median ${median.toFixed(2)} ms, max ${max.toFixed(2)} ms`,
    ];
  } finally {
    await client.end();
  }
};

/** Fields of /proc/<pid>/stat after the name in brackets, which may hold any character; null where there is none. */
const statOf = (pid: number): readonly string[] | null => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return null;
  }
};

/** Seconds of processor that a process, and its children that have ended, have used; NaN where /proc is missing. */
export const cpuSeconds = (pid: number): number => {
  const stat = statOf(pid);
  return stat === null ? Number.NaN : [11, 12, 13, 14].reduce((sum, at) => sum + Number(stat[at]), 0) / 100;
};

export const parentOf = (pid: number): number => Number(statOf(pid)?.[1] ?? Number.NaN);

/** Megabytes (10^6 bytes) of resident memory; NaN where /proc is missing. */
export const residentMb = (pid: number): number => {
  try {
    const kib = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return (Number(kib) * 1024) / 1e6;
  } catch {
    return Number.NaN;
  }
};

/** A process and all below it. */
export const familyOf = (pid: number): readonly number[] => {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    return [pid, ...(children === '' ? [] : children.split(' ').flatMap((child) => familyOf(Number(child))))];
  } catch {
    return [pid];
  }
};
