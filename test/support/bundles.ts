/**
 * Programs that a run starts, each with what it imports in a few files instead of 1,500: half of what a start costs is
 * finding, reading and linking modules, and a run starts a thousand. Files of packages that bring a native part, or
 * find files beside their own, stay where they are.
 */
import { existsSync, globSync, rmSync } from 'node:fs';
import { createRequire, isBuiltin } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { ModuleInfo } from 'rolldown';

const root = path.resolve(import.meta.dirname, '../..');

/** The bundle of a program of this tree in a run that made one, else the program. */
export const built = (program: string, folder = process.env.TEST_BUNDLES): string => {
  const name = path.relative(root, program);
  if (folder === undefined || name.startsWith('..')) return program;
  const bundle = path.join(folder, name.replace(/\.ts$/, '.mjs'));
  return existsSync(bundle) ? bundle : program;
};

const shipped = ['projections/main.ts', 'services/*/main.ts'];
const programs = [
  ...[...shipped, 'services/standalone/thread.ts'],
  ...['test/**/*.test.ts', 'test/**/*-{process,child,worker}.ts', 'test/faults/{workers,two-projectors}.ts'],
  ...['test/services/runtime/eventing/caller.ts', 'test/support/eventstoredb/server.ts'],
];
/** Fixtures are run as they are, by the test of the runner; benches measure what is shipped. */
const isLeftOut = (file: string): boolean => /^test[\\/](bench|fixtures|support[\\/]fixtures)[\\/]/.test(file);

const apart = new RegExp(
  `^(${[
    ...[
      'sharp',
      'chdb',
      'pdfkit',
      'fluent-ffmpeg',
      'undici',
      'prom-client',
      'nodemailer',
      'qrcode',
      'smtp-server',
      'yaml',
    ],
    ...['kafkajs', 'google-protobuf', '@grpc/grpc-js', '@eventstore/db-client', '@clickhouse/client', 'svix'],
    ...['@aws-sdk/client-s3', '@aws-sdk/s3-request-presigner', '@atproto/oauth-client-node', 'oidc-provider'],
    ...['@modelcontextprotocol/[a-z]+', '@event-driven-io/[a-z-]+', 'openapi-typescript'],
    ...['axe-core', 'playwright-core', 'testcontainers', 'typescript'],
  ].join('|')})(/|$)`,
);
const mark = '\0apart:';

/** Makes them in a folder from which packages and `#` names are found as from the sources. */
export const bundle = async (folder: string): Promise<void> => {
  const { rolldown } = await import('rolldown');
  rmSync(folder, { recursive: true, force: true });
  const files = programs.flatMap((pattern) => globSync(pattern, { cwd: root })).filter((file) => !isLeftOut(file));
  const require = createRequire(import.meta.url);
  const made = await rolldown({
    input: Object.fromEntries(files.map((file) => [file.replace(/\.ts$/, ''), path.join(root, file)])),
    cwd: root,
    platform: 'node',
    treeshake: false,
    external: isBuiltin,
    // Dependencies ask for optional ones that are not there, as they do at run time.
    onLog: (level, log, say) => {
      if (level === 'warn' && !['UNRESOLVED_IMPORT', 'INEFFECTIVE_DYNAMIC_IMPORT', 'EVAL'].includes(log.code ?? ''))
        say(level, log);
    },
    plugins: [
      {
        name: 'apart',
        resolveId: (id, importer, { kind }) => {
          if (!apart.test(id) || importer === undefined || importer.includes('/node_modules/')) return null;
          return kind === 'dynamic-import' ? { id, external: true } : `${mark}${id}`;
        },
        // Required when the first module that imports it is run, and not as soon as the bundle is loaded.
        load: (id) => {
          if (!id.startsWith(mark)) return null;
          const name = id.slice(mark.length);
          const from = JSON.stringify(path.join(root, 'package.json'));
          const code = `process.getBuiltinModule('node:module').createRequire(${from})(${JSON.stringify(name)})`;
          const there = require(name);
          if (there[Symbol.toStringTag] !== 'Module') return { code: `module.exports = ${code};`, moduleType: 'js' };
          const names = Object.keys(there).map(
            (one) => `export const ${one === 'default' ? '_default' : one} = all.${one};`,
          );
          return {
            code: ['default' in there ? 'export { _default as default };' : '', `const all = ${code};`, ...names].join(
              '\n',
            ),
          };
        },
      },
      {
        name: 'places',
        transform: (code, id) => {
          if (!id.endsWith('.ts')) return null;
          if (id === path.join(root, 'services/standalone/threads.ts')) {
            return code
              .replaceAll(/(main|thread)\.ts'/g, "$1.mjs'")
              .replaceAll('import.meta.url', url(path.join(folder, path.relative(root, id))));
          }
          return code
            .replaceAll('import.meta.url', url(id))
            .replaceAll('import.meta.dirname', JSON.stringify(path.dirname(id)))
            .replaceAll('import.meta.filename', JSON.stringify(id))
            .replaceAll('import.meta.main', 'false');
        },
      },
    ],
  });
  await made.write({
    dir: folder,
    format: 'esm',
    keepNames: true,
    // Modules are run in their order, and only those that a program imports.
    strictExecutionOrder: true,
    entryFileNames: '[name].mjs',
    codeSplitting: { groups: [{ debugName: 'shared', name: chunkOf(), test: /./, minShareCount: 2 }] },
  });
  await made.close();
};

interface Modules {
  getModuleInfo(id: string): ModuleInfo | null;
}

/**
 * Names the file of a module by those of our programs that reach it: none loads what it does not run, and what tests
 * alone need is apart.
 */
const chunkOf = () => {
  let users: Map<string, string> | undefined;
  return (id: string, modules: Modules): string => {
    users ??= usersOf(modules);
    return `shared-${users.get(id) ?? 'tests'}`;
  };
};

/** Of each module the places, in the list of programs, of those that reach it. */
const usersOf = (modules: Modules): Map<string, string> => {
  const users = new Map<string, string>();
  for (const [place, program] of shipped.flatMap((pattern) => globSync(pattern, { cwd: root })).entries()) {
    const reached = new Set([path.join(root, program)]);
    for (const id of reached) {
      users.set(id, `${users.get(id) ?? ''}${place.toString(36)}`);
      const { importedIds = [], dynamicallyImportedIds = [] } = modules.getModuleInfo(id) ?? {};
      for (const next of [...importedIds, ...dynamicallyImportedIds]) reached.add(next);
    }
  }
  return users;
};

const url = (file: string): string => JSON.stringify(pathToFileURL(file).href);
