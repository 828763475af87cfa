/**
 * The log of an embedded Postgres. The server keeps the file open for its whole life, which may be longer than ours,
 * and appends. So a long file is copied and truncated, and the server goes on writing at its new end.
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
  /** The length at which the log is rotated. */
  readonly bytes: number;
  /** How many old files are kept: `pg.log.1` is the newest. */
  readonly files: number;
}

const usual: ServerLogLimits = { bytes: 10 * 1024 ** 2, files: 5 };
const lookMs = 30_000;

/** The bytes that the server wrote during the copy. */
const rest = (log: string, from: number): Buffer => {
  const bytes = Buffer.alloc(Math.max(0, statSync(log).size - from));
  const fd = openSync(log, 'r');
  try {
    return bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, from));
  } finally {
    closeSync(fd);
  }
};

/** Only the process that holds the data folder may call it. @returns whether the log was rotated */
const rotateServerLog = (log: string, { bytes, files }: ServerLogLimits = usual): boolean => {
  const size = statSync(log, { throwIfNoEntry: false })?.size ?? 0;
  if (size < bytes) return false;
  const draft = `${log}.draft`;
  try {
    copyFileSync(log, draft);
    // Copies again until no line came meanwhile; a line between the last check and the truncation is lost.
    for (let more = rest(log, statSync(draft).size); more.length > 0; more = rest(log, statSync(draft).size))
      appendFileSync(draft, more);
  } catch (error) {
    // No room for a copy: the log is what fills the disk, and is truncated without one.
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

/** Checks at once, then every `everyMs` milliseconds. @returns the function that ends it */
export const keepServerLogShort = (log: string, limits?: ServerLogLimits, everyMs = lookMs): (() => void) => {
  const look = (): void => {
    try {
      rotateServerLog(log, limits);
    } catch {
      // Tried again at the next check: a log must not keep a server from starting.
    }
  };
  look();
  const timer = setInterval(look, everyMs).unref();
  return () => clearInterval(timer);
};
