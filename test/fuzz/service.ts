import { readFileSync } from 'node:fs';
import path from 'node:path';
import { tourName } from '#services/workflows/provision.ts';
import { type Process, run, start } from '#test/support/processes.ts';
import type { Service } from './recipe.ts';

/** A standalone service that has taken its tour, with allowances that no run of calls uses up. */
export const startToured = async (
  databaseUrl: string,
  dataDir: string,
): Promise<{ readonly service: Service; readonly process: Process }> => {
  const process = await start('services/standalone/main.ts', {
    args: ['--data', dataDir, '--port', '0'],
    env: { DATABASE_URL: databaseUrl, RATE_LIMIT_PER_MINUTE: '1000000', RATE_LIMIT_BURST: '100000' },
    readyAt: /^Serving/m,
    within: 180_000,
  });
  const output = process.output();
  const url = /Ready in [\d.]+ s: (\S+)/.exec(output)?.[1];
  // Of the tour's workspace: it has what the tour left.
  const key = /Bearer (sk_test_[\w-]+)'/.exec(output)?.[1];
  if (url === undefined || key === undefined) throw new Error(`the service printed no address or no key:\n${output}`);
  // Nothing in the api defines a report.
  const env = { DATABASE_URL: databaseUrl, SECRET_KEY: readFileSync(path.join(dataDir, 'secret.key'), 'utf8').trim() };
  const admin = async <Said>(...args: string[]): Promise<Said> => {
    const { code, output: said } = await run('services/admin/main.ts', { env, args: [...args, '--json'] });
    if (code !== 0) throw new Error(`admin ${args.join(' ')} ended with ${code}:\n${said}`);
    return JSON.parse(said.split('\n').at(-1) ?? '');
  };
  const all = await admin<readonly { readonly workspaceId: string; readonly name: string }[]>('workspace', 'list');
  const toured = all.find(({ name }) => name === tourName)?.workspaceId ?? '';
  const own = ['--workspace', toured, '--mode', 'test'];
  const { reportId } = await admin<{ readonly reportId: string }>(
    ...['report', 'define', '--name', 'All', '--formats', 'json', ...own],
  );
  await admin('report', 'run', reportId);
  return { service: { url, key }, process };
};
