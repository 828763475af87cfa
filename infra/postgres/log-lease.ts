/**
 * Gives a name to one holder at a time: an advisory lock on a connection of its own. The server passes it on at once
 * when the connection ends, for whatever reason. A holder may notice its loss late, so the epoch in the consumer's own
 * transaction keeps it from writing; the lease only decides who works.
 */
import { Socket } from 'node:net';
import pg from 'pg';
import { keepAlive } from './pool.ts';

export interface LogLease {
  /** Aborts when the connection, and with it the lease, is lost. */
  readonly lost: AbortSignal;
  release(): Promise<void>;
}

/** The wait for the lock is restarted this often, so that a silent server is noticed. Milliseconds. */
const waitMs = 10_000;
const answerMs = 5000;
const beatMs = 15_000;

/** The lock of a machine that vanished is freed within 5 + 3 × 2 seconds. */
const settings = `
  set tcp_keepalives_idle = 5; set tcp_keepalives_interval = 2; set tcp_keepalives_count = 3;
  set statement_timeout = 0; set idle_session_timeout = 0; set lock_timeout = ${waitMs}`;

const lockTimedOut = (error: unknown): boolean => error instanceof pg.DatabaseError && error.code === '55P03';

/**
 * Waits for the lock. Null when the signal came first.
 * @throws the connection's error; the caller tries again
 */
export const acquireLease = async (options: {
  readonly url: string;
  readonly name: string;
  readonly signal: AbortSignal;
}): Promise<LogLease | null> => {
  const { signal } = options;
  if (signal.aborted) return null;
  const socket = new Socket();
  const client = new pg.Client({
    connectionString: options.url,
    application_name: 'log-lease',
    connectionTimeoutMillis: answerMs,
    ...keepAlive,
    stream: () => socket,
  });
  const lost = new AbortController();
  const lose = (): void => {
    clearInterval(beat);
    socket.destroy();
    lost.abort();
  };
  let beat: NodeJS.Timeout | undefined;
  client.on('error', lose);
  client.on('end', lose);
  // Ended by force: the server reads nothing from a session that waits for a lock.
  signal.addEventListener('abort', lose);

  const answered = async <T>(work: Promise<T>, ms: number): Promise<T> => {
    const timer = setTimeout(lose, ms);
    try {
      return await work;
    } finally {
      clearTimeout(timer);
    }
  };

  try {
    await answered(client.connect(), answerMs);
    await answered(client.query(settings), answerMs);
    // Lets the server notice a waiting member that left; not every platform can.
    await answered(client.query('set client_connection_check_interval = 1000'), answerMs).catch(() => undefined);
    for (let held = false; !held; ) {
      const lock = client.query('select pg_advisory_lock(hashtextextended($1, 0))', [options.name]);
      held = await answered(lock, waitMs + answerMs).then(
        () => true,
        (error) => {
          if (lockTimedOut(error)) return false;
          throw error;
        },
      );
    }
  } catch (error) {
    lose();
    if (signal.aborted) return null;
    throw error;
  } finally {
    signal.removeEventListener('abort', lose);
  }
  if (lost.signal.aborted) return null;
  beat = setInterval(() => {
    answered(client.query('select 1'), answerMs).catch(lose);
  }, beatMs);
  return {
    lost: lost.signal,
    release: async () => {
      clearInterval(beat);
      await answered(client.end(), answerMs).catch(() => undefined);
      lose();
    },
  };
};
