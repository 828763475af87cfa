import {
  bodySchemaOf,
  type Contract,
  exampleOf,
  nameOfRef,
  type OperationNode,
  type ParameterNode,
  parametersOf,
} from './contract.ts';

/** One call of an operation with the values of the contract's examples: what every sample shows in its language. */
interface SampleCall {
  readonly operationId: string;
  readonly tag: string;
  readonly method: string;
  /** With parameters as `{id}`. */
  readonly path: string;
  readonly pathParams: readonly SampleParam[];
  readonly query: readonly SampleParam[];
  readonly headers: readonly SampleParam[];
  /** Undefined: the operation is called without a body. */
  readonly body: unknown;
  /** Name of the body's schema in the contract; null where it has none of its own. */
  readonly bodySchema: string | null;
  readonly needsToken: boolean;
}

interface SampleParam {
  readonly name: string;
  readonly value: string | number;
  /** Of its schema. */
  readonly format: string | null;
}

/** Rows of a list that a sample asks for. */
const sampleLimit = 10;

type Row = Readonly<Record<string, unknown>>;

const rowOf = ({ responses }: OperationNode): Row => {
  const shown = exampleOf(responses['200']?.content) as { readonly data?: unknown } | undefined;
  const data = shown?.data;
  const row: unknown = Array.isArray(data) ? data[0] : data;
  return typeof row === 'object' && row !== null ? (row as Row) : {};
};

/** `clients` → `client`, `analytics` stays. */
const singular = (segment: string): string => segment.replace(/(?<!ic)s$/, '');

/**
 * The value of a path parameter, from the example of the answer: `id` in /webhooks/{id}/deliveries is the row's
 * `webhookId`, in /webhooks/{id} its `id`.
 */
const pathValue = (path: string, name: string, row: Row): unknown => {
  const before =
    path
      .slice(0, path.indexOf(`{${name}}`))
      .split('/')
      .at(-2) ?? '';
  const noun = singular(before);
  const social = `social${noun.charAt(0).toUpperCase()}${noun.slice(1)}Id`;
  const names = name === 'id' ? [`${noun}Id`, social, 'id'] : [name, 'id'];
  return names.map((one) => row[one]).find((value) => typeof value === 'string');
};

const givenExample = ({ example, schema }: ParameterNode): unknown =>
  example ?? schema?.example ?? schema?.examples?.[0];

const shown = (param: ParameterNode, value: unknown): SampleParam => ({
  name: param.name,
  value: typeof value === 'number' ? value : String(value),
  format: param.schema?.format ?? null,
});

/** `createPost` → `create-post`. */
const kebab = (id: string): string => id.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

/** @throws Error where the contract has no value for something that the call needs */
const sampleCallOf = (contract: Contract, path: string, method: string, operation: OperationNode): SampleCall => {
  const { operationId, tags, security } = operation;
  const params = parametersOf(contract, operation);
  const row = rowOf(operation);
  const wanted = (param: ParameterNode): unknown => {
    const { name, in: place } = param;
    if (name === 'Idempotency-Key') return `${kebab(operationId)}-1`;
    if (name === 'limit') return sampleLimit;
    const value = givenExample(param) ?? (place === 'path' ? pathValue(path, name, row) : undefined);
    if (value === undefined) throw new Error(`${operationId}: the contract has no example for ${name}`);
    return value;
  };
  const of = (place: ParameterNode['in']): readonly SampleParam[] =>
    params
      .filter((param) => param.in === place && (param.required === true || param.name === 'limit'))
      .map((param) => shown(param, wanted(param)));
  const schema = bodySchemaOf(operation);
  const body = exampleOf(operation.requestBody?.content);
  if (schema !== undefined && body === undefined) throw new Error(`${operationId}: the contract has no example body`);
  return {
    operationId,
    tag: tags[0] ?? 'default',
    method: method.toUpperCase(),
    path,
    pathParams: of('path'),
    query: of('query'),
    headers: of('header'),
    body,
    bodySchema: schema?.$ref === undefined ? null : nameOfRef(schema.$ref),
    needsToken: security === undefined || security.length > 0,
  };
};

