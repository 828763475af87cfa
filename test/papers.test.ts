import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { faultNames } from '#infra/platforms/sandbox/faults.ts';
import { configHelp, settingGroups, settingKeys } from '#runtime/process/config.ts';
import { appSettingKeys } from '#runtime/process/settings/apps.ts';
import { callsOut, networks, stores } from '#runtime/process/settings/reads.ts';
import { adminReads } from '#services/admin/usage.ts';
import { apiReads } from '#services/api/start.ts';
import { tools } from '#services/mcp/tools/index.ts';
import { suite } from '#test/support/suite.ts';
import { codeOf, production, reachedFrom, sources } from './architecture/sources.ts';

/** What papers, guides, pages and contracts say: that they deny nothing that works, and leave out nothing that exists. */

const root = fileURLToPath(new URL('../', import.meta.url));
const read = (file: string): string => readFileSync(`${root}${file}`, 'utf8');

/** Words with which a paper denies something, or puts it off. */
const denials =
  /\bnot (?:yet|supported|implemented|done)\b|\bcomes? (?:next|later)\b|\buntil then\b|\bcannot be\b[^.;]*\byet\b|\bno adapter\b/i;

/**
 * Words that no name holds, each with the word that the glossary of CONTRIBUTING.md or the field has for it. There are
 * no exceptions.
 */
const bannedWords = new Map(
  Object.entries({
    told: 'reported or shown',
    untold: 'without a report',
    heard: 'received',
    unheard: 'unknown',
    wished: 'requested',
    misfit: 'violation',
    misfits: 'violations',
    unborn: 'preCreationEvents',
    bell: 'WakeSignal',
    seat: 'slot',
    innocent: 'infrastructureFault',
    standing: 'TargetProgress or MediaReadiness',
  }),
);

/** Names whole: types that were several things under one name, and words that are two. */
const bannedNames = new Map(
  Object.entries({
    Held: 'one name for each type, such as LaneState',
    Verdict: 'one name for each type, such as FailureAction',
    Turn: 'what it is, such as PollCycle',
    takeTurn: 'pollAccount',
    putOff: 'reschedule',
    viaRequest: 'withIdempotencyRecord',
    tellPosts: 'recordOutcomes',
  }),
);

