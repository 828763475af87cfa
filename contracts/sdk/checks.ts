import { readFileSync } from 'node:fs';
import type { Made } from './client.ts';

/** Whether a generated client is whole, and has names that a person would give. */

interface Contract {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly operationId?: string }>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, { readonly properties?: unknown }>> };
}

/** Generators write the same name as create_post, createPost and CreatePost. */
const plain = (name: string): string => name.replaceAll(/[_.]/g, '').toLowerCase();

/** Made up where the contract names nothing: Body15, ProblemErrorsInner, InlineObject, Anonymous11, PostAllOf. */
const invented = /\d|Inner(?![a-z])|Inline|Anonymous|(?:All|Any|One)Of(?![a-z])|^Model[A-Z]|AdditionalPropert/;

const missing = (wanted: readonly string[], made: readonly string[]): string[] => {
  const there = new Set(made.map(plain));
  return wanted.filter((name) => !there.has(plain(name)));
};

/** @returns what is wrong, a sentence each */
export const faultsOf = (contractFile: string, made: Made): readonly string[] => {
  const contract = JSON.parse(readFileSync(contractFile, 'utf8')) as Contract;
  const operations = Object.values(contract.paths)
    .flatMap((path) => Object.values(path))
    .flatMap(({ operationId }) => operationId ?? []);
  // Other schemas are text, lists and unions: many languages have no type of their own for these.
  const objects = Object.entries(contract.components.schemas).flatMap(([name, { properties }]) =>
    properties === undefined ? [] : [name],
  );
  const bad = [...new Set(made.types)].filter((name) => invented.test(name));
  return [
    ...made.warnings.map((line) => `the generator warned: ${line}`),
    ...missing(operations, made.operations).map((name) => `the operation ${name} is missing`),
    ...missing(objects, made.types).map((name) => `the schema ${name} is missing`),
    ...bad.map((name) => `the type ${name} has an invented name: give its schema one in components.schemas`),
  ];
};
