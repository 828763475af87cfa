/**
 * Holds every exchange of a test against contracts/openapi.json, as a caller with only the contract would, and every
 * refusal against the codes that its operation declares.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { ErrorCode } from '#domain/codes.ts';
import { issueCodes } from '#schemas/issues.ts';
import { scheduleTypes } from '#schemas/post.ts';
import { maxIssues } from '#schemas/validator.ts';
import { errors, isErrorCode } from '#services/api/call/errors.ts';
import type { Operation } from '#services/api/call/operation.ts';
import { codesOf } from '#services/api/contract/codes.ts';
import { operations } from '#services/api/operations.ts';
import { isJargon } from './jargon.ts';
import { resolves } from './spoiled.ts';

type Json = Record<string, unknown>;
interface Response {
  /** Refusals are components. */
  readonly $ref?: string;
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly content?: Readonly<Record<string, unknown>>;
}
interface Documented {
  readonly operationId: string;
  readonly requestBody?: { readonly required: boolean };
  readonly responses: Readonly<Record<string, Response>>;
}

const document = JSON.parse(readFileSync(new URL('../../contracts/openapi.json', import.meta.url), 'utf8')) as Json & {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Documented>>>>;
  readonly components: { readonly responses: Readonly<Record<string, Response>> };
};

/** A member that the contract does not declare is lost in every typed client, so an answer may have none. */
const closed = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const parts = Object.fromEntries(
    Object.entries(schema).map(([name, part]) => [name, name.startsWith('example') ? part : closed(part)]),
  );
  const { type, properties, additionalProperties, patternProperties } = schema as Json;
  const isOpen = type === 'object' && properties !== undefined && !additionalProperties && !patternProperties;
  return isOpen ? { ...parts, additionalProperties: false } : parts;
};

/** Made at the first exchange. That the document is one of its kind is for the tests of the contract. */
let made: Ajv2020 | undefined;
const ajv = (): Ajv2020 => {
  if (made !== undefined) return made;
  made = new Ajv2020({ strict: false, allErrors: true, validateSchema: false, code: { optimize: false } });
  addFormats.default(made);
  made.addSchema({ ...document, $id: 'requests' });
  made.addSchema({ ...(closed(document) as Json), $id: 'answers' });
  return made;
};

const escaped = (part: string): string => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'));
const compiled = new Map<string, ValidateFunction>();
/** Where a part of the document is nothing but a reference, the schema it names: every problem is one schema. */
const placeOf = (parts: readonly string[]): readonly string[] => {
  const part = parts.reduce((at: unknown, step) => (at as Json | undefined)?.[step], document) as Json | undefined;
  const { $ref, ...rest } = part ?? {};
  return typeof $ref === 'string' && Object.keys(rest).length === 0 ? $ref.split('/').slice(1) : parts;
};
const validatorAt = (of: 'requests' | 'answers', parts: readonly string[]): ValidateFunction => {
  const ref = `${of}#/${placeOf(parts).map(escaped).join('/')}`;
  const known = compiled.get(ref) ?? ajv().compile({ $ref: ref });
  compiled.set(ref, known);
  return known;
};

interface Found {
  readonly path: string;
  readonly operation: Documented;
}

const templates = Object.entries(document.paths)
  .map(([path, operations]) => ({ path, operations, parts: path.split('/') }))
  .map((one) => ({ ...one, literals: one.parts.filter((part) => !part.startsWith('{')).length }))
  .sort((a, b) => b.literals - a.literals);

/** The documented operation of a request; null where the contract has none. `path` without /v1 and query. */
export const documented = (method: string, path: string): Found | null => {
  const parts = path.split('/');
  const best = templates.find(
    ({ parts: wanted }) =>
      wanted.length === parts.length && wanted.every((part, at) => part === parts[at] || part.startsWith('{')),
  );
  const operation = best?.operations[method.toLowerCase()];
  return best === undefined || operation === undefined ? null : { path: best.path, operation };
};

export interface Exchange {
  readonly method: string;
  /** Without /v1 and query. */
  readonly path: string;
  /** Undefined where it is not known. */
  readonly sent?: unknown;
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Parsed where it is JSON, else the text. */
  readonly body: unknown;
}

const timeTypes: Readonly<Record<string, string>> = {
  scheduledAt: 'at',
  scheduledLocal: 'at',
  from: 'range',
  to: 'range',
};

/**
 * A request without the courtesies of the service that the contract does not publish: `twitter` as `x`, members of another
 * schedule type, which may hold anything, and overrides that are checked only when the post is published
 * (`overrides.test.ts` compares their schema with the checks).
 */
const withoutCourtesies = (sent: unknown): unknown => {
  if (sent === 'twitter') return 'x';
  if (Array.isArray(sent)) return sent.map(withoutCourtesies);
  if (typeof sent !== 'object' || sent === null) return sent;
  const { type } = sent as { readonly type?: unknown };
  const isSchedule = scheduleTypes.some((one) => one === type);
  const members = Object.entries(sent).filter(([name]) => !(isSchedule && (timeTypes[name] ?? type) !== type));
  const published = Object.fromEntries(members.map(([name, value]) => [name, withoutCourtesies(value)]));
  return 'overrides' in published ? { ...published, overrides: {} } : published;
};

