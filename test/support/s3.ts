/**
 * A real S3 server for tests: the given one (S3_ENDPOINT with its keys), else a container, else the gateway built from
 * its sources by Go, once, and kept outside the tree.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { engineAnswers } from './container-engine.ts';
import { freePort } from './port.ts';

export interface S3Server {
  readonly endpoint: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly source: 'environment' | 'docker' | 'go';
  stop(): Promise<void>;
}

const run = promisify(execFile);
const version = 'v1.8.0';
const keys = { accessKeyId: 'postline', secretAccessKey: 'postline-test-secret' };
const root = path.join(process.env.XDG_CACHE_HOME ?? path.join(homedir(), '.cache'), 'postline');
const binary = path.join(root, `versitygw-${version}`);

/** Why no server is available, without starting one; null when one is. */
export const s3Missing = async (): Promise<string | null> => {
  if (process.env.S3_ENDPOINT || existsSync(binary) || (await engineAnswers())) return null;
  return run('go', ['version']).then(
    () => null,
    () => 'no S3_ENDPOINT, no Docker and no Go',
  );
};

export const s3Server = async (): Promise<S3Server> => {
  const { S3_ENDPOINT: endpoint, S3_ACCESS_KEY_ID: accessKeyId, S3_SECRET_ACCESS_KEY: secretAccessKey } = process.env;
  if (endpoint && accessKeyId && secretAccessKey) {
    return { endpoint, accessKeyId, secretAccessKey, source: 'environment', stop: async () => undefined };
  }
  return (await engineAnswers()) ? inContainer() : fromSources();
};

const inContainer = async (): Promise<S3Server> => {
  const { GenericContainer, Wait } = await import('testcontainers');
  const container = await new GenericContainer(`versity/versitygw:${version}`)
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

/** Concurrent processes build into their own folders and rename the file: the name never belongs to half a program. */
const built = async (): Promise<string> => {
  if (existsSync(binary)) return binary;
  await mkdir(root, { recursive: true });
  const mine = await mkdtemp(path.join(root, 'versitygw-build-'));
  try {
    // Without C, optimisation and debug data it takes half as long to build, and serves a test as well.
    const env = { ...process.env, GOBIN: mine, CGO_ENABLED: '0' };
    const flags = ['-gcflags=all=-N -l -dwarf=false', '-ldflags=-s -w'];
    await run('go', ['install', ...flags, `github.com/versity/versitygw/cmd/versitygw@${version}`], {
      env,
      timeout: 600_000,
    });
    await rename(path.join(mine, 'versitygw'), binary);
    return binary;
  } finally {
    await rm(mine, { recursive: true, force: true });
  }
};

/** Ends with this process, however it ends: a watcher kills it when the shell's standard input closes. */
const guarded =
  'exec 3<&0; "$@" >/dev/null & server=$!; (cat <&3 >/dev/null; kill -9 $server) 2>/dev/null & wait $server';

const fromSources = async (): Promise<S3Server> => {
  const gateway = await built();
  const folder = await mkdtemp(path.join(tmpdir(), 's3-'));
  const address = `127.0.0.1:${await freePort()}`;
  const options = ['--port', address, '--access', keys.accessKeyId, '--secret', keys.secretAccessKey];
  const args = [...options, '--health', '/health', '--keep-alive', '--quiet', 'posix', folder];
  const shell = spawn('sh', ['-c', guarded, 'sh', gateway, ...args], { stdio: ['pipe', 'ignore', 'ignore'] });
  const stop = async (): Promise<void> => {
    await ended(shell);
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const deadline = performance.now() + 30_000;
    while (!(await healthy(`http://${address}/health`))) {
      if (shell.exitCode !== null || performance.now() > deadline) throw new Error('the S3 gateway did not come up');
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return { endpoint: `http://${address}`, ...keys, source: 'go', stop };
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
