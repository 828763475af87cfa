import type { NetworkCall, NetworkResult } from '#contracts/ports/network-http.ts';

/** A call of a network as it may be written down: nothing of it lets anybody in. */

export interface SeenCall {
  readonly accountId: string;
  readonly targetId: string | null;
  readonly method: NetworkCall['method'];
  readonly host: string;
  /** With the names of the query's members, without their values. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Hex, of the bytes that went out; null: there was no body, or it is secret. */
  readonly bodySha256: string | null;
  readonly outcome: NetworkResult['kind'];
  readonly status: number | null;
  /** Why there is no answer; null: there is one. */
  readonly reason: string | null;
  /** The beginning of the answer, at most 4 KiB; null: none, or it is secret. */
  readonly answer: string | null;
  readonly durationMs: number;
}

const maxAnswer = 4_096;
/** Headers whose values tell who calls, and nothing else. */
const shownHeaders = /^(accept|content-type|content-length|user-agent|atproto-.*|x-rate-limit-.*)$/;
const secretMember =
  /("(?:[a-z_]{0,40}token|[a-z]{0,20}Jwt|jwt|password|client_secret|secret|code_verifier|authorization)"\s{0,8}:\s{0,8}")[^"\\]{0,8192}/gi;

const pathOf = ({ url, shownPath }: NetworkCall): string => {
  const { pathname, searchParams } = new URL(url);
  const names = [...new Set(searchParams.keys())];
  return `${shownPath ?? pathname}${names.length === 0 ? '' : `?${names.map((name) => `${name}=…`).join('&')}`}`;
};

export const seenCall = (call: NetworkCall, result: NetworkResult, sha256: string, durationMs: number): SeenCall => {
  const { subject, method, url, headers, body, isSecret = false } = call;
  const said = result.kind === 'answered' ? result.body.subarray(0, 4 * maxAnswer).toString('utf8') : null;
  return {
    ...subject,
    method,
    host: new URL(url).host,
    path: pathOf(call),
    headers: Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, shownHeaders.test(name) ? value : '…']),
    ),
    bodySha256: body.length === 0 || isSecret ? null : sha256,
    outcome: result.kind,
    status: result.kind === 'answered' ? result.status : null,
    reason: result.kind === 'answered' ? null : result.reason,
    answer: said === null || isSecret ? null : said.replaceAll(secretMember, '$1…').slice(0, maxAnswer),
    durationMs,
  };
};
