/** A guest whose login of Facebook has pages and an account of Instagram: the real connector, over a strict Facebook. */
import assert from 'node:assert/strict';
import { accountIdOf } from '#domain/ids.ts';
import { facebookNetwork } from '#infra/platforms/facebook/index.ts';
import { appOf } from '#infra/platforms/kit/app.ts';
import { networkOf } from '#infra/platforms/kit/network.ts';
import { readConfig } from '#runtime/process/config.ts';
import type { Guest } from '#test/support/guest.ts';
import type { Caller } from '#test/support/http.ts';
import { liveWorld } from '#test/support/live-world.ts';
import { allScopes, type FacebookNetwork, startFacebook } from '#test/support/networks/facebook/index.ts';
import type { Person } from '#test/support/networks/facebook/state.ts';
import { MemoryAppLimits } from '#test/support/networks/memory-app-limits.ts';
import { MemoryCredentials } from '#test/support/networks/memory-credentials.ts';
import { suite } from '#test/support/suite.ts';

const wordsOf = (name: string): string =>
  `${name} cannot be connected here yet, and the link says so: this installation has no app of ${name}`;

suite('a guest connects pages of facebook', { timeoutMs: 90_000 }, (t) => {
  let network: FacebookNetwork;
  let it: Awaited<ReturnType<typeof liveWorld>>;

  t.before(async () => {
    network = await startFacebook();
    it = await liveWorld(({ http }) => {
      const app = appOf('facebook', readConfig({ ...network.env, FACEBOOK_SCOPES: allScopes.join(' ') }));
      assert.ok(app !== null);
      const stores = { credentials: new MemoryCredentials(), appLimits: new MemoryAppLimits() };
      const { connectors } = networkOf(facebookNetwork, { http, ...stores, clock: () => network.state.now() }, app);
      // Facebook Login stands for both.
      return { facebook: connectors, instagram: connectors };
    });
    network.state.app.redirectUri = `${it.world.origin()}/connect/callback`;
  });
  t.after(async () => {
    await it?.close();
    network?.close();
  });

  const linkOf = async (name: string, platforms: readonly string[]) => {
    const { id: clientId } = (await it.world.owner.post('/clients', { name, type: 'brand' })).data;
    const made = await it.world.owner.post(`/clients/${clientId}/connect-invites`, { platforms, maxAccounts: 10 });
    assert.equal(made.status, 200, made.text);
    return { clientId: String(clientId), path: new URL(String(made.data.url)).pathname };
  };
  /** Presses the button, allows it there, and comes back. */
  const back = async (guest: Guest, path: string, person: Person, more = '') => {
    const url = await guest.sent(path, { platform: 'facebook', way: 'consent', timezone: 'Europe/Berlin' });
    const page = await fetch(`${url}&as=${person.id}${more}`, { redirect: 'manual' });
    assert.equal(page.status, 302, await page.text());
    return guest.get(page.headers.get('location') ?? '');
  };
  const accountsOf = async (clientId: string) => {
    await it.world.settled();
    return (await it.world.owner.get(`/accounts?clientId=${clientId}`)).rows;
  };
  const cafe = () => {
    const person = network.person();
    const page = network.pageOf(person, {
      instagram: { id: `1784${network.state.id().slice(-12)}`, username: 'cafe' },
    });
    const other = network.pageOf(person, { name: 'Read only' }, ['ANALYZE']);
    return { person, page, other };
  };

  t(
    'a link for both networks offers the page and the account of Instagram of one consent, each by its network',
    async () => {
      const { person, page } = cafe();
      const { clientId, path } = await linkOf('Both', ['facebook', 'instagram']);
      const guest = it.guest();
      const { next } = await back(guest, path, person);
      const choice = await guest.get(next ?? '');
      assert.match(choice.html, /Which accounts of Facebook and Instagram\?/);
      assert.match(choice.html, /Facebook; a page; your role there may not create content/);
      await guest.post(next ?? '', [
        ['account', '0'],
        ['account', '1'],
      ]);
      const rows = await accountsOf(clientId);
      assert.deepEqual(rows.map(({ platform, externalId }) => [platform, externalId]).toSorted(), [
        ['facebook', page.id],
        ['instagram', page.instagram?.id],
      ]);
      // One consent for both: the network is asked with the last of them alone.
      const ids = [
        accountIdOf(clientId, 'facebook', page.id),
        accountIdOf(clientId, 'instagram', page.instagram?.id ?? ''),
      ];
      const kept = await Promise.all(ids.map((id) => it.credentials.read(id)));
      assert.equal(await it.credentials.leave(ids[0] ?? '', kept[0]?.version ?? 0), 'left');
      assert.equal(await it.credentials.leave(ids[1] ?? '', kept[1]?.version ?? 0), 'last');
    },
  );

  t('a link for Facebook alone offers no account of Instagram', async () => {
    const { person, page } = cafe();
    const { clientId, path } = await linkOf('Facebook alone', ['facebook']);
    const guest = it.guest();
    const { next } = await back(guest, path, person);
    const choice = await guest.get(next ?? '');
    assert.ok(!choice.html.includes('Instagram'), choice.html);
    await guest.post(next ?? '', { account: '0' });
    assert.deepEqual(
      (await accountsOf(clientId)).map(({ externalId }) => externalId),
      [page.id],
    );
  });

  t('the answer names each network that cannot be connected here, and says nothing of the others', async () => {
    const { id } = (await it.world.owner.post('/clients', { name: 'Three', type: 'brand' })).data;
    const body = { platforms: ['threads', 'facebook', 'x'] };
    const warningsOf = async (by: Caller, client: string, key?: string) => {
      const made = await by.post(`/clients/${client}/connect-invites`, body, key === undefined ? {} : { key });
      assert.equal(made.status, 200, made.text);
      return (made.body.meta as unknown as { readonly warnings?: readonly Readonly<Record<string, unknown>>[] })
        .warnings;
    };
    const first = await warningsOf(it.world.owner, id, 'three-networks');
    assert.deepEqual(
      first?.map(({ code, platform, path, message }) => [code, platform, path, message]),
      [
        ['platform_not_connectable', 'threads', '/platforms/0', wordsOf('Threads')],
        ['platform_not_connectable', 'x', '/platforms/2', wordsOf('X')],
      ],
    );
    assert.deepEqual(await warningsOf(it.world.owner, id, 'three-networks'), first, 'a repeat says it too');
    const twin = (await it.world.tester.post('/clients', { name: 'Three', type: 'brand' })).data.id;
    assert.equal(await warningsOf(it.world.tester, twin), undefined, 'the sandbox stands for each');
  });

  t('an owner who does not allow posting is told so, and nothing is connected', async () => {
    const { person } = cafe();
    const { clientId, path } = await linkOf('Declined', ['facebook']);
    const { html } = await back(it.guest(), path, person, '&leave=pages_manage_posts');
    assert.match(html, /gave us no permission for posting as a page/);
    assert.deepEqual(await accountsOf(clientId), []);
  });
});
