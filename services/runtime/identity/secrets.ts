import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto';
import { MissingKey } from '#contracts/ports/data-keys.ts';
import { SetupError } from '#contracts/ports/setup-error.ts';

/**
 * The secret keys of the installation, newest first, and the values derived from them. Derived values are never stored:
 * a record that needs a key later stores the *version* that made it.
 */

/** Each purpose has its own sub-key, so that one leaked sub-key opens no other purpose. */
export type Purpose =
  | 'secrets'
  | 'cursors'
  | 'blob-urls'
  | 'fingerprints'
  | 'wrapping'
  | 'consistency'
  | 'sessions'
  | 'import-urls'
  | 'key-check'
  | 'consents'
  | 'oauth-cookies'
  | 'oauth-keys'
  | 'client-secrets'
  | 'emails'
  | 'second-factors'
  | 'person-links'
  | 'forms'
  | 'sandbox-calls'
  | 'feed-keys';

export class Secrets {
  readonly #keys: ReadonlyMap<string, Buffer>;
  readonly #derived = new Map<string, Buffer>();
  /** The sub-keys as key objects: Node would convert a Buffer for every HMAC, which costs more than the HMAC. */
  readonly #macKeys = new Map<string, KeyObject>();
  readonly current: string;
  /** Where the keys were read from, for the operator: a setting or a file. */
  readonly source: string;

  /** @param list `v2:<base64, 32 bytes>,v1:…`; the first is current. */
  constructor(list: string, source = 'SECRET_KEY') {
    this.source = source;
    const keys = list.split(',').map((part): [string, Buffer] => {
      const [version, text, ...rest] = part.trim().split(':');
      const key = Buffer.from(text ?? '', 'base64');
      if (version === undefined || !/^v\d+$/.test(version) || rest.length > 0 || key.length !== 32) {
        throw new Error('SECRET_KEY must be a list like v2:<base64 of 32 bytes>,v1:<base64 of 32 bytes>');
      }
      return [version, key];
    });
    this.#keys = new Map(keys);
    // With two keys under one version, the version of a record would not identify its key.
    if (this.#keys.size < keys.length) throw new Error('SECRET_KEY names a version twice');
    this.current = keys[0]?.[0] ?? '';
  }

  versions(): readonly string[] {
    return [...this.#keys.keys()];
  }

  /** The last of the list: for values that must not change when a new key is put first. */
  get oldest(): string {
    return this.versions().at(-1) ?? this.current;
  }

  has(version: string): boolean {
    return this.#keys.has(version);
  }

  /**
   * @throws SetupError where SECRET_KEY lacks one of these versions, from which links or signing secrets in use were
   * derived
   */
  demand(versions: Iterable<string>): void {
    for (const version of versions) {
      if (this.has(version)) continue;
      throw new SetupError(
        `SECRET_KEY: version ${version} is not in ${this.source}, and invite links or webhook secrets in use were made ` +
          `with it. Add it behind the current one; npm run admin -- secrets tells what still needs each version.`,
      );
    }
  }

  /** 32 bytes. @throws when the version is not in the list: a key in use was removed */
  subKey(purpose: Purpose, version: string = this.current): Buffer {
    const name = `${version}/${purpose}`;
    const known = this.#derived.get(name);
    if (known !== undefined) return known;
    const key = this.#keys.get(version);
    if (key === undefined) throw new MissingKey(`SECRET_KEY lacks version ${version}, which is still in use`);
    const derived = Buffer.from(hkdfSync('sha256', key, Buffer.alloc(0), `postline/${purpose}`, 32));
    this.#derived.set(name, derived);
    return derived;
  }

  /** HMAC-SHA256 under a purpose's sub-key. */
  mac(purpose: Purpose, text: string, version: string = this.current): Buffer {
    const name = `${version}/${purpose}`;
    const key = this.#macKeys.get(name) ?? createSecretKey(this.subKey(purpose, version));
    this.#macKeys.set(name, key);
    return createHmac('sha256', key).update(text, 'utf8').digest();
  }

  /** `<version>.<AES-256-GCM>`, base64url: callers may carry it, and can neither read nor alter it. */
  encrypt(purpose: Purpose, payload: string): string {
    const nonce = randomBytes(12);
    const cipher = createCipheriv('aes-256-gcm', this.subKey(purpose), nonce);
    const text = Buffer.concat([cipher.update(payload, 'utf8'), cipher.final()]);
    return `${this.current}.${Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64url')}`;
  }

  /** The payload, or null when it was altered, is malformed, or its key was removed. */
  decrypt(purpose: Purpose, encrypted: string): string | null {
    const [version = '', body = '', ...rest] = encrypted.split('.');
    const bytes = Buffer.from(body, 'base64url');
    // Node skips what is no base64url: one spelling is the text.
    if (rest.length > 0 || !this.has(version) || bytes.length < 28 || bytes.toString('base64url') !== body) return null;
    const decipher = createDecipheriv('aes-256-gcm', this.subKey(purpose, version), bytes.subarray(0, 12));
    decipher.setAuthTag(bytes.subarray(12, 28));
    try {
      return Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString('utf8');
    } catch {
      return null;
    }
  }

  /** `<version>.<payload>.<mac>`, all base64url: callers may read and carry it, and cannot alter it. */
  seal(purpose: Purpose, payload: string): string {
    const body = Buffer.from(payload, 'utf8').toString('base64url');
    return `${this.current}.${body}.${this.mac(purpose, body).toString('base64url')}`;
  }

  /** The payload, or null when it was altered, is malformed, or its key was removed. */
  open(purpose: Purpose, sealed: string): string | null {
    const [version, body, mac, ...rest] = sealed.split('.');
    if (version === undefined || body === undefined || mac === undefined || rest.length > 0 || !this.has(version))
      return null;
    const given = Buffer.from(mac, 'base64url');
    // Node skips what is no base64url: only one spelling is the sealed text, since callers tell repeats by it.
    if (given.toString('base64url') !== mac) return null;
    const expected = this.mac(purpose, body, version);
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return null;
    return Buffer.from(body, 'base64url').toString('utf8');
  }
}
