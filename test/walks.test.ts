import assert from 'node:assert/strict';
import { existsSync, globSync } from 'node:fs';
import path from 'node:path';
import { commands } from '#services/admin/commands.ts';
import { operations } from '#services/api/operations.ts';
import { curlCall } from '#test/support/shell-words.ts';
import { suite } from '#test/support/suite.ts';
import { codeOf, edges, reachedFrom, root, textOf } from './architecture/sources.ts';

/** The walks of CONTRIBUTING and the calls of the papers: each step is as the tree has it, and what they tell to type exists. */

const section = textOf('CONTRIBUTING.md').split('## One command through the files')[1]?.split('\n## ')[0] ?? '';
const steps = new Map(
  [...section.matchAll(/^(\d+)\. ([\s\S]*?)(?=^\d+\. |$(?![\s\S]))/gm)].map(([, step, text = '']) => [
    Number(step),
    text.replaceAll(/\s+/g, ' '),
  ]),
);

/** Folders of the api that the steps name without their parents. */
const ofApi = /^(?:call|callers|http|posts)\//;

/** Files and folders that a step names; a bare file name stands beside the file before it. */
const placesOf = (step: number): readonly string[] => {
  const named = [...(steps.get(step) ?? '').matchAll(/`([\w./-]+(?:\.ts|\/))`/g)].map(([, place = '']) => place);
  return named.map((place, at) => {
    if (ofApi.test(place)) return `services/api/${place}`;
    return place.includes('/') ? place : path.posix.join(path.posix.dirname(named[at - 1] ?? ''), place);
  });
};

const reaches = (from: string, place: string): boolean =>
  [...reachedFrom(from)].some((file) => file === place || (place.endsWith('/') && file.startsWith(place)));
