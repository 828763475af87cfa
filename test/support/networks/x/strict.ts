import { invalidRequest } from './answer.ts';

/** Checks of a request as the published contract has them: each member is known and of its type, or the call fails. */

export type Check = (value: unknown, path: string) => void;

const fail = (path: string, must: string): never => {
  throw invalidRequest(`${path}: ${must}`);
};

export const text =
  (pattern?: RegExp, max = Number.POSITIVE_INFINITY): Check =>
  (value, path) => {
    if (typeof value !== 'string') return fail(path, 'must be a string');
    if (value.length > max) fail(path, `must have at most ${max} characters`);
    if (pattern !== undefined && !pattern.test(value)) fail(path, `does not match ${pattern.source}`);
  };
export const flag: Check = (value, path) => {
  if (typeof value !== 'boolean') fail(path, 'must be a boolean');
};
export const whole =
  (min: number, max: number): Check =>
  (value, path) => {
    if (!Number.isInteger(value) || Number(value) < min || Number(value) > max) fail(path, `must be ${min} to ${max}`);
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
    if (value.length < min || value.length > max) fail(path, `maximum of ${max} items, minimum of ${min}`);
    value.forEach((one, at) => {
      item(one, `${path}[${at}]`);
    });
  };
/** Of a query: names between commas. */
export const names =
  (...known: readonly string[]): Check =>
  (value, path) => {
    for (const one of String(value).split(','))
      if (!known.includes(one)) fail(path, `[${one}] is not one of its values`);
  };
export const object =
  (members: Readonly<Record<string, Check>>, required: readonly string[] = []): Check =>
  (value, path) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return fail(path, 'must be an object');
    for (const [name, member] of Object.entries(value)) {
      const check = members[name];
      if (check === undefined) return fail(path, `the member [${name}] is not one of the schema`);
      check(member, `${path}.${name}`);
    }
    for (const name of required) if (!(name in value)) fail(path, `the member [${name}] is required`);
  };

export const id = text(/^[0-9]{1,19}$/);
