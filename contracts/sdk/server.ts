import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import { root } from './client.ts';
import { receiver } from './receiver.ts';

/** What the tours talk to: a service of its own, and a receiver of its events. */

export interface Server {
  /** For the tours. */
  readonly env: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

const startMs = 120_000;

/** @throws when the service ends, or does not serve in time */
const started = (service: ChildProcess, output: () => string): Promise<void> =>
  new Promise((resolve, reject) => {
    const late = () => reject(new Error(`the service did not start within ${startMs / 1_000} s:\n${output()}`));
    setTimeout(late, startMs).unref();
    const look = () => (/^Serving/m.test(output()) ? resolve() : undefined);
    for (const stream of [service.stdout, service.stderr]) stream?.on('data', look);
    service.once('exit', (code) => reject(new Error(`the service ended with ${code}:\n${output()}`)));
  });

/** @param data folder of its data; it need not exist */
export const startServer = async (data: string): Promise<Server> => {
  const { host, close } = await receiver();
  const service = spawn(
    process.execPath,
    [path.join(root, 'services/standalone/main.ts'), '--data', data, '--port', '0', '--no-tour'],
    {
      cwd: root,
      // Ten tours run against it, and each polls.
      env: { ...process.env, PRIVATE_TARGETS: host, RATE_LIMIT_PER_MINUTE: '60000', RATE_LIMIT_BURST: '10000' },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let output = '';
  for (const stream of [service.stdout, service.stderr]) stream.on('data', (chunk) => (output += String(chunk)));
  const stop = () =>
    new Promise<void>((resolve) => {
      close();
      if (service.exitCode !== null || service.signalCode !== null) return resolve();
      service.once('exit', () => resolve());
      service.kill('SIGTERM');
    });
  const environment = async (): Promise<Server['env']> => {
    await started(service, () => output);
    const found = (pattern: RegExp): string => {
      const [, value] = pattern.exec(output) ?? [];
      if (value === undefined) throw new Error(`the service did not print ${pattern}:\n${output}`);
      return value;
    };
    return {
      POSTLINE_URL: found(/Ready in [\d.]+ s: (\S+)/),
      POSTLINE_KEY: found(/(sk_test_\S+)/),
      POSTLINE_RECEIVER: `http://${host}/events`,
      POSTLINE_PHOTO: path.join(root, 'test/fixtures/coffee.jpg'),
    };
  };
  try {
    return { env: await environment(), stop };
  } catch (error) {
    await stop();
    throw error;
  }
};
