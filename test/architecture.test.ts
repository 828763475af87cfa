/**
 * The house rules that a reader of one file cannot see: which way imports point, what lies at the top level, who reads
 * the environment, and that every test file declares its tests in the one way the runner can judge.
 */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { projections } from '#projections/index.ts';
import { eventCatalogue } from '#schemas/events.ts';
import { eventTypes } from '#schemas/http/webhook-events.ts';
import { markerOf, mutantNames, mutants, mutate } from '#test/faults/mutants.ts';
import { suite } from '#test/support/suite.ts';
import { faultsOf, faultsOfKit, kitCode, kitNetworks, strays } from './architecture/boundaries.ts';
import { circlesOf } from './architecture/circles.ts';
import { crumbs } from './architecture/crumbs.ts';
import { plannedEvents, plannedPublicTypes } from './architecture/planned.ts';
import { codeOf, edges, importsOf, production, root, sources, textOf } from './architecture/sources.ts';
import { ambiguousTypes } from './architecture/type-names.ts';
import { appendedEvents, mintedTypes } from './architecture/used-events.ts';

/** What a zone may import beside itself. `process` is any folder of services with a main.ts of its own. */
const ARROWS: Readonly<Record<string, readonly string[]>> = {
  schemas: [],
  domain: ['schemas'],
  base: [],
  ports: ['schemas'],
  runtime: ['domain', 'schemas', 'ports', 'base'],
  workflows: ['runtime', 'domain', 'schemas', 'ports', 'base'],
  projections: ['workflows', 'runtime', 'domain', 'schemas', 'ports', 'base'],
  process: ['projections', 'workflows', 'runtime', 'domain', 'schemas', 'ports', 'base'],
  infra: ['ports', 'base', 'schemas', 'platforms'],
};

