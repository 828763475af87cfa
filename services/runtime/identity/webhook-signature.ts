import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';

/**
 * Both signatures of a delivery, over the exact bytes that are sent: Standard Webhooks 1.0.0 and our own. Pure: the
 * caller passes secrets and time.
 */

/** A secret in the form that both schemes use. Key objects are made once: making one costs more than the HMAC. */
export interface SigningKey {
  /** Standard Webhooks: the decoded bytes after `whsec_`. */
  readonly decoded: KeyObject;
  /** Our scheme: the UTF-8 bytes of the whole string, as shown to its owner. */
  readonly shown: KeyObject;
}

const prefix = 'whsec_';

/** @param secret `whsec_` + base64. */
export const signingKey = (secret: string): SigningKey => {
  if (!secret.startsWith(prefix)) throw new Error(`a signing secret begins with ${prefix}`);
  return {
    decoded: createSecretKey(secret.slice(prefix.length), 'base64'),
    shown: createSecretKey(secret, 'utf8'),
  };
};

/** `v1,<base64>` for each key, in their order, with a space between. */
export const standardSignature = (
  keys: readonly SigningKey[],
  id: string,
  timestamp: number,
  body: Uint8Array,
): string => {
  const signed = `${id}.${timestamp}.`;
  let header = '';
  for (const { decoded } of keys) {
    const mac = createHmac('sha256', decoded).update(signed).update(body).digest('base64');
    header += header === '' ? `v1,${mac}` : ` v1,${mac}`;
  }
  return header;
};

/** `t=<seconds>,v1=<hex>` with a `v1` for each key, in their order. */
export const serviceSignature = (keys: readonly SigningKey[], timestamp: number, body: Uint8Array): string => {
  const signed = `${timestamp}.`;
  let header = `t=${timestamp}`;
  for (const { shown } of keys) {
    header += `,v1=${createHmac('sha256', shown).update(signed).update(body).digest('hex')}`;
  }
  return header;
};

export interface Delivery {
  /** Id of the envelope: the same through retries, resends and replays. */
  readonly id: string;
  readonly body: Uint8Array;
  /** Number of this attempt, from 1. */
  readonly attempt: number;
  /** Seconds since 1970 at this attempt. */
  readonly timestamp: number;
  /** Positions that a reader must have applied to show the resource as the delivery states it. */
  readonly consistencyToken: string;
}

/** All headers of a delivery, in the order of sending. @param keys newest first */
export const deliveryHeaders = (
  keys: readonly SigningKey[],
  { id, body, attempt, timestamp, consistencyToken }: Delivery,
): Readonly<Record<string, string>> => ({
  'content-type': 'application/json',
  'user-agent': 'Postline-Webhooks/1',
  'webhook-id': id,
  'webhook-timestamp': String(timestamp),
  'webhook-signature': standardSignature(keys, id, timestamp, body),
  'X-Service-Signature': serviceSignature(keys, timestamp, body),
  'X-Service-Attempt': String(attempt),
  'X-Consistency-Token': consistencyToken,
});
