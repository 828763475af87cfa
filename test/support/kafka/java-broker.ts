/**
 * The real Kafka broker from Maven Central's jars, for machines without a container engine: JDK 17+ and Maven.
 * Combined broker and controller (KRaft), loopback only, replication 1.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { freePort } from '../port.ts';

const run = promisify(execFile);
const pom = join(import.meta.dirname, 'pom.xml');

const cacheRoot = (): string => process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache');

const version = async (): Promise<string> => {
  const found = /<artifactId>kafka_2\.13<\/artifactId>\s*<version>([^<]+)</.exec(await readFile(pom, 'utf8'))?.[1];
  if (found === undefined) throw new Error(`${pom} names no Kafka version`);
  return found;
};

/** Null when both are installed, else the missing one. */
export const missingTools = async (): Promise<string | null> => {
  const java = await run('java', ['-version']).catch(() => null);
  if (java === null) return 'no Docker and no Java';
  const major = Number(/version "(\d+)/.exec(java.stderr)?.[1] ?? 0);
  if (major < 17) return `no Docker, and Java ${major} is older than 17`;
  if (existsSync(join(cacheRoot(), 'postline', `kafka-${await version()}`))) return null;
  return run('mvn', ['-v']).then(
    () => null,
    () => 'no Docker and no Maven',
  );
};

/**
 * A folder of the cache, made once. Concurrent processes fill their own folders and rename them: a late one finds the name
 * taken and discards its copy, so a half-filled folder never has the final name.
 */
const made = async (name: string, fill: (folder: string) => Promise<void>): Promise<string> => {
  const root = join(cacheRoot(), 'postline');
  const final = join(root, name);
  if (existsSync(final)) return final;
  await mkdir(root, { recursive: true });
  const mine = await mkdtemp(join(root, 'kafka-making-'));
  try {
    await fill(mine);
    await rename(mine, final).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
    });
    return final;
  } finally {
    await rm(mine, { recursive: true, force: true });
  }
};

const jars = async (): Promise<string> =>
  made(`kafka-${await version()}`, async (folder) => {
    await run(
      'mvn',
      ['-q', '-B', '-f', pom, 'dependency:copy-dependencies', '-DincludeScope=runtime', `-DoutputDirectory=${folder}`],
      { timeout: 240_000 },
    );
  });

const properties = (folder: string, port: number, controller: number): string =>
  Object.entries({
    'process.roles': 'broker,controller',
    'node.id': 1,
    'controller.quorum.voters': `1@127.0.0.1:${controller}`,
    'controller.listener.names': 'CONTROLLER',
    'listener.security.protocol.map': 'CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT',
    listeners: `PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controller}`,
    'advertised.listeners': `PLAINTEXT://127.0.0.1:${port}`,
    'log.dirs': join(folder, 'data'),
    'offsets.topic.replication.factor': 1,
    'offsets.topic.num.partitions': 4,
    'transaction.state.log.replication.factor': 1,
    'transaction.state.log.min.isr': 1,
    'transaction.state.log.num.partitions': 4,
    'auto.create.topics.enable': false,
    // Tests kill members: their lanes must come free in seconds, and the group must not wait for a third member.
    'group.min.session.timeout.ms': 1000,
    'group.initial.rebalance.delay.ms': 0,
    'log.retention.check.interval.ms': 1000,
    'log.initial.task.delay.ms': 500,
    // After kill -9 the broker's own old session must lapse before it may register again.
    'broker.session.timeout.ms': 3000,
    'broker.heartbeat.interval.ms': 500,
  })
    .map(([name, value]) => `${name}=${value}`)
    .join('\n');

/** Ends with this process, however it ends: a watcher kills the broker when the shell's standard input closes. */
const guarded =
  'exec 3<&0; java "$@" & broker=$!; echo $broker; (cat <&3 >/dev/null; kill -9 $broker) 2>/dev/null & wait $broker';

