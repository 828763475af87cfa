/**
 * Validates every request and answer of a test against contracts/openapi.json, as a caller with only the contract
 * would.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

type Json = Record<string, unknown>;
interface Response {
  readonly content?: Readonly<Record<string, { readonly examples?: Readonly<Record<string, unknown>> }>>;
}
interface Documented {
  readonly operationId: string;
  readonly requestBody?: unknown;
  readonly responses: Readonly<Record<string, Response>>;
}

const document = JSON.parse(readFileSync(new URL('../../contracts/openapi.json', import.meta.url), 'utf8')) as Json & {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Documented>>>>;
};

const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats.default(ajv);
ajv.addSchema({ ...document, $id: 'openapi' });

const escaped = (part: string): string => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'));
const compiled = new Map<string, ValidateFunction>();
const validatorAt = (parts: readonly string[]): ValidateFunction => {
  const ref = `openapi#/${parts.map(escaped).join('/')}`;
  const known = compiled.get(ref) ?? ajv.compile({ $ref: ref });
  compiled.set(ref, known);
  return known;
};

interface Found {
  readonly path: string;
  readonly operation: Documented;
}

const literals = (path: string): number => path.split('/').filter((part) => !part.startsWith('{')).length;

/** The documented operation of a request; null where the contract has none. `path` without /v1 and query. */
export const documented = (method: string, path: string): Found | null => {
  const parts = path.split('/');
  const fits = (template: string): boolean => {
    const wanted = template.split('/');
    return wanted.length === parts.length && wanted.every((part, at) => part.startsWith('{') || part === parts[at]);
  };
  const [best] = Object.keys(document.paths)
    .filter(fits)
    .sort((a, b) => literals(b) - literals(a));
  const operation = best === undefined ? undefined : document.paths[best]?.[method.toLowerCase()];
  return best === undefined || operation === undefined ? null : { path: best, operation };
};

export interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly sent: unknown;
  readonly status: number;
  readonly contentType: string;
  readonly body: unknown;
}

/** Overrides without which a target fails when it is published; the contract requires them, the service does not. */
const overridesToPublish: Readonly<Record<string, Json>> = {
  tiktok: { privacyLevel: 'SELF_ONLY' },
  pinterest: { boardId: '1' },
};

/**
 * A request without the courtesies of the service that the contract does not publish: null as absent, `twitter` as `x`,
 * and overrides that are checked only when the post is published (`overrides.test.ts` compares their schemas with the
 * checks).
 */
const withoutCourtesies = (sent: unknown): unknown => {
  if (sent === 'twitter') return 'x';
  if (Array.isArray(sent)) return sent.map(withoutCourtesies);
  if (typeof sent !== 'object' || sent === null) return sent;
  const members = Object.entries(sent).filter(([, value]) => value !== null);
  const published = Object.fromEntries(members.map(([name, value]) => [name, withoutCourtesies(value)]));
  return 'overrides' in published
    ? { ...published, overrides: overridesToPublish[String(published.platform)] ?? {} }
    : published;
};

/** @throws AssertionError where the exchange differs from the contract */
export const assertContract = ({ method, path, sent, status, contentType, body }: Exchange): void => {
  const found = documented(method, path);
  if (found === null) return;
  const { operation } = found;
  const where = `${operation.operationId} ${status}`;
  const place = ['paths', found.path, method.toLowerCase()];
  const answer = operation.responses[String(status)];
  assert.ok(answer !== undefined, `${where}: the contract does not declare this status`);
  const type = contentType.split(';')[0] ?? '';
  assert.ok(answer.content?.[type] !== undefined, `${where}: the contract does not declare ${type}`);
  if (status >= 400) {
    const { code } = body as { readonly code?: string };
    const declared = Object.keys(answer.content[type]?.examples ?? {});
    assert.ok(declared.includes(String(code)), `${where}: the contract does not declare the code ${code}`);
  }
  const check = (parts: readonly string[], value: unknown, what: string): void => {
    const validate = validatorAt(parts);
    assert.ok(validate(value), `${where}: ${what} ${ajv.errorsText(validate.errors)}\n${JSON.stringify(value)}`);
  };
  check([...place, 'responses', String(status), 'content', type, 'schema'], body, 'answer');
  // An accepted body must be valid; a refused one may be anything.
  if (status === 200 && operation.requestBody !== undefined && sent !== undefined) {
    check([...place, 'requestBody', 'content', 'application/json', 'schema'], withoutCourtesies(sent), 'request');
  }
};
