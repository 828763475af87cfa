/**
 * Restarts a server that ended by itself, or lives without taking connections. Postgres ends when its write-ahead log finds
 * no room on the disk, also in the middle of its recovery, and nothing else would restart it once there is room.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { processFacts } from './process-facts.ts';

/** How often the server is checked, and the rests between two failed starts, which double. Milliseconds. */
const lookMs = 500;
const restsMs = { first: 500, longest: 4_000 };
/** Looks from one question for a connection to the next. */
const looksPerQuestion = 6;

export interface KeepUpOptions {
  /** Process id of the running server. */
  readonly pid: number;
  /**
   * Starts the server, or finds that it runs; ends one that stays stalled first. @returns its process id @throws when it
   * does not start
   */
  readonly start: (signal: AbortSignal) => Promise<number>;
  /** Whether it takes no connections, and does nothing to take them soon. */
  readonly isStalled: (pid: number) => Promise<boolean>;
  /** Called with a line when the server has ended, when the first restart failed and why, and when it runs again. */
  readonly onTrouble: (line: string) => void;
}

export interface KeptUp {
  /** Why the server does not run, null while it does. */
  trouble(): string | null;
  /** Resolves when no start is under way. */
  stop(): Promise<void>;
}

/** The last reason in the server's log. Lines that only refuse a client give no reason, and others may quote rows. */
const reasonOf = (error: unknown): string => {
  const said = error instanceof Error ? error.message.matchAll(/(?:FATAL|PANIC): +(.+)/g) : [];
  const reason = [...said].map(([, words]) => words).findLast((words) => !words?.startsWith('the database system is'));
  return `The embedded Postgres does not come up and is tried again: ${reason ?? 'its log says more'}`;
};

/** Reads /proc, or sends the null signal: `ps` would start a process at each check. */
const runs = (pid: number): boolean => {
  if (process.platform === 'linux') return processFacts(pid) !== undefined;
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
};

export const keepUp = ({ pid, start, isStalled, onTrouble }: KeepUpOptions): KeptUp => {
  const stopping = new AbortController();
  const { signal } = stopping;
  let trouble: string | null = null;
  const pause = (ms: number) => delay(ms, undefined, { signal, ref: false });

  /** @returns its process id */
  const startUntilUp = async (): Promise<number> => {
    for (let rest = restsMs.first; ; rest = Math.min(2 * rest, restsMs.longest)) {
      try {
        return await start(signal);
      } catch (error) {
        signal.throwIfAborted();
        trouble = reasonOf(error);
        if (rest === restsMs.first) onTrouble(trouble);
      }
      await pause(rest);
    }
  };
  const tell = (line: string): void => {
    trouble = line;
    onTrouble(line);
  };
  const untilDown = async (server: number): Promise<void> => {
    for (let looks = 1; runs(server); looks += 1) {
      await pause(lookMs);
      if (looks % looksPerQuestion === 0 && (await isStalled(server))) {
        signal.throwIfAborted();
        return tell(
          'The embedded Postgres takes no connections and does not recover. If it stays so it is ended and started again.',
        );
      }
    }
    tell('The embedded Postgres has ended by itself. It is started again until it comes up.');
  };
  const watch = async (): Promise<never> => {
    for (let server = pid; ; server = await startUntilUp()) {
      if (trouble !== null) onTrouble('The embedded Postgres runs again.');
      trouble = null;
      await untilDown(server);
    }
  };
  const ended = watch().catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  return {
    trouble: () => trouble,
    stop: async () => {
      stopping.abort();
      await ended;
    },
  };
};
