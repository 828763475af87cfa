import type { FileSlice, NetworkCall, NetworkHttp } from '#contracts/ports/network-http.ts';
import type { Json } from '#contracts/ports/platform.ts';
import { type Members, parsed, textIn } from '../shared/members.ts';
import { type BoundToken, sendBound } from './oauth/dpop.ts';

/** Calls of XRPC (atproto.com, "HTTP API"): a query is a GET, a procedure a POST; an error has a name and a message. */

export interface XrpcAsk {
  /** Origin of the server: `https://morel.us-east.host.bsky.network`. */
  readonly service: string;
  readonly nsid: string;
  readonly params?: Readonly<Record<string, string | readonly string[]>>;
  /** Present: a procedure. */
  readonly input?: Json | { readonly type: string; readonly body: readonly (Buffer | FileSlice)[] } | 'none';
  /** Of an app password or a service; or bound to a key, of a consent. */
  readonly token?: string | BoundToken;
  readonly subject: NetworkCall['subject'];
  readonly isSecret?: true;
  readonly onSent?: (bytes: number) => void;
}

export interface Refused {
  readonly kind: 'refused';
  readonly status: number;
  /** Name of the error; '' where the answer has none. */
  readonly error: string;
  readonly message: string;
  /** All members of the answer; null: it is no object. */
  readonly data: Members | null;
  readonly headers: Readonly<Record<string, string>>;
}

export type XrpcResult =
  | {
      readonly kind: 'ok';
      readonly data: Members;
      readonly headers: Readonly<Record<string, string>>;
    }
  | Refused
  | { readonly kind: 'unsent'; readonly reason: string }
  | { readonly kind: 'silent'; readonly reason: string };

type Bytes = { readonly type: string; readonly body: readonly (Buffer | FileSlice)[] };

const isBytes = (input: XrpcAsk['input']): input is Bytes =>
  typeof input === 'object' && input !== null && !Array.isArray(input) && 'body' in input && Array.isArray(input.body);

const queryOf = (params: XrpcAsk['params'] = {}): string => {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    for (const one of typeof value === 'string' ? [value] : value) query.append(name, one);
  }
  const text = query.toString();
  return text === '' ? '' : `?${text}`;
};

export const xrpc = async (http: NetworkHttp, ask: XrpcAsk, signal: AbortSignal): Promise<XrpcResult> => {
  const { service, nsid, params, input, token, subject, isSecret, onSent } = ask;
  const bytes = isBytes(input) ? input : null;
  const body = bytes?.body ?? (input === undefined || input === 'none' ? [] : [Buffer.from(JSON.stringify(input))]);
  const hasBody = body.length > 0;
  const call: NetworkCall = {
    method: input === undefined ? 'GET' : 'POST',
    url: `${service}/xrpc/${nsid}${queryOf(params)}`,
    headers: {
      accept: 'application/json',
      ...(hasBody ? { 'content-type': bytes?.type ?? 'application/json' } : {}),
      ...(typeof token === 'string' ? { authorization: `Bearer ${token}` } : {}),
    },
    body,
    subject,
    ...(isSecret === true ? { isSecret } : {}),
    ...(onSent === undefined ? {} : { onSent }),
  };
  const result = await (typeof token === 'object' ? sendBound(http, call, token, signal) : http.send(call, signal));
  if (result.kind !== 'answered') return result;
  const { status, headers } = result;
  const data = parsed(result.body);
  // A method without an output answers with an empty body.
  if (status === 200 && (data !== null || result.body.length === 0)) return { kind: 'ok', data: data ?? {}, headers };
  // A success without the members that it promises says nothing of what it did.
  if (status < 400) return { kind: 'silent', reason: 'bad_response' };
  return {
    kind: 'refused',
    status,
    error: textIn(data, 'error') ?? '',
    message: textIn(data, 'message') ?? '',
    data,
    headers,
  };
};
