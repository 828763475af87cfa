/**
 * Holds calls and answers against Google's discovery documents, which are not ours to keep: NETWORK_CONTRACTS names the folder
 * that has `youtube.v3.json` and `youtubeAnalytics.v2.json`. Without the setting nothing is held, and the tests say so; with it
 * a missing file is a failure.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Answer } from './answer.ts';
import type { Request } from './request.ts';

interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema;
}

interface Parameter extends Schema {
  readonly location: string;
  readonly required?: boolean;
  readonly repeated?: boolean;
}

interface Method {
  readonly id: string;
  readonly httpMethod: string;
  readonly path: string;
  readonly parameters: Readonly<Record<string, Parameter>>;
  readonly request?: Schema;
  readonly response?: Schema;
  readonly scopes: readonly string[];
  readonly mediaUpload?: {
    readonly accept: readonly string[];
    readonly maxSize: string;
    readonly protocols: Readonly<Record<string, { readonly path: string }>>;
  };
}

interface Resources {
  readonly methods?: Readonly<Record<string, Method>>;
  readonly resources?: Readonly<Record<string, Resources>>;
}

interface Description extends Resources {
  readonly schemas: Readonly<Record<string, Schema>>;
  readonly parameters: Readonly<Record<string, Parameter>>;
}

const folder = process.env.NETWORK_CONTRACTS ?? '';

/** Whether calls are held. */
export const isHeld = folder !== '';

const names = ['youtube.v3.json', 'youtubeAnalytics.v2.json'];
const descriptions: readonly Description[] = isHeld
  ? names.map((name) => JSON.parse(readFileSync(path.join(folder, name), 'utf8')) as Description)
  : [];

const methodsOf = ({ methods = {}, resources = {} }: Resources): readonly Method[] => [
  ...Object.values(methods),
  ...Object.values(resources).flatMap(methodsOf),
];

class ContractCheck {
  readonly #of: Description;
  readonly faults: string[] = [];

  constructor(of: Description) {
    this.#of = of;
  }

  value(schema: Schema, value: unknown, at: string): void {
    if (schema.$ref !== undefined) {
      this.value(this.#of.schemas[schema.$ref] ?? {}, value, at);
      return;
    }
    const { type, enum: values, items, properties, additionalProperties } = schema;
    const types: Readonly<Record<string, boolean>> = {
      // Whole numbers of 64 bits are written as texts, some of 32 as both.
      ...{ string: typeof value === 'string', boolean: typeof value === 'boolean', number: typeof value === 'number' },
      ...{ integer: Number.isInteger(value), array: Array.isArray(value), any: true },
      object: typeof value === 'object' && value !== null && !Array.isArray(value),
    };
    if (type !== undefined && types[type] !== true) return void this.faults.push(`${at} is no ${type}`);
    if (values !== undefined && !values.includes(String(value))) this.faults.push(`${at} is ${value}`);
    if (Array.isArray(value)) value.forEach((one, place) => void this.value(items ?? {}, one, `${at}[${place}]`));
    else if (types.object === true && (properties ?? additionalProperties) !== undefined) {
      for (const [name, member] of Object.entries(value as Record<string, unknown>)) {
        const known = properties?.[name] ?? additionalProperties;
        if (known === undefined) this.faults.push(`${at}.${name} is not described`);
        else this.value(known, member, `${at}.${name}`);
      }
    }
  }
}

const typed = ({ type }: Schema, text: string): unknown => {
  if (type === 'integer') return Number(text);
  return type === 'boolean' ? text === 'true' || (text === 'false' ? false : text) : text;
};

interface Found {
  readonly of: Description;
  readonly method: Method;
  readonly isUpload: boolean;
}

const methodOf = ({ method: asked, path: at }: Request): Found | null => {
  for (const of of descriptions) {
    for (const method of methodsOf(of)) {
      const isPlain = asked === method.httpMethod && at === `/${method.path}`;
      const isUpload = Object.values(method.mediaUpload?.protocols ?? {}).some((one) => one.path === at);
      // A session of an upload has the address of its method.
      if (isPlain || (isUpload && ['POST', 'PUT'].includes(asked))) return { of, method, isUpload };
    }
  }
  return null;
};

/** Of a session: Google's guide of uploads has them, not the document. */
const ofSessions = ['upload_id'];

/**
 * What a call and its answer have against the documents. A call that the simulator refuses with 400 or 401 may have what it
 * likes.
 * @param scopes of the token that the call bears
 * @param answer null: a test said what is answered
 */
export const contractHeld = (request: Request, scopes: readonly string[], answer: Answer | null): readonly string[] => {
  const isOfApi = /^\/(?:upload\/)?youtube\/v3\/|^\/v2\//.test(request.path);
  if (!isHeld || !isOfApi || answer?.status === 400 || answer?.status === 401) return [];
  const call = `${request.method} ${request.path}`;
  const found = methodOf(request);
  if (found === null) return [`${call}: no such method`];
  const { of, method, isUpload } = found;
  const check = new ContractCheck(of);
  const query = new URLSearchParams(request.query);
  for (const [name, text] of query) {
    const known = method.parameters[name] ?? of.parameters[name];
    if (known === undefined && !(isUpload && ofSessions.includes(name)))
      check.faults.push(`query ${name} is not described`);
    else if (known !== undefined)
      check.value({ ...known, type: known.type ?? 'string' }, typed(known, text), `query ${name}`);
  }
  for (const [name, { required }] of Object.entries(method.parameters)) {
    if (required === true && !query.has(name)) check.faults.push(`query ${name} is missing`);
  }
  const type = request.headers['content-type'] ?? '';
  if (isUpload && (request.method === 'PUT' || method.request === undefined) && request.bytes > 0) {
    const accepts = method.mediaUpload?.accept ?? [];
    const isTaken = accepts.some((one) => one === type || (one.endsWith('/*') && type.startsWith(one.slice(0, -1))));
    if (!isTaken) check.faults.push(`the file is ${type}`);
    if (request.bytes > Number(method.mediaUpload?.maxSize)) check.faults.push('the file is too large');
  } else if (method.request !== undefined && request.method !== 'PUT') {
    check.value(method.request, JSON.parse(request.body.toString('utf8')), 'body');
  } else if (method.request !== undefined && !isUpload) {
    check.value(method.request, JSON.parse(request.body.toString('utf8')), 'body');
  } else if (request.bytes > 0) check.faults.push('the call has a body');
  const isTaken = answer !== null && answer.status < 300;
  if (isTaken && !method.scopes.some((one) => scopes.includes(one))) check.faults.push('was taken without its scope');
  if (isTaken && method.response !== undefined && answer.body !== undefined) {
    check.value(method.response, answer.body, `answer ${answer.status}`);
  }
  return check.faults.map((fault) => `${call}: ${fault}`);
};
