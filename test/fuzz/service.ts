import { readFileSync } from 'node:fs';
import { tourName } from '#services/workflows/provision.ts';
import { type Process, printedUrl, run, start } from '#test/support/processes.ts';
import type { Service } from './recipe.ts';

/** Allowances that no run of calls uses up. */
export const freely = { RATE_LIMIT_PER_MINUTE: '1000000', RATE_LIMIT_BURST: '100000' } as const;

/**
 * What a standalone service that serves after its tour is called with.
 * @param admin what leads the admin program to the same installation
 */
export const touredBy = async (
  process: Process,
  admin: { readonly args?: readonly string[]; readonly env?: Readonly<Record<string, string>> },
): Promise<Service> => {
  const output = process.output();
  const url = printedUrl(output);
  // Of the tour's workspace: it has what the tour left.
  const key = /Bearer (sk_test_[\w-]+)'/.exec(output)?.[1];
  if (url === '' || key === undefined) throw new Error(`the service printed no address or no key:\n${output}`);
  const { args: where = [], env = {} } = admin;
  const tell = async <Said>(...args: string[]): Promise<Said> => {
    const { code, output: said } = await run('services/admin/main.ts', { env, args: [...args, ...where, '--json'] });
    if (code !== 0) throw new Error(`admin ${args.join(' ')} ended with ${code}:\n${said}`);
    return JSON.parse(said.split('\n').at(-1) ?? '');
  };
  // Nothing in the api defines a report. Ids count up with time: this tour was the latest.
  const all = await tell<readonly { readonly workspaceId: string; readonly name: string }[]>('workspace', 'list');
  const tours = all.filter(({ name }) => name === tourName).map(({ workspaceId }) => workspaceId);
  const own = ['--workspace', tours.sort().at(-1) ?? '', '--mode', 'test'];
  const { reportId } = await tell<{ readonly reportId: string }>(
    ...['report', 'define', '--name', 'All', '--formats', 'json', ...own],
  );
  await tell('report', 'run', reportId);
  return { url, key };
};

/** A standalone service that has taken its tour. */
export const startToured = async (
  databaseUrl: string,
  dataDir: string,
): Promise<{ readonly service: Service; readonly process: Process }> => {
  const process = await start('services/standalone/main.ts', {
    args: ['--data', dataDir, '--port', '0'],
    env: { DATABASE_URL: databaseUrl, ...freely },
    readyAt: /^Serving/m,
    within: 180_000,
  });
  const SECRET_KEY = readFileSync(`${dataDir}/secret.key`, 'utf8').trim();
  return { service: await touredBy(process, { env: { DATABASE_URL: databaseUrl, SECRET_KEY } }), process };
};
