import assert from 'node:assert/strict';
import { accounts } from '#projections/models/accounts.ts';
import { clients } from '#projections/models/clients.ts';
import { everyEventIsProjected, given, ids, instant, on } from '#test/support/projecting.ts';
import { readModelsPool } from '#test/support/read-models.ts';
import { clientFields } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const pool = await readModelsPool();

suite('read models: accounts', (t) => {
  const profile = (name: string | null) => ({ username: name, displayName: name, avatarUrl: null });
  const connected = (clientId: string, over: object = {}) => ({
    clientId,
    platform: 'x',
    externalId: 'ext-1',
    ...profile('ann'),
    scopes: ['post', 'a, "quoted" {scope}'],
    expiresAt: null,
    timezone: 'Europe/Rome',
    network: 'sandbox',
    inviteId: null,
    ...over,
  });

  t('accounts: connected, expired, reconnected, renamed, disconnected; counted on their client', async () => {
    const { id, other, clientId } = ids('id', 'other', 'clientId');
    const account = on('account', id);
    const { platform: _p, externalId: _e, network: _n, ...again } = connected(clientId, profile('ben'));
    const events = [
      on('client', clientId)('ClientCreated', clientFields),
      account('AccountConnected', connected(clientId)),
      on('account', other)('AccountConnected', connected(clientId, { platform: 'tiktok' })),
      account('AccountReauthRequired', { reason: 'token expired' }),
    ];
    await given(...events)
      .project(pool, accounts)
      .sees([
        {
          id,
          client_id: clientId,
          platform: 'x',
          external_id: 'ext-1',
          username: 'ann',
          display_name: 'ann',
          timezone: 'Europe/Rome',
          status: 'reauth_required',
          health_reason: 'token expired',
          checked_at: instant(3),
          scopes: ['post', 'a, "quoted" {scope}'],
          network: 'sandbox',
        },
        { id: other, status: 'connected', checked_at: instant(2), disconnected_at: null, reconnected_at: null },
      ]);
    await given(...events)
      .project(pool, clients)
      .sees([{ id: clientId, revision: 0, account_count: 2 }]);
    const later = [
      ...events,
      account('AccountReauthorized', { ...again, timezone: null }),
      account('AccountProfileChanged', { clientId, ...profile('bea'), avatarUrl: 'https://example.com/b.png' }),
      on('account', other)('AccountDisconnected', { reason: 'requested' }),
    ];
    const windows = [{ name: '24 hours', seconds: 86_400, limit: 50, used: 3, resetsAt: null }];
    await given(...events, account('AccountLimitsObserved', { clientId, windows }))
      .project(pool, accounts)
      .sees([
        { id, observed_limits: windows },
        { id: other, observed_limits: null },
      ]);
    await given(...later)
      .project(pool, accounts)
      .sees([
        {
          id,
          status: 'connected',
          health_reason: null,
          username: 'bea',
          avatar_url: 'https://example.com/b.png',
          timezone: null,
          checked_at: instant(4),
          updated_at: instant(5),
          disconnected_at: null,
          reconnected_at: null,
        },
        {
          id: other,
          status: 'disconnected',
          health_reason: 'requested',
          disconnected_at: instant(6),
          disconnected_revision: 1,
          reconnected_at: null,
        },
      ]);
    const returns = [
      ...later,
      on('account', other)('AccountReauthorized', again),
      on('account', other)('AccountReauthRequired', { reason: 'token expired' }),
      on('account', other)('AccountReauthorized', again),
    ];
    const left = { disconnected_at: instant(6), disconnected_revision: 1 };
    await given(...returns)
      .project(pool, accounts)
      .sees([{ id }, { id: other, status: 'connected', ...left, reconnected_at: instant(7), checked_at: instant(9) }]);
    await given(...returns, on('account', other)('AccountDisconnected', { reason: 'requested' }))
      .project(pool, accounts)
      .sees([{ id }, { id: other, disconnected_at: instant(10), disconnected_revision: 5, reconnected_at: null }]);
    await given(...later)
      .project(pool, clients)
      .sees([{ id: clientId, revision: 0, account_count: 1 }]);
  });

  t('a client without events yet keeps its count in a row that no view shows', async () => {
    const { id, clientId } = ids('id', 'clientId');
    await given(on('account', id)('AccountConnected', connected(clientId)))
      .project(pool, clients)
      .sees([]);
    const { rows } = await pool.query('select id, revision, account_count from read.clients_v1');
    assert.deepEqual(rows, [{ id: clientId, revision: -1, account_count: 1 }]);
    await given(
      on('account', id)('AccountConnected', connected(clientId)),
      on('client', clientId)('ClientCreated', clientFields),
    )
      .project(pool, clients)
      .sees([{ id: clientId, account_count: 1, created_at: instant(1), name: 'Acme' }]);
  });

  everyEventIsProjected(t, 'account');
});
