import { invites } from '#projections/models/invites.ts';
import { everyEventIsProjected, given, ids, instant, on } from '#test/support/projecting.ts';
import { readModelsPool } from '#test/support/read-models.ts';
import { suite } from '#test/support/suite.ts';

const pool = await readModelsPool();

suite('read models: invites', (t) => {
  t('invites: created, used, revoked', async () => {
    const { id, clientId, accountId } = ids('id', 'clientId', 'accountId');
    const invite = on('invite', id);
    const created = { clientId, platforms: ['x', 'tiktok'], expiresAt: instant(600), keyVersion: 'v1' };
    await given(
      invite('ConnectInviteCreated', { ...created, recipientEmail: 'someone@example.com' }),
      invite('ConnectInviteUsed', { accountId, platform: 'x' }),
      invite('ConnectInviteUsed', { accountId, platform: 'x' }),
      invite('ConnectInviteRevoked', { reason: null }),
    )
      .project(pool, invites)
      .sees([
        {
          id,
          client_id: clientId,
          platforms: ['x', 'tiktok'],
          expires_at: instant(600),
          key_version: 'v1',
          used: [accountId],
          revoked_at: instant(3),
        },
      ]);
  });

  everyEventIsProjected(t, 'invite');
});
