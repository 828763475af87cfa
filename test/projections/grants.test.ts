import assert from 'node:assert/strict';
import { findGrants, grants, grantsOfMember, listGrants, openGrants } from '#projections/models/grants.ts';
import { everyEventIsProjected, given, ids, instant, on } from '#test/support/projecting.ts';
import { readModelsPool } from '#test/support/read-models.ts';
import { suite } from '#test/support/suite.ts';

const pool = await readModelsPool();

const noOne = '00000000-0000-0000-0000-000000000000';

const givenBy = (personId: string, memberId: string) => ({
  clientId: 'https://app.example/client.json',
  clientName: 'An app',
  personId,
  memberId,
  mode: 'test',
  scopes: ['posts.read', 'approvals.decide'],
  resource: 'https://api.example/v1',
  expiresAt: instant(5000),
});

suite('read models: grants', (t) => {
  t('grants: given, revoked', async () => {
    const { id, personId, memberId } = ids('id', 'personId', 'memberId');
    const one = on('grant', id);
    await given(one('GrantGiven', givenBy(personId, memberId)))
      .project(pool, grants)
      .sees([
        {
          id,
          client_id: 'https://app.example/client.json',
          person_id: personId,
          member_id: memberId,
          mode: 'test',
          scopes: ['posts.read', 'approvals.decide'],
          resource: 'https://api.example/v1',
          expires_at: instant(5000),
          revoked_at: null,
          revoked_by: null,
        },
      ]);
    await given(one('GrantGiven', givenBy(personId, memberId)), one('GrantRevoked', { by: 'reuse' }))
      .project(pool, grants)
      .sees([{ id, revoked_at: instant(1), revoked_by: 'reuse' }]);
  });

  t('a token check finds the role of now, and null once the member has left', async () => {
    const { id, personId, memberId } = ids('id', 'personId', 'memberId');
    const one = on('grant', id);
    await given(one('GrantGiven', givenBy(personId, memberId)))
      .project(pool, grants)
      .sees([{ id }]);
    const workspace = (members: object) =>
      pool.query(
        `insert into read.workspaces_v1 (id, workspace_id, revision, members)
         select workspace_id, workspace_id, 0, $1 from read.grants on conflict (id) do update set members = $1`,
        [members],
      );
    await workspace({ [memberId]: { name: 'Ann', role: 'creator' } });
    const found = (await findGrants(pool, [id, noOne])).get(id);
    assert.deepEqual(
      [found?.role, found?.memberId, found?.mode, found?.clientName, found?.expiresAt, found?.revokedAt],
      ['creator', memberId, 'test', 'An app', instant(5000), null],
    );
    assert.equal((await openGrants(pool, noOne, 10))[0]?.isMember, true);
    await workspace({});
    assert.equal((await findGrants(pool, [id])).get(id)?.role, null);
    assert.equal((await openGrants(pool, noOne, 10))[0]?.isMember, false);
    assert.deepEqual(await openGrants(pool, id, 10), []);
  });

  t('are listed by person, member and workspace, the newest first, also those that ended', async () => {
    const { first, second, personId, memberId } = ids('first', 'second', 'personId', 'memberId');
    await given(
      on('grant', first)('GrantGiven', givenBy(personId, memberId)),
      on('grant', second)('GrantGiven', givenBy(personId, memberId)),
      on('grant', first)('GrantRevoked', { by: 'person' }),
    )
      .project(pool, grants)
      .sees([{ id: first }, { id: second }]);
    const listed = await listGrants(pool, { personId });
    assert.deepEqual(
      listed.map(({ grantId, revokedBy }) => [grantId, revokedBy]),
      [
        [second, null],
        [first, 'person'],
      ],
    );
    assert.deepEqual(await grantsOfMember(pool, memberId), listed);
    assert.deepEqual(await listGrants(pool, { workspaceId: listed[0]?.workspaceId ?? '' }), listed);
    assert.deepEqual(await listGrants(pool, { personId: memberId }), []);
  });

  everyEventIsProjected(t, 'grant');
});
