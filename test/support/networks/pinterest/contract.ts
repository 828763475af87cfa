/**
 * Holds calls and answers against Pinterest's OpenAPI description, which is not ours to keep: NETWORK_CONTRACTS names the
 * folder that has `pinterest-openapi.json`. Without the setting nothing is held, and the tests say so; with it a missing
 * file is a failure.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Answer } from './answer.ts';
import type { Request } from './request.ts';

interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly nullable?: boolean;
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly required?: readonly string[];
  readonly allOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly discriminator?: { readonly propertyName: string; readonly mapping?: Readonly<Record<string, string>> };
}

interface Parameter {
  readonly $ref?: string;
  readonly name: string;
  readonly in: 'query' | 'path';
  readonly required?: boolean;
  readonly explode?: boolean;
  readonly schema: Schema;
}

type Content = Readonly<Record<string, { readonly schema: Schema }>>;

interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
}

interface Description {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly parameters: Readonly<Record<string, Parameter>>;
  };
}

const folder = process.env.NETWORK_CONTRACTS ?? '';

/** Whether calls are held. */
export const isHeld = folder !== '';

const description: Description | null = isHeld
  ? (JSON.parse(readFileSync(path.join(folder, 'pinterest-openapi.json'), 'utf8')) as Description)
  : null;

/** "Generate OAuth access token" describes it in words alone. */
const undescribed: Readonly<Record<string, readonly string[]>> = { 'oauth/token': ['continuous_refresh'] };

/** What every client of HTTP sends. */
const headersOfHttp = [
  ...['host', 'connection', 'content-length', 'accept', 'accept-encoding', 'accept-language', 'user-agent'],
  ...['sec-fetch-mode', 'x-test-tag'],
];

const found = <T>(kinds: Readonly<Record<string, T>>, ref: string): T => {
  const one = kinds[ref.split('/').at(-1) ?? ''];
  if (one === undefined) throw new Error(`the description has no ${ref}`);
  return one;
};

class ContractCheck {
  readonly #of: Description;
  readonly #open: readonly string[];
  readonly faults: string[] = [];

  /** @param open members of the body that the description has in words alone */
  constructor(of: Description, open: readonly string[]) {
    this.#of = of;
    this.#open = open;
  }

