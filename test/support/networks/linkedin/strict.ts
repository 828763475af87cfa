import { invalid } from './answer.ts';

/** Checks of a body as the documents have it: each member is known and of its type, or the call fails. */

export type Check = (value: unknown, path: string) => void;

const fail = (path: string, must: string, code = 'INVALID_VALUE_FOR_FIELD'): never => {
  throw invalid(`${path}: ${must}`, code);
};

export const text =
  (pattern: RegExp | null = null, max = Number.POSITIVE_INFINITY): Check =>
  (value, path) => {
    if (typeof value !== 'string') return fail(path, 'must be a string');
    if ([...value].length > max) fail(path, `must have at most ${max} characters`, 'FIELD_LENGTH_TOO_LONG');
    if (pattern !== null && !pattern.test(value)) fail(path, `does not match ${pattern.source}`);
  };
export const flag: Check = (value, path) => {
  if (typeof value !== 'boolean') fail(path, 'must be a boolean');
};
export const whole: Check = (value, path) => {
  if (!Number.isSafeInteger(value) || Number(value) < 0) fail(path, 'must be a whole number');
};
export const oneOf =
  (...values: readonly string[]): Check =>
  (value, path) => {
    if (typeof value !== 'string' || !values.includes(value)) fail(path, `must be one of ${values.join(', ')}`);
  };
export const list =
  (min: number, max: number, item: Check): Check =>
  (value, path) => {
    if (!Array.isArray(value)) return fail(path, 'must be an array');
    if (value.length < min || value.length > max) fail(path, `has ${min} to ${max} items`);
    value.forEach((one, at) => {
      item(one, `${path}[${at}]`);
    });
  };
export const object =
  (members: Readonly<Record<string, Check>>, required: readonly string[] = []): Check =>
  (value, path) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return fail(path, 'must be an object');
    for (const [name, member] of Object.entries(value)) {
      const check = members[name];
      if (check === undefined) return fail(`${path}.${name}`, 'unrecognized field', 'PARAM_INVALID');
      check(member, `${path}.${name}`);
    }
    for (const name of required) if (!(name in value)) fail(`${path}.${name}`, 'is required', 'MISSING_FIELD');
  };

export const urn = (...types: readonly string[]): Check => text(new RegExp(`^urn:li:(?:${types.join('|')}):[\\w-]+$`));
