/**
 * An analytics store of our own under a data folder: it listens at once, and its engine, which takes some hundred
 * megabytes, is started in a child process by the first connection. A child that dies takes its connections with it; the
 * next connection starts another.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import path from 'node:path';
import type { FromChild } from './chdb/messages.ts';

export interface EmbeddedAnalyticsOptions {
  /** Folder of the engine's data, made when missing. One process has it at a time. */
  readonly dir: string;
  /** What all queries and merges together may use. */
  readonly memoryBytes?: number;
  /** Told when the engine cannot be started, and when it ended by itself. */
  readonly onTrouble?: (reason: string) => void;
}

export interface EmbeddedAnalytics {
  /** With the credentials that nobody else has, and the database as its path. */
  readonly url: string;
  /** Of the child, while there is one. */
  pid(): number | null;
  stop(): Promise<void>;
}

const database = 'postline';
const user = 'postline';
/** After a failed start the next connections are refused for so long. Milliseconds. */
const restMs = 2_000;
const stopMs = 5_000;

/** Where an engine is: for who works on its folder beside it. */
export const noteOf = (dir: string): string => path.join(path.resolve(dir), 'engine.url');

/** Its connections are told nothing: they close. */
const drop = (sockets: Iterable<Socket>): void => {
  for (const socket of sockets) socket.destroy();
};

class Child {
  readonly process: ChildProcess;
  readonly exited: Promise<unknown>;
  #ready = false;
  #waiting: Socket[] = [];

  constructor(start: object, trouble: (reason: string) => void) {
    this.process = fork(path.join(import.meta.dirname, 'chdb/child.ts'), {
      // Nothing of our environment, which holds secrets.
      env: { PATH: '/usr/bin:/bin', TZ: 'UTC' },
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      execArgv: [],
    });
    this.exited = once(this.process, 'exit').catch((error: Error) => trouble(error.message));
    this.process.on('message', (message: FromChild) => {
      if (message.type === 'failed') trouble(message.reason);
      else {
        this.#ready = true;
        for (const socket of this.#waiting.splice(0)) this.#hand(socket);
      }
    });
    this.process.on('exit', () => drop(this.#waiting.splice(0)));
    this.process.send(start, () => undefined);
  }

  give(socket: Socket): void {
    if (this.#ready) this.#hand(socket);
    else this.#waiting.push(socket);
  }

  async stop(): Promise<void> {
    if (this.#ready && this.process.connected) this.process.send({ type: 'stop' }, () => undefined);
    else this.process.kill('SIGKILL');
    const timer = setTimeout(() => this.process.kill('SIGKILL'), stopMs);
    await this.exited;
    clearTimeout(timer);
  }

  #hand(socket: Socket): void {
    if (!this.process.connected) socket.destroy();
    else this.process.send({ type: 'connection' }, socket, (error) => error && socket.destroy());
  }
}

export const startEmbeddedAnalytics = async ({
  dir,
  memoryBytes = 1024 ** 3,
  onTrouble = () => undefined,
}: EmbeddedAnalyticsOptions): Promise<EmbeddedAnalytics> => {
  const password = randomBytes(24).toString('hex');
  let child: Child | null = null;
  let restUntil = 0;
  let stopping = false;

  const begin = (): Child => {
    const began = new Child({ dir: path.resolve(dir), memoryBytes, database, user, password }, (reason) => {
      restUntil = performance.now() + restMs;
      onTrouble(`the embedded analytics engine does not start: ${reason}`);
    });
    began.process.on('exit', (code, signal) => {
      child = null;
      if (!stopping) onTrouble(`the embedded analytics engine has ended: ${signal ?? code}`);
    });
    return began;
  };

  const server = createServer({ pauseOnConnect: true }, (socket) => {
    socket.on('error', () => undefined);
    if (stopping || performance.now() < restUntil) {
      socket.destroy();
      return;
    }
    child ??= begin();
    child.give(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const url = `http://${user}:${password}@127.0.0.1:${port}/${database}`;
  const note = noteOf(dir);
  let noted = false;
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    writeFileSync(note, url, { mode: 0o600 });
    noted = true;
  } catch (error) {
    // Who joins finds nobody; the engine itself will say what is wrong with the folder.
    onTrouble(`${note} cannot be written: ${error instanceof Error ? error.message : error}`);
  }
  return {
    url,
    pid: () => child?.process.pid ?? null,
    stop: async () => {
      stopping = true;
      server.close();
      if (noted) rmSync(note, { force: true });
      await child?.stop();
    },
  };
};
