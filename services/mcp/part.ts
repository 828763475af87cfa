import { Readable } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';
import type { Context, Middleware } from 'koa';
import { Type } from 'typebox';
import { costOf } from '#services/api/call/allowances.ts';
import { bodyCost, type HeldBytes } from '#services/api/call/bodies.ts';
import { metered } from '#services/api/call/input.ts';
import { parseJson } from '#services/api/call/json.ts';
import type { Principal } from '#services/api/call/operation.ts';
import { logFailure, toProblem } from '#services/api/call/problems.ts';
import { Refusal } from '#services/api/call/refusal.ts';
import { stateOf } from '#services/api/http/every-request.ts';
import { isJsonType, readBody } from '#services/api/http/rest.ts';
import type { Part, PartTools } from '#services/api/parts.ts';
import { isHost } from '#services/auth/hosts.ts';
import { metadataOf, metadataPathOf, metadataUrlOf } from '#services/auth/protected-resource.ts';
import type { ToolRequest } from './call.ts';
import { refuse, refuseHost, refuseMethod, refuseOrigin } from './refuse.ts';
import type { mcpHandler } from './server.ts';

/**
 * The pages that may call the server. Pages of any site over TLS may: each call needs a token that a page has only if a
 * person gave it one, and no cookie counts. A page without TLS may only be one of this machine, or of this installation,
 * because others on the way could have written it; so a page that reaches us under a name of its own (DNS rebinding) is
 * refused, as the protocol demands.
 */
const isLoopback = (hostname: string): boolean =>
  hostname === 'localhost' ||
  hostname.endsWith('.localhost') ||
  hostname === '[::1]' ||
  /^127\.\d+\.\d+\.\d+$/.test(hostname);

/** @param own addresses of this installation */
const isAllowedOrigin = (origin: string, own: readonly string[]): boolean => {
  if (!URL.canParse(origin)) return false;
  const url = new URL(origin);
  // An origin and nothing more: no path, no user.
  if (url.origin !== origin.toLowerCase()) return false;
  if (url.protocol === 'https:') return true;
  return url.protocol === 'http:' && (isLoopback(url.hostname) || own.some((one) => new URL(one).host === url.host));
};

interface McpOptions {
  /** Of this service, as clients show it. */
  readonly version?: string;
}

type Handler = ReturnType<typeof mcpHandler>;

const rootDocument = '/.well-known/oauth-protected-resource';

const bare = (path: string): string => (path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path);

type Place = 'server' | 'document' | 'none' | 'wrong host';

/** The paths of the server and of the document about it. */
const pathsOf = (mcp: string, others: readonly string[]) => {
  const { pathname, host } = new URL(mcp);
  // The root form names the one resource of a host: the api has its own.
  const isAlone = others.every((other) => new URL(other).host !== host);
  return {
    server: bare(pathname),
    documents: new Set([metadataPathOf(mcp), ...(isAlone ? [rootDocument] : [])]),
  };
};

/** What a request is for. Its own host is pinned; what is for another host of ours is left to the next. */
const placesOf = ({ deps }: PartTools) => {
  const others = () => [deps.baseUrl(), deps.authUrl(), deps.consoleUrl()];
  // Every request of the api passes here. The addresses are known once the server listens, and stay.
  let known: { readonly mcp: string; readonly paths: ReturnType<typeof pathsOf> } | null = null;
  return (path: string, sentHost: string | undefined): Place => {
    const mcp = deps.mcpUrl();
    if (known?.mcp !== mcp) known = { mcp, paths: pathsOf(mcp, others()) };
    const { server, documents } = known.paths;
    const isServer = bare(path) === server;
    if (!isServer && !documents.has(path)) return 'none';
    if (isHost(sentHost, mcp)) return isServer ? 'server' : 'document';
    if (others().some((other) => isHost(sentHost, other))) return 'none';
    return server === '/' ? 'none' : 'wrong host';
  };
};

