/** Event store servers for tests: a real one where available, and the double in its own process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { GenericContainer, Wait } from 'testcontainers';
import { readConfig } from '#runtime/process/config.ts';
import { engineAnswers } from '#test/support/container-engine.ts';
import type { Release } from '#test/support/eventstoredb/reads.ts';
import { somePort } from '#test/support/port.ts';
import { built } from '../bundles.ts';

export interface EventStoreServer {
  readonly url: string;
  /** Its origin, for the line that a test world prints. */
  readonly source: 'environment' | 'docker' | 'double';
  stop(): Promise<void>;
}

export interface DoubleProcess extends EventStoreServer {
  readonly port: number;
  /** kill -9; acknowledged data survives if it has a data file. */
  kill9(): Promise<void>;
  /** Starts again on the same port. */
  start(): Promise<void>;
}

/** A real server: the one of the environment, else a container. Null when there is neither. */
export const givenEventStore = async (): Promise<EventStoreServer | null> => {
  const { eventStoreUrl } = readConfig({ ESDB_URL: process.env.ESDB_URL });
  if (eventStoreUrl !== null) return { url: eventStoreUrl, source: 'environment', stop: async () => undefined };
  if (!(await engineAnswers())) return null;
  const container = await new GenericContainer('eventstore/eventstore:24.10.14')
    .withExposedPorts(2113)
    .withEnvironment({
      EVENTSTORE_INSECURE: 'true',
      EVENTSTORE_MEM_DB: 'true',
      EVENTSTORE_RUN_PROJECTIONS: 'None',
      EVENTSTORE_CLUSTER_SIZE: '1',
    })
    .withWaitStrategy(Wait.forHttp('/health/live', 2113).forStatusCode(204))
    .start();
  return {
    url: `esdb://${container.getHost()}:${container.getMappedPort(2113)}?tls=false`,
    source: 'docker',
    stop: async () => {
      await container.stop();
    },
  };
};

const script = fileURLToPath(new URL('./server.ts', import.meta.url));

/** How often a taken port is retried, or replaced, before the error is thrown. */
const maxTries = 20;

/** The double in a process of its own, listening when this resolves. */
export const doubleProcess = async (
  options: { readonly data?: string; readonly unary?: boolean; readonly release?: Release } = {},
): Promise<DoubleProcess> => {
  let port = 0;
  let child: ChildProcess | null = null;
  const listen = async (wanted: number): Promise<void> => {
    const args = [built(script), '--port', String(wanted)];
    if (options.data !== undefined) args.push('--data', options.data);
    if (options.unary === true) args.push('--unary');
    if (options.release !== undefined) args.push('--release', options.release);
    const started = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    child = started;
    const exited = once(started, 'exit').then(([code]) => {
      throw new Error(`the event store double ended with ${code} before it listened`);
    });
    const line = once(createInterface({ input: started.stdout }), 'line').then(([text]) => Number(text));
    port = await Promise.race([line, exited]);
    exited.catch(() => {});
  };
  const start = async (): Promise<void> => {
    for (let tried = 1; ; tried += 1) {
      try {
        return await listen(port === 0 ? somePort() : port);
      } catch (error) {
        if (tried === maxTries) throw error;
        await delay(100);
      }
    }
  };
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const running = child;
    child = null;
    if (running === null || running.exitCode !== null || running.signalCode !== null) return;
    const exited = once(running, 'exit');
    running.kill(signal);
    await exited;
  };
  await start();
  return {
    get port() {
      return port;
    },
    get url() {
      return `esdb://127.0.0.1:${port}?tls=false`;
    },
    source: 'double',
    start,
    kill9: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
  };
};

/** For the note of a figure. Only the address: a URL may hold a password. */
export const measuredOn = ({ source, url }: EventStoreServer): string => {
  if (source === 'double') return 'server: the double, in a process of its own';
  const [, hosts] = /^\S+?:\/\/(?:[^@/]*@)?([^/?]+)/.exec(url) ?? [];
  return `server: EventStoreDB at ${hosts} (${source})`;
};

/** For end-to-end worlds and benches: a real server where available, else the double. */
export const eventStoreServer = async (): Promise<EventStoreServer> => (await givenEventStore()) ?? doubleProcess();
