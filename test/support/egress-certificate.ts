/** A certificate authority of one test process: certificates for any name, trusted where a test asks for it. */
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';

export interface Certificate {
  readonly key: string;
  readonly cert: string;
}

/** Self-signed, for these host names, valid for this decade or, expired, for the last. */
export const certificateFor = (names: readonly string[], { expired = false } = {}): Certificate => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const subject = der(0x30, der(0x31, der(0x30, oid('550403'), text(0x0c, names[0] ?? ''))));
  const validity = expired
    ? der(0x30, text(0x18, '20100101000000Z'), text(0x18, '20110101000000Z'))
    : der(0x30, text(0x18, '20200101000000Z'), text(0x18, '20991231235959Z'));
  const altNames = names.map((name) => text(0x82, name));
  const extensions = der(0x30, der(0x30, oid('551d11'), der(0x04, der(0x30, ...altNames))));
  const body = der(
    0x30,
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([1])),
    ECDSA_SHA256,
    subject,
    validity,
    subject,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, extensions),
  );
  return { key: pem(privateKey), cert: certificate(body, privateKey) };
};

/** All TLS clients of this process trust these from now on, besides those they trusted before. */
export const trust = (...certificates: readonly Certificate[]): void =>
  setDefaultCACertificates([...getCACertificates('default'), ...certificates.map(({ cert }) => cert)]);

const certificate = (body: Buffer, key: KeyObject): string => {
  const signature = der(0x03, Buffer.from([0]), sign('sha256', body, key));
  const lines =
    der(0x30, body, ECDSA_SHA256, signature)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
};

const pem = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }).toString();

/** Tag, length and value of ASN.1. */
function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const value = Buffer.concat(parts);
  const { length } = value;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), value]);
}
function oid(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, 'hex'));
}
const text = (tag: number, value: string): Buffer => der(tag, Buffer.from(value, 'latin1'));
const ECDSA_SHA256 = der(0x30, oid('2a8648ce3d040302'));
