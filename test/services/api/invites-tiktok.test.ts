/** A guest who connects an account of TikTok: a challenge in hexadecimal digits, and permissions that the owner may switch off. */
import assert from 'node:assert/strict';
import { account as accounts } from '#domain/account.ts';
import { accountIdOf } from '#domain/ids.ts';
import { networkOf } from '#infra/platforms/kit/network.ts';
import { tiktokNetwork } from '#infra/platforms/tiktok/index.ts';
import type { Guest } from '#test/support/guest.ts';
import { liveWorld } from '#test/support/live-world.ts';
import { MemoryAppLimits } from '#test/support/networks/memory-app-limits.ts';
import { MemoryCredentials } from '#test/support/networks/memory-credentials.ts';
import { allScopes, startTikTok, type TikTokNetwork } from '#test/support/networks/tiktok/index.ts';
import { appOf } from '#test/support/networks/tiktok/world.ts';
import { suite } from '#test/support/suite.ts';

suite('a guest connects an account of tiktok', { timeoutMs: 90_000 }, (t) => {
  let network: TikTokNetwork;
  let it: Awaited<ReturnType<typeof liveWorld>>;
  t.before(async () => {
    network = await startTikTok();
    it = await liveWorld(({ http }) => {
      const clock = () => network.state.now();
      const tools = { http, clock, credentials: new MemoryCredentials(), appLimits: new MemoryAppLimits() };
      return { tiktok: networkOf(tiktokNetwork, tools, appOf(network)).connectors };
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
    const made = await it.world.owner.post(`/clients/${clientId}/connect-invites`, { platforms: ['tiktok'] });
    assert.equal(made.status, 200, made.text);
    return { clientId: String(clientId), path: new URL(String(made.data.url)).pathname };
  };
  /** Presses the button here, then `pressed` there, and answers where TikTok sends the browser. */
  const sentBack = async (guest: Guest, path: string, pressed: Record<string, string>): Promise<string> => {
    const page = new URL(await guest.sent(path, { platform: 'tiktok', way: 'consent', timezone: '' }));
    assert.equal(`${page.origin}${page.pathname}`, network.authorize);
    assert.deepEqual([...page.searchParams.keys()].toSorted(), [
      ...['client_key', 'code_challenge', 'code_challenge_method', 'redirect_uri', 'response_type', 'scope', 'state'],
    ]);
    for (const [name, value] of Object.entries(pressed)) page.searchParams.set(name, value);
    const answer = await fetch(page, { redirect: 'manual' });
    assert.equal(answer.status, 302, await answer.text());
    return answer.headers.get('location') ?? '';
  };

  t('from the link to the account: consent, scopes, and tokens that are kept', async () => {
    const { clientId, path } = await linkOf();
    const guest = it.guest();
    assert.match((await guest.get(path)).html, /Continue to TikTok/);
    const person = network.person({ nickname: 'Café Aurora' });
    const back = await guest.get(await sentBack(guest, path, { as: person.id }));
    assert.deepEqual([back.status, back.next], [303, path]);
    await it.world.settled();
    const [account, ...others] = (await it.world.owner.get(`/accounts?clientId=${clientId}`)).rows;
    assert.deepEqual(
      [account?.platform, account?.status, account?.externalId, account?.displayName, others],
      ['tiktok', 'connected', person.id, 'Café Aurora', []],
    );
    const id = accountIdOf(clientId, 'tiktok', person.id);
    const { accessToken, refreshToken } = (await it.credentials.read(id))?.secret ?? {};
    assert.ok(network.state.access.has(String(accessToken)) && network.state.refresh.has(String(refreshToken)));
    const { state } = await it.world.store.load(accounts, id);
    assert.ok('scopes' in state);
    assert.deepEqual(state.scopes.toSorted(), allScopes.toSorted());
  });

  t('a guest who switches posting off, or does not allow it at all, is told so and can try again', async () => {
    const { path } = await linkOf();
    const guest = it.guest();
    const person = network.person();
    const denied = await guest.get(await sentBack(guest, path, { as: person.id, deny: '1' }));
    assert.equal(denied.status, 422);
    assert.match(denied.html, /You did not allow the access/);
    const partly = await guest.get(await sentBack(guest, path, { as: person.id, without: 'video.publish' }));
    assert.equal(partly.status, 422);
    assert.match(partly.html, /no permission for posting for you/);
    assert.equal((await guest.get(await sentBack(guest, path, { as: person.id }))).next, path);
  });
});
