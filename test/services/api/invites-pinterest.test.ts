/** A guest who connects an account of Pinterest: a client that proves itself by HTTP Basic, and a page without PKCE. */
import assert from 'node:assert/strict';
import { account as accounts } from '#domain/account.ts';
import { accountIdOf } from '#domain/ids.ts';
import { networkOf } from '#infra/platforms/kit/network.ts';
import { pinterestNetwork } from '#infra/platforms/pinterest/index.ts';
import type { Guest } from '#test/support/guest.ts';
import { liveWorld } from '#test/support/live-world.ts';
import { MemoryAppLimits } from '#test/support/networks/memory-app-limits.ts';
import { MemoryCredentials } from '#test/support/networks/memory-credentials.ts';
import { allScopes, type PinterestNetwork, problems, startPinterest } from '#test/support/networks/pinterest/index.ts';
import { appOf } from '#test/support/networks/pinterest/world.ts';
import { suite } from '#test/support/suite.ts';

suite('a guest connects an account of pinterest', { timeoutMs: 90_000 }, (t) => {
  let network: PinterestNetwork;
  let it: Awaited<ReturnType<typeof liveWorld>>;
  t.before(async () => {
    network = await startPinterest();
    it = await liveWorld(({ http }) => {
      const clock = () => network.state.now();
      const tools = { http, clock, credentials: new MemoryCredentials(), appLimits: new MemoryAppLimits() };
      return { pinterest: networkOf(pinterestNetwork, tools, appOf(network)).connectors };
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
    const made = await it.world.owner.post(`/clients/${clientId}/connect-invites`, { platforms: ['pinterest'] });
    assert.equal(made.status, 200, made.text);
    return { clientId: String(clientId), path: new URL(String(made.data.url)).pathname };
  };
  /** Presses the button here, then `pressed` there, and answers where Pinterest sends the browser. */
  const sentBack = async (guest: Guest, path: string, pressed: Record<string, string>): Promise<string> => {
    const page = new URL(await guest.sent(path, { platform: 'pinterest', way: 'consent', timezone: '' }));
    assert.equal(`${page.origin}${page.pathname}`, network.authorize);
    assert.deepEqual([...page.searchParams.keys()].toSorted(), [
      ...['client_id', 'redirect_uri', 'response_type', 'scope', 'state'],
    ]);
    for (const [name, value] of Object.entries(pressed)) page.searchParams.set(name, value);
    const answer = await fetch(page, { redirect: 'manual' });
    assert.equal(answer.status, 302, await answer.text());
    return answer.headers.get('location') ?? '';
  };

  t('from the link to the account: consent, scopes, and tokens that are kept', async () => {
    const { clientId, path } = await linkOf();
    const guest = it.guest();
    assert.match((await guest.get(path)).html, /Continue to Pinterest/);
    const person = network.person({ businessName: 'Acme' });
    const back = await guest.get(await sentBack(guest, path, { as: person.id }));
    assert.deepEqual([back.status, back.next], [303, path]);
    await it.world.settled();
    const [account, ...others] = (await it.world.owner.get(`/accounts?clientId=${clientId}`)).rows;
    assert.deepEqual(
      [account?.platform, account?.status, account?.externalId, account?.displayName, others],
      ['pinterest', 'connected', person.id, 'Acme', []],
    );
    const id = accountIdOf(clientId, 'pinterest', person.id);
    const { accessToken, refreshToken } = (await it.credentials.read(id))?.secret ?? {};
    assert.ok(network.state.access.has(String(accessToken)) && network.state.refresh.has(String(refreshToken)));
    const { state } = await it.world.store.load(accounts, id);
    assert.ok('scopes' in state);
    assert.deepEqual(state.scopes.toSorted(), allScopes.toSorted());
  });

  t('a guest who does not allow it is told so, and can try again', async () => {
    const { path } = await linkOf();
    const guest = it.guest();
    const person = network.person();
    const denied = await guest.get(await sentBack(guest, path, { as: person.id, deny: '1' }));
    assert.equal(denied.status, 422);
    assert.match(denied.html, /You did not allow the access/);
    assert.equal((await guest.get(await sentBack(guest, path, { as: person.id }))).next, path);
  });

  t('a client that Pinterest refuses stands in the log of the operator', async () => {
    const { path } = await linkOf();
    const guest = it.guest();
    const back = await sentBack(guest, path, { as: network.person().id });
    network.script({ route: 'POST /v5/oauth/token', then: { answer: problems.unauthorized } });
    const refused = await guest.get(back);
    assert.equal(refused.status, 422);
    assert.match(refused.html, /role="alert">[^<]*Tell the people who sent you the link\./);
    assert.doesNotMatch(refused.html, /Authentication failed/);
    assert.ok(it.world.lines.some((line) => line.includes('Pinterest refuses our app: 401: Authentication failed.')));
  });
});
