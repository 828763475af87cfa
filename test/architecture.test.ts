/**
 * The house rules that a reader of one file cannot see: which way imports point, what lies at the top level, who reads
 * the environment, and that every test file declares its tests in the one way the runner can judge.
 */

import assert from 'node:assert/strict';
import { globSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from '#test/support/suite.ts';

const root = path.resolve(import.meta.dirname, '..');
const { imports } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as {
  imports: Record<string, string>;
};

/** What a zone may import beside itself. `process` is any folder of services with a main.ts of its own. */
const ARROWS: Readonly<Record<string, readonly string[]>> = {
  schemas: [],
  domain: ['schemas'],
  ports: ['schemas'],
  runtime: ['domain', 'schemas', 'ports'],
  workflows: ['runtime', 'domain', 'schemas', 'ports'],
  projections: ['workflows', 'runtime', 'domain', 'schemas', 'ports'],
  process: ['projections', 'workflows', 'runtime', 'domain', 'schemas', 'ports'],
  infra: ['ports', 'schemas', 'platforms'],
};

const TOP_LEVEL = new Set([
  ...['package.json', 'package-lock.json', 'tsconfig.json', 'biome.json', 'Makefile'],
  ...['README.md', 'CONTRIBUTING.md', 'LICENSE'],
  ...['services', 'projections', 'schemas', 'contracts', 'infra', 'test'],
  // Made by running it, and ignored by git.
  ...['node_modules', 'data'],
]);

interface Place {
  readonly zone: string;
  /** Folder of a process, '' elsewhere. */
  readonly process: string;
}

function placeOf(file: string): Place {
  const [top = '', second = ''] = file.split('/');
  if (file.startsWith('contracts/ports/')) return { zone: file.endsWith('.suite.ts') ? 'test' : 'ports', process: '' };
  if (file.startsWith('services/domain/platforms/')) return { zone: 'platforms', process: '' };
  if (top !== 'services') return { zone: top, process: '' };
  if (second === 'domain' || second === 'runtime' || second === 'workflows') return { zone: second, process: '' };
  return { zone: 'process', process: second };
}

function allowed(from: string, to: string): boolean {
  const here = placeOf(from);
  const there = placeOf(to);
  if (here.zone === 'test') return true;
  const zone = here.zone === 'platforms' ? 'domain' : here.zone;
  if (there.zone === 'infra' && path.basename(from) === 'main.ts') return true;
  if (there.zone === 'process') {
    return here.zone === 'process' && (here.process === there.process || here.process === 'standalone');
  }
  if (there.zone === zone || ARROWS[zone]?.includes(there.zone)) return true;
  return there.zone === 'platforms' && (zone === 'domain' || ARROWS[zone]?.includes('domain') === true);
}

/** Every file of ours that a file imports, by its path from the root. Type imports count: they couple as well. */
function importsOf(file: string): string[] {
  const text = readFileSync(path.join(root, file), 'utf8').replaceAll(/\/\*[\s\S]*?\*\//g, '');
  const found = text.matchAll(
    /^\s*(?:import|export)\b[^'"`;]*?\bfrom\s*['"]([^'"]+)['"]|\bimport\s*\(?\s*['"]([^'"]+)['"]/gm,
  );
  return [...found].flatMap(([, named, bare]) => {
    const target = named ?? bare ?? '';
    if (target.startsWith('.')) return [path.posix.join(path.posix.dirname(file), target)];
    const alias = Object.keys(imports).find((key) => target.startsWith(key.slice(0, -1)) && target.startsWith('#'));
    if (alias === undefined) return [];
    const folder = imports[alias]?.slice('./'.length, -1) ?? '';
    return [path.posix.join(folder, target.slice(alias.length - 1))];
  });
}

const sources = globSync('{schemas,contracts,services,projections,infra,test}/**/*.ts', { cwd: root }).map((file) =>
  file.replaceAll(path.sep, '/'),
);
const edges = sources.flatMap((from) => importsOf(from).map((to) => ({ from, to })));

suite('architecture', (t) => {
  t('imports point the way the architecture says', () => {
    assert.ok(edges.length > 100, `only ${edges.length} imports were found: the reader of imports is broken`);
    const wrong = edges.filter(({ from, to }) => !allowed(from, to)).map(({ from, to }) => `${from} → ${to}`);
    assert.deepEqual(wrong, []);
  });

  t('the rule itself tells right from wrong', () => {
    const cases: [from: string, to: string, right: boolean][] = [
      ['services/domain/post.ts', 'schemas/post.ts', true],
      ['services/domain/post.ts', 'services/domain/platforms/x/index.ts', true],
      ['services/domain/platforms/x/index.ts', 'services/runtime/eventing/execute.ts', false],
      ['services/domain/post.ts', 'contracts/ports/event-store.ts', false],
      ['schemas/post.ts', 'services/domain/post.ts', false],
      ['services/runtime/eventing/execute.ts', 'infra/memory/event-store.ts', false],
      ['services/workflows/fan-out.ts', 'services/runtime/eventing/execute.ts', true],
      ['services/workflows/fan-out.ts', 'projections/posts.ts', false],
      ['services/runtime/eventing/execute.ts', 'services/workflows/fan-out.ts', false],
      ['services/api/app.ts', 'services/workflows/fan-out.ts', true],
      ['services/api/app.ts', 'projections/posts.ts', true],
      ['services/api/app.ts', 'services/publisher/due.ts', false],
      ['services/standalone/tour.ts', 'services/api/app.ts', true],
      ['services/api/app.ts', 'infra/postgres/pool.ts', false],
      ['services/api/main.ts', 'infra/postgres/pool.ts', true],
      ['projections/posts.ts', 'services/api/app.ts', false],
      ['infra/platforms/sandbox.ts', 'services/domain/platforms/x/index.ts', true],
      ['infra/platforms/sandbox.ts', 'services/domain/post.ts', false],
      ['infra/kafka/log.ts', 'services/runtime/process/config.ts', false],
    ];
    for (const [from, to, right] of cases) assert.equal(allowed(from, to), right, `${from} → ${to}`);
  });

  t('imports name files that are there, with their suffix', () => {
    const files = new Set(sources);
    const lost = edges.filter(({ to }) => !files.has(to) && !to.endsWith('.json'));
    assert.deepEqual(
      lost.map(({ from, to }) => `${from} → ${to}`),
      [],
    );
  });

  t('nothing else lies at the top level', () => {
    const others = readdirSync(root).filter((entry) => !entry.startsWith('.') && !TOP_LEVEL.has(entry));
    assert.deepEqual(others, []);
  });

  t('the environment is read in one place', () => {
    const readers = sources.filter(
      (file) =>
        !/^(test\/|infra\/setup\/|contracts\/ports\/.*\.suite\.ts$)/.test(file) &&
        /\bprocess\.env\b|\bprocess\[/.test(readFileSync(path.join(root, file), 'utf8')),
    );
    assert.deepEqual(readers, ['services/runtime/process/config.ts']);
  });

  t('every test file declares its tests through the suite helper', () => {
    const strangers = sources.filter(
      (file) =>
        file.endsWith('.test.ts') &&
        !file.startsWith('test/support/fixtures/') &&
        !importsOf(file).includes('test/support/suite.ts'),
    );
    assert.deepEqual(strangers, []);
    const direct = sources.filter((file) => /^import .* from 'uvu'/m.test(readFileSync(path.join(root, file), 'utf8')));
    assert.deepEqual(direct, []);
    const misplaced = sources.filter((file) => file.endsWith('.test.ts') && !file.startsWith('test/'));
    assert.deepEqual(misplaced, []);
  });
});
