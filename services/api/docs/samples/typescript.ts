import type { SampleCall, SampleParam } from './call.ts';

/** A call through openapi-fetch, typed by what openapi-typescript makes of the contract. */

/** What the reader's program reads; ours reads its settings in one place. */
const keyVariable = ['process', 'env', 'POSTLINE_KEY'].join('.');

const isName = /^[A-Za-z_$][\w$]*$/;
const key = (name: string): string => (isName.test(name) ? name : text(name));
const text = (value: string): string =>
  `'${JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;

/** A JSON value as TypeScript writes it, in lines of at most 80 characters where it can be. */
export const literal = (value: unknown, indent = ''): string => {
  if (typeof value === 'string') return text(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const deeper = `${indent}  `;
  const inner = Array.isArray(value)
    ? value.map((one) => literal(one, deeper))
    : Object.entries(value).map(([name, one]) => `${key(name)}: ${literal(one, deeper)}`);
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  if (inner.length === 0) return `${open}${close}`;
  const pad = Array.isArray(value) ? '' : ' ';
  const line = `${open}${pad}${inner.join(', ')}${pad}${close}`;
  if (!line.includes('\n') && indent.length + line.length <= 60) return line;
  return `${open}\n${inner.map((one) => `${deeper}${one},`).join('\n')}\n${indent}${close}`;
};

const object = (params: readonly SampleParam[]): Readonly<Record<string, string | number>> =>
  Object.fromEntries(params.map(({ name, value }) => [name, value]));

export const typescriptSample = (call: SampleCall, baseUrl: string): string => {
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
  const options = Object.keys(init).length === 0 ? '' : `, ${literal(init)}`;
  const token = needsToken ? `\n  headers: { Authorization: \`Bearer \${${keyVariable}}\` },` : '';
  return `import createClient from 'openapi-fetch';
import type { paths } from ${text('./postline.js')};

const client = createClient<paths>({
  baseUrl: ${text(baseUrl)},${token}
});
const { data, error } = await client.${method}(${text(path)}${options});
if (error) throw new Error(error.code);
console.log(data);
`;
};
