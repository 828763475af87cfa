/** MCP clients of both protocol lines, for tests of the MCP server. */
import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { mcpPart } from '#services/mcp/part.ts';
import type { World, WorldOptions } from './http.ts';
import { oauthWorld } from './oauth.ts';

/** A world whose server is the authorization server and the MCP server as well. */
export const mcpWorld = (options: WorldOptions = {}): Promise<World> =>
  oauthWorld({}, { ...options, parts: [mcpPart(), ...(options.parts ?? [])] });

export type Line = 'auto' | 'legacy' | 'v1';
export const lines: readonly Line[] = ['auto', 'legacy', 'v1'];

export interface Called {
  readonly isError: boolean;
  readonly text: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly code: unknown;
}

export interface Mcp {
  readonly list: () => Promise<readonly ListedTool[]>;
  readonly call: (name: string, args?: Readonly<Record<string, unknown>>) => Promise<Called>;
  readonly close: () => Promise<void>;
}

export interface ListedTool {
  readonly name: string;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly inputSchema: Readonly<Record<string, unknown>>;
  readonly outputSchema?: Readonly<Record<string, unknown>> | undefined;
  readonly annotations?: Readonly<Record<string, unknown>> | undefined;
}

interface Result {
  readonly isError?: boolean | undefined;
  readonly content?: unknown;
  readonly structuredContent?: unknown;
  readonly _meta?: Readonly<Record<string, unknown>> | undefined;
}

const called = ({ isError = false, content, structuredContent, _meta }: Result): Called => ({
  isError: isError === true,
  text: (content as readonly { readonly text?: string }[]).map(({ text }) => text ?? '').join('\n'),
  data: (structuredContent ?? {}) as Called['data'],
  code: _meta?.code,
});

/** A connected client. The client validates answers against the output schemas of the tools that it has listed. */
export const connect = async (world: World, token: string, line: Line = 'auto'): Promise<Mcp> => {
  const url = new URL(world.deps.mcpUrl());
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  const info = { name: 'a test', version: '1' };
  if (line === 'v1') {
    const client = new OldClient(info);
    await client.connect(new OldTransport(url, { requestInit }) as never);
    return {
      list: async () => (await client.listTools()).tools as unknown as readonly ListedTool[],
      call: async (name, args = {}) => called((await client.callTool({ name, arguments: args })) as Result),
      close: () => client.close(),
    };
  }
  const client = new Client(info, line === 'auto' ? { versionNegotiation: { mode: 'auto' } } : {});
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit }));
  return {
    list: async () => (await client.listTools()).tools as unknown as readonly ListedTool[],
    call: async (name, args = {}) => called((await client.callTool({ name, arguments: args })) as Result),
    close: () => client.close(),
  };
};

export const worked = (answer: Called): Called['data'] => {
  assert.ok(!answer.isError, answer.text);
  return answer.data;
};

export const failed = (answer: Called, code: string): string => {
  assert.ok(answer.isError, answer.text);
  assert.equal(answer.code, code, answer.text);
  assert.ok(answer.text.includes(`code: ${code}`) && answer.text.includes('What to do:'), answer.text);
  return answer.text;
};

export interface Raw {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly code: unknown;
}

/** A message as it is, in the form of 2025-11-25. */
export const send = async (
  world: World,
  token: string | null,
  message: unknown,
  more: { readonly headers?: Readonly<Record<string, string>>; readonly method?: string; readonly path?: string } = {},
): Promise<Raw> => {
  const { method = 'POST', path = '/mcp' } = more;
  const response = await fetch(`${world.origin()}${path}`, {
    method,
    headers: {
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...more.headers,
    },
    ...(message === undefined ? {} : { body: typeof message === 'string' ? message : JSON.stringify(message) }),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.includes('json') === true;
  const code = isJson ? (JSON.parse(text) as { error?: { data?: { code?: unknown } } }).error?.data?.code : undefined;
  return { status: response.status, headers: response.headers, text, code };
};

export const callMessage = (name: string, args: unknown = {}, id: string | number = 1) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args },
});
