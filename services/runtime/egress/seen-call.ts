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
/** A shorter word of the header `authorization` names its scheme. */
const minSecret = 8;
/** Headers whose values tell who calls, and nothing else. */
const shownHeaders = /^(accept|content-type|content-length|user-agent|atproto-.*|x-rate-limit-.*)$/;
const secretMember =
  /("(?:[a-z_]{0,40}token|[a-z]{0,20}Jwt|jwt|password|client_secret|secret|code_verifier|authorization)"\s{0,8}:\s{0,8}")(?:[^"\\]|\\.)*/gis;

const pathOf = (address: URL, shownPath = address.pathname): string => {
  // Most have no query, and taking one apart costs more than all the rest.
  const names = address.search === '' ? [] : [...new Set(address.searchParams.keys())];
  return names.length === 0 ? shownPath : `${shownPath}?${names.map((name) => `${name}=…`).join('&')}`;
};

/** What of the call itself lets anybody in: networks repeat it in their errors. */
const secretsOf = ({ headers, shownPath }: NetworkCall, address: URL | null): readonly string[] => {
  const words = (headers.authorization ?? '').split(/[\s:="',]+/).filter((word) => word.length >= minSecret);
  if (shownPath === undefined || address === null) return words;
  const [before = '', after = ''] = shownPath.split('…');
  const hidden = address.pathname.slice(before.length, address.pathname.length - after.length);
  return hidden.length >= minSecret ? [...words, hidden] : words;
};

const withoutSecrets = (said: string, secrets: readonly string[]): string =>
  secrets.reduce((text, secret) => text.replaceAll(secret, '…'), said.replaceAll(secretMember, '$1…'));

/** Without half a character at the end. */
const cut = (text: string): string => {
  const bytes = Buffer.from(text);
  return bytes.length <= maxAnswer
    ? text
    : bytes
        .subarray(0, maxAnswer)
        .toString('utf8')
        .replace(/\uFFFD+$/, '');
};

export const seenCall = (call: NetworkCall, result: NetworkResult, sha256: string, durationMs: number): SeenCall => {
  const { subject, method, url, headers, body, shownPath, isSecret = false } = call;
  // An address from a network's answer may be none.
  const address = URL.parse(url);
  const said = result.kind === 'answered' ? result.body.subarray(0, 4 * maxAnswer).toString('utf8') : null;
  return {
    ...subject,
    method,
    host: address?.host ?? '',
    path: address === null ? '' : pathOf(address, shownPath),
    headers: Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, shownHeaders.test(name) ? value : '…']),
    ),
    bodySha256: body.length === 0 || isSecret ? null : sha256,
    outcome: result.kind,
    status: result.kind === 'answered' ? result.status : null,
    reason: result.kind === 'answered' ? null : result.reason,
    answer: said === null || isSecret ? null : cut(withoutSecrets(said, secretsOf(call, address))),
    durationMs,
  };
};
