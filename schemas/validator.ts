import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { TSchema } from 'typebox';

/**
 * One ajv, strict, that changes nothing it looks at: no coercion, no defaults, no removal (with unions they delete or
 * refuse). `personal` marks members that the store's edge encrypts.
 */
const ajv = new Ajv2020({
  strict: true,
  allErrors: true,
  allowUnionTypes: true,
  strictTypes: false,
  ownProperties: true,
});
addFormats.default(ajv);
// Each `uuid` of ours has a stricter pattern beside it: the format is for readers of the contract.
ajv.addFormat('uuid', true);
// Every event has several: the form that we write ourselves needs one look, on the days that every month has.
const plainInstant = /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z$/;
const anyInstant = addFormats.default.get('date-time') as { validate(text: string): boolean };
ajv.addFormat('date-time', (text) => plainInstant.test(text) || anyInstant.validate(text));
ajv.addKeyword({ keyword: 'personal', schemaType: 'boolean' });

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

/** Empty when the value fits. */
export const issuesOf = (schema: TSchema, value: unknown): readonly SchemaIssue[] => {
  const validate = validatorOf(schema);
  return validate(value) ? [] : telling(validate.errors ?? []).map(issueOf);
};

/** Of an optional member only what is wrong with its value: not that it is no null either, nor that no branch fits. */
const telling = (errors: readonly ErrorObject[]): readonly ErrorObject[] => {
  const vague = ({ keyword, params }: ErrorObject): boolean =>
    keyword === 'anyOf' || (keyword === 'type' && params.type === 'null');
  const inside = (outer: ErrorObject, one: ErrorObject): boolean =>
    one.instancePath === outer.instancePath || one.instancePath.startsWith(`${outer.instancePath}/`);
  const clear = errors.filter((one) => !vague(one));
  return errors.filter((one) => !vague(one) || !clear.some((other) => inside(one, other)));
};

const issueOf = (error: ErrorObject): SchemaIssue => {
  const missing = error.keyword === 'required' ? `/${String(error.params.missingProperty)}` : '';
  const allowed = error.keyword === 'enum' ? `: ${(error.params.allowedValues as unknown[]).join(', ')}` : '';
  return { path: `${error.instancePath}${missing}`, message: `${error.message ?? 'is not valid'}${allowed}` };
};
