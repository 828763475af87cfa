import type { ErrorObject } from 'ajv/dist/2020.js';
import type { IssueCode } from './issues.ts';

/** Words for a person, and a code to branch on, for each way in which a value does not fit its schema. */

type Wording = readonly [code: IssueCode, message: string];

/** The part of the schema that refuses. */
export interface Refusing {
  /** What a `pattern` or a `format` stands for, in words: `a uuid, such as …`. Never published. */
  readonly expects?: string;
}

const typeWords: Readonly<Record<string, string>> = {
  string: 'a string',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
};

/** Null is left out: for a caller it means that the member is absent. */
const typesOf = (type: unknown): string =>
  [type]
    .flat()
    .filter((one) => one !== 'null')
    .map((one) => typeWords[String(one)] ?? String(one))
    .join(' or ');

/** Characters of a list of allowed values. The longest of today has 300. */
const maxListed = 1_000;

const listed = (values: readonly unknown[]): string => {
  const text = values.filter((one) => one !== null).join(', ');
  return text.length > maxListed ? `${text.slice(0, text.lastIndexOf(', ', maxListed))}, …` : text;
};

const allowed = (values: readonly unknown[]): Wording => [
  'not_allowed',
  values.length === 1 ? `must be ${listed(values)}` : `must be one of: ${listed(values)}`,
];

const number = (value: unknown): string => Number(value).toLocaleString('en', { maximumFractionDigits: 20 });
const count = (limit: unknown, one: string, many: string): string =>
  `${number(limit)} ${Number(limit) === 1 ? one : many}`;
const atLeast = (limit: unknown, one: string, many: string): string =>
  limit === 1 ? 'must not be empty' : `must have at least ${count(limit, one, many)}`;
const atMost = (limit: unknown, one: string, many: string): string =>
  limit === 0 ? 'must be empty' : `must have at most ${count(limit, one, many)}`;

const formed = (_params: Params, { expects }: Refusing): Wording => [
  'wrong_format',
  expects === undefined ? 'does not have the form that the contract describes' : `must be ${expects}`,
];

type Params = Readonly<Record<string, unknown>>;

/** By the keyword of the schema. */
const wordings: Readonly<Record<string, (params: Params, schema: Refusing) => Wording>> = {
  required: () => ['required', 'is required'],
  type: ({ type }) => ['wrong_type', `must be ${typesOf(type)}`],
  enum: ({ allowedValues }) => allowed(allowedValues as readonly unknown[]),
  const: ({ allowedValue }) => allowed([allowedValue]),
  pattern: formed,
  format: formed,
  minLength: ({ limit }) => ['too_short', atLeast(limit, 'character', 'characters')],
  maxLength: ({ limit }) => ['too_long', atMost(limit, 'character', 'characters')],
  minItems: ({ limit }) => ['too_few', atLeast(limit, 'entry', 'entries')],
  maxItems: ({ limit }) => ['too_many', atMost(limit, 'entry', 'entries')],
  minProperties: ({ limit }) => ['too_few', atLeast(limit, 'member', 'members')],
  maxProperties: ({ limit }) => ['too_many', atMost(limit, 'member', 'members')],
  minimum: ({ limit }) => ['too_small', `must be at least ${number(limit)}`],
  maximum: ({ limit }) => ['too_large', `must be at most ${number(limit)}`],
  exclusiveMinimum: ({ limit }) => ['too_small', `must be more than ${number(limit)}`],
  exclusiveMaximum: ({ limit }) => ['too_large', `must be less than ${number(limit)}`],
  uuidKeys: () => ['repeated', 'must not have the same id twice, in upper and in lower case'],
  uniqueItems: () => ['repeated', 'must not have the same entry twice'],
};

/** The keywords that have words of their own. A test holds the schemas of inputs to them. */
export const wordedKeywords: ReadonlySet<string> = new Set(Object.keys(wordings));

export const wordingOf = ({ keyword, params }: ErrorObject, schema: Refusing): Wording =>
  wordings[keyword]?.(params, schema) ?? ['not_allowed', 'has none of the forms that the contract describes'];