const imports = (from: string, to: string): boolean => edges.some((edge) => edge.from === from && edge.to === to);
/** Statements that a file sends to Postgres. */
const queriesOf = (file: string): number => codeOf(file).split(/\.query\(/).length - 1;

/** The words before the first argument or option. */
const verbsOf = (words: string): readonly string[] =>
  /^[a-z]+(?:[ -][a-z]+)*(?=$|[^\w-])/.exec(words)?.[0].split(' ') ?? [];

const operation = 'services/api/posts/create.ts';

/** What each step claims beside the places that it names. */
const claims: Readonly<Record<number, () => void>> = {
  1: () => {
    assert.match(textOf('schemas/http/post.ts'), /export const PostCreate\b/);
    for (const member of ['scope', 'idempotent', 'answer', 'handle'])
      assert.match(textOf(operation), new RegExp(`^  ${member}: `, 'm'));
  },
  2: () => {
    const [server = '', app = '', ...passed] = placesOf(2);
    assert.ok(imports(server, app), `${server} → ${app}`);
    for (const place of passed) assert.ok(imports(app, place), `${app} → ${place}`);
    const uses = [...codeOf(app).matchAll(/app\.use\((\w+)/g)].map(([, name]) => name);
    assert.ok(uses.indexOf('correlation') < uses.indexOf('problems') && uses.includes('problems'), uses.join());
  },
  3: () => {
    const [wire = '', , ...whose] = placesOf(3);
    assert.ok(imports('services/api/app.ts', wire), wire);
    for (const place of whose) assert.ok(reaches('services/api/app.ts', place), place);
    assert.ok(reaches(wire, 'services/api/call/call.ts'), wire);
  },
  4: () => {
    const [call = '', ...steps] = placesOf(4);
    const inside = steps.at(-1) ?? '';
    assert.ok(imports(inside, call), `${inside} → ${call}`);
    for (const place of steps.slice(0, -1)) assert.ok(reaches(call, place), `${call} → ${place}`);
  },
  5: () => {
    const [checks = '', reads = '', gates = '', ...domain] = placesOf(5);
    assert.ok(imports(operation, checks) && reaches(checks, reads) && reaches(checks, gates), checks);
    for (const place of domain) assert.ok(reaches(gates, place), `${gates} → ${place}`);
  },
  6: () => {
    const [commands = '', creating = '', ...rest] = placesOf(6);
    assert.ok(reaches(commands, creating), `${commands} → ${creating}`);
    for (const place of rest) assert.ok(reaches(operation, place), place);
  },
  7: () => {
    const [postgres = '', other = '', loading = '', fanOut = '', target = ''] = placesOf(7);
    for (const place of [postgres, other]) assert.ok(reaches('infra/adapters.ts', place), place);
    assert.ok(imports(operation, loading) && imports(loading, fanOut) && imports(fanOut, target), loading);
  },
  8: () => {
    const [answers = '', call = '', wire = '', writes = ''] = placesOf(8);
    assert.ok(imports(operation, answers) && imports(wire, call) && reaches(call, writes), answers);
  },
  9: () => {
    const [log = '', , , consume = '', effects = '', ...folds] = placesOf(9);
    assert.ok(reaches('infra/adapters.ts', log), log);
    assert.ok(reaches(consume, effects), `${consume} → ${effects}`);
    for (const fold of folds) assert.ok(imports('projections/index.ts', fold), fold);
  },
  10: () => {
    for (const place of placesOf(10)) assert.ok(existsSync(path.join(root, place, 'main.ts')), place);
    assert.match(globSync('services/publisher/*.ts', { cwd: root }).join(), /search\.ts/);
  },
  11: () => {
    assert.ok(reaches('services/webhooks/main.ts', 'projections/webhooks/dispatcher.ts'));
    assert.ok(existsSync(path.join(root, 'services/webhooks/sender.ts')));
  },
  12: () => {
    const [shown = '', query = '', render = ''] = placesOf(12);
    assert.match(textOf(shown), /export const getPost = operation\(/);
    for (const place of [query, render]) assert.ok(imports(shown, place), `${shown} → ${place}`);
    assert.deepEqual([queriesOf(shown), queriesOf(query)], [0, 1], 'one query');
  },
};

suite('the walks of the papers', (t) => {
  for (const step of [1, 2, 3, 4, 5, 6, 7, 8]) {
    t(`CONTRIBUTING, one command through the files, step ${step}`, () => {
      const places = placesOf(step);
      assert.ok(places.length > 0, `step ${step} names no file`);
      for (const place of places) assert.ok(existsSync(path.join(root, place)), `${place} does not exist`);
      claims[step]?.();
    });
  }

  t('CONTRIBUTING, one command through the files, has no other step', () => {
    assert.deepEqual([...steps.keys()], Object.keys(claims).map(Number));
  });

  t('CONTRIBUTING, a new network: as many files as it counts', () => {
    const said = /counts (\d+ files for X[\s\S]*?):/.exec(textOf('CONTRIBUTING.md'))?.[1] ?? '';
    const counts = [...said.matchAll(/(\d+)(?: files)?\s+for\s+(\w+)/g)].map(([, files = '', name = '']) => ({
      files,
      name,
    }));
    assert.deepEqual(
      counts.map(({ name }) => name),
      ['X', 'Pinterest', 'Threads', 'LinkedIn', 'TikTok', 'YouTube', 'Facebook', 'Instagram', 'Telegram', 'Bluesky'],
    );
    const count = (name: string): number => globSync(`infra/platforms/${name}/**/*.ts`, { cwd: root }).length;
    for (const { files, name } of counts) assert.equal(Number(files), count(name.toLowerCase()), name);
  });

  t(
    'README and the guide to media, their calls: an operation, with the headers that it wants and a body of its form',
    () => {
      const papers = ['README.md', 'services/pages/docs/guides/media.md'].map(textOf).join('\n');
      const blocks = [...papers.matchAll(/^```(?:bash)?\n(curl [\s\S]*?)^```$/gm)].map(([, code = '']) => code);
      const calls = blocks
        .map((block) => block.replace('$(wc -c < coffee.jpg)', '1'))
        .flatMap((block) => block.split(/^(?=curl )/m))
        .filter((code) => code.includes('/v1/'));
      assert.ok(calls.length >= 4, `only ${calls.length} calls were found`);
      for (const code of calls) {
        const [script = ''] = code.split(/^(?!curl |\s)/m);
        const { method, url, headers, body } = curlCall(script, {
          POSTLINE_KEY: 'sk_test_1',
          ASSET_ID: '<assetId>',
        });
        const { pathname } = new URL(url);
        const parts = decodeURIComponent(pathname).split('/');
        const found = operations.find(
          (one) =>
            one.method === method &&
            `/v1${one.path}`.split('/').length === parts.length &&
            `/v1${one.path}`.split('/').every((part, at) => part === parts[at] || part.startsWith('{')),
        );
        assert.ok(found, `${method} ${pathname}`);
        assert.match(headers.authorization ?? '', /^Bearer /, code);
        if (found.idempotent === 'required') assert.ok(headers['idempotency-key'], code);
        if (body === null) continue;
        assert.equal(headers['content-type'], 'application/json', code);
        const known = Object.keys((found.body as unknown as { readonly properties: object }).properties);
        assert.deepEqual(
          Object.keys(JSON.parse(body)).filter((name) => !known.includes(name)),
          [],
          code,
        );
      }
    },
  );

  t('every command of the operator that a paper names exists, with its options', () => {
    const papers = globSync(['*.md', '{infra,services,projections,schemas,contracts}/**/*.md'], { cwd: root });
    const named = papers.flatMap((file) =>
      [...textOf(file).matchAll(/npm run admin -- ([^`#|\n]+)/g)].map(
        ([, words = '']) => [file, words.trim()] as const,
      ),
    );
    assert.ok(named.length > 15);
    for (const [file, words] of named.filter(([, one]) => one !== '--help')) {
      const verbs = verbsOf(words);
      const found = commands.find(({ usage }) => {
        const own = verbsOf(usage);
        return own.every((word, at) => word === verbs[at]);
      });
      assert.ok(found, `${file}: ${words}`);
      for (const [option] of words.matchAll(/--[a-z-]+/g))
        assert.ok(found.usage.includes(option) || ['--data', '--help'].includes(option), `${file}: ${words}`);
    }
  });
});
