/**
 * Programs that a run starts, from two files instead of 1,500: half of what a start costs is finding, reading, linking and
 * compiling modules, and a run starts a thousand. One file holds what is shipped, the other the tests and all that they
 * import. Files of packages that bring a native part, or find files beside their own, stay where they are.
 */
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire, isBuiltin } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { Script } from 'node:vm';
import type { Plugin } from 'rolldown';

const root = path.resolve(import.meta.dirname, '../..');

/** The bundle of a program of this tree in a run that made one, else the program. */
export const built = (program: string, folder = process.env.TEST_BUNDLES): string => {
  const name = path.relative(root, program);
  if (folder === undefined || name.startsWith('..')) return program;
  const bundle = path.join(folder, name.replace(/\.ts$/, '.mjs'));
  return existsSync(bundle) ? bundle : program;
};

const shipped = ['projections/main.ts', 'services/*/main.ts', 'services/standalone/thread.ts'];
const tests = [
  ...['test/**/*.test.ts', 'test/**/*-{process,child,worker}.ts', 'test/faults/{workers,two-projectors}.ts'],
  ...['test/services/runtime/eventing/caller.ts', 'test/support/eventstoredb/server.ts'],
];
/** Fixtures are run as they are, by the test of the runner; benches measure what is shipped. */
const isLeftOut = (file: string): boolean => /^test[\\/](bench|fixtures|support[\\/]fixtures)[\\/]/.test(file);

const apart = new RegExp(
  `^(${[
    ...['sharp', 'chdb', 'pdfkit', 'fluent-ffmpeg', 'undici', 'nodemailer', 'qrcode', 'smtp-server', 'yaml'],
    ...['kafkajs', 'google-protobuf', '@grpc/grpc-js', '@eventstore/db-client', 'svix'],
    ...['@aws-sdk/client-s3', '@aws-sdk/s3-request-presigner', '@atproto/oauth-client-node', 'oidc-provider'],
    ...['@modelcontextprotocol/[a-z]+', '@event-driven-io/[a-z-]+', 'openapi-typescript'],
    ...['axe-core', 'playwright-core', 'testcontainers', 'typescript', 'rolldown'],
  ].join('|')})(/|$)`,
);
const mark = '\0apart:';

/** Makes them in a folder from which packages and `#` names are found as from the sources. */
export const bundle = async (folder: string): Promise<void> => {
  rmSync(folder, { recursive: true, force: true });
  const { rolldown } = await import('rolldown');
  const loader = await rolldown({ input: path.join(import.meta.dirname, 'load-bundle.ts'), platform: 'node' });
  await loader.write({ file: path.join(folder, 'load-bundle.mjs') });
  await loader.close();
  const found = (patterns: readonly string[]) => patterns.flatMap((pattern) => globSync(pattern, { cwd: root }));
  await bundleOf(folder, 'programs.js', found(shipped));
  await bundleOf(
    folder,
    'tests.js',
    found(tests).filter((file) => !isLeftOut(file)),
  );
};

const bundleOf = async (folder: string, name: string, files: readonly string[]): Promise<void> => {
  const { rolldown } = await import('rolldown');
  const made = await rolldown({
    input: entry,
    cwd: root,
    platform: 'node',
    treeshake: false,
    // Those of modules that a program runs are in what V8 kept of it; the others are to stay uncompiled.
    optimization: { pifeForModuleWrappers: false },
    // Dependencies ask for optional ones that are not there, as they do at run time.
    onLog: (level, log, say) => {
      if (level === 'warn' && !['UNRESOLVED_IMPORT', 'INEFFECTIVE_DYNAMIC_IMPORT', 'EVAL'].includes(log.code ?? ''))
        say(level, log);
    },
    plugins: [programsOf(files), builtins, packagesApart, places(folder)],
  });
  const file = path.join(folder, name);
  // Modules are run in their order, and only those that a program imports.
  await made.write({ file, format: 'esm', keepNames: true, strictExecutionOrder: true, codeSplitting: false });
  await made.close();
  const script = scriptOf(readFileSync(file, 'utf8'));
  writeFileSync(file, script, 'latin1');
  // To find the functions in it takes 0.3 s, which the first of each kind of program, and those beside it, would spend.
  writeFileSync(`${file}.compiled`, new Script(script, { filename: file }).createCachedData());
  for (const source of files) {
    const program = source.replace(/\.ts$/, '.mjs');
    const start = path.join(folder, program);
    mkdirSync(path.dirname(start), { recursive: true });
    const given = [file, program, alike(source)].map((one) => JSON.stringify(one)).join(', ');
    const loader = path.relative(path.dirname(start), path.join(folder, 'load-bundle.mjs'));
    writeFileSync(start, `import { load } from ${JSON.stringify(loader)};\nawait load(${given});\n`);
  }
};