export const sampleCallsOf = (contract: Contract): readonly SampleCall[] =>
  Object.entries(contract.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => sampleCallOf(contract, path, method, operation)),
  );

/** In single quotes, for a POSIX shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

const filledPath = ({ path, pathParams, query }: SampleCall): string => {
  const filled = pathParams.reduce(
    (text, { name, value }) => text.replace(`{${name}}`, encodeURIComponent(String(value))),
    path,
  );
  const asked = query.map(({ name, value }) => `${name}=${encodeURIComponent(String(value))}`).join('&');
  return asked === '' ? filled : `${filled}?${asked}`;
};

const curlSample = (call: SampleCall, baseUrl: string): string => {
  const { method, headers, body, needsToken } = call;
  const url = `${baseUrl}${filledPath(call)}`;
  const first = `curl -sS${method === 'GET' ? '' : ` -X ${method}`} ${url.includes('?') ? quoted(url) : url}`;
  const lines = [
    first,
    ...(needsToken ? ['-H "Authorization: Bearer $POSTLINE_KEY"'] : []),
    ...(body === undefined ? [] : [`-H 'Content-Type: application/json'`]),
    ...headers.map(({ name, value }) => `-H ${quoted(`${name}: ${value}`)}`),
    ...(body === undefined ? [] : [`-d ${quoted(JSON.stringify(body, null, 2))}`]),
  ];
  return `${lines.join(' \\\n  ')}\n`;
};

/** `createPost` → `create_post`, `Idempotency-Key` → `idempotency_key`. */
const snake = (name: string): string =>
  name
    .replace(/([a-z\d])([A-Z])/g, '$1_$2')
    .replace(/[^A-Za-z\d]+/g, '_')
    .toLowerCase();

const text = (value: string): string => JSON.stringify(value);

/** A JSON value as Python writes it. */
export const literal = (value: unknown, indent = ''): string => {
  if (typeof value === 'string') return text(value);
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value !== 'object') return JSON.stringify(value);
  const deeper = `${indent}    `;
  const inner = Array.isArray(value)
    ? value.map((one) => literal(one, deeper))
    : Object.entries(value).map(([name, one]) => `${text(name)}: ${literal(one, deeper)}`);
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  const line = `${open}${inner.join(', ')}${close}`;
  if (inner.length === 0 || (!line.includes('\n') && indent.length + line.length <= 60)) return line;
  return `${open}\n${inner.map((one) => `${deeper}${one},`).join('\n')}\n${indent}${close}`;
};

const argument = ({ value, format }: SampleParam): string =>
  format === 'uuid' ? `UUID(${literal(value)})` : literal(value);

/** A call through the client that openapi-python-client generates: the package `postline_client`. */
const pythonSample = (call: SampleCall, baseUrl: string): string => {
  const { operationId, tag, pathParams, query, headers, body, bodySchema, needsToken } = call;
  const module = snake(operationId);
  const pascal = operationId.charAt(0).toUpperCase() + operationId.slice(1);
  const model = bodySchema ?? `${pascal}Body`;
  const named = [...query, ...headers].map((one) => `    ${snake(one.name)}=${argument(one)},`);
  const usesUuid = [...pathParams, ...query].some(({ format }) => format === 'uuid');
  const client = needsToken ? 'AuthenticatedClient' : 'Client';
  const lines = [
    ...(needsToken ? ['import os'] : []),
    ...(usesUuid ? ['from uuid import UUID'] : []),
    ...(needsToken || usesUuid ? [''] : []),
    `from postline_client import ${client}`,
    `from postline_client.api.${snake(tag)} import ${module}`,
    ...(body === undefined ? [] : [`from postline_client.models import ${model}`]),
    '',
    needsToken
      ? `client = AuthenticatedClient(\n    base_url=${text(baseUrl)},\n    token=os.environ["POSTLINE_KEY"],\n)`
      : `client = Client(base_url=${text(baseUrl)})`,
    `answer = ${module}.sync(`,
    ...pathParams.map((one) => `    ${argument(one)},`),
    '    client=client,',
    ...(body === undefined ? [] : [`    body=${model}.from_dict(${literal(body, '    ')}),`]),
    ...named,
    ')',
    'print(answer)',
  ];
  return `${lines.join('\n')}\n`;
};

