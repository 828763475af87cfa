import assert from 'node:assert/strict';
import { decodeProtectedHeader } from 'jose';
import { AccessTokens } from '#services/auth/access-tokens.ts';
import { dropRetiredKeys, publicKeys, rotateSigningKey, SigningKeys } from '#services/auth/oauth/keys.ts';
import { oauthKeyVersions } from '#services/auth/oauth/tables.ts';
import type { World } from '#test/support/http.ts';
import { type App, get, type OAuth, oauthOf, oauthWorld, type Tokens } from '#test/support/oauth.ts';
import { suite } from '#test/support/suite.ts';

suite('authorization server: signing keys', (t) => {
  let world: World;
  let it: OAuth;
  let app: App;
  let verifier: AccessTokens;
  t.before(async () => {
    world = await oauthWorld({ keysKeptMs: 0 });
    it = oauthOf(world);
    app = await it.register();
    verifier = new AccessTokens(world.pool, world.deps.authUrl, world.deps.clock);
  });
  t.after(() => world?.close());

  const kidOf = ({ access_token }: Tokens): string => decodeProtectedHeader(access_token).kid ?? '';
  const published = async (): Promise<readonly string[]> =>
    ((await get(`${world.origin()}/.well-known/jwks.json`)).json.keys as readonly { kid: string }[]).map(
      ({ kid }) => kid,
    );
  /** The database's clock goes on, for the keys alone. */
  const pass = (seconds: number) =>
    world.pool.query('update auth.signing_keys set signs_at = signs_at - make_interval(secs => $1)', [seconds]);
  const isGood = async ({ access_token }: Tokens): Promise<boolean> =>
    (await verifier.verify(access_token, world.deps.mcpUrl()).catch(() => null)) !== null;

  t('a rotation needs one step, and old and new tokens are good at every instant of it', async () => {
    const old = await it.tokensOf(app);
    assert.deepEqual(await published(), [kidOf(old)]);
    const { kid, isNew } = await rotateSigningKey(world.pool, world.secrets);
    assert.equal(isNew, true);
    // Published at once; the former still signs.
    assert.deepEqual(await published(), [kidOf(old), kid]);
    const meanwhile = await it.tokensOf(app);
    assert.equal(kidOf(meanwhile), kidOf(old));
    // A repeat makes no other key.
    assert.deepEqual(await rotateSigningKey(world.pool, world.secrets), {
      ...(await rotateSigningKey(world.pool, world.secrets)),
    });
    assert.deepEqual((await rotateSigningKey(world.pool, world.secrets)).isNew, false);
    await pass(601);
    const fresh = await it.tokensOf(app);
    assert.equal(kidOf(fresh), kid);
    assert.deepEqual(await published(), [kid, kidOf(old)]);
    assert.deepEqual(await Promise.all([old, meanwhile, fresh].map(isGood)), [true, true, true]);
    // A refresh of a family that began under the old key.
    const renewed = (await it.refresh(app, old.refresh_token)).json as unknown as Tokens;
    assert.equal(kidOf(renewed), kid);
    // Until the last token of the old key has expired, and not longer.
    await pass(900);
    assert.equal(await dropRetiredKeys(world.pool), 0);
    assert.equal((await published()).length, 2);
    await pass(300);
    assert.deepEqual(await published(), [kid]);
    assert.equal(await dropRetiredKeys(world.pool), 1);
    assert.equal(await dropRetiredKeys(world.pool), 0);
    assert.deepEqual(await publicKeys(world.pool).then((keys) => keys.map((one) => one.kid)), [kid]);
  });

  t('processes that start at once make one first key', async () => {
    await world.pool.query('delete from auth.signing_keys');
    const sets = await Promise.all(
      Array.from({ length: 8 }, () => new SigningKeys(world.pool, world.secrets).current()),
    );
    assert.equal(new Set(sets.map(([key]) => key?.kid)).size, 1);
    assert.deepEqual(
      sets.map((keys) => keys.length),
      sets.map(() => 1),
    );
  });

  t('a process keeps the same object while the keys are the same, and knows which versions it needs', async () => {
    const keys = new SigningKeys(world.pool, world.secrets, 0);
    assert.equal(await keys.current(), await keys.current());
    assert.deepEqual([...(await oauthKeyVersions(world.pool))], [['v1', 1]]);
  });
});
