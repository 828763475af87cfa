/** Shared by the benches of the publisher: worlds in their own databases, the publisher in its process, lateness. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { sharedServer } from '#test/support/postgres.ts';
import { PublishingWorld } from '#test/support/publishing.ts';

const script = fileURLToPath(new URL('./publisher-child.ts', import.meta.url));

/** The preparation of a post with this text never ends. */
export const hangs = 'hangs';

/** Runs `work` with so many worlds, each over its own database on one server, and removes them afterwards. */
export const withWorlds = async <T>(
  count: number,
  work: (worlds: readonly PublishingWorld[]) => Promise<T>,
): Promise<T> => {
  const server = await sharedServer();
  const admin = new pg.Client({ connectionString: server.url });
  await admin.connect();
  const names = Array.from({ length: count }, () => `bench_${randomBytes(6).toString('hex')}`);
  const worlds: PublishingWorld[] = [];
  try {
    for (const name of names) {
      await admin.query(`create database ${name}`);
      const url = new URL(server.url);
      url.pathname = `/${name}`;
      worlds.push(await PublishingWorld.open(url.href));
    }
    return await work(worlds);
  } finally {
    for (const world of worlds) await world.close();
    for (const name of names) await admin.query(`drop database if exists ${name} with (force)`);
    await admin.end();
    await server.stop();
  }
};

/** A target and the wall clock at which a publish call of it began. */
export type Begun = readonly [string, number];

/**
 * A publisher in a process of its own, which prints a JSON line at its end.
 * @param args the program, and what it is told
 */
export const publisherOf = <T = readonly Begun[]>(
  world: PublishingWorld,
  [program, ...args]: readonly [string, ...string[]] = [script],
) => {
  const child = spawn(process.execPath, [program, world.url, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  const exit = once(child, 'exit');
  return {
    /** Drains it and returns what it printed: its publish calls. */
    end: async (): Promise<T> => {
      child.kill('SIGTERM');
      await exit;
      return JSON.parse(text.split('\n').at(-2) ?? '[]') as T;
    },
    kill: (): void => void child.kill('SIGKILL'),
  };
};

/** Milliseconds from due to the first of its instants, for each target that has one. */
export const lateness = (dueAt: ReadonlyMap<string, number>, instants: readonly Begun[]): readonly number[] => {
  const first = new Map<string, number>();
  for (const [id, at] of instants) if (dueAt.has(id)) first.set(id, Math.min(at, first.get(id) ?? at));
  return [...first].map(([id, at]) => at - (dueAt.get(id) ?? Number.NaN));
};
