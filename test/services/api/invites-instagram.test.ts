/** A guest who connects an account of Instagram by either of its logins: the real connectors, over a strict Instagram. */
import assert from 'node:assert/strict';
import { account as accounts } from '#domain/account.ts';
import { accountIdOf } from '#domain/ids.ts';
import { instagramNetwork } from '#infra/platforms/instagram/index.ts';
import { appOfLogin } from '#infra/platforms/kit/logins.ts';
import { networkOf } from '#infra/platforms/kit/network.ts';
import { loginsOf } from '#infra/platforms/live.ts';
import { readConfig } from '#runtime/process/config.ts';
import { liveWorld } from '#test/support/live-world.ts';
import { type InstagramNetwork, scopesOf, startInstagram } from '#test/support/networks/instagram/index.ts';
import type { Host } from '#test/support/networks/instagram/state.ts';
import { MemoryAppLimits } from '#test/support/networks/memory-app-limits.ts';
import { MemoryCredentials } from '#test/support/networks/memory-credentials.ts';
import { suite } from '#test/support/suite.ts';

const ways: Readonly<Record<Host, string>> = { ig: 'consent', fb: 'consent-facebook' };

suite('a guest connects an account of instagram', { timeoutMs: 90_000 }, (t) => {
  let network: InstagramNetwork;
  let it: Awaited<ReturnType<typeof liveWorld>>;

  t.before(async () => {
    network = await startInstagram();
    const config = readConfig({ ...network.env.ig, ...network.env.fb });
    it = await liveWorld(({ http }) => {
      const clock = () => network.state.now();
      const tools = { http, clock, credentials: new MemoryCredentials(), appLimits: new MemoryAppLimits() };
      const connectors = loginsOf(instagramNetwork).flatMap((parts) => {
        const app = appOfLogin(parts.tables, config);
        return app === null ? [] : networkOf(parts, tools, app).connectors;
      });
      return { instagram: connectors };
    });
    Object.assign(network.state.app, { redirectUri: `${it.world.origin()}/connect/callback` });
  });
  t.after(async () => {
    await it?.close();
    network?.close();
  });

  let clients = 0;
  const linkOf = async () => {
    clients += 1;
    const { id: clientId } = (await it.world.owner.post('/clients', { name: `Café ${clients}`, type: 'brand' })).data;
    const made = await it.world.owner.post(`/clients/${clientId}/connect-invites`, { platforms: ['instagram'] });
    assert.equal(made.status, 200, made.text);
    return { clientId: String(clientId), path: new URL(String(made.data.url)).pathname };
  };
  const accountsOf = async (clientId: string) => {
    await it.world.settled();
    return (await it.world.owner.get(`/accounts?clientId=${clientId}`)).rows;
  };
  /** What the person presses on the page, and where the network sends the browser: as a browser does, without the mark behind #. */
  const pressed = async (page: string, by: Record<string, string>): Promise<string> => {
    const url = new URL(page);
    for (const [name, value] of Object.entries(by)) url.searchParams.set(name, value);
    const answer = await fetch(url, { redirect: 'manual' });
    assert.equal(answer.status, 302, await answer.text());
    return (answer.headers.get('location') ?? '').replace('#_', '');
  };
  const began = async (by: Host) => {
    const link = await linkOf();
    const guest = it.guest();
    const asked = { platform: 'instagram', way: ways[by], timezone: 'Europe/Berlin' };
    return { ...link, guest, page: await guest.sent(link.path, asked) };
  };

  t('the page offers both ways, and each says where the guest signs in', async () => {
    const { path } = await linkOf();
    const { html } = await it.guest().get(path);
    assert.ok(html.includes('Instagram: by signing in there') && html.includes('Continue to Instagram'), html);
    assert.ok(html.includes('Instagram: by signing in to Facebook') && html.includes('Continue to Facebook'));
  });

  t('by its own login: from the link to the account, with a credential that is sealed', async () => {
    const { clientId, path, guest, page } = await began('ig');
    const query = new URL(page).searchParams;
    assert.deepEqual([query.get('client_id'), query.get('scope')], [network.state.app.clientId, scopesOf.ig.join(',')]);
    const person = network.person();
    const back = await guest.get(await pressed(page, { as: person.id }));
    assert.deepEqual([back.status, back.next], [303, path]);
    const [account, ...others] = await accountsOf(clientId);
    assert.deepEqual(
      [account?.platform, account?.status, account?.externalId, account?.username, others],
      ['instagram', 'connected', person.id, person.username, []],
    );
    const id = accountIdOf(clientId, 'instagram', person.id);
    const kept = await it.credentials.read(id);
    const access = network.state.access.get(String(kept?.secret.accessToken));
    assert.deepEqual([access?.host, access?.isLong], ['ig', true]);
    const { rows } = await it.pool.query("select string_agg(t::text, e'\\n') as text from ops.network_credentials t");
    assert.ok(!String(rows[0].text).includes(String(kept?.secret.accessToken)));
    const { state } = await it.world.store.load(accounts, id);
    assert.ok('scopes' in state && scopesOf.ig.every((scope) => state.scopes.includes(scope)));
  });

  t(
    '10: by the login of Facebook: the guest chooses among accounts behind pages, those of a business too',
    async () => {
      const { clientId, path, guest, page } = await began('fb');
      assert.equal(new URL(page).searchParams.get('client_id'), network.state.metaApp.clientId);
      const [one, other] = [network.person(), network.person()];
      const business = { id: network.state.id(), owned: [network.page(other)], client: [] };
      const holder = network.holder({ pages: [network.page(one)], businesses: [business] });
      const choice = await guest.get(await pressed(page, { as: holder.id }));
      assert.equal(choice.status, 303);
      const shown = await guest.get(choice.next ?? '');
      assert.ok(shown.html.includes(one.username) && shown.html.includes(other.username), shown.html);
      const next = await guest.sent(choice.next ?? '', { account: '1', go: 'connect' });
      assert.equal(next, path);
      const [account, ...others] = await accountsOf(clientId);
      assert.deepEqual([account?.externalId, account?.status, others], [other.id, 'connected', []]);
      const kept = await it.credentials.read(accountIdOf(clientId, 'instagram', other.id));
      const access = network.state.access.get(String(kept?.secret.accessToken));
      assert.deepEqual([access?.host, access?.personId], ['fb', other.id]);
    },
  );

  t('who denies it, on either page, connects nothing and is told how to go on', async () => {
    for (const by of ['ig', 'fb'] as const) {
      const { clientId, guest, page } = await began(by);
      const as = by === 'ig' ? network.person().id : network.holder().id;
      const denied = await guest.get(await pressed(page, { as, deny: '1' }));
      const after = denied.next === null ? denied : await guest.get(denied.next);
      assert.match(after.html, /You did not allow the access/);
      assert.deepEqual(await accountsOf(clientId), []);
    }
  });
});
