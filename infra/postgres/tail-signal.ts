/** Wakes the readers of the event table when there are new events. */

import { Socket } from 'node:net';
import pg from 'pg';
import { pause } from '#contracts/base/pause.ts';
import { channelOf } from './event-store.sql.ts';
import { backoffMs } from './pool.ts';
import { defaultConnectMs, keepAlive, limitAnswers } from './session.ts';

/** How often an idle listening connection is probed; an answer may take half of that. Milliseconds. */
const defaultBeatMs = 10_000;

/** Most poll intervals that a reader waits for a notification after a long silence. */
const maxPolls = 5;

/**
 * Wake-ups by a listening connection, and by a timer in case a notification is lost or the connection is down. Take
 * `version` before reading; `changed(version)` then misses nothing that was committed after the read.
 */
export class TailSignal {
  readonly #url: string;
  readonly #channel: string;
  readonly #pollMs: number;
  readonly #beatMs: number;
  readonly #closed = new AbortController();
  readonly #waiting = new Set<() => void>();
  #listening: Promise<void> | undefined;
  #connected = false;
  #version = 0;
  #noticedAt = performance.now();

  constructor(options: {
    readonly url: string;
    readonly schema: string;
    readonly pollMs?: number;
    readonly beatMs?: number;
  }) {
    this.#url = options.url;
    this.#beatMs = options.beatMs ?? defaultBeatMs;
    this.#channel = channelOf(options.schema);
    this.#pollMs = options.pollMs ?? 1_000;
  }

  get version(): number {
    return this.#version;
  }

  /** Resolves when events may have been committed since `seen`, at the latest after the poll interval. */
  async changed(seen: number, signal: AbortSignal): Promise<void> {
    this.#listening ??= this.#listen();
    if (this.#version !== seen || signal.aborted || this.#closed.signal.aborted) return;
    await new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', done);
        this.#waiting.delete(done);
        resolve();
      };
      const timer = setTimeout(done, this.#waitMs());
      signal.addEventListener('abort', done);
      this.#waiting.add(done);
    });
  }

  /** A read found new events, announced or not: readers poll at every interval again. */
  noticed(): void {
    this.#noticedAt = performance.now();
  }

  /** Only a lost notification makes a poll find something: the longer nothing comes, the rarer the polls. */
  #waitMs(): number {
    if (!this.#connected) return Math.min(100, this.#pollMs);
    const quietMs = performance.now() - this.#noticedAt;
    return Math.min(Math.max(quietMs / 4, this.#pollMs), maxPolls * this.#pollMs);
  }

  async close(): Promise<void> {
    this.#closed.abort();
    this.#wake();
    await this.#listening;
  }

  #wake(): void {
    this.noticed();
    this.#version++;
    for (const done of [...this.#waiting]) done();
  }

  async #listen(): Promise<void> {
    const closed = this.#closed.signal;
    const closing = new Promise<void>((resolve) => closed.addEventListener('abort', () => resolve()));
    for (let failures = 0; !closed.aborted; failures++) {
      const socket = new Socket();
      const client = new pg.Client({
        connectionString: this.#url,
        application_name: 'events-listen',
        connectionTimeoutMillis: defaultConnectMs,
        ...keepAlive,
        stream: () => socket,
      });
      limitAnswers(client, this.#beatMs / 2);
      const ended = new Promise<void>((resolve) => {
        client.on('error', () => resolve());
        client.on('end', () => resolve());
      });
      client.on('notification', () => this.#wake());
      const listen = async () => {
        await client.connect();
        await client.query(`listen ${this.#channel}`);
        failures = 0;
        this.#connected = true;
        // Commits during the gap were not announced to this connection.
        this.#wake();
        // No statement runs on this connection, so only a probe notices that it fell silent: then it is closed, which
        // ends the wait.
        const beat = setInterval(() => client.query('select 1').catch(() => socket.destroy()), this.#beatMs);
        await ended.finally(() => clearInterval(beat));
      };
      // An error leads to the next try; readers poll meanwhile. NOTE: pg's `connect` never settles once `end` is
      // called.
      await Promise.race([listen().catch(() => {}), closing]);
      this.#connected = false;
      socket.destroy();
      if (!closed.aborted) await pause(backoffMs(failures), closed);
    }
  }
}
