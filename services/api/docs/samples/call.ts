import {
  bodySchemaOf,
  type Contract,
  exampleOf,
  nameOfRef,
  type OperationNode,
  type ParameterNode,
  parametersOf,
} from '../contract.ts';

/** One call of an operation with the values of the contract's examples: what every sample shows in its language. */
export interface SampleCall {
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

export interface SampleParam {
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
export const sampleCallOf = (
  contract: Contract,
  path: string,
  method: string,
  operation: OperationNode,
): SampleCall => {
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