/** Headers of HTTP itself, which no contract lists. */
const plainHeaders = new Set([
  ...['connection', 'content-length', 'content-type', 'date', 'keep-alive', 'transfer-encoding', 'cache-control'],
  'strict-transport-security',
  // Of the pages for people.
  ...['content-security-policy', 'referrer-policy', 'x-content-type-options', 'x-frame-options'],
]);
/** On every answer. */
const everywhere = ['x-correlation-id', 'ratelimit-policy', 'ratelimit'];

const declaredCodes = new Map<string, ReadonlySet<ErrorCode>>();
const codesBy = (id: string): ReadonlySet<ErrorCode> => {
  const known = declaredCodes.get(id);
  if (known !== undefined) return known;
  const made = new Set(codesOf(operations.find((one) => one.id === id) as Operation));
  declaredCodes.set(id, made);
  return made;
};

interface ProblemBody {
  readonly status?: number;
  readonly code?: string;
  readonly errors?: readonly { readonly path: string; readonly message: string; readonly code: string }[];
}

/** What is wrong with a problem, whichever operation answers it. */
const problemFaults = (status: number, body: unknown): readonly string[] => {
  const { code = '', errors: issues = [], ...rest } = (body ?? {}) as ProblemBody;
  const faults: string[] = [];
  if (!isErrorCode(code)) faults.push(`the code ${code} is not in the catalogue`);
  else if (errors[code].status !== status)
    faults.push(`${code} has the status ${errors[code].status} in the catalogue`);
  if (rest.status !== status) faults.push(`the body says ${rest.status}`);
  if (issues.length > maxIssues) faults.push(`${issues.length} entries in errors`);
  for (const issue of issues) {
    if (!Object.hasOwn(issueCodes, issue.code)) faults.push(`the code ${issue.code} of an entry is not in the list`);
    if (issue.path !== '' && !issue.path.startsWith('/')) faults.push(`${issue.path} is no JSON Pointer`);
    if (isJargon(issue.message)) faults.push(`"${issue.message}" is not for people`);
  }
  return faults;
};

/** The ways in which an exchange differs from the contract. */
export const contractFaults = ({ method, path, sent, status, headers, body }: Exchange): readonly string[] => {
  const found = documented(method, path);
  const type = (headers['content-type'] ?? '').split(';')[0] ?? '';
  const where = `${found?.operation.operationId ?? `${method} ${path}`} ${status}`;
  const faults: string[] = [];
  const check = (of: 'requests' | 'answers', parts: readonly string[], value: unknown): void => {
    const validate = validatorAt(of, parts);
    if (!validate(value)) faults.push(`${of} ${ajv().errorsText(validate.errors)}\n${JSON.stringify(value)}`);
  };
  if (status >= 400) faults.push(...problemFaults(status, body));
  if (found === null) {
    if (status >= 400) check('answers', ['components', 'schemas', 'Problem'], body);
    return faults.map((one) => `${where}: ${one}`);
  }
  const { operation } = found;
  const place = ['paths', found.path, method.toLowerCase()];
  const own = operation.responses[String(status)];
  const shared = own?.$ref?.split('/').at(-1);
  const answer = shared === undefined ? own : document.components.responses[shared];
  const at = shared === undefined ? [...place, 'responses', String(status)] : ['components', 'responses', shared];
  if (answer === undefined) faults.push('the contract does not declare this status');
  else if (answer.content?.[type] === undefined) faults.push(`the contract does not declare ${type}`);
  else check('answers', [...at, 'content', type, 'schema'], body);
  if (status >= 400) {
    const { code } = body as ProblemBody;
    if (!(codesBy(operation.operationId) as ReadonlySet<unknown>).has(code)) {
      faults.push(`the operation does not declare the code ${code}`);
    }
  }
  const declared = new Set(Object.keys(answer?.headers ?? {}).map((name) => name.toLowerCase()));
  for (const name of Object.keys(headers)) {
    if (!plainHeaders.has(name) && !declared.has(name)) faults.push(`the contract does not declare the header ${name}`);
  }
  // The wait for a quota is up to a month: no client may sleep it by a header.
  const mayWait = (status === 429 && (body as ProblemBody).code !== 'quota_exceeded') || status === 503;
  for (const name of [...everywhere, ...(mayWait ? ['retry-after'] : [])]) {
    if (headers[name] === undefined) faults.push(`the header ${name} is missing`);
  }
  // A draft is published from its stored body: there a pointer leads into the draft.
  if (status === 422 && sent !== undefined && operation.operationId !== 'publishPost') {
    const lost = ((body as ProblemBody).errors ?? []).filter((issue) => !resolves(sent, issue.path));
    for (const { path: pointer } of lost) faults.push(`the pointer ${pointer} leads nowhere in the body`);
  }
  // An accepted body must be valid; a refused one may be anything. Where a body is optional, null is none.
  const { requestBody } = operation;
  const isNone = sent === undefined || (sent === null && requestBody?.required === false);
  if (status === 200 && requestBody !== undefined && !isNone) {
    check('requests', [...place, 'requestBody', 'content', 'application/json', 'schema'], withoutCourtesies(sent));
  }
  return faults.map((one) => `${where}: ${one}`);
};

/** @throws AssertionError where the exchange differs from the contract */
export const assertContract = (exchange: Exchange): void => {
  const faults = contractFaults(exchange);
  assert.equal(faults.length, 0, faults.join('\n'));
};