/** What the reader's program reads; ours reads its settings in one place. */
const keyVariable = ['process', 'env', 'POSTLINE_KEY'].join('.');

const isName = /^[A-Za-z_$][\w$]*$/;
const key = (name: string): string => (isName.test(name) ? name : quotedText(name));
const quotedText = (value: string): string =>
  `'${JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;

/** A JSON value as TypeScript writes it, in lines of at most 80 characters where it can be. */
export const typescriptLiteral = (value: unknown, indent = ''): string => {
  if (typeof value === 'string') return quotedText(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const deeper = `${indent}  `;
  const inner = Array.isArray(value)
    ? value.map((one) => typescriptLiteral(one, deeper))
    : Object.entries(value).map(([name, one]) => `${key(name)}: ${typescriptLiteral(one, deeper)}`);
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  if (inner.length === 0) return `${open}${close}`;
  const pad = Array.isArray(value) ? '' : ' ';
  const line = `${open}${pad}${inner.join(', ')}${pad}${close}`;
  if (!line.includes('\n') && indent.length + line.length <= 60) return line;
  return `${open}\n${inner.map((one) => `${deeper}${one},`).join('\n')}\n${indent}${close}`;
};

const object = (params: readonly SampleParam[]): Readonly<Record<string, string | number>> =>
  Object.fromEntries(params.map(({ name, value }) => [name, value]));

/** A call through openapi-fetch, typed by what openapi-typescript makes of the contract. */
const typescriptSample = (call: SampleCall, baseUrl: string): string => {
  const { method, path, pathParams, query, headers, body, needsToken } = call;
  const params = {
    ...(pathParams.length === 0 ? {} : { path: object(pathParams) }),
    ...(query.length === 0 ? {} : { query: object(query) }),
    ...(headers.length === 0 ? {} : { header: object(headers) }),
  };
  const init = {
    ...(Object.keys(params).length === 0 ? {} : { params }),
    ...(body === undefined ? {} : { body }),
  };
  const options = Object.keys(init).length === 0 ? '' : `, ${typescriptLiteral(init)}`;
  const token = needsToken ? `\n  headers: { Authorization: \`Bearer \${${keyVariable}}\` },` : '';
  return `import createClient from 'openapi-fetch';
import type { paths } from ${quotedText('./postline.js')};

const client = createClient<paths>({
  baseUrl: ${quotedText(baseUrl)},${token}
});
const { data, error } = await client.${method}(${quotedText(path)}${options});
if (error) throw new Error(error.code);
console.log(data);
`;
};

/** What the viewer shows beside an operation, one for each language. */
export interface CodeSample {
  readonly lang: string;
  readonly label: string;
  readonly source: string;
}

const samplesOf = (call: SampleCall, baseUrl: string): readonly CodeSample[] => [
  { lang: 'bash', label: 'curl', source: curlSample(call, baseUrl) },
  { lang: 'typescript', label: 'TypeScript', source: typescriptSample(call, baseUrl) },
  { lang: 'python', label: 'Python', source: pythonSample(call, baseUrl) },
];

/** By operationId. */
export const allSamples = (contract: Contract, baseUrl: string): ReadonlyMap<string, readonly CodeSample[]> =>
  new Map(sampleCallsOf(contract).map((call) => [call.operationId, samplesOf(call, baseUrl)]));
