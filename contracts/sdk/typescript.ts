import { copyFileSync, cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type Generator, type Made, matches, named, type Place, root, tours } from './client.ts';
import { generate } from './openapi-generator.ts';
import { run } from './shell.ts';
import { typesOf } from './types.ts';

/** The two TypeScript clients, under strict compiler options. */

const strict = {
  target: 'es2024',
  lib: ['es2024', 'dom', 'dom.iterable'],
  module: 'nodenext',
  types: ['node'],
  strict: true,
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
  verbatimModuleSyntax: true,
  rewriteRelativeImportExtensions: true,
  outDir: 'out',
};
const tsc = path.join(root, 'node_modules/typescript/bin/tsc');

const compileTour = async ({ folder, log, step }: Place, tour: string, options: object): Promise<Made['tour']> => {
  writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}');
  copyFileSync(tour, path.join(folder, 'tour.ts'));
  const config = { compilerOptions: { ...strict, ...options }, files: ['tour.ts'] };
  writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify(config));
  step('compiling the tour');
  await run(process.execPath, [tsc, '-p', '.'], { cwd: folder, log });
  return { program: process.execPath, args: ['out/tour.js'], cwd: folder };
};

/** Types alone, for openapi-fetch. */
export const openapiFetch: Generator = {
  name: 'openapi-fetch',
  async make(place) {
    const { folder, contract } = place;
    place.step('generating with openapi-typescript');
    const types = await typesOf(contract);
    writeFileSync(path.join(folder, 'postline.d.ts'), types);
    symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'), 'dir');
    const tour = await compileTour(place, path.join(tours, 'openapi-fetch/tour.ts'), {
      paths: { postline: ['./postline.d.ts'] },
    });
    const [, schemas = ''] = types.split(/^ {4}schemas: \{$/m);
    const [, operations = ''] = types.split(/^export interface operations \{$/m);
    return {
      types: [
        ...schemas
          .split(/^ {4}\};$/m, 1)
          .join('')
          .matchAll(/^ {8}(\w+): /gm),
      ].map(([, name = '']) => name),
      operations: [...operations.matchAll(/^ {4}(\w+): \{$/gm)].map(([, name = '']) => name),
      warnings: [],
      tour,
    };
  },
};

export const typescriptFetch: Generator = {
  name: 'typescript-fetch',
  async make(place) {
    const { folder, log } = place;
    const client = path.join(folder, 'client');
    const warnings = await generate(place, 'typescript-fetch', client, { npmName: 'postline' });
    place.step('compiling the client');
    const options = ['--strict', '--target', 'es2022', '--lib', 'es2022,dom', '--noUncheckedIndexedAccess'];
    await run(process.execPath, [tsc, '-p', client, ...options], { cwd: folder, log });
    const modules = path.join(folder, 'node_modules');
    cpSync(client, path.join(modules, 'postline'), { recursive: true });
    mkdirSync(path.join(modules, '@types'), { recursive: true });
    for (const name of ['@types/node', 'undici-types']) {
      symlinkSync(path.join(root, 'node_modules', name), path.join(modules, name), 'dir');
    }
    const tour = await compileTour(place, path.join(tours, 'typescript-fetch/tour.ts'), {});
    const sources = path.join(client, 'src');
    return {
      types: matches(sources, named('.ts', 'models/'), /^export (?:interface|type|const) ([A-Z]\w+)/gm),
      operations: matches(sources, named('.ts', 'apis/'), /^ {4}async (\w+)\(/gm),
      warnings,
      tour,
    };
  },
};
