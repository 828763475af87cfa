import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { TSchema } from 'typebox';
import { annotations } from './published.ts';

/**
 * The one ajv instance: strict, and it never changes the value: no coercion, no defaults, no removal (with unions they
 * delete or refuse). `personal` marks members that the store's edge encrypts.
 */
const ajv = new Ajv2020({
  strict: true,
  allErrors: true,
  allowUnionTypes: true,
  strictTypes: false,
  ownProperties: true,
});
addFormats.default(ajv);
// Our `uuid`s have a stricter pattern beside the format: the format is for readers of the contract.
ajv.addFormat('uuid', true);
// A fast path, since every event has several instants: our own format, on the days that every month has.
const plainInstant = /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z$/;
const anyInstant = addFormats.default.get('date-time') as { validate(text: string): boolean };
// No instant is longer. The format's own check splits the text, which would hold the event loop for a long one.
const maxInstant = 64;
ajv.addFormat(
  'date-time',
  (text) => plainInstant.test(text) || (text.length <= maxInstant && anyInstant.validate(text)),
);
ajv.addKeyword({ keyword: 'personal', schemaType: 'boolean' });
ajv.addVocabulary([...annotations]);

const compiled = new WeakMap<TSchema, ValidateFunction>();

/** Compiles once per schema object. */
export const validatorOf = (schema: TSchema): ValidateFunction => {
  const known = compiled.get(schema);
  if (known !== undefined) return known;
  const made = ajv.compile(schema);
  compiled.set(schema, made);
  return made;
};

export interface SchemaIssue {
  /** JSON Pointer into the value. */
  readonly path: string;
  readonly message: string;
}

/** Issues in one answer; a caller who corrects them and sends again sees the rest. */
export const maxIssues = 20;

/** Errors scanned for them: the specific error stands close to a vague one. */
const maxRead = 1_000;

const maxMember = 100;
const maxPointer = 1_000;
const cut = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most)}…` : text);

/**
 * JSON Pointer. Long member names are cut: the caller chose them, and the answer repeats them for every issue below.
 */
export const pointerTo = (path: readonly string[]): string =>
  path.map((step) => `/${cut(step, maxMember).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');

/** Empty when the value fits; at most `maxIssues`. */
export const issuesOf = (schema: TSchema, value: unknown): readonly SchemaIssue[] => {
  const validate = validatorOf(schema);
  return validate(value) ? [] : telling(validate.errors ?? []).map(issueOf);
};

/**
 * For an optional member, only the errors of its value: not that it is not null either, nor that no branch matches. A
 * vague error is dropped when a specific one lies at its path or below, among the first: a caller may send 10,000 wrong
 * items.
 */
const telling = (all: readonly ErrorObject[]): readonly ErrorObject[] => {
  const errors = all.slice(0, maxRead);
  const vague = ({ keyword, params }: ErrorObject): boolean =>
    keyword === 'anyOf' || (keyword === 'type' && params.type === 'null');
  const explained = new Set<string>();
  for (const error of errors) {
    if (vague(error)) continue;
    // A path in the set has all its parent paths in the set.
    for (
      let path = error.instancePath;
      !explained.has(path);
      path = path.slice(0, Math.max(0, path.lastIndexOf('/')))
    ) {
      explained.add(path);
    }
  }
  return errors.filter((one) => !vague(one) || !explained.has(one.instancePath)).slice(0, maxIssues);
};

const issueOf = (error: ErrorObject): SchemaIssue => {
  const missing = error.keyword === 'required' ? `/${String(error.params.missingProperty)}` : '';
  const allowed = error.keyword === 'enum' ? `: ${(error.params.allowedValues as unknown[]).join(', ')}` : '';
  const path = cut(`${error.instancePath}${missing}`, maxPointer);
  return { path, message: `${error.message ?? 'is not valid'}${allowed}` };
};
