import { workspaces } from '#projections/models/workspaces.ts';
import { everyEventIsProjected, given, ids, instant, on } from '#test/support/projecting.ts';
import { readModelsPool } from '#test/support/read-models.ts';
import { suite } from '#test/support/suite.ts';

const pool = await readModelsPool();

suite('read models: workspaces', (t) => {
  t('workspaces: profile and members', async () => {
    const { id, anna, ben } = ids('id', 'anna', 'ben');
    const workspace = on('workspace', id);
    await given(
      workspace('WorkspaceCreated', { name: 'Agency', timezone: 'UTC', mode: 'live', twinOf: null }),
      workspace('MemberAdded', { memberId: anna, name: 'Anna', role: 'owner' }),
      workspace('MemberAdded', { memberId: ben, name: 'Ben', role: 'viewer' }),
      workspace('MemberRoleChanged', { memberId: ben, role: 'creator' }),
      workspace('WorkspaceProfileChanged', { name: 'Studio', timezone: 'Asia/Tokyo' }),
    )
      .project(pool, workspaces)
      .sees([
        {
          id,
          revision: 4,
          created_at: instant(0),
          updated_at: instant(4),
          name: 'Studio',
          timezone: 'Asia/Tokyo',
          mode: 'live',
          twin_of: null,
          people: null,
          members: { [anna]: { name: 'Anna', role: 'owner' }, [ben]: { name: 'Ben', role: 'creator' } },
          posting_quota: null,
          posting_quota_revision: null,
          cadence: null,
        },
      ]);
    const made = workspace('WorkspaceCreated', { name: 'A', timezone: 'UTC', mode: 'live', twinOf: null });
    const owner = workspace('MemberAdded', { memberId: anna, name: 'Member', role: 'owner' });
    const known = workspace('MemberIdentified', { memberId: anna, personId: ben });
    await given(made, owner, known)
      .project(pool, workspaces)
      .sees([{ id, people: [ben], members: { [anna]: { name: 'Member', role: 'owner', personId: ben } } }]);
    await given(made, owner, known, workspace('MemberRoleChanged', { memberId: anna, role: 'viewer' }))
      .project(pool, workspaces)
      .sees([{ id, people: [ben], members: { [anna]: { name: 'Member', role: 'viewer', personId: ben } } }]);
    await given(made, owner, known, workspace('MemberRemoved', { memberId: anna }))
      .project(pool, workspaces)
      .sees([{ id, people: [], members: {} }]);
    await given(
      workspace('WorkspaceCreated', { name: 'A', timezone: 'UTC', mode: 'test', twinOf: ben }),
      workspace('MemberAdded', { memberId: anna, name: 'Anna', role: 'owner' }),
      workspace('MemberRemoved', { memberId: anna }),
    )
      .project(pool, workspaces)
      .sees([{ id, mode: 'test', twin_of: ben, members: {} }]);
  });

  t('the posting quota, with the revision at which it was set', async () => {
    const { id } = ids('id');
    const workspace = on('workspace', id);
    const made = workspace('WorkspaceCreated', { name: 'A', timezone: 'UTC', mode: 'live', twinOf: null });
    const set = (limit: number | null) => workspace('PostingQuotaSet', { limit });
    await given(made, set(7))
      .project(pool, workspaces)
      .sees([{ id, posting_quota: 7, posting_quota_revision: 1 }]);
    const rule = { platform: 'x', minIntervalMinutes: 30, perDay: null };
    await given(made, workspace('CadenceSet', rule))
      .project(pool, workspaces)
      .sees([{ id, cadence: [rule] }]);
    await given(made, set(7), set(null))
      .project(pool, workspaces)
      .sees([{ id, posting_quota: null, posting_quota_revision: 2 }]);
  });

  t('a version of a network’s API that ends changes nothing of the workspace', async () => {
    const { id } = ids('id');
    const workspace = on('workspace', id);
    const ending = { platform: 'linkedin', version: '202511', endsAt: '2026-11-16', stage: 'ended' };
    await given(
      workspace('WorkspaceCreated', { name: 'A', timezone: 'UTC', mode: 'live', twinOf: null }),
      workspace('NetworkVersionEndReported', ending),
    )
      .project(pool, workspaces)
      .sees([{ id, name: 'A', timezone: 'UTC', mode: 'live' }]);
  });

  t('a move of the clock of a sandbox changes nothing of it', async () => {
    const { id } = ids('id');
    const workspace = on('workspace', id);
    await given(
      workspace('WorkspaceCreated', { name: 'A', timezone: 'UTC', mode: 'test', twinOf: id }),
      workspace('SandboxClockMoved', { aheadMs: 86_400_000 }),
    )
      .project(pool, workspaces)
      .sees([{ id, name: 'A', timezone: 'UTC', mode: 'test' }]);
  });

  everyEventIsProjected(t, 'workspace');
});
