import assert from 'node:assert/strict';
import { workspace } from '#domain/workspace.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { OAuthSweep } from '#services/auth/oauth/sweep.ts';
import { contextOf } from '#services/workflows/provision.ts';
import type { World } from '#test/support/http.ts';
import { type App, Browser, claimsOf, historyOf, type OAuth, oauthOf, oauthWorld, pkce } from '#test/support/oauth.ts';
import { suite } from '#test/support/suite.ts';

suite('authorization server: sweep', (t) => {
  let world: World;
  let it: OAuth;
  let app: App;
  let sweep: OAuthSweep;
  t.before(async () => {
    world = await oauthWorld();
    it = oauthOf(world);
    app = await it.register();
    sweep = new OAuthSweep(world.deps);
  });
  t.after(() => world?.close());

  /** Rows become older, for the database's clock. */
  const age = (interval: string, where: string) =>
    world.pool.query(`update auth.oauth_artifacts set expires_at = expires_at - interval '${interval}' where ${where}`);
  const later = async (ms: number): Promise<Awaited<ReturnType<OAuthSweep['run']>>> => {
    await world.settled();
    world.clock.shiftMs += ms;
    try {
      return await sweep.run();
    } finally {
      world.clock.shiftMs -= ms;
    }
  };

  t('leaves alone what is in use', async () => {
    const tokens = await it.tokensOf(app);
    await it.begin(new Browser(), it.authorizeUrl(app, pkce()));
    assert.deepEqual(await later(7_200_000), { artifacts: 0, grants: 0, clients: 0, keys: 0 });
    assert.equal((await it.refresh(app, tokens.refresh_token)).status, 200);
  });

  t('deletes expired rows, and keeps spent refresh tokens until they would have expired', async () => {
    const first = await it.tokensOf(app);
    const second = (await it.refresh(app, first.refresh_token)).json;
    await age('5 minutes', `model = 'AuthorizationCode'`);
    assert.ok((await sweep.run()).artifacts >= 1);
    assert.equal((await sweep.run()).artifacts, 0);
    // Processes of one client may share a token for a moment: only a use after it is reuse.
    await age('11 seconds', `model = 'RefreshAnswer'`);
    assert.equal((await it.refresh(app, first.refresh_token)).json.error, 'invalid_grant');
    assert.equal((await it.refresh(app, String(second.refresh_token))).json.error, 'invalid_grant', 'reuse was seen');
    await age('31 days', `model = 'RefreshToken'`);
    await sweep.run();
    const { rows } = await world.pool.query(`select 1 from auth.oauth_artifacts where model = 'RefreshToken'`);
    assert.equal(rows.length, 0);
  });

  t('ends the grants of a member who has left, and those that have expired', async () => {
    const memberId = await world.memberOf(world.workspaceId, 'viewer');
    await world.settled();
    const gone = claimsOf((await it.tokensOf(app, { result: { memberId } })).access_token).gid;
    const stays = claimsOf((await it.tokensOf(app)).access_token).gid;
    const context = contextOf(world.operator, world.workspaceId);
    await execute(world.store, workspace, world.workspaceId, { type: 'RemoveMember', memberId }, context);
    assert.ok((await later(3_700_000)).grants >= 1);
    assert.deepEqual(await historyOf(world, gone), ['GrantGiven', 'GrantRevoked member_removed']);
    assert.deepEqual(await historyOf(world, stays), ['GrantGiven']);
    assert.ok((await later(367 * 86_400_000)).grants >= 1);
    assert.deepEqual(await historyOf(world, stays), ['GrantGiven', 'GrantRevoked expired']);
  });

  t('ends grants of which no token can come any more', async () => {
    const { access_token } = await it.tokensOf(app);
    const { gid } = claimsOf(access_token);
    await later(3_700_000);
    assert.deepEqual(await historyOf(world, gid), ['GrantGiven'], 'its refresh token is good for a month');
    await age('31 days', `model = 'RefreshToken' and grant_id = '${gid}'`);
    await age('5 minutes', `model = 'AuthorizationCode' and grant_id = '${gid}'`);
    await later(3_700_000);
    assert.deepEqual(await historyOf(world, gid), ['GrantGiven', 'GrantRevoked expired']);
  });

  t('deletes clients that nobody gave anything, and no others', async () => {
    const [never, used, young] = [await it.register(), await it.register(), await it.register()];
    await it.tokensOf(used);
    const older = "update auth.oauth_clients set created_at = now() - interval '8 days' where client_id = any($1)";
    await world.pool.query(older, [[never.client_id, used.client_id]]);
    assert.equal((await sweep.run()).clients, 1);
    const { rows } = await world.pool.query('select client_id from auth.oauth_clients where client_id = any($1)', [
      [never.client_id, used.client_id, young.client_id],
    ]);
    assert.deepEqual(rows.map(({ client_id }) => client_id).sort(), [used.client_id, young.client_id].sort());
    const registrations = await world.pool.query('select 1 from auth.oauth_artifacts where client_id = $1', [
      never.client_id,
    ]);
    assert.equal(registrations.rows.length, 0);
  });
});
