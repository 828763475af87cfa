/**
 * URLs that carry their own permission: HMAC-SHA256 over the method, the key and every permitted use, under a sub-key
 * whose version the URL names. Nothing is stored; a URL permits one use of one key until it expires.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';

export interface UrlSecrets {
  readonly current: string;
  /** @throws for an unknown version */
  subKey(purpose: 'blob-urls', version?: string): Buffer;
}

export type Permission =
  | { readonly method: 'PUT'; readonly key: string; readonly contentType: string; readonly bytes: number }
  | { readonly method: 'GET'; readonly key: string; readonly fileName: string | null };

/** Encoded as JSON, so that no two permissions have the same text. */
const textOf = (permission: Permission, expires: number): string =>
  JSON.stringify(
    permission.method === 'PUT'
      ? ['PUT', permission.key, expires, permission.contentType, permission.bytes]
      : ['GET', permission.key, expires, permission.fileName],
  );

export class SignedUrls {
  readonly #secrets: UrlSecrets;
  readonly #clock: () => number;

  constructor(secrets: UrlSecrets, clock: () => number = Date.now) {
    this.#secrets = secrets;
    this.#clock = clock;
  }

  /** Key and query, to be appended to the prefix. */
  sign(permission: Permission, expiresAt: Date): string {
    const expires = Math.floor(expiresAt.getTime() / 1000);
    const version = this.#secrets.current;
    const query = new URLSearchParams({
      ...(permission.method === 'PUT' ? { type: permission.contentType, length: String(permission.bytes) } : {}),
      ...(permission.method === 'GET' && permission.fileName !== null ? { name: permission.fileName } : {}),
      expires: String(expires),
      v: version,
      signature: this.#mac(permission, expires, version).toString('base64url'),
    });
    return `${permission.key}?${query}`;
  }

  /** The permission of the URL; null when it was not signed here, was altered, or has expired. */
  permission(method: 'PUT' | 'GET', key: string, query: URLSearchParams): Permission | null {
    const version = query.get('v') ?? '';
    const expires = Number(query.get('expires'));
    const claimed: Permission =
      method === 'PUT'
        ? { method, key, contentType: query.get('type') ?? '', bytes: Number(query.get('length')) }
        : { method, key, fileName: query.get('name') };
    const given = Buffer.from(query.get('signature') ?? '', 'base64url');
    const expected = this.#expected(claimed, expires, version);
    if (expected === null || given.length !== expected.length || !timingSafeEqual(given, expected)) return null;
    return this.#clock() < expires * 1000 ? claimed : null;
  }

  #expected(permission: Permission, expires: number, version: string): Buffer | null {
    try {
      return this.#mac(permission, expires, version);
    } catch {
      // A version that was removed: its signatures are void.
      return null;
    }
  }

  #mac(permission: Permission, expires: number, version: string): Buffer {
    return createHmac('sha256', this.#secrets.subKey('blob-urls', version))
      .update(textOf(permission, expires))
      .digest();
  }
}
