import type { Socket } from 'node:net';

/** The connections of the child: it closes unauthenticated ones and reports when there was none for long. */

export interface ConnectionsOptions {
  readonly silentMs: number;
  readonly idleMs: number;
  /** @param taken connections received so far */
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

  /** @param socket undefined: it was closed on its way here */
  accept(socket: Socket | undefined): void {
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

  /** Call it when a request of the connection had the credentials. */
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
