import { createHash, randomUUID } from 'node:crypto';
import { importJWK, type JWK, SignJWT } from 'jose';
import { BoundedMap } from '#contracts/base/bounded-map.ts';
import type { NetworkCall, NetworkHttp, NetworkResult } from '#contracts/ports/network-http.ts';
import type { Json } from '#contracts/ports/platform.ts';
import { type Members, membersOf, parsed, textIn } from '../../shared/members.ts';

/**
 * Calls that prove the key to which a token is bound (RFC 9449). A server names a nonce, and refuses a proof without its
 * newest one before it does anything: the call then goes out once more.
 */

export type DpopKey = { readonly [name: string]: Json };

export interface BoundToken {
  readonly token: string;
  /** Private JWK. */
  readonly key: DpopKey;
}

/** Newest nonce of each server, by origin. A nonce is the server's, of no account, and a wrong one costs one call. */
const nonces = new BoundedMap<string, string>(1_000);
/** Characters. A server may be anybody's. */
const maxNonce = 512;

const remember = (origin: string, nonce: string | undefined): void => {
  if (nonce !== undefined && nonce.length <= maxNonce) nonces.set(origin, nonce);
};

/** The members of a key that may be shown. */
const publicOf = (key: DpopKey): JWK => {
  const { kty, crv, x, y } = key as JWK;
  return { kty, crv, x, y } as JWK;
};

const proofOf = async (
  { method, url }: NetworkCall,
  key: DpopKey,
  token: string | null,
  nonce: string | undefined,
): Promise<string> => {
  const { origin, pathname } = new URL(url);
  const alg = textIn(key, 'alg') ?? 'ES256';
  return new SignJWT({
    ...{ jti: randomUUID(), htm: method, htu: `${origin}${pathname}` },
    ...(nonce === undefined ? {} : { nonce }),
    ...(token === null ? {} : { ath: createHash('sha256').update(token).digest('base64url') }),
  })
    .setProtectedHeader({ typ: 'dpop+jwt', alg, jwk: publicOf(key) })
    .setIssuedAt()
    .sign(await importJWK(key as JWK, alg));
};

/** A server of resources says it in a header, one of authorization in its answer. */
const wantsNonce = (result: NetworkResult): boolean => {
  if (result.kind !== 'answered' || (result.status !== 401 && result.status !== 400)) return false;
  if (/\berror="?use_dpop_nonce\b/.test(result.headers['www-authenticate'] ?? '')) return true;
  const answer: Members | null = membersOf(parsed(result.body));
  return textIn(answer, 'error') === 'use_dpop_nonce';
};

/** @param token null: a call to the authorization server, which proves the key alone */
export const sendBound = async (
  http: NetworkHttp,
  call: NetworkCall,
  { token, key }: { readonly token: string | null; readonly key: DpopKey },
  signal: AbortSignal,
): Promise<NetworkResult> => {
  const { origin } = new URL(call.url);
  for (let tries = 1; ; tries += 1) {
    const dpop = await proofOf(call, key, token, nonces.get(origin));
    const authorization: Record<string, string> = token === null ? {} : { authorization: `DPoP ${token}` };
    const result = await http.send({ ...call, headers: { ...call.headers, ...authorization, dpop } }, signal);
    const named = result.kind === 'answered' ? result.headers['dpop-nonce'] : undefined;
    remember(origin, named);
    if (tries === 2 || named === undefined || signal.aborted || !wantsNonce(result)) return result;
  }
};