/** Names in the code of a file. Its texts and patterns are data, such as the words of a network. */
const namesOf = (file: string): ReadonlySet<string> => {
  const code = codeOf(file)
    .replaceAll(/'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"/g, "''")
    .replaceAll(/(?<=[(,=:[!&|?{}\s])\/(?![*/\s])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\//g, "''")
    .replaceAll(/`(?:\\.|[^`\\])*`/g, (text) => (text.match(/\$\{[^}]*\}/g) ?? []).join(' '));
  return new Set(code.match(/[A-Za-z_$][\w$]*/g));
};

const wordsOf = (name: string): readonly string[] =>
  (name.match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g) ?? []).map((word) => word.toLowerCase());

/** Denials that hold: words of the sentence, and why it is true. */
const holding: readonly (readonly [words: string, reason: string])[] = [
  ['published posts are neither edited nor deleted', 'no operation does either, and spec 1 asks for neither'],
  ['editing and deleting published posts', 'as above, of one network'],
  ['editing, deleting and pinning', 'as above, of one network'],
  ['is not done twice', 'a promise: the step is done once'],
  ['Until then `409 restore_unconfirmed` refuses', 'until the operator confirms'],
  ['Until then, where mails go out, a person gets no', 'until the address is proven'],
  ['Until then you make no', 'until the address is proven'],
  ['Until then the target cannot be canceled', 'until the network shows the post or refuses it'],
  ['cannot be shown yet', 'the read model of a parked stream, `stands_still`'],
  ['cannot be published, or not yet', 'a file is read before it can be published'],
  ['Its figures come later', 'the event `analytics.refreshed` tells when they are there'],
  ['reschedule and cancel work until then', 'until the time of the target'],
];

const tracked = (...kinds: readonly string[]): readonly string[] =>
  spawnSync('git', ['ls-files', ...kinds], { cwd: root, encoding: 'utf8' })
    .stdout.trim()
    .split('\n');

function* stringsIn(value: unknown): Generator<string> {
  if (typeof value === 'string') yield value;
  else if (typeof value === 'object' && value !== null) for (const one of Object.values(value)) yield* stringsIn(one);
}

/** A sentence of a paragraph may run over lines; a table row and an entry of a list end with their line. */
const sentencesOf = (text: string): readonly string[] =>
  text
    .replace(/\n(?![\n|#>-]|\d+\. |```)/g, ' ')
    .split(/(?<=[.!?])\s+|\n+/)
    .map((one) => one.replace(/\s+/g, ' ').trim());

const papers = (): readonly (readonly [name: string, sentences: readonly string[]])[] => [
  ...tracked('*.md', '*.eta').map((file) => [file, sentencesOf(read(file))] as const),
  ...['contracts/openapi.json', 'contracts/asyncapi.json'].map(
    (file) => [file, [...stringsIn(JSON.parse(read(file)))].flatMap(sentencesOf)] as const,
  ),
  ['the tools of agents', [...stringsIn(tools)].flatMap(sentencesOf)],
];

/** Rows of the first table below a heading, the cells without their marks. */
const rowsOf = (text: string): readonly (readonly string[])[] =>
  [...text.matchAll(/^\| (`.*) \|$/gm)].map(([, row = '']) => row.split(' | ').map((cell) => cell.trim()));

interface Shown {
  readonly title: string;
  readonly settings: readonly (readonly [name: string, fallback: string])[];
}

/** What the paper of the operators says of the settings. */
const explained = (): readonly Shown[] => {
  const [, section = ''] = read('infra/OPERATING.md').split('\n## Settings\n');
  return section
    .split(/^### /m)
    .slice(1)
    .map((part) => ({
      title: part.slice(0, part.indexOf('\n')),
      settings: rowsOf(part).map(([name = '', fallback = '', what = '']) => {
        assert.ok(what.length > 5, `${name} is not explained`);
        return [name.replaceAll('`', ''), fallback.replaceAll('`', '') || 'none'];
      }),
    }));
};

const helped = (): readonly Shown[] =>
  configHelp()
    .split('\n\n')
    .map((block) => {
      const [title = '', ...lines] = block.split('\n');
      const settings = lines.map((line): [string, string] => {
        const [, name = '', fallback = ''] = /^ {2}(\S+) .*\[(.+)\]$/.exec(line) ?? [];
        return [name, fallback];
      });
      return { title: title.replace(/:$/, ''), settings };
    });

const shared: Readonly<Record<string, readonly string[]>> = { callsOut, networks, stores };

/** The settings that a process says it reads. */
const readsOf = (main: string): readonly string[] => {
  const [, list = ''] = /^ {2}reads: \[([^\]]*)\]/m.exec(read(main)) ?? [];
  const own = [...list.matchAll(/'(\w+)'/g)].map(([, key = '']) => key);
  const taken = [...list.matchAll(/\.\.\.(\w+)/g)].flatMap(([, name = '']) => shared[name] ?? assert.fail(name));
  return [...own, ...taken];
};

suite('papers, guides and contracts', (t) => {
  t('explain each setting to operators, in the groups of --help, with its default', () => {
    assert.deepEqual(explained(), helped());
    const grouped = settingGroups.flatMap(({ keys }) => keys);
    assert.deepEqual(grouped.toSorted(), settingKeys.toSorted(), 'each setting is in one group');
  });

  t('--help of a process lists no setting that nothing in it reads', () => {
    const processes: Readonly<Record<string, readonly string[]>> = {
      ...Object.fromEntries(
        ['media', 'publisher', 'outcomes', 'webhooks', 'insights', 'reports', 'relay'].map((name) => {
          const main = `services/${name}/main.ts`;
          return [main, readsOf(main)];
        }),
      ),
      'projections/main.ts': readsOf('projections/main.ts'),
      'services/api/main.ts': apiReads,
      'services/admin/main.ts': adminReads,
    };
    for (const [main, keys] of Object.entries(processes)) {
      assert.ok(keys.length > 10, main);
      const files = [...reachedFrom(main)].filter((file) => !file.startsWith('services/runtime/process/settings/'));
      const code = files.map(codeOf).join('\n');
      // One reader takes those of every app, by the name of the network.
      const ofApps: readonly string[] = /\bappSetOf\b/.test(code) ? appSettingKeys : [];
      const idle = keys.filter((key) => !ofApps.includes(key) && !new RegExp(`\\b${key}\\b`).test(code));
      assert.deepEqual(idle, [], main);
    }
    const unread = settingKeys.filter((key) => !Object.values(processes).some((keys) => keys.includes(key)));
    // The first four are of every process, the last of standalone, which reads all.
    assert.deepEqual(unread, ['opsPort', 'opsHost', 'logFileBytes', 'logFiles', 'tourBluesky']);
  });

  t('give each package of package.json a reason, and no other', () => {
    const { dependencies, optionalDependencies, devDependencies } = JSON.parse(read('package.json'));
    const all = Object.keys({ ...dependencies, ...optionalDependencies, ...devDependencies });
    const [table = '', fetched = ''] = read('infra/DEPENDENCIES.md').split('\nFetched by what uses them');
    const rows = rowsOf(table);
    for (const [packages = '', why = ''] of rows) assert.ok(why.length > 4, `${packages} has no reason`);
    const named = rows.flatMap(([packages = '']) => [...packages.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name));
    assert.deepEqual(named.toSorted(), [...new Set(named)].toSorted(), 'each once');
    const types = all.filter((name) => name.startsWith('@types/'));
    assert.deepEqual(named.toSorted(), [...all.filter((name) => !types.includes(name)), '@types/*'].toSorted());
    const marked = rows.flatMap(([packages = '']) =>
      packages.includes('(optional)') ? [...packages.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name) : [],
    );
    assert.deepEqual(marked.toSorted(), Object.keys(optionalDependencies).toSorted());
    for (const [packages = ''] of rowsOf(fetched)) {
      const [, name = '', place = ''] = /^`([^`]+)` \(in `([^`]+)`\)$/.exec(packages) ?? [];
      assert.ok(name !== '' && !all.includes(name), packages);
      assert.ok(tracked(place).length > 1, place);
    }
  });

  t('link only files that exist', () => {
    const wrong = tracked('*.md')
      .filter((file) => !file.startsWith('services/pages/docs/'))
      .flatMap((file) =>
        [...read(file).matchAll(/\]\((?!https?:|#)([^)#]+)/g)].flatMap(([, name = '']) =>
          existsSync(path.join(root, path.dirname(file), name)) ? [] : [`${file}: ${name}`],
        ),
      );
    assert.deepEqual(wrong, []);
  });

  t('name only scripts and make targets that exist', () => {
    const manual = tracked('*.md').map(read).join('\n');
    const { scripts } = JSON.parse(read('package.json')) as { readonly scripts: Readonly<Record<string, string>> };
    const targets = [...read('Makefile').matchAll(/^([a-z-]+):/gm)].map(([, name]) => name);
    const named = [...manual.matchAll(/(?:^|`)make ([a-z][a-z-]*)/gm)].map(([, name = '']) => name);
    const run = [...manual.matchAll(/\bnpm run ([a-z][a-z-]*)/g)].map(([, name = '']) => name);
    assert.ok(named.includes('run') && named.includes('test') && run.includes('admin'));
    assert.deepEqual(
      [...named.filter((name) => !targets.includes(name)), ...run.filter((name) => !(name in scripts))],
      [],
    );
  });

  t('the README is read in five minutes', () => {
    assert.ok(read('README.md').trimEnd().split('\n').length <= 150);
  });

  t('deny nothing, unless the sentence is on the list with its reason', () => {
    const used = new Set<string>();
    const wrong: string[] = [];
    for (const [name, sentences] of papers()) {
      for (const sentence of sentences.filter((one) => denials.test(one))) {
        const known = holding.find(([words]) => sentence.includes(words));
        if (known === undefined) wrong.push(`${name}: ${sentence.slice(0, 300)}`);
        else used.add(known[0]);
      }
    }
    assert.deepEqual([...new Set(wrong)], []);
    const stale = holding.map(([words]) => words).filter((words) => !used.has(words));
    assert.deepEqual(stale, [], 'no sentence says this any more');
  });

  t('no name holds a word that the language of the house replaced', () => {
    const wrong = sources
      .filter((file) => file !== 'test/papers.test.ts')
      .flatMap((file) =>
        [...namesOf(file)].flatMap((name) => {
          const better =
            bannedNames.get(name) ??
            wordsOf(name)
              .map((word) => bannedWords.get(word))
              .find((one) => one !== undefined);
          return better === undefined ? [] : [`${file}: ${name} (say ${better})`];
        }),
      );
    assert.deepEqual(wrong, []);
  });

  t('no two classes have one name', () => {
    const classes = production.flatMap((file) =>
      [...codeOf(file).matchAll(/^(?:export )?(?:abstract )?class (\w+)/gm)].map(([, name = '']) => ({ name, file })),
    );
    const twice = [...Map.groupBy(classes, ({ name }) => name).values()].filter(({ length }) => length > 1);
    assert.deepEqual(twice, []);
  });

  t('name every fault of the sandbox in its guide', () => {
    const guide = read('services/pages/docs/guides/sandbox.md');
    const missing = faultNames.filter((name) => !guide.includes(`\`${name}\``));
    assert.deepEqual(missing, []);
  });
});
