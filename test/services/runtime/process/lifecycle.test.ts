import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { configHelp } from '#runtime/process/config.ts';
import { everyProcess } from '#runtime/process/settings/reads.ts';
import { patience } from '#test/support/patience.ts';
import { suite } from '#test/support/suite.ts';

const main = path.join(import.meta.dirname, '../../../fixtures/process.ts');

interface Line {
  readonly msg: string;
  readonly opsPort?: number;
}

suite('lifecycle', (t) => {
  const running = new Set<ChildProcess>();
  t.after(() => {
    for (const child of running) child.kill('SIGKILL');
  });

  const start = (env: Readonly<Record<string, string>> = {}, ...args: string[]) => started([main, ...args], env);
  const started = (args: readonly string[], env: Readonly<Record<string, string>> = {}) => {
    const child = spawn(process.execPath, args, {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    running.add(child);
    let out = '';
    let errors = '';
    child.stdout?.on('data', (text) => {
      out += text;
    });
    child.stderr?.on('data', (text) => {
      errors += text;
    });
    const ended = once(child, 'close').then(([code, signal]: unknown[]) => {
      running.delete(child);
      return { code, signal, out, errors };
    });
    const lines = (): Line[] =>
      out
        .split('\n')
        .filter((line) => line.startsWith('{'))
        .map((line) => JSON.parse(line));
    const said = async (msg: string): Promise<Line> => {
      for (const until = performance.now() + 20_000 * patience; performance.now() < until; await delay(10)) {
        const line = lines().find((one) => one.msg === msg);
        if (line !== undefined) return line;
        if (child.exitCode !== null) break;
      }
      throw new Error(`never said "${msg}": ${out}${errors}`);
    };
    return { child, ended, said, lines };
  };

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    t(`one ${signal} drains: begun work is finished, then everything is closed, last opened first`, async () => {
      const { child, ended, said, lines } = start();
      await said('ready');
      child.kill(signal);
      const { code } = await ended;
      equal(code, 0);
      const after = lines().map(({ msg }) => msg);
      deepEqual(after.slice(after.indexOf('draining')), [
        'draining',
        'emptying',
        'emptied',
        'closed last',
        'closed first',
        'stopped',
      ]);
    });
  }

  const bootstrap = path.join(import.meta.dirname, '../../../../infra/setup/bootstrap.mjs');
  const chains: Readonly<Record<string, readonly string[]>> = {
    'bootstrap.mjs': [bootstrap, main],
    // As npm starts it where the shell does not give way to the script.
    'npm, with a shell in between,': [
      '-e',
      `require('node:child_process').spawn('sh', ['-c', '"$0" "$1" "$2"; true', ...process.argv.slice(1)], { stdio: 'inherit' })`,
      process.execPath,
      bootstrap,
      main,
    ],
  };
  for (const [name, args] of Object.entries(chains)) {
    t(`kill -9 of ${name} drains the processes that it started`, async () => {
      const { child, ended, said, lines } = started([...args], { npm_lifecycle_event: 'start' });
      await said('ready');
      child.kill('SIGKILL');
      // Its output ends with the last of them.
      equal((await ended).signal, 'SIGKILL');
      const after = lines().map(({ msg }) => msg);
      deepEqual(after.slice(after.indexOf('emptying')), [
        'emptying',
        'emptied',
        'closed last',
        'closed first',
        'stopped',
      ]);
    });
  }

  t('the same signal again within a second is ignored', async () => {
    const { child, ended, said, lines } = start();
    await said('ready');
    child.kill('SIGINT');
    child.kill('SIGINT');
    child.kill('SIGTERM');
    equal((await ended).code, 0);
    equal(lines().filter(({ msg }) => msg === 'draining').length, 1);
  });

  t('a second signal, later, ends it at once', async () => {
    const { child, ended, said } = start({ WORK: 'hang' });
    await said('ready');
    child.kill('SIGTERM');
    await said('emptying');
    const deadline = performance.now() + 10_000 * patience;
    while (child.exitCode === null && performance.now() < deadline) {
      await delay(200);
      child.kill('SIGTERM');
    }
    equal((await ended).code, 130);
  });

  t('an error ends it with 1, after everything that was opened is closed', async () => {
    const { code, out } = await start({ WORK: 'fail' }).ended;
    equal(code, 1);
    match(out, /stopped by an error.*cannot start|cannot start.*stopped by an error/);
    ok(out.indexOf('closed last') < out.indexOf('closed first'));
    match(out, /"stopped"/);
  });

  t('a part that fails to close does not keep the others open', async () => {
    const { child, ended, said } = start({ WORK: 'close-fails' });
    await said('ready');
    child.kill('SIGTERM');
    const { out } = await ended;
    match(out, /closing failed/);
    match(out, /closed first/);
    match(out, /"stopped"/);
  });

  t('an invalid variable is named and ends it with code 2 before anything is opened', async () => {
    const { code, out, errors } = await start({ LEASE_TTL_MS: 'long' }).ended;
    equal(code, 2);
    equal(out, '');
    match(errors, /^fixture: LEASE_TTL_MS must be .*\nSee --help/);
  });

  t('all missing required variables are named before anything is opened', async () => {
    const { code, out, errors } = await start({ WORK: 'needs', DATABASE_URL: '', KAFKA_BROKERS: '' }).ended;
    equal(code, 2);
    equal(out, '');
    match(errors, /^fixture: DATABASE_URL is required: .*\nKAFKA_BROKERS is required: .*\nSee --help/);
  });

  t('--help describes the process and lists the variables that it reads', async () => {
    const { code, out } = await start({ LEASE_TTL_MS: 'long' }, '--help').ended;
    equal(code, 0);
    match(out, /^fixture: waits for its signal\n/);
    const own = ['databaseUrl', 'kafkaBrokers', 'leaseTtlMs'] as const;
    ok(out.includes(configHelp([...everyProcess, ...own])));
    const named = [...out.matchAll(/^ {2}([A-Z][A-Z0-9_]*)/gm)].map(([, name]) => name);
    equal(named.length, everyProcess.length + own.length);
  });

  t('an occupied operators’ port ends it with code 2 and a message that names the variable', async () => {
    const { child, ended, said } = start();
    const { opsPort } = await said('serving /livez, /readyz and /metrics');
    const second = await start({ OPS_PORT: String(opsPort) }).ended;
    equal(second.code, 2);
    match(second.errors, new RegExp(`Port ${opsPort} of 127.0.0.1 is in use by another program: .* with OPS_PORT`));
    child.kill('SIGTERM');
    await ended;
  });

  t('is not ready until it reports ready', async () => {
    const { child, ended, said } = start({ WORK: 'slow start' });
    const { opsPort } = await said('serving /livez, /readyz and /metrics');
    const ask = async () => fetch(`http://127.0.0.1:${opsPort}/readyz`, { headers: { connection: 'close' } });
    const early = await ask();
    equal(early.status, 503);
    match(await early.text(), /still starting/);
    child.send('go on');
    await said('ready');
    equal((await ask()).status, 200);
    child.kill('SIGTERM');
    equal((await ended).code, 0);
  });

  t('serves /readyz on OPS_PORT', async () => {
    const { child, ended, said } = start();
    const { opsPort } = await said('serving /livez, /readyz and /metrics');
    await said('ready');
    const ready = await fetch(`http://127.0.0.1:${opsPort}/readyz`);
    const checks = [{ name: 'work', ok: true, detail: 'wait' }];
    deepEqual(await ready.json(), { status: 'ready', version: '1.0.0', checks });
    const metrics = await (await fetch(`http://127.0.0.1:${opsPort}/metrics`)).text();
    match(metrics, /^postline_build_info\{version="1\.0\.0",commit="unknown",thread="fixture"\} 1$/m);
    // A connection kept alive does not keep the process alive.
    child.kill('SIGTERM');
    equal((await ended).code, 0);
  });
});
