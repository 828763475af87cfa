import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { webhookKeyVersions, webhooks } from '#projections/models/webhook-endpoints.ts';
import { everyEventIsProjected, given, ids, instant, on } from '#test/support/projecting.ts';
import { readModelsPool } from '#test/support/read-models.ts';
import { suite } from '#test/support/suite.ts';

const pool = await readModelsPool();

suite('read models: webhook-endpoints', (t) => {
  t('webhooks: registered, changed, off and on, rotated, deleted; requests change no row', async () => {
    const { id } = ids('id');
    const webhook = on('webhook', id);
    const fields = { url: 'https://hooks.example/in', events: ['post.*', 'target.failed'], description: 'ours' };
    const clientIds = [randomUUID()];
    const registered = webhook('WebhookRegistered', { ...fields, clientIds, keyVersion: 'v1' });
    const first = { generation: 1, keyVersion: 'v1', createdAt: instant(0), expiresAt: null };
    await given(registered)
      .project(pool, webhooks)
      .sees([
        {
          id,
          ...fields,
          client_ids: clientIds,
          active: true,
          disabled_reason: null,
          secrets: [first],
          deleted_at: null,
        },
      ]);
    await given(registered, webhook('WebhookUpdated', { clientIds: null }))
      .project(pool, webhooks)
      .sees([{ id, ...fields, client_ids: null }]);
    const off = webhook('WebhookDisabled', { by: 'service', reason: 'failing' });
    const asked = [
      webhook('WebhookTestRequested', { eventType: 'webhook.test' }),
      webhook('WebhookResendRequested', { deliveryId: id, eventTime: instant(0) }),
      webhook('WebhookReplayRequested', { replayId: id, from: instant(0), to: instant(1), types: null }),
      webhook('WebhookReplayCanceled', { replayId: id }),
    ];
    await given(registered, webhook('WebhookUpdated', { url: 'https://b.example/', description: null }), off, ...asked)
      .project(pool, webhooks)
      .sees([
        {
          id,
          revision: 6,
          url: 'https://b.example/',
          events: fields.events,
          description: null,
          active: false,
          disabled_reason: 'failing',
          secrets: [first],
        },
      ]);
    const rotated = (generation: number, previousExpiresAt: string) =>
      webhook('WebhookSecretRotated', { generation, keyVersion: 'v2', previousExpiresAt });
    const lived = [registered, off, webhook('WebhookEnabled', {}), rotated(2, instant(90)), rotated(3, instant(91))];
    await given(...lived)
      .project(pool, webhooks)
      .sees([
        {
          id,
          active: true,
          disabled_reason: null,
          secrets: [
            { generation: 3, keyVersion: 'v2', createdAt: instant(4), expiresAt: null },
            { generation: 2, keyVersion: 'v2', createdAt: instant(3), expiresAt: instant(91) },
            { ...first, expiresAt: instant(90) },
          ],
        },
      ]);
    const inUse = async (now: string) => Object.fromEntries(await webhookKeyVersions(pool, now));
    assert.deepEqual(await inUse(instant(89)), { v1: 1, v2: 2 });
    assert.deepEqual(await inUse(instant(90)), { v2: 2 });
    assert.deepEqual(await inUse(instant(91)), { v2: 1 });
    await given(...lived, webhook('WebhookDeleted', {}))
      .project(pool, webhooks)
      .sees([{ id, active: false, secrets: [], deleted_at: instant(5) }]);
    assert.deepEqual(await inUse(instant(6)), {});
  });

  everyEventIsProjected(t, 'webhook');
});
