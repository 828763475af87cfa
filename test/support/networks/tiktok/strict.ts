import { invalid } from './answer.ts';

/** Checks of a request as the documents have it: each member is known and of its type, or the call fails. */

export type Check = (value: unknown, path: string) => void;

const fail = (path: string, must: string): never => {
  throw invalid(`'${path}' ${must}`, 'invalid_param');
};

/** @param max UTF-16 units */
export const text =
  (max = Number.POSITIVE_INFINITY, pattern?: RegExp): Check =>
  (value, path) => {
    if (typeof value !== 'string') return fail(path, 'is not a string');
    if (value.length > max) fail(path, `is longer than ${max}`);
    if (pattern !== undefined && !pattern.test(value)) fail(path, `does not match ${pattern.source}`);
  };
export const whole: Check = (value, path) => {
  if (!Number.isSafeInteger(value) || Number(value) < 0) fail(path, 'is no integer of 0 or more');
};
export const flag: Check = (value, path) => {
  if (typeof value !== 'boolean') fail(path, 'is not a boolean');
};
export const oneOf =
  (...values: readonly string[]): Check =>
  (value, path) => {
    if (typeof value !== 'string' || !values.includes(value)) fail(path, `is not one of ${values.join(', ')}`);
  };
export const list =
  (min: number, max: number, item: Check): Check =>
  (value, path) => {
    if (!Array.isArray(value)) return fail(path, 'is not an array');
    if (value.length < min || value.length > max) fail(path, `has not ${min} to ${max} items`);
    value.forEach((one, at) => {
      item(one, `${path}.${at}`);
    });
  };
export const object =
  (required: Readonly<Record<string, Check>>, optional: Readonly<Record<string, Check>> = {}): Check =>
  (value, path) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return fail(path, 'is not an object');
    const members: Readonly<Record<string, Check>> = { ...required, ...optional };
    for (const [name, member] of Object.entries(value)) {
      const check = members[name];
      if (check === undefined) return fail(`${path}.${name}`, 'is not a member');
      check(member, `${path}.${name}`);
    }
    for (const name of Object.keys(required)) if (!(name in value)) fail(`${path}.${name}`, 'is required');
  };
