import type { SampleCall, SampleParam } from './call.ts';

/** A call through the client that openapi-python-client generates: the package `postline_client`. */

/** `createPost` → `create_post`, `Idempotency-Key` → `idempotency_key`. */
export const snake = (name: string): string =>
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

export const pythonSample = (call: SampleCall, baseUrl: string): string => {
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
