/**
 * `node run.mjs <options as JSON> <file>`: one run of StrykerJS, whose results are written to the file as JSON.
 * Plain JavaScript, because StrykerJS is installed beside it by the first `make mutants` and the types must not need it.
 */
import { writeFileSync } from 'node:fs';
import { Stryker } from '@stryker-mutator/core';

const [options = '{}', file = ''] = process.argv.slice(2);
const results = await new Stryker(JSON.parse(options)).runMutationTest();
writeFileSync(
  file,
  JSON.stringify(results.map(({ status, location, replacement }) => ({ status, location, replacement }))),
);
