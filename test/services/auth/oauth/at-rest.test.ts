import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import type { World } from '#test/support/http.ts';
import { Browser, get, type OAuth, oauthOf, oauthWorld, pkce, sendJson, type Tokens } from '#test/support/oauth.ts';
import { suite } from '#test/support/suite.ts';

suite('authorization server: at rest', (t) => {
  let world: World;
  let it: OAuth;
  t.before(async () => {
    world = await oauthWorld();
    it = oauthOf(world);
  });
  t.after(() => world?.close());

  /** Every row of every table of some schemas, as text, with its bytes in hex. */
  const everything = async (): Promise<string> => {
    const { rows } = await world.pool.query<{ name: string }>(
      `select format('%I.%I', table_schema, table_name) as name from information_schema.tables
       where table_schema in ('auth', 'es', 'ops', 'read') and table_type = 'BASE TABLE'`,
    );
    const texts: string[] = [];
    for (const { name } of rows) {
      const found = await world.pool.query<{ line: string }>(`select to_jsonb(r)::text as line from ${name} r`);
      texts.push(...found.rows.map(({ line }) => line));
    }
    const events = await world.pool.query<{ line: string }>(
      `select convert_from(data, 'UTF8') || convert_from(metadata, 'UTF8') as line from es.events`,
    );
    return [...texts, ...events.rows.map(({ line }) => line), ...world.lines].join('\n');
  };

  t('no code, token, secret, cookie or private key stands in a row, an event or a log line', async () => {
    const bearer = new Map<string, string>();
    const app = await it.register({ token_endpoint_auth_method: 'client_secret_post' });
    const client_secret = app.client_secret ?? '';
    bearer.set('client secret', client_secret).set('registration token', app.registration_access_token);
    const browser = new Browser();
    const secret = pkce();
    const uid = await it.begin(browser, it.authorizeUrl(app, secret));
    const sealed = it.consent(uid);
    bearer.set('uid', uid).set('sealed consent', sealed);
    const code = (await it.finish(browser, uid, sealed)).get('code') ?? '';
    bearer.set('code', code).set('verifier', secret.verifier);
    // One that waits, and one that was answered and not resumed.
    const waits = await it.begin(browser, it.authorizeUrl(app, pkce()));
    const answered = await it.begin(browser, it.authorizeUrl(app, pkce()));
    await browser.open(it.answerUrl(answered, it.consent(answered)));
    bearer.set('waiting uid', waits).set('answered uid', answered);
    const first = (await it.exchange(app, code, secret, { client_secret })).json as unknown as Tokens;
    const second = (await it.refresh(app, first.refresh_token, { client_secret })).json as unknown as Tokens;
    bearer.set('access', first.access_token).set('second access', second.access_token);
    bearer.set('refresh', first.refresh_token).set('second refresh', second.refresh_token);
    await get(app.registration_client_uri, { authorization: `Bearer ${app.registration_access_token}` });
    const keys = (await get(`${world.origin()}/.well-known/jwks.json`)).json.keys as readonly { x: string }[];
    await world.settled();
    const all = await everything();
    assert.ok(all.includes(app.client_id) && all.includes(keys[0]?.x ?? '?'), 'the search finds what is there');
    for (const [name, value] of bearer) {
      assert.ok(value.length >= 20, name);
      for (const form of [value, Buffer.from(value).toString('hex'), Buffer.from(value).toString('base64url')]) {
        assert.ok(!all.includes(form), `${name} is kept`);
      }
    }
    assert.ok(all.includes(hash('sha256', second.refresh_token, 'hex')), 'tokens are found by their hash');
    assert.doesNotMatch(all, /"d": ?"/);
  });

  t('what is encrypted opens nowhere else', async () => {
    const [one, two] = [
      await it.register({ token_endpoint_auth_method: 'client_secret_post' }),
      await it.register({ token_endpoint_auth_method: 'client_secret_post' }),
    ];
    await world.pool.query(
      `update auth.oauth_clients set sealed = (select sealed from auth.oauth_clients where client_id = $1) where client_id = $2`,
      [one.client_id, two.client_id],
    );
    const { status } = await sendJson('GET', two.registration_client_uri, undefined, {
      authorization: `Bearer ${two.registration_access_token}`,
    });
    assert.equal(status, 500);
  });
});