/** Pages may call it: a token counts, never a cookie. */
const allowPages = (ctx: Context): void => {
  ctx.set('Access-Control-Allow-Origin', '*');
  ctx.set(
    'Access-Control-Expose-Headers',
    'WWW-Authenticate, Mcp-Protocol-Version, Retry-After, RateLimit, RateLimit-Policy, X-Correlation-Id',
  );
};

const preflight = (ctx: Context, methods: string): void => {
  ctx.set('Access-Control-Allow-Methods', methods);
  ctx.set(
    'Access-Control-Allow-Headers',
    'Authorization, Content-Type, Accept, Mcp-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, Last-Event-ID, X-Correlation-Id',
  );
  ctx.set('Access-Control-Max-Age', '3600');
  ctx.status = 204;
};

const document = async (ctx: Context, { deps, allowances }: PartTools): Promise<void> => {
  if (ctx.method !== 'GET' && ctx.method !== 'HEAD') {
    ctx.set('Allow', 'GET, HEAD');
    throw new Refusal('method_not_allowed', 'The document takes GET.');
  }
  await allowances.of(stateOf(ctx)).spend(ctx, 1);
  const documentation = `${new URL(deps.baseUrl()).origin}/docs`;
  ctx.set('Cache-Control', 'public, max-age=300');
  ctx.body = JSON.stringify(
    metadataOf({ resource: deps.mcpUrl(), name: 'Postline MCP server', authUrl: deps.authUrl(), documentation }),
  );
  ctx.type = 'application/json';
};

interface Message {
  readonly value: unknown;
  /** Requests that its body was counted for. */
  readonly paid: number;
}

/** A message costs what a REST call with the same body costs. */
const priced = { body: Type.Object({}), cost: 1 } as const;

/**
 * Reads a message under the budget, the price and the turns of REST bodies. Its bytes are held until the answer.
 * @throws Refusal 415, 413, 400, 429, 503
 */
const messageOf = async (
  ctx: Context,
  { allowances, bodies }: PartTools,
  { liveWorkspaceId: owner }: Principal,
  held: HeldBytes,
): Promise<Message> => {
  const { own, ahead } = costOf(allowances, priced, { searches: false, bytes: ctx.request.length ?? 0 });
  const purse = allowances.of(stateOf(ctx));
  await purse.spend(ctx, own + ahead);
  if (!isJsonType(ctx.get('Content-Type'))) {
    throw new Refusal('unsupported_media_type', 'Send Content-Type: application/json.');
  }
  if (ctx.get('Content-Encoding') !== '') throw new Refusal('unsupported_media_type', 'Send it without encoding.');
  const sent = await metered({}, held, ahead, {
    read: async (meter) => {
      const text = await readBody(ctx.req, meter.maxBytes, (chunk) => meter.take(chunk));
      return { text, values: meter.values };
    },
    owe: (requests) => purse.owe(ctx, requests),
  });
  const text = sent?.text ?? Buffer.alloc(0);
  const weight = { bytes: text.length, values: sent?.values ?? 0 };
  const value = await bodies.heavyBodies.run(owner, weight, (piece) => piece(() => parseJson(text)));
  // The protocol has none since 2025-06-18, and each message has to be paid for.
  if (Array.isArray(value)) throw new Refusal('invalid_json', 'Send one message: batches are not taken.');
  return { value, paid: Math.max(ahead, bodyCost(weight)) };
};

/** Headers that the protocol reads. The token stays here: nothing behind this place needs it. */
const passedOn = /^(accept|content-type|mcp-.*)$/;

const headersOf = (ctx: Context): Headers => {
  const headers = new Headers();
  for (const [name, value] of Object.entries(ctx.headers)) {
    if (passedOn.test(name) && typeof value === 'string') headers.set(name, value);
  }
  return headers;
};

const copy = async (ctx: Context, answer: Response): Promise<void> => {
  if (answer.body === null) ctx.body = null;
  else if (answer.headers.get('content-type')?.startsWith('text/event-stream') === true) {
    ctx.body = Readable.fromWeb(answer.body as ReadableStream);
  } else ctx.body = await answer.text();
  // After the body, which sets both itself.
  ctx.status = answer.status;
  for (const [name, value] of answer.headers) {
    if (name !== 'content-length' && !name.startsWith('access-control-')) ctx.set(name, value);
  }
};

