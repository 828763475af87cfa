/**
 * Our own analytics store under a data folder. It listens at once; the first connection starts its engine, which takes
 * some hundred megabytes, in a child process, and the child ends when there was no connection for long. A child that
 * dies takes its connections with it; the next connection starts another.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import path from 'node:path';
import { EngineProcess } from './engine-process.ts';
import { noteOf, removeNote, writeNote } from './note.ts';

export { noteOf };

/** Milliseconds. */
export interface Limits {
  /** A child that is not ready by then is killed. */
  readonly readyMs: number;
  /** A connection without a request that has the credentials is closed after this time. */
  readonly silentMs: number;
  /** The child ends after this time without a connection. */
  readonly idleMs: number;
}

const usual: Limits = { readyMs: 30_000, silentMs: 30_000, idleMs: 600_000 };

export interface EmbeddedAnalyticsOptions {
  /** Folder of the engine's data, made when missing. One process at a time uses it. */
  readonly dir: string;
  /** Memory of all queries and merges together. */
  readonly memoryBytes?: number;
  readonly limits?: Partial<Limits>;
  /** Called when the engine cannot be started, and when it ended by itself. */
  readonly onTrouble?: (reason: string) => void;
}

export interface EmbeddedAnalytics {
  /** With credentials that only this process knows, and the database as its path. */
  readonly url: string;
  /** Process id of the child, while there is one. */
  pid(): number | null;
  stop(): Promise<void>;
}

const database = 'postline';
const user = 'postline';
/** After a failed start connections are refused for this long. Milliseconds. */
const restMs = 2_000;

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

export const startEmbeddedAnalytics = async ({
  dir,
  memoryBytes = 1024 ** 3,
  limits = {},
  onTrouble = () => undefined,
}: EmbeddedAnalyticsOptions): Promise<EmbeddedAnalytics> => {
  const password = randomBytes(24).toString('hex');
  const start = { dir: path.resolve(dir), memoryBytes, database, user, password, ...usual, ...limits };
  let child: EngineProcess | null = null;
  let restUntil = 0;
  let stopping = false;

  const failed = (reason: string): void => {
    restUntil = performance.now() + restMs;
    onTrouble(`the embedded analytics engine does not start: ${reason}`);
  };
  const begin = (): EngineProcess | null => {
    try {
      return new EngineProcess(start, {
        failed,
        ended: (how) => {
          child = null;
          if (how !== null && !stopping) onTrouble(`the embedded analytics engine has ended: ${how}`);
        },
      });
    } catch (error) {
      failed(messageOf(error));
      return null;
    }
  };

  const accept = (socket: Socket): void => {
    if (child?.isLeaving) {
      void child.ended.then(() => accept(socket));
      return;
    }
    const refused = stopping || performance.now() < restUntil;
    if (!refused) child ??= begin();
    if (refused || child === null) socket.destroy();
    else child.give(socket);
  };
  const server = createServer({ pauseOnConnect: true }, (socket) => {
    socket.on('error', () => undefined);
    accept(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const url = `http://${user}:${password}@127.0.0.1:${port}/${database}`;
  try {
    writeNote(dir, url);
  } catch (error) {
    // Other processes then cannot join; the engine itself reports what is wrong with the folder.
    onTrouble(`${noteOf(dir)} cannot be written: ${messageOf(error)}`);
  }
  return {
    url,
    pid: () => child?.pid ?? null,
    stop: async () => {
      stopping = true;
      server.close();
      await child?.stop();
      removeNote(dir, url);
    },
  };
};
