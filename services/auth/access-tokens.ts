import { hash } from 'node:crypto';
import { type CryptoKey, errors, importJWK, type JWTHeaderParameters, type JWTPayload, jwtVerify } from 'jose';
import type { Pool } from 'pg';
import { BoundedMap } from '#contracts/base/bounded-map.ts';
import { uuidPattern } from '#schemas/common.ts';
import { keysKeptSeconds, publicKeys } from './oauth/keys.ts';
import { withoutSlash } from './oauth/resources.ts';

/**
 * Verifies the access tokens of our own authorization server: who signed one, for which resource, until when. Whether
 * its grant still has power is another question, which `findGrants` answers.
 */

export interface AccessClaims {
  /** Id of the grant: the stream that a revocation ends. */
  readonly grantId: string;
  readonly personId: string;
  readonly clientId: string;
  readonly scopes: readonly string[];
  readonly audience: string;
  readonly tokenId: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

export type AccessTokenCode = 'invalid_token' | 'token_expired' | 'wrong_audience';

export class AccessTokenError extends Error {
  readonly code: AccessTokenCode;
  constructor(code: AccessTokenCode, options?: { readonly cause?: unknown }) {
    super(code, options);
    this.name = 'AccessTokenError';
    this.code = code;
  }
}

const toleranceSeconds = 5;
/** The longest token that is looked at; ours have some 700 characters. */
const maxLength = 4_096;
const maxRemembered = 10_000;
/** Milliseconds between two readings of the keys for tokens of an unknown key. */
const unknownKeyMs = 1_000;

const uuid = new RegExp(uuidPattern);
/** Three parts of base64url: an API key or a session has another form, and costs no work here. */
const form = /^eyJ[\w-]+\.[\w-]+\.[\w-]+$/;

/** Whether the text has the form of an access token. */
export const isAccessToken = (token: string): boolean => token.length <= maxLength && form.test(token);

const invalid = (cause?: unknown) => new AccessTokenError('invalid_token', { cause });

const claimsOf = (payload: JWTPayload): AccessClaims => {
  const { gid, sub, client_id, scope, aud, jti, exp } = payload;
  const texts = [gid, sub, client_id, aud, jti];
  if (!texts.every((one) => typeof one === 'string' && one !== '') || !uuid.test(String(gid))) throw invalid();
  if (scope !== undefined && typeof scope !== 'string') throw invalid();
  const [grantId = '', personId = '', clientId = '', audience = '', tokenId = ''] = texts as readonly string[];
  const scopes = (scope ?? '').split(' ').filter((one) => one !== '');
  return { grantId, personId, clientId, scopes, audience, tokenId, expiresAt: (exp ?? 0) * 1_000 };
};

export class AccessTokens {
  readonly #pool: Pool;
  readonly #issuer: () => string;
  readonly #clock: () => number;
  #keys: ReadonlyMap<string, CryptoKey> = new Map();
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | null = null;
  /** By the SHA-256 of the token; the oldest is forgotten first. */
  readonly #remembered = new BoundedMap<string, AccessClaims>(maxRemembered);

  /**
   * @param issuer address of the authorization server
   * @param clock milliseconds since the epoch
   */
  constructor(pool: Pool, issuer: () => string, clock: () => number) {
    this.#pool = pool;
    this.#issuer = issuer;
    this.#clock = clock;
  }

  /**
   * @param audience address of the resource that was called, with or without a slash at the end
   * @throws AccessTokenError
   */
  async verify(token: string, audience: string): Promise<AccessClaims> {
    if (!isAccessToken(token)) throw invalid();
    await this.#believeKeys();
    const digest = hash('sha256', token, 'base64');
    const claims = this.#remembered.get(digest) ?? (await this.#check(token, digest));
    if (claims.expiresAt + toleranceSeconds * 1_000 <= this.#clock()) {
      this.#remembered.delete(digest);
      throw new AccessTokenError('token_expired');
    }
    if (withoutSlash(claims.audience) !== withoutSlash(audience)) throw new AccessTokenError('wrong_audience');
    return claims;
  }

  async #check(token: string, digest: string): Promise<AccessClaims> {
    try {
      const { payload } = await jwtVerify(token, (header) => this.#keyOf(header), {
        issuer: this.#issuer(),
        algorithms: ['ES256'],
        typ: 'at+jwt',
        requiredClaims: ['exp', 'iat', 'aud', 'sub', 'jti'],
        clockTolerance: toleranceSeconds,
        currentDate: new Date(this.#clock()),
      });
      const claims = claimsOf(payload);
      this.#remembered.set(digest, claims);
      return claims;
    } catch (error) {
      if (error instanceof errors.JWTExpired) throw new AccessTokenError('token_expired', { cause: error });
      if (error instanceof errors.JOSEError) throw invalid(error);
      throw error;
    }
  }

  async #keyOf({ kid }: JWTHeaderParameters): Promise<CryptoKey> {
    const known = this.#keys.get(kid ?? '');
    if (known !== undefined) return known;
    if (performance.now() - this.#readAt >= unknownKeyMs) await this.#readKeys();
    const found = this.#keys.get(kid ?? '');
    if (found === undefined) throw invalid();
    return found;
  }

  /** A key that an operator deleted loses its power within a minute, also for remembered tokens. */
  async #believeKeys(): Promise<void> {
    if (performance.now() - this.#readAt >= keysKeptSeconds * 1_000) await this.#readKeys();
  }

  #readKeys(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = null;
    });
    return this.#reading;
  }

  async #read(): Promise<void> {
    const readAt = performance.now();
    const found = await publicKeys(this.#pool);
    const keys = new Map<string, CryptoKey>();
    for (const jwk of found) {
      keys.set(jwk.kid, this.#keys.get(jwk.kid) ?? ((await importJWK(jwk, 'ES256')) as CryptoKey));
    }
    if ([...this.#keys.keys()].some((kid) => !keys.has(kid))) this.#remembered.clear();
    this.#keys = keys;
    this.#readAt = readAt;
  }
}