/** Tests of a folder call about the same functions. */
const alike = (file: string): string => (file.endsWith('.test.ts') ? path.dirname(file) : file);

/**
 * One function in Latin-1, which is read and kept without decoding: a script, for V8 gives out what it compiled of a module
 * only until the module has run.
 */
const scriptOf = (module: string): string => {
  const code = module
    .replace(/^import \{ createRequire \} from "node:module";$/m, '')
    .replace('createRequire(import.meta.url)', packages)
    // A parenthesis before a function tells V8 to compile it at once.
    .replaceAll(/(__commonJS(?:Min)?\()\((?=\(|function)/g, '$1(0, ')
    .replace(/^export \{ (\S+) as default \};$/m, 'return $1;')
    .replaceAll(/[\u0080-\uffff]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);
  return `(function () {\n'use strict';\n${code}\n})`;
};

// No apostrophe in either: our own text of them stands between such.
const packages = `process.getBuiltinModule("node:module").createRequire(${JSON.stringify(path.join(root, 'package.json'))})`;
const resolve = `((name) => process.getBuiltinModule("node:url").pathToFileURL(${packages}.resolve(name)).href)`;
const entry = '\0programs';

const programsOf = (files: readonly string[]): Plugin => ({
  name: 'programs',
  resolveId: (id) => (id === entry ? id : null),
  load: (id) => {
    if (id !== entry) return null;
    const all = files.map((file) =>
      [file.replace(/\.ts$/, '.mjs'), path.join(root, file)].map((one) => JSON.stringify(one)),
    );
    return `export default { ${all.map(([name, from]) => `${name}: () => import(${from})`).join(',\n')} };`;
  },
});

/** Imported, `node:http` would load what its getters give, which is a fifth of the start. */
const builtins: Plugin = {
  name: 'builtins',
  resolveId: (id, importer, { kind }) => {
    if (!isBuiltin(id) || importer === undefined || importer.startsWith('\0rolldown')) return null;
    return `\0${kind === 'require-call' ? 'required' : 'imported'}:${id.replace(/^node:/, '')}`;
  },
  load: (id) => {
    const [, way, name] = /^\0(required|imported):(.*)$/.exec(id) ?? [];
    if (name === undefined) return null;
    const all = `process.getBuiltinModule('node:${name}')`;
    if (way === 'required') return { code: `module.exports = ${all};`, moduleType: 'js' };
    const members = Object.getOwnPropertyDescriptors(process.getBuiltinModule(`node:${name}`));
    const names = Object.entries(members)
      .filter(([one, { enumerable, get }]) => enumerable && one !== 'default' && (get === undefined || gotten.has(one)))
      .map(([one]) => one);
    const each = names.map((one) => `export const ${one} = all.${one};`);
    return { code: [`const all = ${all};`, 'export default all;', ...each].join('\n'), moduleType: 'js' };
  },
};
/** Members behind a getter that our sources import. */
const gotten = new Set(['BlockList']);

const packagesApart: Plugin = {
  name: 'apart',
  resolveId: (id, importer, { kind }) => {
    if (!apart.test(id) || importer === undefined || importer.includes('/node_modules/')) return null;
    return kind === 'dynamic-import' ? { id, external: true } : `${mark}${id}`;
  },
  // Required when the first module that imports it is run, and not as soon as the bundle is loaded.
  load: (id) => {
    if (!id.startsWith(mark)) return null;
    const name = id.slice(mark.length);
    const code = `${packages}(${JSON.stringify(name)})`;
    const there = createRequire(import.meta.url)(name);
    if (there[Symbol.toStringTag] !== 'Module') return { code: `module.exports = ${code};`, moduleType: 'js' };
    const names = Object.keys(there).map((one) => `export const ${one === 'default' ? '_default' : one} = all.${one};`);
    return {
      code: ['default' in there ? 'export { _default as default };' : '', `const all = ${code};`, ...names].join('\n'),
    };
  },
};

const places = (folder: string): Plugin => ({
  name: 'places',
  transform: (code, id) => {
    if (!id.endsWith('.ts')) return null;
    if (id === path.join(root, 'services/standalone/threads.ts')) {
      return code
        .replaceAll(/(main|thread)\.ts'/g, "$1.mjs'")
        .replaceAll('import.meta.url', url(path.join(folder, path.relative(root, id))));
    }
    // What a module requires by name is bundled as what it imports.
    return code
      .replace(/^const require = createRequire\(.*\);$/m, '')
      .replaceAll('import.meta.url', url(id))
      .replaceAll('import.meta.dirname', JSON.stringify(path.dirname(id)))
      .replaceAll('import.meta.filename', JSON.stringify(id))
      .replaceAll('import.meta.main', 'false')
      .replaceAll('import.meta.resolve', resolve);
  },
});

const url = (file: string): string => JSON.stringify(pathToFileURL(file).href);
