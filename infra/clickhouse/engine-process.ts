import { type ChildProcess, fork } from 'node:child_process';
import type { Socket } from 'node:net';
import path from 'node:path';
import type { FromChild, ToChild } from './chdb/messages.ts';

/** One life of the child that holds the engine: connections wait until it is ready, and are dropped when it dies. */

export interface EngineListener {
  /** The child never became ready. */
  failed(reason: string): void;
  /** The process ended or never started. @param how null: the end was intended */
  ended(how: string | null): void;
}

const stopMs = 5_000;

export class EngineProcess {
  /** Resolves when the process has ended or never started. */
  readonly ended: Promise<void>;
  readonly #process: ChildProcess;
  #state: 'starting' | 'ready' | 'leaving' | 'ended' = 'starting';
  #waiting: Socket[] = [];
  #given = 0;
  /**
   * Connections on their way to the child, by number: a child that dies leaves them here, and they are closed so that
   * no client waits on.
   */
  readonly #handed = new Map<number, Socket>();

  /** @throws where the machine has no memory for a process */
  constructor(start: ToChild & { readonly readyMs: number }, listener: EngineListener) {
    const { readyMs, ...message } = start;
    const child = fork(path.join(import.meta.dirname, 'chdb/child.ts'), {
      // No variable of our environment, which holds secrets.
      env: { PATH: '/usr/bin:/bin', TZ: 'UTC' },
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      execArgv: [],
    });
    this.#process = child;
    const late = setTimeout(() => {
      listener.failed(`not ready within ${readyMs} ms`);
      child.kill('SIGKILL');
    }, readyMs);
    child.on('message', (from: FromChild) => {
      if (from.type === 'ready') {
        clearTimeout(late);
        this.#begin();
      } else if (from.type === 'failed') {
        listener.failed(from.reason);
      } else if (from.type === 'took') {
        // This is a second handle on the connection: the child's stays open.
        this.#handed.get(from.number)?.destroy();
        this.#handed.delete(from.number);
      } else if (from.taken === this.#given) {
        void this.stop();
      }
    });
    this.ended = new Promise((resolve) => {
      const end = (how: string): void => {
        const meant = this.#state === 'leaving';
        if (this.#state === 'ended') return;
        this.#state = 'ended';
        clearTimeout(late);
        for (const socket of [...this.#waiting.splice(0), ...this.#handed.values()]) socket.destroy();
        this.#handed.clear();
        listener.ended(meant ? null : how);
        resolve();
      };
      child.once('exit', (code, signal) => end(String(signal ?? code)));
      child.on('error', (error) => {
        // Without a process there is no exit event.
        if (child.pid !== undefined) return;
        listener.failed(error.message);
        end(error.message);
      });
    });
    if (child.connected) child.send(message, () => undefined);
  }

  get pid(): number | null {
    return this.#process.pid ?? null;
  }

  /** It accepts no more connections; it still holds the folder until it has ended. */
  get isLeaving(): boolean {
    return this.#state === 'leaving';
  }

  give(socket: Socket): void {
    if (this.#state === 'starting') this.#waiting.push(socket);
    else if (!this.#process.connected) socket.destroy();
    else {
      const number = ++this.#given;
      this.#handed.set(number, socket);
      // Kept open here until the child confirms it: Node forgets queued handles when a child dies.
      this.#process.send({ type: 'connection', number }, socket, { keepOpen: true }, (error) => {
        if (error === null) return;
        this.#handed.delete(number);
        socket.destroy();
      });
    }
  }

  async stop(): Promise<void> {
    if (this.#state === 'ready' && this.#process.connected) this.#process.send({ type: 'stop' }, () => undefined);
    else if (this.#state === 'starting') this.#process.kill('SIGKILL');
    if (this.#state !== 'ended') this.#state = 'leaving';
    const timer = setTimeout(() => this.#process.kill('SIGKILL'), stopMs);
    await this.ended;
    clearTimeout(timer);
  }

  #begin(): void {
    if (this.#state !== 'starting') return;
    this.#state = 'ready';
    for (const socket of this.#waiting.splice(0)) this.give(socket);
  }
}
