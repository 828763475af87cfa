/** A guest who connects an account by a consent at the network: the real connector of X, over a strict X. */
import assert from 'node:assert/strict';
import { account as accounts } from '#domain/account.ts';
import { accountIdOf } from '#domain/ids.ts';
import { invite } from '#domain/invite.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { contextOf } from '#services/workflows/provision.ts';
import type { Guest, Shown } from '#test/support/guest.ts';
import { liveWorld } from '#test/support/live-world.ts';
import { MemoryAppLimits } from '#test/support/networks/memory-app-limits.ts';
import { xConsent } from '#test/support/networks/x/adapter.ts';
import { type Person, problems, startX, type XNetwork } from '#test/support/networks/x/index.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

suite('a guest connects an account by a consent', { timeoutMs: 90_000 }, (t) => {
  let network: XNetwork;
  let it: Awaited<ReturnType<typeof liveWorld>>;

  t.before(async () => {
    network = await startX();
    const { app, now } = network.state;
    const { clientId, clientSecret } = app;
    const appLimits = new MemoryAppLimits();
    it = await liveWorld(({ http }) => {
      const authorize = `${network.origin}/i/oauth2/authorize`;
      const options = {
        http,
        app: { clientId, clientSecret },
        clock: () => now.call(network.state),
        authorize,
        appLimits,
      };
      return { x: [xConsent({ ...options, api: network.origin })] };
    });
    Object.assign(app, { redirectUri: `${it.world.origin()}/connect/callback` });
  });
  t.after(async () => {
    await it?.close();
    network?.close();
  });

  interface Link {
    readonly clientId: string;
    readonly inviteId: string;
    readonly path: string;
  }
  let clients = 0;
  const linkOf = async (by = it.world.owner, more: object = {}): Promise<Link> => {
    clients += 1;
    const { id: clientId } = (await by.post('/clients', { name: `Café ${clients}`, type: 'brand' })).data;
    const made = await by.post(`/clients/${clientId}/connect-invites`, { platforms: ['x'], ...more });
    assert.equal(made.status, 200, made.text);
    return { clientId, inviteId: String(made.data.inviteId), path: new URL(String(made.data.url)).pathname };
  };
  const asked = { platform: 'x', way: 'consent', timezone: 'Europe/Berlin' };

  /** Presses the button, and answers where X's page is. */
  const begun = async (guest: Guest, { path }: Link): Promise<URL> => {
    const url = new URL(await guest.sent(path, asked));
    assert.equal(url.origin, network.origin);
    return url;
  };
  /** What the person presses there, and where X sends the browser. */
  const pressed = async (page: URL, by: Record<string, string>): Promise<string> => {
    const url = new URL(page);
    for (const [name, value] of Object.entries(by)) url.searchParams.set(name, value);
    const answer = await fetch(url, { redirect: 'manual' });
    assert.equal(answer.status, 302, await answer.text());
    return answer.headers.get('location') ?? '';
  };
  const allowed = (page: URL, { id }: Person = network.person()) => pressed(page, { as: id });

  const accountsOf = async ({ clientId }: Link, by = it.world.owner) => {
    await it.world.settled();
    return (await by.get(`/accounts?clientId=${clientId}`)).rows;
  };
  const isEnded = ({ status, html }: Shown): void => {
    assert.equal(status, 404);
    assert.match(html, /This step has ended/);
  };
  const grants = () => network.state.refresh.size;

  t('from the link to the account: consent, scopes, and a credential that is sealed', async () => {
    const link = await linkOf();
    const guest = it.guest();
    const first = await guest.get(link.path);
    assert.match(first.html, /<button type="submit">Continue to X<\/button>/);
    assert.match(first.html, /We never see your password/);
    assert.doesNotMatch(first.html, /name="username"/);
    assert.match(first.headers.get('content-security-policy') ?? '', /form-action 'self' https:/);
    const page = await begun(guest, link);
    const query = page.searchParams;
    assert.equal(query.get('redirect_uri'), `${it.world.origin()}/connect/callback`);
    assert.equal(query.get('code_challenge_method'), 'S256');
    assert.match(query.get('state') ?? '', /^[\w-]{43}$/);
    const person = network.person();
    const back = await guest.get(await allowed(page, person));
    assert.deepEqual([back.status, back.next], [303, link.path]);
    assert.equal(back.headers.get('referrer-policy'), 'no-referrer');
    assert.equal(back.headers.get('cache-control'), 'no-store');
    const shown = await guest.get(link.path);
    assert.ok(shown.html.includes(`X: <strong><bdi>${person.username}</bdi></strong> (connected)`), shown.html);
    const [account, ...others] = await accountsOf(link);
    assert.deepEqual(
      [account?.platform, account?.status, account?.externalId, account?.username, account?.timezone, others],
      ['x', 'connected', person.id, person.username, 'Europe/Berlin', []],
    );
    const kept = await it.credentials.read(accountIdOf(link.clientId, 'x', person.id));
    const { accessToken, refreshToken } = kept?.secret ?? {};
    assert.ok(network.state.access.has(String(accessToken)) && network.state.refresh.has(String(refreshToken)));
    const { rows: tables } = await it.pool.query<{ name: string }>(
      `select format('%I.%I', table_schema, table_name) as name from information_schema.tables
       where table_schema not in ('pg_catalog', 'information_schema') and table_type = 'BASE TABLE'`,
    );
    const written: string[] = [];
    for (const { name } of tables) {
      const { rows } = await it.pool.query(`select string_agg(t::text, e'\\n') as text from ${name} t`);
      written.push(String(rows[0].text ?? ''));
    }
    const stored = written.join('\n');
    assert.ok(stored.includes(link.clientId));
    for (const secret of [accessToken, refreshToken].map(String)) {
      for (const form of [secret, Buffer.from(secret).toString('hex')]) assert.ok(!stored.includes(form));
    }
    const { state } = await it.world.store.load(accounts, accountIdOf(link.clientId, 'x', person.id));
    assert.ok('scopes' in state && state.scopes.includes('offline.access') && state.scopes.includes('tweet.write'));
  });

  t('an answer works once: a reload and a second tab store nothing more', async () => {
    const link = await linkOf();
    const guest = it.guest();
    const back = await allowed(await begun(guest, link));
    const answers = await Promise.all([guest.get(back), guest.get(back), guest.get(back)]);
    assert.deepEqual(answers.map(({ status }) => status).toSorted(), [303, 404, 404]);
    isEnded(await guest.get(back));
    assert.equal((await accountsOf(link)).length, 1);
  });

  t('two tabs of one browser each come back to their own attempt', async () => {
    const [one, two] = [await linkOf(), await linkOf()];
    const guest = it.guest();
    const [first, second] = [await begun(guest, one), await begun(guest, two)];
    assert.equal((await guest.get(await allowed(second))).next, two.path);
    assert.equal((await guest.get(await allowed(first))).next, one.path);
    assert.deepEqual([(await accountsOf(one)).length, (await accountsOf(two)).length], [1, 1]);
  });

  t('an answer that reaches another browser opens nothing there, and is not spent', async () => {
    const link = await linkOf();
    const [guest, stranger] = [it.guest(), it.guest()];
    const back = await allowed(await begun(guest, link));
    await begun(stranger, link);
    for (const other of [it.guest(), stranger]) isEnded(await other.get(back));
    assert.deepEqual(await accountsOf(link), []);
    assert.equal((await guest.get(back)).status, 303);
  });

  t('the code of another person cannot be brought into the attempt of a guest', async () => {
    const [link, theirs] = [await linkOf(), await linkOf((await it.world.agency('South Star')).owner)];
    const [guest, attacker] = [it.guest(), it.guest()];
    const [page, other] = [await begun(guest, link), await begun(attacker, theirs)];
    const code = new URL(await allowed(other)).searchParams.get('code') ?? '';
    const mixed = new URLSearchParams({ code, state: page.searchParams.get('state') ?? '' });
    const answer = await guest.get(`/connect/callback?${mixed}`);
    assert.equal(answer.status, 422, 'the verifier of this attempt does not fit');
    assert.match(answer.html, /Start again/);
    assert.deepEqual(await accountsOf(link), []);
    isEnded(await guest.get(`/connect/callback?${mixed}`));
  });

  t('a guest who does not allow it is told so, and can try again', async () => {
    const link = await linkOf();
    const guest = it.guest();
    const denied = await guest.get(await pressed(await begun(guest, link), { deny: '1' }));
    assert.equal(denied.status, 422);
    assert.match(denied.html, /role="alert">You did not allow the access\. Start again to allow it\./);
    assert.match(denied.html, /Continue to X/);
    assert.equal((await guest.get(await allowed(await begun(guest, link)))).next, link.path);
  });

  t('what only an operator can mend stands in their log, and the guest is sent to those who invited them', async () => {
    const link = await linkOf();
    const guest = it.guest();
    const back = await allowed(await begun(guest, link));
    const body = { error: 'unauthorized_client', error_description: 'Missing valid authorization header' };
    network.script({ route: 'POST /2/oauth2/token', then: { answer: { status: 401, body } } });
    const refused = await guest.get(back);
    assert.equal(refused.status, 422);
    assert.match(refused.html, /role="alert">[^<]*Tell the people who sent you the link\./);
    assert.doesNotMatch(refused.html, /unauthorized_client|authorization header/);
    assert.ok(it.world.lines.some((line) => line.includes('X refuses our app: unauthorized_client')));
  });

  t('a network that fails is told in words, and its words are not shown', async () => {
    const link = await linkOf();
    const guest = it.guest();
    for (const answer of [problems.over_capacity, { status: 200, body: '<script>alert(1)</script>' }]) {
      const back = await allowed(await begun(guest, link));
      network.script({ route: 'POST /2/oauth2/token', then: { answer } });
      const failed = await guest.get(back);
      assert.equal(failed.status, 422);
      assert.match(failed.html, /role="alert">X does not answer now\. Try again in a few minutes\./);
      assert.doesNotMatch(failed.html, /<script/);
    }
    const state = new URL(await begun(guest, link)).searchParams.get('state') ?? '';
    const odd = new URLSearchParams({ state, error: '"><script>alert(1)</script>', error_description: '<b>x</b>' });
    const shown = await guest.get(`/connect/callback?${odd}`);
    assert.equal(shown.status, 422);
    assert.doesNotMatch(shown.html, /<script|<b>x/);
    assert.deepEqual(await accountsOf(link), []);
  });

  t('a consent without what is needed is told, and ended at the network', async () => {
    const link = await linkOf();
    const guest = it.guest();
    const page = await begun(guest, link);
    page.searchParams.set('scope', 'tweet.read users.read offline.access');
    const before = grants();
    const refused = await guest.get(await allowed(page));
    assert.match(refused.html, /X gave us no permission for posting for you\. Start again\./);
    assert.equal(grants(), before);
  });

  t('a HEAD, and an answer that is too long or malformed, spend nothing', async () => {
    const link = await linkOf();
    const guest = it.guest();
    const back = await allowed(await begun(guest, link));
    const { search } = new URL(back);
    assert.equal((await guest.head(back)).status, 404);
    const state = new URL(back).searchParams.get('state') ?? '';
    for (const query of [
      `${search}&more=${'x'.repeat(8_192)}`,
      `?code=abc&state=${'s'.repeat(7_000)}`,
      '',
      '?state=',
      '?state=%00',
      `?code=abc&state=${state}x`,
      `?code=abc&state=x&state=${state}`,
      '?code=abc&state[]=a',
    ]) {
      isEnded(await guest.get(`/connect/callback${query}`));
    }
    assert.equal((await guest.get(back)).next, link.path);
  });

  t('a link that was withdrawn, or ran out, and a client that was archived or erased, end the step', async () => {
    const [revoked, expired] = [await linkOf(), await linkOf(undefined, { expiresInHours: 1 })];
    const [archived, erased] = [await linkOf(), await linkOf()];
    const guest = it.guest();
    const backs: string[] = [];
    for (const link of [revoked, expired, archived, erased]) backs.push(await allowed(await begun(guest, link)));
    const context = contextOf(it.world.operator, it.world.workspaceId);
    await execute(it.world.store, invite, revoked.inviteId, { type: 'Revoke', reason: null }, context);
    await it.world.owner.delete(`/clients/${archived.clientId}`);
    await it.attempts.destroyOfClient(erased.clientId);
    it.world.clock.shiftMs = 3_600_001;
    const [before, calls] = [await it.world.head(), network.state.calls.length];
    for (const back of backs) isEnded(await guest.get(back));
    it.world.clock.shiftMs = 0;
    assert.equal(await it.world.head(), before);
    assert.equal(network.state.calls.length, calls, 'the network was not asked');
  });

  t('an attempt ends by time, and is swept', async () => {
    const link = await linkOf();
    const guest = it.guest();
    const back = await allowed(await begun(guest, link));
    await it.pool.query('update ops.connect_attempts set expires_at = now() where invite_id = $1', [link.inviteId]);
    isEnded(await guest.get(back));
    assert.ok((await it.attempts.sweep()) >= 1);
    const { rowCount } = await it.pool.query('select 1 from ops.connect_attempts where invite_id = $1', [
      link.inviteId,
    ]);
    assert.equal(rowCount, 0);
  });

  t('a network that is silent to one workspace does not stop the guests of another', async () => {
    const other = await it.world.agency('Quick');
    const [slow, quick] = [await linkOf(), await linkOf(other.owner)];
    const backs: (readonly [Guest, string])[] = [];
    for (let at = 0; at < 7; at += 1) {
      const guest = it.guest();
      backs.push([guest, await allowed(await begun(guest, slow))]);
    }
    network.script({ route: 'POST /2/oauth2/token', then: 'silent_before', times: 7 });
    const fault = network.state.faults.at(-1) ?? assert.fail();
    const waiting = backs.map(([guest, back]) => guest.get(back));
    await until('the share of one workspace is used up', () => fault.left === 2);
    fault.left = 0;
    const guest = it.guest();
    const began = performance.now();
    assert.equal((await guest.get(await allowed(await begun(guest, quick)))).next, quick.path);
    assert.ok(performance.now() - began < 5_000);
    const statuses: number[] = (await Promise.all(waiting)).map(({ status }) => status);
    assert.ok(
      statuses.every((status) => [422, 503, 303].includes(status)),
      statuses.join(),
    );
    assert.equal(statuses.filter((status) => status === 422).length, 5);
  });

  t('no code, no state and no verifier stands in the log', async () => {
    const link = await linkOf();
    const guest = it.guest();
    const back = await allowed(await begun(guest, link));
    await guest.get(back);
    const { searchParams } = new URL(back);
    const log = it.world.lines.join('\n');
    assert.ok(log.includes('/connect/callback'), 'requests are logged');
    for (const name of ['code', 'state']) {
      const value = searchParams.get(name) ?? '';
      assert.ok(value.length > 10 && !log.includes(value), name);
    }
  });
});
