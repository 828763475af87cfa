/**
 * The log of an embedded Postgres. The server holds it open as long as it lives, longer than we do, and appends: so what
 * is too much is copied aside and the file cut to nothing, where the server goes on.
 */
import {
  appendFileSync,
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
} from 'node:fs';

export interface ServerLogLimits {
  /** A log with so many bytes is put aside. */
  readonly bytes: number;
  /** How many of those are kept: `pg.log.1` is the newest. */
  readonly files: number;
}

const usual: ServerLogLimits = { bytes: 10 * 1024 ** 2, files: 5 };
const lookMs = 30_000;

/** What the server wrote while the copy was made. */
const rest = (log: string, from: number): Buffer => {
  const bytes = Buffer.alloc(Math.max(0, statSync(log).size - from));
  const fd = openSync(log, 'r');
  try {
    return bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, from));
  } finally {
    closeSync(fd);
  }
};

/** One caller at a time: it who holds the data folder. @returns whether it was put aside */
export const rotateServerLog = (log: string, { bytes, files }: ServerLogLimits = usual): boolean => {
  const size = statSync(log, { throwIfNoEntry: false })?.size ?? 0;
  if (size < bytes) return false;
  const draft = `${log}.draft`;
  try {
    copyFileSync(log, draft);
    // Again until nothing came meanwhile: what comes between the last look and the cut is lost.
    for (let more = rest(log, statSync(draft).size); more.length > 0; more = rest(log, statSync(draft).size))
      appendFileSync(draft, more);
  } catch (error) {
    // No room for a copy: a log that is twice too long is what fills the disk, and goes without one.
    rmSync(draft, { force: true });
    if (size < 2 * bytes) throw error;
    truncateSync(log);
    return true;
  }
  truncateSync(log);
  for (let n = files; n > 1; n -= 1) if (existsSync(`${log}.${n - 1}`)) renameSync(`${log}.${n - 1}`, `${log}.${n}`);
  renameSync(draft, `${log}.1`);
  return true;
};

/** Looks at once, and now and then until the function it returns is called. */
export const keepServerLogShort = (log: string, limits?: ServerLogLimits, everyMs = lookMs): (() => void) => {
  const look = (): void => {
    try {
      rotateServerLog(log, limits);
    } catch {
      // Tried again at the next look: a log must not keep a server from starting.
    }
  };
  look();
  const timer = setInterval(look, everyMs).unref();
  return () => clearInterval(timer);
};
