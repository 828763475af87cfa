/**
 * `node change.mjs <file> <kinds to leave out as JSON> <result>`: writes to the result, as JSON, the file's text with
 * every change of StrykerJS behind a switch, `globalThis.__stryker__.activeMutant`, and the changes. Plain JavaScript,
 * because StrykerJS is installed beside it by the first `make mutants` and the types must not need it.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { createInstrumenter } from '@stryker-mutator/instrumenter';
import { createInjector } from 'typed-inject';

const [file = '', excluded = '[]', result = ''] = process.argv.slice(2);
const quiet = () => {};
const say = (text) => process.stderr.write(`${text}\n`);
const logger = {
  ...{ isTraceEnabled: () => false, isDebugEnabled: () => false, isInfoEnabled: () => false },
  ...{ trace: quiet, debug: quiet, info: quiet, warn: quiet, error: say, fatal: say },
};
const injector = createInjector()
  .provideValue('logger', logger)
  .provideValue('getLogger', () => logger);
const { files, mutants } = await createInstrumenter(injector).instrument(
  [{ name: file, mutate: true, content: readFileSync(file, 'utf8') }],
  { ignorers: [], excludedMutations: JSON.parse(excluded), plugins: null },
);
const changes = mutants
  .filter(({ status }) => status === undefined)
  .map(({ id, location, replacement }) => ({ id, location, replacement }));
writeFileSync(result, JSON.stringify({ text: files[0].content, changes }));
