import assert from 'node:assert/strict';
import { mintSession } from '#runtime/identity/sessions.ts';
import type { Caller, World } from '#test/support/http.ts';
import { Browser, oauthOf, oauthWorld, pkce } from '#test/support/oauth.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

suite('a credential that was just issued', (t) => {
  let world: World;
  let owner: Caller;
  t.before(async () => {
    world = await oauthWorld();
    const { workspaceId, memberId } = world;
    const sessions = { store: world.store, secrets: world.secrets, clock: world.deps.clock };
    owner = world.callerWith((await mintSession(sessions, { workspaceId, memberId, mode: 'live' })).token);
  });
  t.after(() => world?.close());

  /** Holds the read model of credentials back while the work goes on. @returns what the work gave */
  const heldBack = async <T>(table: string, work: () => Promise<T>): Promise<T> => {
    const holder = await world.pool.connect();
    try {
      await holder.query('begin');
      // The projection waits for its writes; readers go on.
      await holder.query(`lock table ${table} in exclusive mode`);
      const before = await world.head();
      let isAnswered = false;
      const answer = work().finally(() => {
        isAnswered = true;
      });
      await until('it is stored', async () => (await world.head()) > before);
      // Round trips of other calls: an answer that did not wait has come by then.
      for (let calls = 0; calls < 20; calls += 1) assert.equal((await world.owner.get('/agency')).status, 200);
      assert.equal(isAnswered, false, 'answered before the credential is accepted');
      await holder.query('rollback');
      return await answer;
    } finally {
      await holder.query('rollback');
      holder.release();
    }
  };
  const works = async (secret: unknown): Promise<void> => {
    const { status, text } = await world.callerWith(String(secret)).get('/agency');
    assert.equal(status, 200, text);
  };

  t('is accepted at the first call: a new key, and a rotated one', async () => {
    const expiresAt = new Date(world.deps.clock() + 86_400_000).toISOString();
    const body = { name: 'A key', mode: 'test', scopes: ['agency.read'], expiresAt };
    const made = await heldBack('read.api_keys', () => owner.post('/api-keys', body));
    await works(made.data.secret);
    const rotated = await heldBack('read.api_keys', () => owner.post(`/api-keys/${made.data.id}/rotate`));
    await works(rotated.data.secret);
  });

  t('is accepted at the first call: an access token of an app', async () => {
    const it = oauthOf(world);
    const app = await it.register();
    const secret = pkce();
    const browser = new Browser();
    const uid = await it.begin(browser, it.authorizeUrl(app, secret, { resource: `${world.origin()}/v1` }));
    const done = await heldBack('read.grants', () => browser.open(it.answerUrl(uid, it.consent(uid))));
    const toApp = new URL((await browser.open(done.location)).location);
    const { json } = await it.exchange(app, toApp.searchParams.get('code') ?? '', secret);
    await works(json.access_token);
  });
});
