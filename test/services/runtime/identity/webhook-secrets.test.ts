import assert from 'node:assert/strict';
import { createHmac, hkdfSync } from 'node:crypto';
import { Secrets } from '#runtime/identity/secrets.ts';
import { webhookSecret } from '#runtime/identity/webhook-secrets.ts';
import { suite } from '#test/support/suite.ts';

const keyOf = (byte: number): string => Buffer.alloc(32, byte).toString('base64');
const id = '8d0f3c52-4a77-5e0c-b2f4-1c9d7e5a0005';

suite('signing secrets of webhooks', (t) => {
  const secrets = new Secrets(`v2:${keyOf(2)},v1:${keyOf(1)}`);

  t('is 32 bytes derived as the design says', () => {
    const secret = webhookSecret(secrets, id, { generation: 1, keyVersion: 'v1' });
    const subKey = Buffer.from(hkdfSync('sha256', Buffer.alloc(32, 1), Buffer.alloc(0), 'postline/secrets', 32));
    const expected = createHmac('sha256', subKey).update(`webhook\n${id}\n1`).digest();
    assert.equal(secret, `whsec_${expected.toString('base64')}`);
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
    assert.equal(Buffer.from(secret.slice('whsec_'.length), 'base64').length, 32);
  });

  t('each endpoint, generation and key version has its own secret, the same every time', () => {
    const other = '8d0f3c52-4a77-5e0c-b2f4-1c9d7e5a0006';
    const all = [id, other].flatMap((webhookId) =>
      [1, 2, 12].flatMap((generation) =>
        ['v1', 'v2'].map((keyVersion) => webhookSecret(secrets, webhookId, { generation, keyVersion })),
      ),
    );
    assert.equal(new Set(all).size, 12);
    const again = new Secrets(`v3:${keyOf(3)},v2:${keyOf(2)},v1:${keyOf(1)}`);
    assert.equal(webhookSecret(again, id, { generation: 1, keyVersion: 'v1' }), all[0], 'a new key changes no secret');
  });

  t('a removed key version is named', () => {
    assert.throws(() => webhookSecret(secrets, id, { generation: 1, keyVersion: 'v9' }), /SECRET_KEY lacks version v9/);
  });
});