export interface JavaBroker {
  readonly brokers: readonly string[];
  kill9(): Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

type Answers = (broker: string) => Promise<boolean>;

interface Setting {
  /** Of the broker, with its settings and its data. */
  readonly folder: string;
  readonly port: number;
  /** Of the JVM. */
  readonly options: readonly string[];
  readonly classes: readonly string[];
}

const setting = async (folder: string, lib: string, options: readonly string[]): Promise<Setting> => {
  const port = await freePort();
  await writeFile(join(folder, 'server.properties'), properties(folder, port, await freePort()));
  return { folder, port, options, classes: ['-cp', join(lib, '*')] };
};

const format = async ({ folder, classes }: Setting): Promise<void> => {
  const clusterId = Buffer.from(randomUUID().replaceAll('-', ''), 'hex').toString('base64url');
  await run('java', [
    '-Xmx128m',
    '-XX:TieredStopAtLevel=1',
    ...classes,
    'kafka.tools.StorageTool',
    'format',
    // As one word: an id that begins with a hyphen would be parsed as an option.
    `--cluster-id=${clusterId}`,
    '-c',
    join(folder, 'server.properties'),
  ]);
};

/**
 * What each start needs and none changes: data as they are after formatting, and the classes of a running broker as the JVM
 * has them in memory, which halve the processor time of a start. They fit the JVM that wrote them.
 */
const prepared = async (lib: string, answers: Answers): Promise<string> => {
  const jvm = createHash('sha256').update((await run('java', ['-version'])).stderr);
  return made(`kafka-${await version()}-start-${jvm.digest('hex').slice(0, 12)}`, async (folder) => {
    const whole = await setting(folder, lib, [`-XX:ArchiveClassesAtExit=${join(folder, 'classes.jsa')}`]);
    await format(whole);
    await cp(join(folder, 'data'), join(folder, 'formatted'), { recursive: true });
    const broker = brokerOf(whole, answers);
    await broker.start();
    await broker.end('SIGTERM');
    await rm(join(folder, 'data'), { recursive: true });
  });
};

/** With a fresh data folder; `start` runs the broker. `answers` resolves when the broker serves requests. */
export const javaBroker = async (answers: Answers): Promise<JavaBroker> => {
  const lib = await jars();
  const ready = await prepared(lib, answers);
  const folder = await mkdtemp(join(tmpdir(), 'kafka-'));
  await cp(join(ready, 'formatted'), join(folder, 'data'), { recursive: true });
  const options = [`-XX:SharedArchiveFile=${join(ready, 'classes.jsa')}`, '-Xlog:disable'];
  const broker = brokerOf(await setting(folder, lib, options), answers);
  const kill9 = () => broker.end('SIGKILL');
  return {
    brokers: [broker.address],
    kill9,
    start: broker.start,
    stop: async () => {
      await kill9();
      await rm(folder, { recursive: true, force: true });
    },
  };
};

const brokerOf = ({ folder, port, options, classes }: Setting, answers: Answers) => {
  const address = `127.0.0.1:${port}`;
  let shell: ChildProcess | null = null;
  let pid: number | null = null;

  const alive = (): boolean => shell !== null && shell.exitCode === null && shell.signalCode === null;

  const end = async (signal: 'SIGKILL' | 'SIGTERM'): Promise<void> => {
    const ended = shell;
    if (ended === null) return;
    if (alive()) {
      const exited = once(ended, 'exit');
      if (pid !== null) process.kill(pid, signal);
      // It would kill what is to end by itself.
      if (signal === 'SIGKILL') ended.stdin?.end();
      await exited;
    }
    shell = null;
    pid = null;
  };

  const start = async (): Promise<void> => {
    const log = await open(join(folder, 'broker.log'), 'a');
    const jvm = ['-Xms256m', '-Xmx512m', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', ...options];
    const args = ['-c', guarded, 'sh', ...jvm, ...classes, 'kafka.Kafka', join(folder, 'server.properties')];
    shell = spawn('sh', args, { stdio: ['pipe', 'pipe', log.fd] });
    await log.close();
    if (shell.stdout === null) throw new Error('no standard output');
    const lines = createInterface({ input: shell.stdout });
    pid = Number((await once(lines, 'line'))[0]);
    const deadline = performance.now() + 60_000;
    while (!(await answers(address))) {
      if (!alive() || performance.now() > deadline) {
        await end('SIGKILL');
        throw new Error(
          `the Kafka broker did not come up: ${(await readFile(join(folder, 'broker.log'), 'utf8')).slice(-2000)}`,
        );
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  };

  return { address, start, end };
};
