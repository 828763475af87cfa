import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Secrets } from '#runtime/identity/secrets.ts';
import { OAuthSweep } from '#services/auth/oauth/sweep.ts';
import { built } from '#test/support/bundles.ts';
import { secretKey } from '#test/support/domain.ts';
import type { World } from '#test/support/http.ts';
import {
  type App,
  Browser,
  claimsOf,
  historyOf,
  type OAuth,
  oauthOf,
  oauthWorld,
  pkce,
  postForm,
  sendJson,
  type Tokens,
} from '#test/support/oauth.ts';
import { suite } from '#test/support/suite.ts';

const script = fileURLToPath(new URL('./oauth-process.ts', import.meta.url));

/** A server that dies at a fault point, and its address. */
interface Mortal {
  readonly origin: string;
  readonly died: Promise<unknown>;
}

suite('authorization server: deaths', { drawn: true, costs: 5, timeoutMs: 180_000 }, (t) => {
  const key = secretKey();
  let world: World;
  let it: OAuth;
  let app: App;
  const ends: (() => void)[] = [];
  t.before(async () => {
    world = await oauthWorld({}, { deps: { secrets: new Secrets(key) } });
    it = oauthOf(world);
    app = await it.register();
  });
  t.after(async () => {
    for (const end of ends) end();
    await world?.close();
  });

  const child = async (fault: string): Promise<Mortal> => {
    const spawned = spawn(process.execPath, [built(script), world.db.url, key, world.origin()], {
      env: { ...process.env, POSTLINE_FAULT: fault, POSTLINE_FAULT_SIGNAL: 'SIGKILL' },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    ends.push(() => spawned.kill('SIGKILL'));
    const died = new Promise((resolve) => spawned.once('exit', (_code, signal) => resolve(signal)));
    const origin = await new Promise<string>((resolve) =>
      spawned.stdout.once('data', (line) => resolve(String(line).trim())),
    );
    return { origin, died };
  };
  /** The request that the server died of gets no answer. */
  const unanswered = async (one: Mortal, request: Promise<unknown>): Promise<void> => {
    await assert.rejects(request);
    assert.equal(await one.died, 'SIGKILL');
  };
  const onMortal = (one: Mortal, url: string): string => url.replace(world.origin(), one.origin);
  const artifactsOf = async (grantId: unknown): Promise<number> =>
    (await world.pool.query('select 1 from auth.oauth_artifacts where grant_id = $1', [grantId])).rows.length;

  t('between the consent and the code: the same answer completes it, with one grant', async () => {
    const one = await child('oauth:after-given');
    const browser = new Browser();
    const secret = pkce();
    const uid = await it.begin(browser, it.authorizeUrl(app, secret));
    const sealed = it.consent(uid);
    const before = await world.head();
    await unanswered(one, browser.open(onMortal(one, it.answerUrl(uid, sealed))));
    const [given, ...others] = await world.eventsAfter(before);
    assert.deepEqual([given?.type, others.length], ['GrantGiven', 0]);
    const grantId = given?.stream.slice('grant-'.length);
    // Nothing can come of it yet.
    assert.equal(await artifactsOf(grantId), 0);
    const code = (await it.finish(browser, uid, sealed)).get('code') ?? '';
    const { json } = await it.exchange(app, code, secret);
    assert.equal(claimsOf((json as unknown as Tokens).access_token).gid, grantId);
    assert.deepEqual(await world.eventsAfter(before), [given]);
  });

  t('between the consent and the code, and nobody comes back: the sweep ends the grant', async () => {
    const one = await child('oauth:after-given');
    const browser = new Browser();
    const uid = await it.begin(browser, it.authorizeUrl(app, pkce()));
    const before = await world.head();
    await unanswered(one, browser.open(onMortal(one, it.answerUrl(uid, it.consent(uid)))));
    const grantId = (await world.eventsAfter(before))[0]?.stream.slice('grant-'.length);
    await world.settled();
    const sweep = new OAuthSweep(world.deps);
    assert.equal((await sweep.run()).grants, 0, 'its answer may still come');
    world.clock.shiftMs += 3_700_000;
    assert.equal((await sweep.run()).grants, 1);
    world.clock.shiftMs -= 3_700_000;
    assert.deepEqual(await historyOf(world, grantId), ['GrantGiven', 'GrantRevoked expired']);
  });

  t('between spending a code or a refresh token and the answer: the next try ends the family', async () => {
    const spender = await child('oauth:after-consume');
    const secret = pkce();
    const code = await it.codeOf(app, secret);
    const form = {
      grant_type: 'authorization_code',
      client_id: app.client_id,
      code,
      redirect_uri: 'http://127.0.0.1:7777/callback',
    };
    await unanswered(spender, postForm(`${spender.origin}/oauth/token`, { ...form, code_verifier: secret.verifier }));
    assert.equal((await it.exchange(app, code, secret)).json.error, 'invalid_grant');
    const refresher = await child('oauth:after-consume');
    const { refresh_token, access_token } = await it.tokensOf(app);
    const again = { grant_type: 'refresh_token', client_id: app.client_id, refresh_token };
    await unanswered(refresher, postForm(`${refresher.origin}/oauth/token`, again));
    assert.equal((await it.refresh(app, refresh_token)).json.error, 'invalid_grant');
    const { gid } = claimsOf(access_token);
    assert.deepEqual([await historyOf(world, gid), await artifactsOf(gid)], [['GrantGiven', 'GrantRevoked reuse'], 0]);
  });

  t('between the revocation and its rows: no token refreshes, and the sweep deletes the rows', async () => {
    const one = await child('oauth:after-revoked');
    const { refresh_token: token, access_token } = await it.tokensOf(app);
    const { gid } = claimsOf(access_token);
    await unanswered(one, postForm(`${one.origin}/oauth/revoke`, { token, client_id: app.client_id }));
    assert.deepEqual(await historyOf(world, gid), ['GrantGiven', 'GrantRevoked client']);
    assert.ok((await artifactsOf(gid)) > 0);
    assert.equal((await it.refresh(app, token)).json.error, 'invalid_grant');
    await world.settled();
    await new OAuthSweep(world.deps).run();
    assert.equal(await artifactsOf(gid), 0);
  });

  t('between deleting a client and what it had: it can do nothing, and the sweep ends the rest', async () => {
    const one = await child('oauth:after-client-deleted');
    const other = await it.register();
    const { refresh_token, access_token } = await it.tokensOf(other);
    const headers = { authorization: `Bearer ${other.registration_access_token}` };
    await unanswered(one, sendJson('DELETE', onMortal(one, other.registration_client_uri), undefined, headers));
    assert.equal((await it.refresh(other, refresh_token)).json.error, 'invalid_client');
    await world.settled();
    await new OAuthSweep(world.deps).run();
    assert.deepEqual(await historyOf(world, claimsOf(access_token).gid), ['GrantGiven', 'GrantRevoked client']);
  });
});
