/** Facts about a process by its number: enough to distinguish it from a later process with the same number. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

export interface ProcessFacts {
  /** Start time in the system's own format; equal only for the same process. */
  readonly start: string;
  /** Its command line. */
  readonly command: string;
}

/** Undefined where no such process runs; a zombie does not run. */
export function processFacts(pid: number): ProcessFacts | undefined {
  if (!Number.isInteger(pid) || pid <= 0) return undefined;
  return process.platform === 'linux' ? fromProc(pid) : fromPs(pid);
}

function fromProc(pid: number): ProcessFacts | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in brackets may hold any character, so fields are counted from its end: state is the 3rd, start the
    // 22nd.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z' || fields[0] === 'X') return undefined;
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
    return { start: `${boot}/${fields[19]}`, command };
  } catch {
    return undefined;
  }
}

function fromPs(pid: number): ProcessFacts | undefined {
  const ask = (column: string) =>
    spawnSync('ps', ['-ww', '-o', `${column}=`, '-p', String(pid)], { encoding: 'utf8' }).stdout?.trim() ?? '';
  const start = ask('lstart');
  if (start === '' || ask('stat').startsWith('Z')) return undefined;
  return { start, command: ask('args') };
}

export interface Child {
  readonly pid: number;
  readonly command: string;
}

/** The processes that this one started; null where the system does not tell. */
export function childrenOf(pid: number): readonly Child[] | null {
  return process.platform === 'linux' ? childrenInProc(pid) : childrenInPs(pid);
}

function childrenInProc(pid: number): readonly Child[] | null {
  try {
    const numbers = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
    return numbers.map((child) => ({ pid: child, command: processFacts(child)?.command.trim() ?? '' }));
  } catch {
    return null;
  }
}

function childrenInPs(pid: number): readonly Child[] | null {
  const { stdout, status } = spawnSync('ps', ['-ww', '-A', '-o', 'ppid=,pid=,args='], { encoding: 'utf8' });
  if (status !== 0) return null;
  return stdout.split('\n').flatMap((line) => {
    const [, parent, child, command = ''] = /^\s*(\d+)\s+(\d+)\s(.*)$/.exec(line) ?? [];
    return Number(parent) === pid ? [{ pid: Number(child), command }] : [];
  });
}
