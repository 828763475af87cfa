import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterFile, suite } from '#test/support/suite.ts';

/** What an npm script installs, with the npm of this machine and packages that need no registry. */

const source = path.resolve(import.meta.dirname, '../../../infra/setup/bootstrap.mjs');
const folder = mkdtempSync(path.join(tmpdir(), 'bootstrap-'));
afterFile(() => rmSync(folder, { recursive: true, force: true }));

const put = (file: string, value: unknown): void => {
  mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
  writeFileSync(path.join(folder, file), typeof value === 'string' ? value : JSON.stringify(value));
};
const npm = (...args: readonly string[]) => spawnSync('npm', args, { cwd: folder, encoding: 'utf8' });
const has = (name: string): boolean => existsSync(path.join(folder, 'node_modules', name));

const boot = (...args: readonly string[]) => {
  const { PATH = '', HOME = '' } = process.env;
  const started = [path.join(folder, 'infra/setup/bootstrap.mjs'), ...args];
  const ran = spawnSync(process.execPath, started, { cwd: folder, encoding: 'utf8', env: { PATH, HOME } });
  assert.equal(ran.status, 0, ran.stderr);
  assert.equal(ran.stdout, 'it runs\n');
  return { installs: ran.stderr.includes('Installing') };
};

suite('the start of an npm script', { timeoutMs: 120_000 }, (t) => {
  t.before(() => {
    for (const name of ['runs', 'tests']) put(`${name}/package.json`, { name, version: '1.0.0' });
    put('package.json', {
      name: 'own',
      dependencies: { runs: 'file:./runs' },
      devDependencies: { tests: 'file:./tests' },
    });
    put('script.mjs', `console.log('it runs')`);
    mkdirSync(path.join(folder, 'infra/setup'), { recursive: true });
    copyFileSync(source, path.join(folder, 'infra/setup/bootstrap.mjs'));
    const made = npm('install', '--package-lock-only', '--offline', '--no-audit', '--no-fund');
    assert.equal(made.status, 0, made.stderr);
  });

  t('installs what running needs, and adds the rest for the tests beside what runs', () => {
    assert.ok(boot('--without-dev', 'script.mjs').installs);
    assert.deepEqual([has('runs'), has('tests')], [true, false]);
    assert.ok(!boot('--without-dev', 'script.mjs').installs);
    // A service that runs from there keeps its files.
    put('node_modules/.cache/kept', '');
    const lock = readFileSync(path.join(folder, 'package-lock.json'), 'utf8');
    assert.ok(boot('script.mjs').installs);
    assert.deepEqual([has('runs'), has('tests'), has('.cache/kept')], [true, true, true]);
    assert.equal(readFileSync(path.join(folder, 'package-lock.json'), 'utf8'), lock);
    for (const args of [['script.mjs'], ['--without-dev', 'script.mjs']]) assert.ok(!boot(...args).installs);
  });

  t('a new lock file brings back all where all was there', () => {
    const file = path.join(folder, 'package-lock.json');
    writeFileSync(file, `${readFileSync(file, 'utf8')}\n`);
    assert.ok(boot('--without-dev', 'script.mjs').installs);
    assert.deepEqual([has('runs'), has('tests')], [true, true]);
  });

  t('start, admin, audit and doctor need nothing else', () => {
    const { scripts } = JSON.parse(readFileSync(path.resolve(source, '../../../package.json'), 'utf8')) as {
      readonly scripts: Readonly<Record<string, string>>;
    };
    const light = Object.keys(scripts).filter((name) => scripts[name]?.includes('--without-dev'));
    assert.deepEqual(light.sort(), ['admin', 'audit', 'doctor', 'start']);
  });
});
