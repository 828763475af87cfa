import type { SampleCall } from './call.ts';

/** In single quotes, for a POSIX shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

export const filledPath = ({ path, pathParams, query }: SampleCall): string => {
  const filled = pathParams.reduce(
    (text, { name, value }) => text.replace(`{${name}}`, encodeURIComponent(String(value))),
    path,
  );
  const asked = query.map(({ name, value }) => `${name}=${encodeURIComponent(String(value))}`).join('&');
  return asked === '' ? filled : `${filled}?${asked}`;
};

export const curlSample = (call: SampleCall, baseUrl: string): string => {
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
