import { createHash, createSign, generateKeyPairSync, randomBytes } from 'node:crypto';
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server';

/**
 * A device with one passkey, as a browser and an authenticator make its answers together: WebAuthn Level 3, 6.1
 * (authenticator data), 6.5 (attestation `none`), and COSE keys of RFC 9053 in the CBOR of RFC 8949.
 */

const sha256 = (data: string | Buffer): Buffer => createHash('sha256').update(data).digest();
const text = (bytes: Buffer): string => bytes.toString('base64url');

const userPresent = 0x01;
const userVerified = 0x04;
const hasCredential = 0x40;

export interface Ceremony {
  readonly challenge: string;
  readonly origin: string;
  /** Default: the person was verified. */
  readonly verified?: boolean;
}

export class Authenticator {
  readonly #id = randomBytes(32);
  readonly #keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  /** Uses; null: it counts none, as synced passkeys do. */
  counter: number | null;

  constructor(counter: number | null = 0) {
    this.counter = counter;
  }

  #clientData(type: string, { challenge, origin }: Ceremony): Buffer {
    return Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false }));
  }

  #authData({ origin, verified = true }: Ceremony, flags: number): Buffer {
    const counted = Buffer.alloc(4);
    if (this.counter !== null) {
      this.counter += 1;
      counted.writeUInt32BE(this.counter);
    }
    const all = flags | userPresent | (verified ? userVerified : 0);
    return Buffer.concat([sha256(new URL(origin).hostname), Buffer.of(all), counted]);
  }

  register(ceremony: Ceremony): RegistrationResponseJSON {
    const { x = '', y = '' } = this.#keys.publicKey.export({ format: 'jwk' });
    const coordinate = (key: number, value: string) =>
      Buffer.concat([Buffer.of(key, 0x58, 0x20), Buffer.from(value, 'base64url')]);
    // {1: 2 (EC2), 3: -7 (ES256), -1: 1 (P-256), -2: x, -3: y}
    const cose = Buffer.concat([Buffer.from('a5010203262001', 'hex'), coordinate(0x21, x), coordinate(0x22, y)]);
    const credential = Buffer.concat([Buffer.alloc(16), Buffer.of(0, this.#id.length), this.#id, cose]);
    const authData = Buffer.concat([this.#authData(ceremony, hasCredential), credential]);
    const named = (name: string) => Buffer.concat([Buffer.of(0x60 + name.length), Buffer.from(name)]);
    const attestation = Buffer.concat([
      ...[Buffer.of(0xa3), named('fmt'), named('none'), named('attStmt'), Buffer.of(0xa0)],
      ...[named('authData'), Buffer.of(0x58, authData.length), authData],
    ]);
    return {
      ...{ id: text(this.#id), rawId: text(this.#id), type: 'public-key', clientExtensionResults: {} },
      response: {
        clientDataJSON: text(this.#clientData('webauthn.create', ceremony)),
        attestationObject: text(attestation),
        transports: ['internal'],
      },
    };
  }

  signIn(ceremony: Ceremony): AuthenticationResponseJSON {
    const clientData = this.#clientData('webauthn.get', ceremony);
    const authData = this.#authData(ceremony, 0);
    const signature = createSign('sha256')
      .update(Buffer.concat([authData, sha256(clientData)]))
      .sign(this.#keys.privateKey);
    return {
      ...{ id: text(this.#id), rawId: text(this.#id), type: 'public-key', clientExtensionResults: {} },
      response: {
        clientDataJSON: text(clientData),
        authenticatorData: text(authData),
        signature: text(signature),
      },
    };
  }
}
