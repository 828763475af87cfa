/**
 * Gives a name to one holder at a time: an advisory lock on a connection that the holders of this process share; only who
 * waits for a name has a connection of its own. The server passes a lock on at once when the connection ends, for
 * whatever reason. A holder may notice its loss late, so the epoch in the consumer's own transaction keeps it from
 * writing; the lease only decides who works.
 */
import { Socket } from 'node:net';
import pg from 'pg';
import { keepAlive } from './pool.ts';

export interface LogLease {
  /** Aborts when the connection, and with it the lease, is lost. */
  readonly lost: AbortSignal;
  release(): Promise<void>;
}

interface Wanted {
  readonly url: string;
  readonly name: string;
  readonly signal: AbortSignal;
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

/** A connection whose locks are leases. */
class LeaseSession {
  readonly #client: pg.Client;
  readonly #socket = new Socket();
  readonly #lost = new AbortController();
  #asked: Promise<unknown> = Promise.resolve();
  #beat: NodeJS.Timeout | undefined;

  constructor(url: string) {
    this.#client = new pg.Client({
      connectionString: url,
      application_name: 'log-lease',
      connectionTimeoutMillis: answerMs,
      ...keepAlive,
      stream: () => this.#socket,
    });
    this.#client.on('error', this.lose);
    this.#client.on('end', this.lose);
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** By force: the server reads nothing from a session that waits for a lock. */
  readonly lose = (): void => {
    clearInterval(this.#beat);
    this.#socket.destroy();
    this.#lost.abort();
  };

  /** @throws the connection's error */
  async open(): Promise<void> {
    await this.#answered(this.#client.connect(), answerMs);
    await this.ask(settings);
  }

  /**
   * One statement at a time, in the order of the calls. Answers the value of a lock's statement. Without an answer in time
   * the connection is lost.
   * @throws the connection's error
   */
  ask(text: string, values: readonly string[] = [], ms = answerMs): Promise<unknown> {
    const asked = this.#asked.then(async () => {
      const query = this.#client.query<[unknown]>({ text, values: [...values], rowMode: 'array' });
      const { rows } = await this.#answered(query, ms);
      return rows?.[0]?.[0];
    });
    this.#asked = asked.catch(() => undefined);
    return asked;
  }

  /** From now on a server that falls silent is noticed, though nobody asks it anything. */
  watch(): void {
    this.#beat = setInterval(() => this.ask('select 1').catch(this.lose), beatMs);
  }

  /** Resolves when the server has freed the locks. */
  async end(): Promise<void> {
    clearInterval(this.#beat);
    await this.#answered(this.#client.end(), answerMs).catch(() => undefined);
    this.lose();
  }

  async #answered<T>(work: Promise<T>, ms: number): Promise<T> {
    const timer = setTimeout(this.lose, ms);
    try {
      return await work;
    } finally {
      clearTimeout(timer);
    }
  }
}

/** The leases of this process on one server, on one connection. */
class SharedLeases {
  readonly #session: LeaseSession;
  readonly #opened: Promise<void>;
  #isOpen = false;
  /**
   * Names that are held or asked for here. The server gives a session a lock that it has once more, so it does not keep
   * two holders of one connection apart.
   */
  readonly #names = new Set<string>();
  #users = 0;
  readonly #forget: () => void;

  constructor(url: string, forget: () => void) {
    this.#forget = forget;
    this.#session = new LeaseSession(url);
    this.#session.lost.addEventListener('abort', forget);
    this.#opened = this.#session.open().then(() => {
      this.#isOpen = true;
      this.#session.watch();
    });
    // Whoever asks gets the error; all may have left by then.
    this.#opened.catch(this.#session.lose);
  }

  /** Null when the name is taken, or the signal came first. @throws the connection's error */
  async take(name: string, signal: AbortSignal): Promise<LogLease | null> {
    if (this.#names.has(name)) return null;
    this.#names.add(name);
    this.#users += 1;
    const asked = this.#opened.then(() =>
      this.#session.ask('select pg_try_advisory_lock(hashtextextended($1, 0))', [name]),
    );
    const { promise: left, resolve: leave } = Promise.withResolvers<'left'>();
    const onAbort = () => leave('left');
    signal.addEventListener('abort', onAbort);
    try {
      const answer = await Promise.race([asked, left]);
      if (answer === true && !signal.aborted) return this.#held(name);
      // The lock may still be given to a caller that has left.
      const settled = asked.then(async (given) => {
        if (given === true) await this.#unlock(name);
        else this.#names.delete(name);
      });
      settled.catch(this.#session.lose);
      await this.#leave();
      return null;
    } catch (error) {
      this.#session.lose();
      throw error;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  #held(name: string): LogLease {
    const lost = new AbortController();
    const lose = () => lost.abort();
    const session = this.#session;
    if (session.lost.aborted) lose();
    else session.lost.addEventListener('abort', lose);
    let released: Promise<void> | undefined;
    const release = async (): Promise<void> => {
      if (!session.lost.aborted && this.#users > 1) await this.#unlock(name);
      session.lost.removeEventListener('abort', lose);
      await this.#leave();
      lose();
    };
    return {
      lost: lost.signal,
      release: () => {
        released ??= release();
        return released;
      },
    };
  }

  async #unlock(name: string): Promise<void> {
    await this.#session
      .ask('select pg_advisory_unlock(hashtextextended($1, 0))', [name])
      .then(() => this.#names.delete(name))
      // Nobody would ever give that lock back.
      .catch(this.#session.lose);
  }

  /** The last one ends the connection. */
  async #leave(): Promise<void> {
    this.#users -= 1;
    if (this.#users > 0) return;
    this.#forget();
    if (this.#isOpen) await this.#session.end();
    else this.#session.lose();
  }
}

const sharedLeases = new Map<string, SharedLeases>();

const sharedOf = (url: string): SharedLeases => {
  const found = sharedLeases.get(url);
  if (found !== undefined) return found;
  const made: SharedLeases = new SharedLeases(url, () => {
    if (sharedLeases.get(url) === made) sharedLeases.delete(url);
  });
  sharedLeases.set(url, made);
  return made;
};

/** In the server's line, behind those who wait already. Null when the signal came first. */
const waitFor = async ({ url, name, signal }: Wanted): Promise<LogLease | null> => {
  const session = new LeaseSession(url);
  signal.addEventListener('abort', session.lose);
  try {
    await session.open();
    // Lets the server notice a waiting member that left; not every platform can.
    await session.ask('set client_connection_check_interval = 1000').catch(() => undefined);
    for (let held = false; !held; ) {
      held = await session.ask('select pg_advisory_lock(hashtextextended($1, 0))', [name], waitMs + answerMs).then(
        () => true,
        (error) => {
          if (lockTimedOut(error)) return false;
          throw error;
        },
      );
    }
  } catch (error) {
    session.lose();
    if (signal.aborted) return null;
    throw error;
  } finally {
    signal.removeEventListener('abort', session.lose);
  }
  if (session.lost.aborted) return null;
  session.watch();
  return { lost: session.lost, release: () => session.end() };
};

/**
 * Waits for the lock. Null when the signal came first.
 * @throws the connection's error; the caller tries again
 */
export const acquireLease = async (wanted: Wanted): Promise<LogLease | null> => {
  const { url, name, signal } = wanted;
  if (signal.aborted) return null;
  const lease = await sharedOf(url).take(name, signal);
  if (lease !== null || signal.aborted) return lease;
  return waitFor(wanted);
};
