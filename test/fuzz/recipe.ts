/** One run of schemathesis against a service, and the resources that the service must have before. */
import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { run as runProgram } from '#contracts/sdk/shell.ts';
import { virtualEnvironment } from '#contracts/sdk/virtual-environment.ts';

const root = path.resolve(import.meta.dirname, '../..');
const cache = path.join(root, 'node_modules/.cache/fuzz');
const packages = readFileSync(path.join(import.meta.dirname, 'requirements.txt'), 'utf8')
  .trim()
  .split('\n');

/** A service to call: its root, with /v1, and a test key of its Owner. */
export interface Service {
  readonly url: string;
  readonly key: string;
}

export interface Plan {
  readonly seed: number;
  readonly phases: readonly ('examples' | 'coverage' | 'fuzzing' | 'stateful')[];
  /** Generated cases of one operation, and walks along links for each operation. */
  readonly examples: number;
  /** Of the cases that the contract alone gives for an operation, each such one is played. */
  readonly everyNth: number;
  /** Milliseconds. */
  readonly within: number;
}

export interface Report {
  readonly cases: number;
  /** What schemathesis printed. */
  readonly output: string;
  /** Null: every answer was one that the contract promises. */
  readonly failure: string | null;
}

/** @returns the folder of its programs. @throws MissingTool without Python */
export const install = (step: (what: string) => void): Promise<string> => {
  mkdirSync(cache, { recursive: true });
  return virtualEnvironment(path.join(cache, 'python'), packages, { log: path.join(cache, 'install.log'), step });
};

const day = 86_400_000;

/** Resources that the tour does not leave: drafts, targets that stay pending, endpoints with deliveries and a replay. */
export const prepare = async ({ url, key }: Service): Promise<void> => {
  const call = async <Data>(method: string, at: string, body?: unknown): Promise<Data> => {
    const headers = {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'idempotency-key': randomUUID(),
    };
    const answer = await fetch(`${url}${at}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${at} was answered with ${answer.status}: ${text}`);
    return (JSON.parse(text) as { readonly data: Data }).data;
  };
  const [{ id: clientId }] = await call<[{ readonly id: string }]>('GET', '/clients');
  const targets = { mode: 'group', clientId, platforms: ['x', 'bluesky', 'threads'] };
  for (let nth = 1; nth <= 3; nth += 1) {
    const schedule = { type: 'at', scheduledAt: new Date(Date.now() + nth * 30 * day).toISOString() };
    const post = { clientId, content: `Number ${nth}`, targets, schedule };
    await call('POST', '/posts', post);
    await call('POST', '/posts', { ...post, saveDraft: true });
    const events = ['post.*', 'target.*'];
    const endpoint = await call<{ readonly id: string }>('POST', '/webhooks', {
      url: `https://hooks.example/${nth}`,
      events,
    });
    await call('POST', `/webhooks/${endpoint.id}/test`, {});
    const window = { from: new Date(Date.now() - day).toISOString(), to: new Date().toISOString() };
    await call('POST', `/webhooks/${endpoint.id}/replays`, window);
  }
};

/** @param bin folder of the programs that `install` returned */
export const fuzz = async (bin: string, { url, key }: Service, plan: Plan): Promise<Report> => {
  const args = [
    ...['--config-file', path.join(import.meta.dirname, 'schemathesis.toml'), 'run', `${url}/openapi.json`],
    ...['--header', `Authorization: Bearer ${key}`, '--seed', String(plan.seed), '--phases', plan.phases.join(',')],
    ...['--max-examples', String(plan.examples), '--checks', 'all'],
  ];
  const env = {
    SCHEMATHESIS_HOOKS: path.join(import.meta.dirname, 'hooks.py'),
    FUZZ_URL: url,
    FUZZ_KEY: key,
    FUZZ_EVERY_NTH: String(plan.everyNth),
    PYTHONDONTWRITEBYTECODE: '1',
  };
  const log = path.join(cache, `run-${plan.seed}.log`);
  const result = await runProgram(path.join(bin, 'st'), args, { cwd: cache, log, env, within: plan.within }).then(
    (output) => ({ output, failure: null }),
    (error: Error) => ({ output: readFileSync(log, 'utf8'), failure: error.message }),
  );
  const [, cases = '0'] = /([\d,]+) generated/.exec(result.output) ?? [];
  return { ...result, cases: Number(cases.replaceAll(',', '')) };
};
