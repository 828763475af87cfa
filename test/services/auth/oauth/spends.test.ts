import assert from 'node:assert/strict';
import { workspace } from '#domain/workspace.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { revokeGrant } from '#services/auth/grants.ts';
import { mintPersonLink } from '#services/auth/people/person-links.ts';
import { resetPassword } from '#services/auth/people/security.ts';
import { contextOf } from '#services/workflows/provision.ts';
import type { World } from '#test/support/http.ts';
import {
  type Answer,
  type App,
  claimsOf,
  historyOf,
  type OAuth,
  oauthOf,
  oauthWorld,
  pkce,
  type Tokens,
} from '#test/support/oauth.ts';
import { peopleDepsOf, personOf } from '#test/support/people.ts';
import { suite } from '#test/support/suite.ts';

const rounds = 50;

suite('authorization server: what is spent twice', { timeoutMs: 180_000 }, (t) => {
  let world: World;
  let it: OAuth;
  let app: App;
  t.before(async () => {
    world = await oauthWorld();
    it = oauthOf(world);
    app = await it.register();
  });
  t.after(() => world?.close());

  const tokens = ({ json }: Answer): Tokens => json as unknown as Tokens;
  const won = (answers: readonly Answer[]): readonly Answer[] => answers.filter(({ status }) => status === 200);
  const dead = async (grantId: unknown): Promise<void> => {
    assert.deepEqual(await historyOf(world, grantId), ['GrantGiven', 'GrantRevoked reuse']);
  };

  t(`one code spent twice at once, ${rounds} times: at most one wins, and the family is dead`, async () => {
    let wins = 0;
    for (let round = 0; round < rounds; round += 1) {
      const secret = pkce();
      const code = await it.codeOf(app, secret);
      const answers = await Promise.all([it.exchange(app, code, secret), it.exchange(app, code, secret)]);
      const [first, ...more] = won(answers);
      assert.deepEqual(more, [], 'two winners');
      for (const { status, json } of answers)
        if (status !== 200) assert.deepEqual([status, json.error], [400, 'invalid_grant']);
      if (first === undefined) continue;
      wins += 1;
      const again = await it.refresh(app, tokens(first).refresh_token);
      assert.deepEqual([again.status, again.json.error], [400, 'invalid_grant'], 'the family lives');
      await dead(claimsOf(tokens(first).access_token).gid);
    }
    const { rows } = await world.pool.query(
      `select count(*)::int as live from auth.oauth_artifacts where model = 'Grant'`,
    );
    assert.equal(rows[0].live, 0, `${wins} of ${rounds} had a winner`);
  });

  /** As if more than ten seconds had passed since what was spent was spent. */
  const later = () =>
    world.pool.query(
      `update auth.oauth_artifacts set consumed_at = consumed_at - interval '11 s',
         expires_at = expires_at - case when model = 'RefreshAnswer' then interval '11 s' else interval '0' end`,
    );

  t('five uses of one refresh token at once get one answer, which works; a sixth ends the family', async () => {
    for (let round = 0; round < 10; round += 1) {
      const first = await it.tokensOf(app);
      const answers = await Promise.all(Array.from({ length: 5 }, () => it.refresh(app, first.refresh_token)));
      for (const { status, text } of answers) assert.deepEqual([status, text], [200, answers[0]?.text]);
      assert.match(answers[4]?.headers.get('cache-control') ?? '', /no-store/);
      const { rows } = await world.pool.query<{ row: string }>(
        'select a::text as row from auth.oauth_artifacts a where grant_id = $1',
        [claimsOf(first.access_token).gid],
      );
      const one = tokens(answers[0] as Answer);
      for (const { row } of rows) {
        for (const value of [first.refresh_token, one.refresh_token, one.access_token]) assert.ok(!row.includes(value));
      }
      if (round === 0) assert.equal((await it.refresh(app, one.refresh_token)).status, 200);
      const sixth = await it.refresh(app, first.refresh_token);
      assert.deepEqual([sixth.status, sixth.json.error], [400, 'invalid_grant']);
      await dead(claimsOf(first.access_token).gid);
    }
    const reported = world.lines.filter((line) => line.includes('used again at once'));
    assert.equal(reported.length, 10 * 4);
  });

  t('a second use is a repeat of the same client, for the same, by a grant with power, in ten seconds', async () => {
    const other = await it.register();
    const memberId = await world.memberOf(world.workspaceId, 'creator');
    await world.settled();
    const spent = async (more: Parameters<OAuth['tokensOf']>[1] = {}) => {
      const first = await it.tokensOf(app, more);
      assert.equal((await it.refresh(app, first.refresh_token)).status, 200);
      return { first, gid: claimsOf(first.access_token).gid };
    };
    const stranger = await spent();
    assert.equal((await it.refresh(other, stranger.first.refresh_token)).json.error, 'invalid_grant');
    assert.equal((await it.refresh(app, stranger.first.refresh_token)).status, 200);
    const narrower = await spent();
    const narrow = await it.refresh(app, narrower.first.refresh_token, { scope: 'posts.read' });
    assert.equal(narrow.json.error, 'invalid_grant');
    await dead(narrower.gid);
    const late = await spent();
    await later();
    assert.equal((await it.refresh(app, late.first.refresh_token)).json.error, 'invalid_grant');
    await dead(late.gid);
    const left = await spent({ result: { memberId } });
    const context = contextOf(world.operator, world.workspaceId);
    await execute(world.store, workspace, world.workspaceId, { type: 'RemoveMember', memberId }, context);
    await world.settled();
    assert.equal((await it.refresh(app, left.first.refresh_token)).json.error, 'invalid_grant');
    const revoked = await spent();
    await revokeGrant(world.deps, String(revoked.gid), 'person');
    assert.equal((await it.refresh(app, revoked.first.refresh_token)).json.error, 'invalid_grant');
  });

  t('a code that is spent again later ends what the first use gave', async () => {
    const secret = pkce();
    const code = await it.codeOf(app, secret);
    const first = tokens(await it.exchange(app, code, secret));
    assert.equal((await it.exchange(app, code, secret)).json.error, 'invalid_grant');
    assert.equal((await it.refresh(app, first.refresh_token)).json.error, 'invalid_grant');
    await dead(claimsOf(first.access_token).gid);
  });

  t('a wrong verifier, redirect or client spends no code', async () => {
    const secret = pkce();
    const other = await it.register();
    const code = await it.codeOf(app, secret);
    for (const answer of [
      await it.exchange(app, code, pkce()),
      await it.exchange(app, code, secret, { redirect_uri: 'http://127.0.0.1:7777/other' }),
      await it.exchange(other, code, secret),
    ]) {
      assert.deepEqual([answer.status, answer.json.error], [400, 'invalid_grant']);
    }
    assert.equal((await it.exchange(app, code, secret)).status, 200);
  });

  t('a rotated token that comes back kills the family and the grant, counted once', async () => {
    const first = await it.tokensOf(app);
    const second = tokens(await it.refresh(app, first.refresh_token));
    const third = tokens(await it.refresh(app, second.refresh_token));
    await later();
    assert.equal((await it.refresh(app, first.refresh_token)).json.error, 'invalid_grant');
    for (const { refresh_token } of [third, second, first]) {
      assert.equal((await it.refresh(app, refresh_token)).json.error, 'invalid_grant');
    }
    const { gid } = claimsOf(first.access_token);
    await dead(gid);
    const reported = world.lines.filter((line) => line.includes('spent twice') && line.includes(String(gid)));
    assert.equal(reported.length, 1);
  });

  t('a token of another client does not hurt the family', async () => {
    const first = await it.tokensOf(app);
    const other = await it.register();
    assert.equal((await it.refresh(other, first.refresh_token)).json.error, 'invalid_grant');
    assert.equal((await it.refresh(app, first.refresh_token)).status, 200);
  });

  t('a wrong resource or scope at refresh burns nothing', async () => {
    const first = await it.tokensOf(app, { query: { resource: world.deps.baseUrl() } });
    for (const more of [
      { resource: world.deps.mcpUrl() },
      { resource: 'https://elsewhere.example' },
      { resource: 'no url' },
      { resource: `${world.deps.baseUrl()}#x` },
    ]) {
      const answer = await it.refresh(app, first.refresh_token, more);
      assert.deepEqual([answer.status, answer.json.error], [400, 'invalid_target'], JSON.stringify(more));
    }
    const wider = await it.refresh(app, first.refresh_token, { scope: 'media.manage' });
    assert.equal(wider.json.error, 'invalid_scope');
    const second = await it.refresh(app, first.refresh_token, { resource: `${world.deps.baseUrl()}/` });
    assert.equal(second.status, 200, second.text);
    assert.equal(claimsOf(tokens(second).access_token).aud, world.deps.baseUrl());
    assert.deepEqual(await historyOf(world, claimsOf(first.access_token).gid), ['GrantGiven']);
  });

  t('a refresh narrows the scopes of one token, and not of the family', async () => {
    const first = await it.tokensOf(app, { query: { scope: 'agency.read posts.read posts.compose' } });
    const narrow = tokens(await it.refresh(app, first.refresh_token, { scope: 'posts.read' }));
    assert.equal(narrow.scope, 'posts.read');
    const wide = tokens(await it.refresh(app, narrow.refresh_token));
    assert.equal(wide.scope, 'agency.read posts.read posts.compose');
  });

  t('a grant that the console revokes refreshes no more, from the next call on', async () => {
    const first = await it.tokensOf(app);
    const { gid } = claimsOf(first.access_token);
    const other = (await world.agency()).workspaceId;
    assert.equal(await revokeGrant(world.deps, String(gid), 'person', { workspaceId: other }), false);
    assert.equal(await revokeGrant(world.deps, String(gid), 'person', { workspaceId: world.workspaceId }), true);
    assert.equal(await revokeGrant(world.deps, String(gid), 'person'), false);
    const answer = await it.refresh(app, first.refresh_token);
    assert.deepEqual([answer.status, answer.json.error], [400, 'invalid_grant']);
    assert.deepEqual(await historyOf(world, gid), ['GrantGiven', 'GrantRevoked person']);
  });

  t('a revocation that stands in the stream alone stops a refresh and a code too', async () => {
    const first = await it.tokensOf(app);
    const secret = pkce();
    const code = await it.codeOf(app, secret);
    const { rows } = await world.pool.query<{ id: string }>(
      `select grant_id::text as id from auth.oauth_artifacts where model = 'Grant'`,
    );
    for (const { id } of rows) {
      const [given] = await world.store.readStream(`grant-${id}`);
      if (given === undefined) continue;
      const context = contextOf(world.operator, world.workspaceId);
      await world.store.append(
        `grant-${id}`,
        0,
        [{ type: 'GrantRevoked', data: { by: 'operator' } }],
        context,
        `grant-${id}`,
      );
    }
    assert.equal((await it.refresh(app, first.refresh_token)).json.error, 'invalid_grant');
    assert.equal((await it.exchange(app, code, secret)).json.error, 'invalid_grant');
  });

  t('a password that is set through a link ends what apps were given, of this person alone', async () => {
    const [person, other] = [await personOf(world), await personOf(world)];
    const given = async ({ personId, memberId }: typeof person) => it.tokensOf(app, { result: { personId, memberId } });
    const [ended, stays] = [await given(person), await given(other)];
    await world.settled();
    const { token } = await mintPersonLink(peopleDepsOf(world), person.personId, 'reset');
    assert.equal(await resetPassword(peopleDepsOf(world), token, 'a brand new password'), person.personId);
    assert.equal((await it.refresh(app, ended.refresh_token)).json.error, 'invalid_grant');
    const { gid } = claimsOf(ended.access_token);
    assert.deepEqual(await historyOf(world, gid), ['GrantGiven', 'GrantRevoked person']);
    assert.equal((await it.refresh(app, stays.refresh_token)).status, 200);
  });

  t('and so does what the read model does not show yet', async () => {
    const { personId, memberId } = await personOf(world);
    const held = await world.pool.connect();
    const { rows } = await held.query<{ name: string }>(
      `select format('%I.%I', schemaname, tablename) as name from pg_tables where tablename like 'grants\\_v%'`,
    );
    await held.query('begin');
    try {
      for (const { name } of rows) await held.query(`lock table ${name} in share row exclusive mode`);
      const given = await it.tokensOf(app, { result: { personId, memberId } });
      const { token } = await mintPersonLink(peopleDepsOf(world), personId, 'reset');
      assert.equal(await resetPassword(peopleDepsOf(world), token, 'a brand new password'), personId);
      const { gid } = claimsOf(given.access_token);
      assert.deepEqual(await historyOf(world, gid), ['GrantGiven', 'GrantRevoked person']);
      assert.equal((await it.refresh(app, given.refresh_token)).json.error, 'invalid_grant');
    } finally {
      await held.query('rollback');
      held.release();
    }
  });

  t('the app of a member who has left refreshes no more', async () => {
    const memberId = await world.memberOf(world.workspaceId, 'creator');
    await world.settled();
    const first = await it.tokensOf(app, { result: { memberId } });
    const context = contextOf(world.operator, world.workspaceId);
    await execute(world.store, workspace, world.workspaceId, { type: 'RemoveMember', memberId }, context);
    await world.settled();
    assert.equal((await it.refresh(app, first.refresh_token)).json.error, 'invalid_grant');
  });
});
