/** A guest whose login of Google has several channels: the real connector, over a strict YouTube. */
import assert from 'node:assert/strict';
import { accountIdOf } from '#domain/ids.ts';
import { appOf } from '#infra/platforms/kit/app.ts';
import { networkOf } from '#infra/platforms/kit/network.ts';
import { youtubeNetwork } from '#infra/platforms/youtube/index.ts';
import { readConfig } from '#runtime/process/config.ts';
import type { Guest } from '#test/support/guest.ts';
import { liveWorld } from '#test/support/live-world.ts';
import { MemoryAppLimits } from '#test/support/networks/memory-app-limits.ts';
import { MemoryCredentials } from '#test/support/networks/memory-credentials.ts';
import { allScopes, startYouTube, type YouTubeNetwork } from '#test/support/networks/youtube/index.ts';
import type { Channel } from '#test/support/networks/youtube/state.ts';
import { suite } from '#test/support/suite.ts';

suite('a guest connects channels of youtube', { timeoutMs: 90_000 }, (t) => {
  let network: YouTubeNetwork;
  let it: Awaited<ReturnType<typeof liveWorld>>;

  t.before(async () => {
    network = await startYouTube();
    it = await liveWorld(({ http }) => {
      const app = appOf('youtube', readConfig(network.env));
      assert.ok(app !== null);
      const stores = { credentials: new MemoryCredentials(), appLimits: new MemoryAppLimits() };
      const tools = { http, ...stores, clock: () => network.state.now() };
      return { youtube: networkOf(youtubeNetwork, tools, app).connectors };
    });
    Object.assign(network.state.app, { redirectUri: `${it.world.origin()}/connect/callback` });
  });
  t.after(async () => {
    await it?.close();
    network?.close();
  });

  const linkOf = async (name: string) => {
    const { id: clientId } = (await it.world.owner.post('/clients', { name, type: 'brand' })).data;
    const invite = { platforms: ['youtube'], maxAccounts: 10 };
    const made = await it.world.owner.post(`/clients/${clientId}/connect-invites`, invite);
    assert.equal(made.status, 200, made.text);
    return { clientId: String(clientId), path: new URL(String(made.data.url)).pathname };
  };
  /** Presses the button, chooses a channel there, and comes back. */
  const back = async (guest: Guest, path: string, channel: Channel, more = '') => {
    const url = await guest.sent(path, { platform: 'youtube', way: 'consent', timezone: 'Europe/Berlin' });
    const page = await fetch(`${url}&as=${channel.id}${more}`, { redirect: 'manual' });
    assert.equal(page.status, 302, await page.text());
    return guest.get(page.headers.get('location') ?? '');
  };
  const accountsOf = async (clientId: string) => {
    await it.world.settled();
    return (await it.world.owner.get(`/accounts?clientId=${clientId}`)).rows;
  };

  t('two channels of one login share its grant: the end of one revokes nothing, that of the last does', async () => {
    const { clientId, path } = await linkOf('Two channels');
    const [first, second] = [network.channel({ person: '5' }), network.channel({ person: '5', title: 'Second' })];
    for (const channel of [first, second]) assert.equal((await back(it.guest(), path, channel)).next, path);
    const rows = await accountsOf(clientId);
    assert.deepEqual(
      rows.map(({ externalId, displayName }) => [externalId, displayName]).toSorted(),
      [
        [first.id, 'Café Ada'],
        [second.id, 'Second'],
      ].toSorted(),
    );
    const ids = [first, second].map(({ id }) => accountIdOf(clientId, 'youtube', id));
    const kept = await Promise.all(ids.map((id) => it.credentials.read(id)));
    assert.equal(await it.credentials.leave(ids[0] ?? '', kept[0]?.version ?? 0), 'left');
    assert.equal(await it.credentials.leave(ids[1] ?? '', kept[1]?.version ?? 0), 'last');
  });

  t('an owner who does not allow the upload is told so, and nothing is connected', async () => {
    const { clientId, path } = await linkOf('Declined');
    const { html } = await back(it.guest(), path, network.channel(), `&leave=${allScopes[1]}`);
    assert.match(html, /gave us no permission for uploading videos/);
    assert.deepEqual(await accountsOf(clientId), []);
  });
});
