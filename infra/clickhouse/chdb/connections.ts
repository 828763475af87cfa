import type { Socket } from 'node:net';

/** The connections of the child: a silent one is closed, and it is told when there has been none for long. */

export interface ConnectionsOptions {
  readonly silentMs: number;
  readonly idleMs: number;
  /** @param taken connections so far */
  onIdle(taken: number): void;
}

export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #silent = new Map<Socket, NodeJS.Timeout>();
  #open = 0;
  #taken = 0;
  #idle: NodeJS.Timeout | undefined;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
    this.#rest();
  }

  /** @param socket none: it was closed on its way here */
  take(socket: Socket | undefined): void {
    this.#taken += 1;
    clearTimeout(this.#idle);
    if (socket === undefined || socket.destroyed) {
      this.#rest();
      return;
    }
    this.#open += 1;
    const silence = setTimeout(() => socket.destroy(), this.#options.silentMs);
    this.#silent.set(socket, silence);
    socket.once('close', () => {
      this.#open -= 1;
      this.allow(socket);
      this.#rest();
    });
  }

  /** A request of it had the credentials. */
  allow(socket: Socket): void {
    clearTimeout(this.#silent.get(socket));
    this.#silent.delete(socket);
  }

  #rest(): void {
    if (this.#open > 0) return;
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => this.#options.onIdle(this.#taken), this.#options.idleMs);
  }
}
