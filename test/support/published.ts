import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { ContractNode } from '#services/api/contract/components.ts';

/** Checks values against the schemas of a contract, as a client that was made from it would. */

interface Document {
  readonly components: { readonly schemas: Readonly<Record<string, ContractNode>> };
}

/** The same schemas without room for members that they do not name. */
const closed = (node: unknown): unknown => {
  if (Array.isArray(node)) return node.map(closed);
  if (typeof node !== 'object' || node === null) return node;
  const mapped = Object.fromEntries(Object.entries(node).map(([name, one]) => [name, closed(one)]));
  return mapped.type === 'object' && mapped.properties !== undefined && mapped.additionalProperties === undefined
    ? { ...mapped, additionalProperties: false }
    : mapped;
};

/** A check of values against named schemas; it returns what is wrong, and refuses members that the schema lacks. */
export const checkerOf = ({ components }: Document): ((name: string, value: unknown) => readonly string[]) => {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats.default(ajv);
  ajv.addSchema({ $id: 'contract', components: { schemas: closed(components.schemas) } });
  return (name, value) => {
    const validate = ajv.getSchema(`contract#/components/schemas/${name}`);
    if (validate === undefined) throw new Error(`the contract has no schema ${name}`);
    return validate(value) === true
      ? []
      : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
  };
};
