import assert from 'node:assert/strict';
import { createHmac, randomBytes } from 'node:crypto';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import {
  deliveryHeaders,
  serviceSignature,
  signingKey,
  standardSignature,
} from '#runtime/identity/webhook-signature.ts';
import { suite } from '#test/support/suite.ts';

const secretOf = (): string => `whsec_${randomBytes(32).toString('base64')}`;
const id = 'b1f0a6b4-6a1f-4d7e-9d0a-0d6f6d0c9a55';

/** As a receiver of ours would, from the documentation alone. */
const verifiesOurs = (secret: string, header: string, body: Buffer): boolean => {
  const [time, ...signatures] = header.split(',');
  const mac = createHmac('sha256', secret)
    .update(`${time?.slice('t='.length)}.`)
    .update(body)
    .digest('hex');
  return signatures.includes(`v1=${mac}`);
};

suite('webhook signatures', (t) => {
  t('match the published test vector', () => {
    const key = signingKey('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw');
    const body = Buffer.from('{"test": 2432232314}');
    assert.equal(
      standardSignature([key], 'msg_p5jXN8AQM9LWM0D4loKWxJek', 1_614_265_330, body),
      'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    );
  });

  t('are accepted by standardwebhooks and svix, with either secret during a rotation', () => {
    const [older, newer, foreign] = [secretOf(), secretOf(), secretOf()];
    // Bytes that are not ASCII, and one that JSON would write otherwise.
    const body = Buffer.from('{"data":{"name":"Zoë 😀 — \\u0000 ","n":1.0},"type":"client.created"}');
    const timestamp = Math.floor(Date.now() / 1_000);
    const keys = [signingKey(newer), signingKey(older)];
    const made = { id, body, attempt: 3, timestamp, consistencyToken: 'token' };
    const headers = { ...deliveryHeaders(keys, made) };
    for (const secret of [older, newer]) {
      for (const Webhook of [StandardWebhook, SvixWebhook]) {
        assert.doesNotThrow(() => new Webhook(secret).verify(body.toString(), headers));
        assert.throws(() => new Webhook(secret).verify(`${body} `, headers), /signature/i);
        assert.throws(
          () => new Webhook(secret).verify(body.toString(), { ...headers, 'webhook-id': 'x' }),
          /signature/i,
        );
      }
      assert.ok(verifiesOurs(secret, headers['X-Service-Signature'] ?? '', body));
    }
    for (const Webhook of [StandardWebhook, SvixWebhook]) {
      assert.throws(() => new Webhook(foreign).verify(body.toString(), headers), /signature/i);
    }
    assert.ok(!verifiesOurs(foreign, headers['X-Service-Signature'] ?? '', body));
  });

  t('cover the exact bytes of the body', () => {
    const secret = secretOf();
    const body = Buffer.from([0xff, 0x00, 0xc3, 0x28, 0x7b]);
    const header = standardSignature([signingKey(secret)], id, 7, body);
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
    const mac = createHmac('sha256', key).update(Buffer.concat([Buffer.from(`${id}.7.`), body]));
    assert.equal(header, `v1,${mac.digest('base64')}`);
    assert.ok(verifiesOurs(secret, serviceSignature([signingKey(secret)], 7, body), body));
  });

  t('list the newest secret first, with one timestamp', () => {
    const [older, newer] = [secretOf(), secretOf()];
    const body = Buffer.from('{}');
    const both = [signingKey(newer), signingKey(older)];
    const [one, two] = standardSignature(both, id, 7, body).split(' ');
    assert.equal(one, standardSignature([signingKey(newer)], id, 7, body));
    assert.equal(two, standardSignature([signingKey(older)], id, 7, body));
    const single = serviceSignature([signingKey(newer)], 7, body);
    assert.match(single, /^t=7,v1=[0-9a-f]{64}$/);
    assert.match(serviceSignature(both, 7, body), new RegExp(`^${single},v1=[0-9a-f]{64}$`));
  });

  t('stand among the headers in a fixed order', () => {
    const made = { id, body: Buffer.from('{}'), attempt: 2, timestamp: 7, consistencyToken: 'token' };
    const headers = deliveryHeaders([signingKey(secretOf())], made);
    assert.deepEqual(Object.keys(headers), [
      'content-type',
      'user-agent',
      'webhook-id',
      'webhook-timestamp',
      'webhook-signature',
      'X-Service-Signature',
      'X-Service-Attempt',
      'X-Consistency-Token',
    ]);
    const { 'webhook-id': name, 'webhook-timestamp': time, 'X-Service-Attempt': attempt } = headers;
    assert.deepEqual([name, time, attempt, headers['X-Consistency-Token']], [id, '7', '2', 'token']);
    assert.deepEqual([headers['content-type'], headers['user-agent']], ['application/json', 'Postline-Webhooks/1']);
  });

  t('need a secret with our prefix', () => {
    assert.throws(() => signingKey(randomBytes(32).toString('base64')), /whsec_/);
  });
});