  /** A schema and all that it is made of, for this value. */
  #parts(schema: Schema, value: unknown): readonly Schema[] {
    if (schema.$ref !== undefined) return this.#parts(found(this.#of.components.schemas, schema.$ref), value);
    const { propertyName = '', mapping } = schema.discriminator ?? {};
    const named = (value as Readonly<Record<string, unknown>> | null)?.[propertyName];
    const chosen = mapping?.[String(named)];
    const own = [schema, ...(schema.allOf ?? []).flatMap((one) => this.#parts(one, value))];
    return chosen === undefined ? own : [...own, ...this.#parts({ $ref: chosen }, value)];
  }

  #fits(schema: Schema, value: unknown): boolean {
    const trial = new ContractCheck(this.#of, this.#open);
    trial.value(schema, value, '');
    return trial.faults.length === 0;
  }

  value(schema: Schema, value: unknown, at: string): void {
    const parts = this.#parts(schema, value);
    if (value === null) {
      if (!parts.some(({ nullable }) => nullable === true)) this.#fault(at, 'may not be null');
      return;
    }
    for (const part of parts) {
      const forms = part.oneOf ?? part.anyOf ?? [];
      const fitting = forms.filter((one) => this.#fits(one, value)).length;
      // Two lists of figures exclude each other by `oneOf`, and share most of their names.
      const mayOverlap = part.anyOf !== undefined || forms.every((one) => one.enum !== undefined);
      if (forms.length > 0 && (mayOverlap ? fitting === 0 : fitting !== 1)) {
        this.#fault(at, `fits ${fitting} of its forms`);
      }
      this.#scalar(part, value, at);
    }
    if (Array.isArray(value)) {
      const items = parts.find((part) => part.items !== undefined)?.items;
      if (items !== undefined) value.forEach((one, place) => void this.value(items, one, `${at}[${place}]`));
    } else if (typeof value === 'object') {
      this.#members(parts, value as Readonly<Record<string, unknown>>, at);
    }
  }

  #fault(at: string, what: string): void {
    this.faults.push(`${at} ${what}`);
  }

  #scalar({ type, enum: values, pattern, maxLength, ...rest }: Schema, value: unknown, at: string): void {
    const types: Readonly<Record<string, boolean>> = {
      ...{ string: typeof value === 'string', boolean: typeof value === 'boolean', number: typeof value === 'number' },
      ...{ integer: Number.isInteger(value), array: Array.isArray(value) },
      object: typeof value === 'object' && !Array.isArray(value),
    };
    if (type !== undefined && types[type] !== true) this.#fault(at, `is no ${type}`);
    if (values !== undefined && !values.includes(value)) this.#fault(at, `is not one of ${values.join(', ')}`);
    if (typeof value === 'string') {
      if (pattern !== undefined && !new RegExp(pattern).test(value)) this.#fault(at, `does not match ${pattern}`);
      if (maxLength !== undefined && [...value].length > maxLength) this.#fault(at, `is longer than ${maxLength}`);
    }
    const { minimum = -Infinity, maximum = Infinity, minItems = 0, maxItems = Infinity } = rest;
    if (typeof value === 'number' && (value < minimum || value > maximum)) this.#fault(at, 'is out of its range');
    if (Array.isArray(value) && (value.length < minItems || value.length > maxItems))
      this.#fault(at, 'has no such length');
  }

  #members(parts: readonly Schema[], value: Readonly<Record<string, unknown>>, at: string): void {
    const known = new Map<string, Schema>();
    for (const { properties = {} } of parts) {
      for (const [name, schema] of Object.entries(properties)) known.set(name, schema);
    }
    const others = parts.find((part) => part.additionalProperties !== undefined)?.additionalProperties;
    const isFree = known.size === 0 || others === true;
    for (const [name, member] of Object.entries(value)) {
      const schema = known.get(name) ?? (typeof others === 'object' ? others : undefined);
      if (schema !== undefined) this.value(schema, member, `${at}.${name}`);
      else if (!isFree && !this.#open.includes(name)) this.#fault(`${at}.${name}`, 'is not described');
    }
    for (const name of parts.flatMap(({ required = [] }) => required)) {
      if (!(name in value)) this.#fault(`${at}.${name}`, 'is missing');
    }
  }
}

const prefix = '/v5';

interface Found {
  readonly operation: Operation;
  readonly values: ReadonlyMap<string, string>;
}

const operationOf = ({ paths }: Description, { method, path: at }: Request): Found | null => {
  const asked = at.slice(prefix.length).split('/');
  for (const [template, operations] of Object.entries(paths)) {
    const wanted = template.split('/');
    const operation = operations[method.toLowerCase()];
    const isIt = wanted.every((one, place) => one.startsWith('{') || one === asked[place]);
    if (operation === undefined || wanted.length !== asked.length || !isIt) continue;
    const values = wanted.flatMap((one, place): [string, string][] =>
      one.startsWith('{') ? [[one.slice(1, -1), asked[place] ?? '']] : [],
    );
    return { operation, values: new Map(values) };
  }
  return null;
};

const typed = ({ schema, explode }: Parameter, text: string): unknown => {
  if (schema.type === 'integer') return Number(text);
  if (schema.type === 'boolean') return text === 'true' ? true : text === 'false' ? false : text;
  return schema.type === 'array' && explode === false ? text.split(',') : text;
};

const checkParameters = (
  of: Description,
  { operation, values }: Found,
  { query }: Request,
  check: ContractCheck,
): void => {
  const known = (operation.parameters ?? []).map((one) =>
    one.$ref === undefined ? one : found(of.components.parameters, one.$ref),
  );
  const places = { query: new Map(query), path: values };
  for (const one of known) {
    const text = places[one.in].get(one.name);
    if (text !== undefined) check.value(one.schema, typed(one, text), `${one.in} ${one.name}`);
    else if (one.required === true) check.faults.push(`${one.in} ${one.name} is missing`);
  }
  for (const name of query.keys()) {
    if (!known.some((one) => one.in === 'query' && one.name === name))
      check.faults.push(`query ${name} is not described`);
  }
};

const checkHeaders = ({ operation }: Found, { headers }: Request, check: ContractCheck): void => {
  const scheme = /^\w+/.exec(headers.authorization ?? '')?.[0] ?? 'none';
  const wanted = operation.security.some((one) => 'basic' in one) ? 'Basic' : 'Bearer';
  if (scheme !== wanted) check.faults.push(`authorization is ${scheme} and not ${wanted}`);
  for (const name of Object.keys(headers)) {
    if (![...headersOfHttp, 'authorization', 'content-type'].includes(name)) check.faults.push(`header ${name}`);
  }
};

const checkBody = ({ operation }: Found, { headers, body }: Request, check: ContractCheck): void => {
  const content = operation.requestBody?.content;
  if (content === undefined) {
    if (body.length > 0) check.faults.push('the call has a body');
    return;
  }
  const type = headers['content-type'] ?? '';
  const schema = content[type]?.schema;
  if (schema === undefined) return void check.faults.push(`the body is ${type}`);
  const text = body.toString('utf8');
  check.value(
    schema,
    type === 'application/json' ? JSON.parse(text) : Object.fromEntries(new URLSearchParams(text)),
    'body',
  );
};

const answerFaults = (of: Description, { operation }: Found, { status, body }: Answer): readonly string[] => {
  const { responses } = operation;
  const described = responses[String(status)] ?? (status >= 400 ? responses.default : undefined);
  if (described === undefined) return [`an answer with ${status} is not described`];
  const schema = described.content?.['application/json']?.schema;
  const check = new ContractCheck(of, []);
  // Some operations describe their successes without a body.
  if (schema !== undefined) check.value(schema, body, `answer ${status}`);
  return check.faults;
};

/**
 * What a call and its answer have against the description. A call that the simulator refuses with 400 or 401 may have
 * what it likes.
 * @param scopes of the token that the call bears
 * @param answer null: a test said what is answered
 */
export const contractHeld = (request: Request, scopes: readonly string[], answer: Answer | null): readonly string[] => {
  if (description === null || !request.path.startsWith(`${prefix}/`)) return [];
  const call = `${request.method} ${request.path}`;
  const known = operationOf(description, request);
  if (known === null) return [`${call}: no such operation`];
  const { operationId, security } = known.operation;
  const check = new ContractCheck(description, undescribed[operationId] ?? []);
  checkParameters(description, known, request, check);
  checkHeaders(known, request, check);
  checkBody(known, request, check);
  const wanted = security.flatMap((one) => one.pinterest_oauth2 ?? []);
  const isTaken = answer !== null && answer.status < 300;
  const faults = [
    ...(answer?.status === 400 || answer?.status === 401 ? [] : check.faults),
    ...(isTaken ? wanted.filter((one) => !scopes.includes(one)).map((one) => `was taken without ${one}`) : []),
    ...(answer === null ? [] : answerFaults(description, known, answer)),
  ];
  return faults.map((fault) => `${call}: ${fault}`);
};