const serve = async (ctx: Context, part: PartTools, handler: () => Promise<Handler>): Promise<void> => {
  const state = stateOf(ctx);
  const { address } = state;
  const authorization = ctx.get('Authorization');
  const principal = await part.authenticate({ limitHeaders: ctx, authorization, address, resource: 'mcp' });
  state.principal = principal;
  const held = part.bodies.bodyBudget.hold(principal.liveWorkspaceId);
  try {
    const message = await messageOf(ctx, part, principal, held);
    await answerTo(ctx, part, principal, message, handler);
  } finally {
    // A tool that streams its answer still works on the message.
    if (ctx.body instanceof Readable && !ctx.res.closed) ctx.res.once('close', () => held.release());
    else held.release();
  }
};

const answerTo = async (
  ctx: Context,
  part: PartTools,
  principal: Principal,
  message: Message,
  handler: () => Promise<Handler>,
): Promise<void> => {
  const { address, correlationId } = stateOf(ctx);
  const gone = new AbortController();
  ctx.res.once('close', () => (ctx.res.writableFinished ? undefined : gone.abort()));
  // The answer may have begun when a tool learns what is left of the allowance.
  const limitHeaders = { set: (name: string, value: string) => (ctx.headerSent ? undefined : ctx.set(name, value)) };
  const request: ToolRequest = {
    principal,
    address,
    correlationId,
    limitHeaders,
    signal: gone.signal,
    paid: message.paid,
  };
  const { fetch } = await handler();
  const asked = new Request(part.deps.mcpUrl(), { method: 'POST', headers: headersOf(ctx), signal: gone.signal });
  const resourceMetadataUrl = metadataUrlOf(part.deps.mcpUrl());
  const authInfo = {
    // Not the token: nothing behind this place needs it.
    token: '',
    clientId: principal.id,
    scopes: [...principal.scopes],
    resourceMetadataUrl,
    extra: { request },
  };
  try {
    await copy(ctx, await fetch(asked, { parsedBody: message.value, authInfo }));
  } catch (error) {
    // Nobody reads the answer any more; the tool has written its own line to the log.
    if (!gone.signal.aborted) throw error;
  }
};

/**
 * The MCP server as a part of the api's server: it answers its own path and the document about it, and leaves all other
 * requests to the next.
 */
export const mcpPart =
  ({ version = '1' }: McpOptions = {}): Part =>
  (part): Middleware => {
    const { deps } = part;
    const placeOf = placesOf(part);
    let loading: Promise<Handler> | null = null;
    // The SDK and the schemas of all tools are loaded with the first call: a process that nobody asks saves their memory.
    const handler = (): Promise<Handler> => {
      loading ??= import('./server.ts').then(({ mcpHandler: make }) => make(part, version));
      return loading;
    };
    return async (ctx, next) => {
      const place = placeOf(ctx.path, ctx.req.headers.host);
      if (place === 'none') return next();
      const { correlationId } = stateOf(ctx);
      if (place === 'wrong host') return refuseHost(ctx, correlationId);
      const origin = ctx.get('Origin');
      const own = [deps.mcpUrl(), deps.baseUrl(), deps.consoleUrl(), deps.authUrl()];
      if (place === 'server' && origin !== '' && !isAllowedOrigin(origin, own)) return refuseOrigin(ctx, correlationId);
      allowPages(ctx);
      if (ctx.method === 'OPTIONS') return preflight(ctx, place === 'server' ? 'POST' : 'GET');
      try {
        if (place === 'document') return await document(ctx, part);
        if (ctx.method !== 'POST') return refuseMethod(ctx, correlationId);
        return await serve(ctx, part, handler);
      } catch (error) {
        const problem = toProblem(error);
        logFailure(deps, problem.code, { correlationId, operation: 'mcp' }, error);
        return refuse(ctx, deps.mcpUrl(), problem, correlationId);
      }
    };
  };
