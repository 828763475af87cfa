import { teamInvites } from '#projections/models/team-invites.ts';
import { everyEventIsProjected, given, ids, instant, on } from '#test/support/projecting.ts';
import { readModelsPool } from '#test/support/read-models.ts';
import { suite } from '#test/support/suite.ts';

const pool = await readModelsPool();

suite('read models: invitations to the team', (t) => {
  const { open, taken, ended, memberId, personId } = ids('open', 'taken', 'ended', 'memberId', 'personId');
  const offer = (inviteId: string) =>
    on('teaminvite', inviteId)('TeamInviteCreated', {
      ...{ inviteId, memberId, email: 'ann@example.com', name: null, role: 'creator' },
      ...{ expiresAt: '2030-01-01T00:00:00.000Z', keyVersion: 'v1' },
    });

  t('hold the role and the end, and neither address nor token', async () => {
    await given(offer(open))
      .project(pool, teamInvites)
      .sees([
        {
          ...{ id: open, revision: 0, created_at: instant(0), updated_at: instant(0), member_id: memberId },
          ...{ role: 'creator', expires_at: '2030-01-01T00:00:00.000Z', key_version: 'v1' },
          ...{ accepted_at: null, revoked_at: null },
        },
      ]);
    await given(offer(taken), on('teaminvite', taken)('TeamInviteAccepted', { personId }))
      .project(pool, teamInvites)
      .sees([{ id: taken, accepted_at: instant(1), revoked_at: null }]);
    await given(offer(ended), on('teaminvite', ended)('TeamInviteRevoked', {}))
      .project(pool, teamInvites)
      .sees([{ id: ended, accepted_at: null, revoked_at: instant(1) }]);
  });

  everyEventIsProjected(t, 'teaminvite');
});