const TOP_LEVEL = new Set([
  ...['package.json', 'package-lock.json', 'tsconfig.json', 'biome.json', 'Makefile'],
  ...['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'UPGRADE.md', 'LICENSE'],
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
  if (file.startsWith('contracts/base/')) return { zone: 'base', process: '' };
  if (file.startsWith('services/domain/platforms/')) return { zone: 'platforms', process: '' };
  if (top !== 'services') return { zone: top, process: '' };
  if (second === 'domain' || second === 'runtime' || second === 'workflows') return { zone: second, process: '' };
  return { zone: 'process', process: second };
}

/** What the api's server serves beside the api; `console` and `mcp` call its operations, and only `front` names them all. */
const PARTS: Readonly<Record<string, readonly string[]>> = {
  shell: [],
  auth: ['shell'],
  api: ['auth', 'shell'],
  admin: ['auth'],
  mcp: ['api', 'auth'],
  pages: ['api', 'auth', 'shell'],
  console: ['api', 'auth', 'pages', 'shell'],
  front: ['api', 'auth', 'mcp', 'pages', 'console'],
};

function allowed(from: string, to: string): boolean {
  const here = placeOf(from);
  const there = placeOf(to);
  if (here.zone === 'test') return true;
  // The version that runs is written once.
  if (to === 'package.json') return from === 'services/runtime/process/telemetry.ts';
  const zone = here.zone === 'platforms' ? 'domain' : here.zone;
  if (there.zone === 'infra' && path.basename(from) === 'main.ts') return true;
  if (there.zone === 'process') {
    if (here.zone !== 'process') return false;
    if (here.process === there.process || here.process === 'standalone') return true;
    if (from === 'services/api/main.ts' && there.process === 'front') return true;
    return PARTS[here.process]?.includes(there.process) === true;
  }
  if (there.zone === zone || ARROWS[zone]?.includes(there.zone)) return true;
  return there.zone === 'platforms' && (zone === 'domain' || ARROWS[zone]?.includes('domain') === true);
}

/** Fails for what is wrong and not excepted, and for an exception that is no longer wrong: a list may only shrink. */
const only = (wrong: readonly string[], excepted: readonly string[]): void => {
  const fresh = wrong.filter((one) => !excepted.includes(one));
  const mended = excepted.filter((one) => !wrong.includes(one));
  assert.deepEqual(fresh, [], 'new: mend it, the list of exceptions may only shrink');
  assert.deepEqual(mended, [], 'no longer wrong: remove it from the list');
};

const LONG: readonly string[] = [];
const maxLines = 600;
const minLines = 40;

suite('architecture', (t) => {
  t('one place tells the conflict of an append from other errors', () => {
    const comparing = production.filter((file) => /[!=]== 'wrong_expected_revision'/.test(codeOf(file)));
    assert.deepEqual(comparing, ['contracts/ports/event-store.ts']);
  });

  t('one place makes the guard of outgoing calls, so that each refuses the hosts of this installation', () => {
    const makers = production.filter((file) => codeOf(file).includes('new EgressGuard('));
    assert.deepEqual(makers, ['services/runtime/egress/own-hosts.ts']);
  });

  t('the first event of a stream is asked for its workspace alone: how a thing was created says birthOf', () => {
    const taking = /\bevents\[0\](?!\?\.metadata\.workspaceId)|\bconst \[\w+\] = [^;\n]*\b(events;|readStream\()/;
    const readers = production.filter((file) => taking.test(codeOf(file)));
    // The first event of what the store answered and of a batch, whatever its stream.
    assert.deepEqual(readers, ['infra/eventstoredb/event-store.ts', 'projections/webhooks/subjects.ts']);
    for (const wrong of [
      'events[0]?.data',
      'const [a] = loaded.events;',
      'const [a] = (await s.load(p, id)).events;',
    ]) {
      assert.match(wrong, taking);
    }
    assert.doesNotMatch('events[0]?.metadata.workspaceId', taking);
  });

  t('imports point the way the architecture says', () => {
    assert.ok(edges.length > 100, `only ${edges.length} imports were found: the reader of imports is broken`);
    const wrong = edges.filter(({ from, to }) => !allowed(from, to)).map(({ from, to }) => `${from} → ${to}`);
    assert.deepEqual(wrong, []);
  });

  t('the rule for imports accepts right and refuses wrong examples', () => {
    const cases: [from: string, to: string, right: boolean][] = [
      ['services/domain/post/post.ts', 'schemas/post.ts', true],
      ['services/domain/post/post.ts', 'services/domain/platforms/networks/x.ts', true],
      ['services/domain/platforms/networks/x.ts', 'services/runtime/eventing/execute.ts', false],
      ['services/domain/post/post.ts', 'contracts/ports/event-store.ts', false],
      ['services/domain/post/post.ts', 'contracts/base/pause.ts', false],
      ['services/runtime/eventing/execute.ts', 'contracts/base/pause.ts', true],
      ['services/api/app.ts', 'contracts/base/pause.ts', true],
      ['infra/kafka/log.ts', 'contracts/base/pause.ts', true],
      ['contracts/ports/event-store.ts', 'contracts/base/pause.ts', false],
      ['contracts/base/pause.ts', 'contracts/ports/event-store.ts', false],
      ['contracts/base/pause.ts', 'schemas/post.ts', false],
      ['schemas/post.ts', 'services/domain/post/post.ts', false],
      ['services/runtime/eventing/execute.ts', 'infra/postgres/event-store.ts', false],
      ['services/runtime/process/telemetry.ts', 'package.json', true],
      ['services/api/app.ts', 'package.json', false],
      ['services/workflows/fan-out.ts', 'services/runtime/eventing/execute.ts', true],
      ['services/workflows/fan-out.ts', 'projections/models/posts.ts', false],
      ['services/runtime/eventing/execute.ts', 'services/workflows/fan-out.ts', false],
      ['services/api/app.ts', 'services/workflows/fan-out.ts', true],
      ['services/api/app.ts', 'projections/models/posts.ts', true],
      ['services/api/app.ts', 'services/publisher/due-search.ts', false],
      ['services/standalone/tour.ts', 'services/api/app.ts', true],
      ['services/api/app.ts', 'services/auth/tokens.ts', true],
      ['services/auth/tokens.ts', 'services/api/app.ts', false],
      ['services/console/pages.ts', 'services/api/call/operation.ts', true],
      ['services/api/app.ts', 'services/console/pages.ts', false],
      ['services/api/main.ts', 'services/front/parts.ts', true],
      ['services/api/app.ts', 'services/front/parts.ts', false],
      ['services/front/parts.ts', 'services/console/part.ts', true],
      ['services/publisher/main.ts', 'services/auth/tokens.ts', false],
      ['services/api/app.ts', 'infra/postgres/pool.ts', false],
      ['services/api/main.ts', 'infra/postgres/pool.ts', true],
      ['projections/models/posts.ts', 'services/api/app.ts', false],
      ['infra/platforms/sandbox.ts', 'services/domain/platforms/networks/x.ts', true],
      ['infra/platforms/sandbox.ts', 'services/domain/post/post.ts', false],
      ['infra/kafka/log.ts', 'services/runtime/process/config.ts', false],
    ];
    for (const [from, to, right] of cases) assert.equal(allowed(from, to), right, `${from} → ${to}`);
  });

  t('a call knows no HTTP: its wires are elsewhere', () => {
    const within = production.filter((file) => file.startsWith('services/api/call/'));
    assert.ok(within.includes('services/api/call/call.ts'));
    const wrong = within.filter((file) =>
      /from '(@koa\/|koa\b|node:http|\.\.\/http\/|#services\/api\/http\/)/.test(codeOf(file)),
    );
    assert.deepEqual(wrong, []);
  });

  t('imports name existing files with their suffix', () => {
    const files = new Set(sources);
    const lost = edges.filter(({ to }) => !files.has(to) && !to.endsWith('.json'));
    assert.deepEqual(
      lost.map(({ from, to }) => `${from} → ${to}`),
      [],
    );
  });

  t('what runs imports no package that is installed for the tests alone', () => {
    const { devDependencies } = JSON.parse(textOf('package.json')) as {
      devDependencies: Readonly<Record<string, string>>;
    };
    const bare =
      /(?:^import (?!type\b)[^'"]*?from |^import |^export [^'"]*?from |\bimport\()'([^'.#/@][^'/]*|@[^'/]+\/[^'/]+)/gm;
    const packagesOf = (file: string): readonly string[] =>
      [...codeOf(file).matchAll(bare)].map(([, name = '']) => name);
    const running = production.filter((file) => !file.startsWith('contracts/sdk/'));
    assert.ok(running.flatMap(packagesOf).includes('koa'), 'the reader of imports is broken');
    const wrong = running.flatMap((file) =>
      packagesOf(file)
        .filter((name) => devDependencies[name] !== undefined)
        .map((name) => `${file}: ${name}`),
    );
    assert.deepEqual(wrong, []);
  });

  t('the top level has no other files', () => {
    const others = readdirSync(root).filter((entry) => !entry.startsWith('.') && !TOP_LEVEL.has(entry));
    assert.deepEqual(others, []);
  });

  t('the environment is read in one place', () => {
    const readers = sources.filter(
      (file) =>
        !/^(test\/|infra\/setup\/|contracts\/sdk\/|contracts\/ports\/.*\.suite\.ts$)/.test(file) &&
        /\bprocess\.env\b|\bprocess\[/.test(textOf(file)),
    );
    assert.deepEqual(readers, ['services/runtime/process/config.ts']);
  });

  t('every test file declares its tests through the suite helper', () => {
    const strangers = sources.filter(
      (file) =>
        file.endsWith('.test.ts') &&
        !file.startsWith('test/support/fixtures/') &&
        !importsOf(file).some(({ to }) => to === 'test/support/suite.ts'),
    );
    assert.deepEqual(strangers, []);
    const direct = sources.filter((file) => /^import .* from 'uvu'/m.test(textOf(file)));
    assert.deepEqual(direct, []);
    const misplaced = sources.filter((file) => file.endsWith('.test.ts') && !file.startsWith('test/'));
    assert.deepEqual(misplaced, []);
  });

  t('a network of the kit makes something visible in one place behind the boundary, and the kit nowhere', () => {
    assert.ok(kitNetworks.has('x') && kitCode.size > 5, 'the reader of networks is broken');
    const wrong = [...kitNetworks].flatMap(([name, code]) => faultsOf(code).map((fault) => `${name}: ${fault}`));
    assert.deepEqual([...wrong, ...faultsOfKit(kitCode), ...strays()], []);
  });

  t('the rule of the boundary refuses every other place', () => {
    const lines = {
      cross: 'const signal = await steps.boundary({ at });',
      check: "if (signal.aborted) return { kind: 'unknown' };",
      call: 'const answer = await client.once(open, subject, ask, signal);',
    };
    const cross = (...body: readonly string[]) =>
      ['const cross = async () => {', ...body.map((line) => `  ${line}`), '};', ''].join('\n');
    const right = cross(lines.cross, lines.check, lines.call);
    const others = (code: string, file = 'publish.ts') => {
      const publish = file === 'publish.ts' ? `${right}${code}` : right;
      return faultsOf(
        new Map([...Object.entries({ 'publish.ts': publish }), ...(publish === right ? [[file, code]] : [])] as [
          string,
          string,
        ][]),
      );
    };
    const alone = (code: string) => faultsOf(new Map([['publish.ts', code]]));
    const send = 'client.once(open, subject, ask, signal);';
    for (const good of [
      alone(right),
      alone(cross(lines.cross, lines.check, `return ${send}`)),
      others(`export const comment =\n  (bound) =>\n  async () => {\n    const made = await ${send}\n  };\n`),
      others(`const afterCover = async () => {\n  await ${send}\n};\n`, 'media.ts'),
      alone(
        `const afterCover = async () => {\n  await ${send}\n};\n${cross(lines.cross, lines.call, 'await afterCover();')}`,
      ),
      strays(['infra/platforms/live.ts', 'infra/platforms/kit/figures.ts', 'infra/platforms/y/media.ts'], () => true),
    ]) {
      assert.deepEqual(good, []);
    }
    for (const [what, faults] of Object.entries({
      'an await between': alone(cross(lines.cross, 'await sign();', lines.call)),
      'a call between': alone(cross(lines.cross, 'client.call(subject, ask, signal);', lines.call)),
      'a loop around the call': alone(cross(lines.cross, 'for (const one of all) {', lines.call, '}')),
      'a call that waits for another': alone(
        cross(lines.cross, `const answer = await sign().then(() => ${send.slice(0, -1)});`),
      ),
      'two calls': alone(cross(lines.cross, lines.check, lines.call, lines.call)),
      'two boundaries': alone(right + cross(lines.cross, lines.call).replace('cross', 'handOver')),
      'no call': alone(cross(lines.cross)),
      'no boundary': alone(cross(lines.call)),
      'a call elsewhere': others(`const upload = async () => {\n  await ${send}\n};\n`, 'media.ts'),
      'a second call in publish.ts': others(`const again = async () => {\n  await ${send}\n};\n`),
      'a boundary elsewhere': others('const upload = async () => {\n  await steps.boundary({});\n};\n', 'media.ts'),
      'once under another name': others('const { once } = client;\n', 'media.ts'),
      'the boundary under another name': others('const { boundary } = steps;\n', 'media.ts'),
      'a boundary in a loop': alone(cross('for (const one of all) {', `  ${lines.cross}`, `  ${lines.call}`, '}')),
      'a boundary in a callback': alone(
        cross('await all.map(async (one) => {', `  ${lines.cross}`, `  ${lines.call}`, '});'),
      ),
      'a boundary in a function within': alone(
        cross('const again = async () => {', `  ${lines.cross}`, `  ${lines.call}`, '};'),
      ),
      'a boundary of parameters': others(
        'const up = async ({ signal, boundary }) => {\n  await boundary({});\n};\n',
        'media.ts',
      ),
      'a boundary by its name': others("const up = async () => {\n  await steps['boundary']({});\n};\n", 'media.ts'),
      'once by its name': others("const up = async () => {\n  await client['once'](open);\n};\n", 'media.ts'),
      'once by a bound name': others('const up = client.once.bind(client);\n', 'media.ts'),
      'once in escapes': others('const up = async () => {\n  await client.on\\u0063e(open);\n};\n', 'media.ts'),
      'once by let behind a comment': others(
        `const comment = async () => {\n};\nlet up = async () => {\n  await ${send}\n};\n`,
      ),
      'once in a class behind a comment': others(
        `const comment = async () => {\n};\nexport abstract class Up {\n  async up() {\n    await ${send}\n  }\n}\n`,
      ),
      'once in no function': others(`const comment = async () => {\n};\nawait ${send}\n`),
      'once in a taken name': others(`const comment = async () => {\n};\nconst { up } = {\n  up: () => ${send}\n};\n`),
      'once in a name with a dollar': others(`const comment = async () => {\n};\nconst $up = () => {\n  ${send}\n};\n`),
      'a step after the post before it': alone(
        `const afterCover = async () => {\n  await ${send}\n};\n${cross('await afterCover();', lines.cross, lines.call)}`,
      ),
      'a step after the post from elsewhere': others(
        `const afterCover = async () => {\n  await ${send}\n};\nconst up = async () => {\n  await afterCover();\n};\n`,
        'media.ts',
      ),
      'a call past the client': others(
        'const up = async ({ http }) => {\n  await http.send(call, signal);\n};\n',
        'media.ts',
      ),
      'a call past the client by its name': others('const { send } = bound.http;\n', 'media.ts'),
      'a call past everything': others('const up = async () => {\n  await fetch(url);\n};\n', 'media.ts'),
      'a helper beside the networks': strays(['infra/platforms/shared/helper.ts'], () => true),
      'a helper in another house': strays(['services/publisher/helper.ts'], () => true),
      'no publish.ts': faultsOf(new Map([['index.ts', right]])),
      'the kit': faultsOfKit(new Map([['upload.ts', send]])),
    })) {
      assert.notDeepEqual(faults, [], what);
    }
  });

  t('imports form no circle', () => {
    assert.deepEqual(
      circlesOf(edges).map((circle) => circle.join(' ↔ ')),
      [],
    );
  });

  t('the search for circles finds a circle', () => {
    const graph = (text: string) => text.split(' ').map((edge) => ({ from: edge.charAt(0), to: edge.charAt(1) }));
    assert.deepEqual(circlesOf(graph('ab bc cd')), []);
    assert.deepEqual(circlesOf(graph('ab ba bc')), [['a', 'b']]);
    assert.deepEqual(circlesOf(graph('ab bc ca cd de ed xa')), [
      ['a', 'b', 'c'],
      ['d', 'e'],
    ]);
  });

  t('read models are read through the functions in projections/ alone', () => {
    const names = projections.flatMap(({ models }) => models.map(({ name }) => name));
    const sql = new RegExp(String.raw`\bread\.(?:${names.join('|')})\b`);
    const outside = production.filter((file) => !file.startsWith('projections/') && sql.test(codeOf(file)));
    assert.deepEqual(outside, []);
  });

  t('a type that others import has a name of its own', () => {
    assert.deepEqual(ambiguousTypes(), []);
  });

  t('every event is appended by a decider or listed as planned', () => {
    const appended = appendedEvents();
    const types = Object.values(eventCatalogue).flatMap((events) => Object.keys(events));
    assert.ok(appended.size > 50, `only ${appended.size} appended events were found: the scan of deciders is broken`);
    only(
      types.filter((type) => !appended.has(type)),
      plannedEvents,
    );
  });

  t('every public webhook type is minted from an event or listed as planned', () => {
    const minted = mintedTypes();
    only(
      eventTypes.filter((type) => !minted.has(type)),
      plannedPublicTypes,
    );
  });

  t(`no file is longer than ${maxLines} lines`, () => {
    const long = production.filter((file) => textOf(file).split('\n').length - 1 > maxLines);
    only(long, LONG);
  });

  t(`no file under ${minLines} lines has a single importer`, () => {
    const importers = new Map<string, number>();
    for (const { from, to } of edges) if (production.includes(from)) importers.set(to, (importers.get(to) ?? 0) + 1);
    const small = production.filter((file) => textOf(file).split('\n').length - 1 < minLines);
    only(
      small.filter((file) => importers.get(file) === 1),
      crumbs,
    );
  });

  t('a function that Biome lets be longer than its rule is still longer', () => {
    const { overrides } = JSON.parse(textOf('biome.json')) as { overrides: readonly { includes: readonly string[] }[] };
    const excepted = overrides.flatMap(({ includes }) => includes).filter((file) => production.includes(file));
    const folder = mkdtempSync(path.join(tmpdir(), 'postline-biome-'));
    // The same rule without exceptions.
    const rules = JSON.parse(textOf('biome.json')).linter.rules.complexity as object;
    writeFileSync(path.join(folder, 'biome.json'), JSON.stringify({ linter: { rules: { complexity: rules } } }));
    const biome = path.join(root, 'node_modules/@biomejs/biome/bin/biome');
    const args = [
      'lint',
      '--only=complexity/noExcessiveLinesPerFunction',
      `--config-path=${folder}`,
      '--reporter=json',
    ];
    const { stdout } = spawnSync(process.execPath, [biome, ...args, ...excepted, 'services/domain/zones.ts'], {
      cwd: root,
      encoding: 'utf8',
    });
    rmSync(folder, { recursive: true });
    const found = JSON.parse(stdout) as { diagnostics: readonly { location: { path: string } }[] };
    const long = new Set(found.diagnostics.map(({ location }) => location.path));
    assert.deepEqual([...long].sort(), [...excepted].sort(), 'no longer long: remove it from the list in biome.json');
  });

  t('every broken build finds its statement, and every marker has its broken build', () => {
    const markers = production.flatMap((file) =>
      [...textOf(file).matchAll(/\/\/ mutant\b.*/g)].map(([marker]) => `${file} ${marker}`),
    );
    assert.deepEqual(markers.sort(), mutantNames.map((name) => `${mutants[name].file} ${markerOf(name)}`).sort());
    for (const name of mutantNames) {
      const broken = mutate(textOf(mutants[name].file), name, mutants[name].to);
      assert.doesNotThrow(() => stripTypeScriptTypes(broken), `the broken build "${name}" is no TypeScript`);
    }
  });

  t('a broken build replaces the whole statement below its marker and nothing else', () => {
    const of = (...lines: readonly string[]) => mutate(lines.join('\n'), 'x', '  b();').split('\n');
    assert.deepEqual(of('{', '  // mutant: x', '  a();', '  c();', '}'), ['{', '  b();', '  c();', '}']);
    assert.deepEqual(of('{', '  // mutant: x', '  a(() => {', '    d();', '  });', '}'), ['{', '  b();', '}']);
    assert.deepEqual(of('  // mutant: x', '  if (e) {', '    d();', '  } else {', '    f();', '  }', '  c();'), [
      ...['  b();', '  c();'],
    ]);
    assert.throws(() => of('  a();'), /stands 0 times/);
    assert.throws(() => of('  // mutant: x', '  a();', '  // mutant: x', '  a();'), /stands 2 times/);
    assert.throws(() => of('  // mutant: x', '  a('), /has no end/);
  });
});
