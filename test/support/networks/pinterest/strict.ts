import { invalidRequest } from './answer.ts';

/** Checks of a request as the reference has them: each member is known and of its type, or the call fails. */

export type Check = (value: unknown, path: string) => void;

const fail = (path: string, must: string): never => {
  throw invalidRequest(`'${path}' ${must}`);
};

/** @param max code points */
export const text =
  (pattern?: RegExp, max = Number.POSITIVE_INFINITY): Check =>
  (value, path) => {
    if (typeof value !== 'string') return fail(path, 'is not a string');
    if ([...value].length > max) fail(path, `is longer than ${max}`);
    if (pattern !== undefined && !pattern.test(value)) fail(path, `does not match ${pattern.source}`);
  };
export const whole: Check = (value, path) => {
  if (!Number.isInteger(value) || Number(value) < 0) fail(path, 'is no integer of 0 or more');
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
    if (value.length < min || value.length > max) fail(path, `constraint: minItems=${min}, maxItems=${max}`);
    value.forEach((one, at) => {
      item(one, `${path}.${at}`);
    });
  };
/** Of a query: names between commas. */
export const names =
  (...known: readonly string[]): Check =>
  (value, path) => {
    for (const one of String(value).split(',')) if (!known.includes(one)) fail(path, `has no ${one}`);
  };
export const object =
  (members: Readonly<Record<string, Check>>, required: readonly string[] = []): Check =>
  (value, path) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return fail(path, 'is not an object');
    for (const [name, member] of Object.entries(value)) {
      const check = members[name];
      if (check === undefined) return fail(`${path}.${name}`, 'is not a member');
      check(member, `${path}.${name}`);
    }
    for (const name of required) if (!(name in value)) fail(`${path}.${name}`, 'is required');
  };

export const id = text(/^\d+$/);
export const date = text(/^\d{4}-\d\d-\d\d$/);
