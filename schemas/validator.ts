import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { TSchema } from 'typebox';
import { type Refusing, wordingOf } from './issue-words.ts';
import type { Issue } from './issues.ts';
import { annotations } from './published.ts';

/**
 * The one ajv instance: strict, and it never changes the value: no coercion, no defaults, no removal (with unions they
 * delete or refuse). `personal` marks members that the store's edge encrypts; `expects` says in words what a pattern or a
 * format stands for; `uuidKeys` refuses two keys that differ only in case.
 */
const ajv = new Ajv2020({
  strict: true,
  allErrors: true,
  allowUnionTypes: true,
  strictTypes: false,
  ownProperties: true,
  // Each process compiles a schema at its first use: these two took half of that time. The code is as fast without the
  // optimizer, and that the schemas are schemas is for a test.
  validateSchema: false,
  code: { optimize: false },
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
ajv.addVocabulary(annotations.filter((one) => one !== 'uuidKeys'));
const inLowerCase = (keys: readonly string[]): ReadonlySet<string> => new Set(keys.map((key) => key.toLowerCase()));
ajv.addKeyword({
  keyword: 'uuidKeys',
  type: 'object',
  schemaType: 'boolean',
  validate: (_: boolean, value: object) => inLowerCase(Object.keys(value)).size === Object.keys(value).length,
});

const compiled = new WeakMap<TSchema, ValidateFunction>();

/** Compiles once per schema object. */
export const validatorOf = (schema: TSchema): ValidateFunction => {
  const known = compiled.get(schema);
  if (known !== undefined) return known;
  const made = ajv.compile(schema);
  compiled.set(schema, made);
  return made;
};

/** Issues in one answer; a caller who corrects them and sends again sees the rest. */
export const maxIssues = 20;

/** Errors scanned for them: the specific error stands close to a vague one. */
const maxRead = 1_000;

const maxMember = 100;
const maxPointer = 1_000;

const escaped = (step: string): string => step.replaceAll('~', '~0').replaceAll('/', '~1');
const stepsOf = (pointer: string): readonly string[] =>
  pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));

/**
 * An issue at the member that these steps lead to. The caller chooses names of members, and the answer would repeat a
 * long one for every issue below it: then the pointer ends at the deepest member above it, so that it still resolves.
 */
export const issueAt = (steps: readonly string[], code: Issue['code'], message: string): Issue => {
  const { path, isCut } = pointerTo(steps);
  return { path, code, message: isCut ? `below a member with a long name: ${message}` : message };
};

/** The pointer along these steps, cut above the first long name. */
export const pointerTo = (steps: readonly string[]): { readonly path: string; readonly isCut: boolean } => {
  let path = '';
  for (const step of steps) {
    const longer = `${path}/${escaped(step)}`;
    if (step.length > maxMember || longer.length > maxPointer) return { path, isCut: true };
    path = longer;
  }
  return { path, isCut: false };
};

/** Empty when the value fits; at most `maxIssues`, one for a member. */
export const issuesOf = (schema: TSchema, value: unknown): readonly Issue[] => {
  const validate = validatorOf(schema);
  if (validate(value)) return [];
  const found = new Map<string, Issue>();
  for (const error of telling(validate.errors ?? [], (one) => counts(one, schema, value))) {
    const issue = issueOf(error, schema, value);
    // The type first: the other keywords may say of the same value what its type says better.
    if (!found.has(issue.path) || issue.code === 'wrong_type') found.set(issue.path, issue);
    if (found.size === maxIssues) break;
  }
  return [...found.values()];
};

/**
 * For an optional member, only the errors of its value: not that it is not null either, nor that no branch matches. A
 * vague error is dropped when a specific one lies at its path or below, among the first: a caller may send 10,000 wrong
 * items.
 */
const telling = (all: readonly ErrorObject[], isCounted: (error: ErrorObject) => boolean): readonly ErrorObject[] => {
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
  return errors.filter((one) => (!vague(one) || !explained.has(one.instancePath)) && isCounted(one));
};

/** Keywords under which a step into the value leads to one schema, and those that name the member first. */
const intoAny = new Set(['items', 'additionalProperties']);
const intoNamed = new Set(['properties', 'patternProperties']);

/** Whether the value at fault counts: in a member with `countsFor` of another `type` anything may stand. */
const counts = ({ instancePath, schemaPath }: ErrorObject, schema: TSchema, value: unknown): boolean => {
  const keywords = stepsOf(schemaPath).map(decodeURIComponent);
  const steps = stepsOf(instancePath).values();
  let at = value;
  for (let index = 0; index < keywords.length; index += 1) {
    const keyword = keywords[index] ?? '';
    const isNamed = intoNamed.has(keyword);
    if (!isNamed && !intoAny.has(keyword)) continue;
    if (isNamed) index += 1;
    const member = memberAt(schema, keywords.slice(0, index + 1)) as { readonly countsFor?: string } | undefined;
    if (member?.countsFor !== undefined && memberAt(at, ['type']) !== member.countsFor) return false;
    at = memberAt(at, [steps.next().value ?? '']);
  }
  return true;
};

const memberAt = (root: unknown, steps: readonly string[]): unknown =>
  steps.reduce((at: unknown, step) => (at as Readonly<Record<string, unknown>> | undefined)?.[step], root);

const required = ['required', 'is required'] as const;

/** Whether the part of a schema at these keywords is that of a required member. */
const isRequired = (schema: TSchema, keywords: readonly string[]): boolean => {
  const at = keywords.lastIndexOf('properties');
  const above = memberAt(schema, keywords.slice(0, Math.max(0, at))) as { readonly required?: readonly string[] };
  return keywords.length === at + 2 && above.required?.includes(keywords[at + 1] ?? '') === true;
};

const issueOf = (error: ErrorObject, schema: TSchema, value: unknown): Issue => {
  const steps = stepsOf(error.instancePath);
  if (error.keyword === 'required') return issueAt([...steps, String(error.params.missingProperty)], ...required);
  const keywords = stepsOf(error.schemaPath).slice(0, -1).map(decodeURIComponent);
  // In a body, null means that the member is absent.
  if (memberAt(value, steps) === null && isRequired(schema, keywords)) return issueAt(steps, ...required);
  const refusing = memberAt(schema, keywords) as Refusing | undefined;
  return issueAt(steps, ...wordingOf(error, refusing ?? {}));
};
