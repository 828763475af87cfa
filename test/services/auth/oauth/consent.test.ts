import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { grantsOfMember } from '#projections/models/grants.ts';
import { openConsent, sealConsent } from '#services/auth/consent.ts';
import { pendingConsent } from '#services/auth/pending-consent.ts';
import type { World } from '#test/support/http.ts';
import {
  type App,
  Browser,
  callback,
  claimsOf,
  historyOf,
  type OAuth,
  oauthOf,
  oauthWorld,
  pkce,
} from '#test/support/oauth.ts';
import { suite } from '#test/support/suite.ts';

suite('authorization server: consent', (t) => {
  let world: World;
  let it: OAuth;
  let app: App;
  t.before(async () => {
    world = await oauthWorld();
    it = oauthOf(world);
    app = await it.register();
  });
  t.after(() => world?.close());

  /** An authorization that waits for its person. */
  const waiting = async (): Promise<{ browser: Browser; uid: string }> => {
    const browser = new Browser();
    return { browser, uid: await it.begin(browser, it.authorizeUrl(app, pkce(), { scope: 'posts.read media.read' })) };
  };
  const refused = async (browser: Browser, uid: string, sealed: string): Promise<void> => {
    const before = await world.head();
    const answer = await browser.open(it.answerUrl(uid, sealed));
    assert.equal(answer.status, 400, answer.text);
    assert.match(answer.text, /This request is over, or it was begun in another browser/);
    assert.equal(answer.location, '');
    assert.deepEqual(await world.eventsAfter(before), []);
  };

  t('a result is bound to its authorization, lives a minute, and cannot be altered', () => {
    const owner = { personId: randomUUID(), memberId: randomUUID(), workspaceId: randomUUID() };
    const result = { uid: 'one', decision: 'allow', ...owner, mode: 'live', era: 0, scopes: ['posts.read'] } as const;
    const sealed = sealConsent(world.secrets, result, 1_000);
    assert.deepEqual(openConsent(world.secrets, sealed, 'one', 60_999), result);
    assert.equal(openConsent(world.secrets, sealed, 'one', 61_000), null);
    assert.equal(openConsent(world.secrets, sealed, 'two', 1_000), null);
    const [version, body, mac] = sealed.split('.');
    const altered = Buffer.from(JSON.stringify({ ...result, until: 9e15 })).toString('base64url');
    for (const text of [
      '',
      'x',
      `${version}.${altered}.${mac}`,
      `${version}.${body}.`,
      world.secrets.seal('forms', '{}'),
    ])
      assert.equal(openConsent(world.secrets, text, 'one', 1_000), null);
  });

  t('an attacker cannot finish his own authorization with the consent of another person', async () => {
    // The attacker begins, and sends the page of consent to a victim, who allows it.
    const attacker = await waiting();
    const ofVictim = it.consent(attacker.uid);
    // The victim's browser carries the result, and has no cookie for it: nothing is granted.
    await refused(new Browser(), attacker.uid, ofVictim);
    // Nor where it has one of an authorization of its own.
    const victim = await waiting();
    await refused(victim.browser, attacker.uid, ofVictim);
  });

  t('an attacker cannot put his own consent into the authorization of another person', async () => {
    const victim = await waiting();
    const attacker = await waiting();
    // What he has consented to is sealed for his own authorization.
    await refused(victim.browser, victim.uid, it.consent(attacker.uid, { personId: randomUUID() }));
  });

  t('an old result, one of another server, and none that was sealed are refused', async () => {
    const { browser, uid } = await waiting();
    world.clock.shiftMs -= 61_000;
    const old = it.consent(uid);
    world.clock.shiftMs += 61_000;
    await refused(browser, uid, old);
    await refused(browser, uid, 'v1.e30.AAAA');
    await refused(browser, uid, '');
  });

  t('the cookie of the authorization is signed, for its path alone, and no page of ours reads it', async () => {
    const { browser, uid } = await waiting();
    const [line = ''] = browser.received.filter((one) => one.startsWith('oauth_asked='));
    assert.match(
      line,
      new RegExp(`^oauth_asked=${uid}; path=/oauth/interaction/${uid}; .*samesite=lax; httponly$`, 'i'),
    );
    const forged = await new Browser().open(it.answerUrl(uid, it.consent(uid)));
    assert.equal(forged.status, 400);
    const unsigned = await fetch(it.answerUrl(uid, it.consent(uid)), { headers: { cookie: `oauth_asked=${uid}` } });
    assert.equal(unsigned.status, 400);
  });

  t('a denied consent, one that leaves no scope, and one of a stranger end with access_denied', async () => {
    for (const result of [
      { decision: 'deny' },
      { scopes: [] },
      { scopes: ['posts.compose', 'clients.manage'] },
      { memberId: randomUUID() },
      { workspaceId: randomUUID() },
    ] as const) {
      const { browser, uid } = await waiting();
      const before = await world.head();
      const params = await it.finish(browser, uid, it.consent(uid, result));
      assert.deepEqual(
        [params.get('error'), params.get('code'), params.get('state'), params.get('iss')],
        ['access_denied', null, 'a state', world.origin()],
      );
      assert.deepEqual(await world.eventsAfter(before), []);
    }
  });

  t('one consent gives one grant and one code, however often and in how many tabs it is answered', async () => {
    const { browser, uid } = await waiting();
    const sealed = it.consent(uid);
    const before = await world.head();
    const answers = await Promise.all([1, 2, 3, 4].map(() => browser.open(it.answerUrl(uid, sealed))));
    const resumes = answers.filter(({ status }) => status === 303).map(({ location }) => location);
    assert.ok(resumes.length >= 1);
    const ends = await Promise.all([...resumes, ...resumes].map((location) => browser.open(location)));
    assert.equal(ends.filter(({ location }) => location.startsWith(callback)).length, 1);
    const stored = await world.eventsAfter(before);
    assert.deepEqual(
      stored.map(({ type }) => type),
      ['GrantGiven'],
    );
    await refused(browser, uid, sealed);
  });

  t('a second authorization in the same browser is another person’s, and nobody is asked to sign out', async () => {
    const browser = new Browser();
    const [ann, bob] = [randomUUID(), randomUUID()];
    for (const personId of [ann, bob, ann]) {
      const tokens = await it.tokensOf(app, { browser, result: { personId } });
      assert.equal(claimsOf(tokens.access_token).sub, personId);
    }
    assert.deepEqual(
      browser.received.filter((one) => /^oauth(?:\.sig)?=/.test(one)),
      [],
      'no session is remembered',
    );
    const { rows } = await world.pool.query(`select 1 from auth.oauth_artifacts where model = 'Session'`);
    assert.equal(rows.length, 0);
  });

  t('the console reads what an app asks for, without its cookie, until it is answered or over', async () => {
    const { browser, uid } = await waiting();
    const now = world.deps.clock();
    const pending = await pendingConsent(world.pool, uid, now);
    assert.deepEqual(pending, {
      uid,
      clientId: app.client_id,
      clientName: 'An app',
      documentHost: null,
      redirect: { kind: 'loopback', host: '127.0.0.1:7777' },
      resource: world.deps.mcpUrl(),
      scopes: ['posts.read', 'media.read'],
      expiresAt: pending?.expiresAt,
    });
    assert.equal(await pendingConsent(world.pool, uid, Date.parse(pending?.expiresAt ?? '')), null);
    for (const unknown of ['', 'unknown', 'x'.repeat(100)]) {
      assert.equal(await pendingConsent(world.pool, unknown, now), null);
    }
    await it.finish(browser, uid, it.consent(uid));
    assert.equal(await pendingConsent(world.pool, uid, now), null);
  });

  t('the page shows the host or the scheme to which the code goes', async () => {
    for (const [uri, redirect] of [
      ['https://app.example/cb', { kind: 'host', host: 'app.example' }],
      ['cursor://anysphere/cb', { kind: 'scheme', scheme: 'cursor' }],
    ] as const) {
      const other = await it.register({ redirect_uris: [uri] });
      const uid = await it.begin(new Browser(), it.authorizeUrl(other, pkce(), { redirect_uri: uri }));
      assert.deepEqual((await pendingConsent(world.pool, uid, world.deps.clock()))?.redirect, redirect);
    }
  });

  t('the token carries the mode and the workspace of the consent through its grant', async () => {
    for (const mode of ['live', 'test'] as const) {
      const { gid } = claimsOf((await it.tokensOf(app, { result: { mode } })).access_token);
      await world.settled();
      const listed = (await grantsOfMember(world.pool, world.memberId)).find(({ grantId }) => grantId === gid);
      assert.deepEqual([listed?.mode, listed?.workspaceId], [mode, world.workspaceId]);
      assert.deepEqual(await historyOf(world, gid), ['GrantGiven']);
    }
  });
});
