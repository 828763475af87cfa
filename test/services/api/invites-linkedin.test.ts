/** A guest whose login of LinkedIn has a profile and pages: the real connector, over a strict LinkedIn. */
import assert from 'node:assert/strict';
import { accountIdOf } from '#domain/ids.ts';
import { appOf } from '#infra/platforms/kit/app.ts';
import { networkOf } from '#infra/platforms/kit/network.ts';
import { linkedinNetwork } from '#infra/platforms/linkedin/index.ts';
import { readConfig } from '#runtime/process/config.ts';
import type { Guest } from '#test/support/guest.ts';
import { liveWorld } from '#test/support/live-world.ts';
import { type LinkedInNetwork, startLinkedIn } from '#test/support/networks/linkedin/index.ts';
import type { Person } from '#test/support/networks/linkedin/state.ts';
import { MemoryAppLimits } from '#test/support/networks/memory-app-limits.ts';
import { MemoryCredentials } from '#test/support/networks/memory-credentials.ts';
import { suite } from '#test/support/suite.ts';

suite('a guest connects a profile and pages of linkedin', { timeoutMs: 90_000 }, (t) => {
  let network: LinkedInNetwork;
  let it: Awaited<ReturnType<typeof liveWorld>>;

  t.before(async () => {
    network = await startLinkedIn();
    it = await liveWorld(({ http }) => {
      const app = appOf('linkedin', readConfig(network.env));
      assert.ok(app !== null);
      const stores = { credentials: new MemoryCredentials(), appLimits: new MemoryAppLimits() };
      const tools = { http, ...stores, clock: () => network.state.now() };
      return { linkedin: networkOf(linkedinNetwork(), tools, app).connectors };
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
    const invite = { platforms: ['linkedin'], maxAccounts: 10 };
    const made = await it.world.owner.post(`/clients/${clientId}/connect-invites`, invite);
    assert.equal(made.status, 200, made.text);
    return { clientId: String(clientId), path: new URL(String(made.data.url)).pathname };
  };
  /** Presses the button, allows it there, and comes back. */
  const back = async (guest: Guest, path: string, person: Person): Promise<string> => {
    const url = await guest.sent(path, { platform: 'linkedin', way: 'consent', timezone: 'Europe/Berlin' });
    const page = await fetch(`${url}&as=${person.id}`, { redirect: 'manual' });
    assert.equal(page.status, 302, await page.text());
    const { next, html } = await guest.get(page.headers.get('location') ?? '');
    return next ?? assert.fail(html);
  };
  const accountsOf = async (clientId: string) => {
    await it.world.settled();
    return (await it.world.owner.get(`/accounts?clientId=${clientId}`)).rows;
  };

  t('a profile without pages is connected at once', async () => {
    const { clientId, path } = await linkOf();
    const person = network.person('Ada Lovelace');
    assert.equal(await back(it.guest(), path, person), path);
    const [account, ...others] = await accountsOf(clientId);
    assert.deepEqual(
      [account?.externalId, account?.displayName, account?.status, others],
      [`urn:li:person:${person.id}`, 'Ada Lovelace', 'connected', []],
    );
  });

  t('the guest chooses a profile and a page, sees why another cannot be chosen, and both share one grant', async () => {
    const { clientId, path } = await linkOf();
    const person = network.person('Grace Hopper');
    const [own, other] = [network.organization(person), network.organization(person, 'CONTENT_ADMINISTRATOR')];
    const seen = network.organization(person, 'ANALYST');
    const guest = it.guest();
    const choice = await back(guest, path, person);
    assert.match(choice, /^\/connect\/choice\//);
    const shown = (await guest.get(choice)).html;
    const named = [...shown.matchAll(/<bdi>([^<,]*)[^<]*<\/bdi> <small>([^<]*)<\/small>/g)].map(([, ...one]) => one);
    assert.deepEqual(named, [
      ['Grace Hopper', 'a person'],
      [own.name, 'an organization'],
      [other.name, 'an organization'],
      [seen.name, 'an organization; your role there is analyst: only an admin or content admin may post'],
    ]);
    assert.deepEqual(
      [...shown.matchAll(/name="account" value="(\d+)"/g)].map(([, at]) => Number(at)),
      [0, 1, 2],
    );
    assert.equal((await guest.post(choice, { account: '3' })).status, 422);
    assert.equal(
      await guest.sent(choice, [
        ['account', '0'],
        ['account', '1'],
      ]),
      path,
    );
    const rows = await accountsOf(clientId);
    const ids = [`urn:li:person:${person.id}`, `urn:li:organization:${own.id}`];
    assert.deepEqual(rows.map(({ externalId }) => externalId).toSorted(), ids.toSorted());
    assert.ok(!rows.some(({ externalId }) => String(externalId).endsWith(other.id)));
    const [member, page] = ids.map((id) => accountIdOf(clientId, 'linkedin', id));
    const kept = await Promise.all([member, page].map((id) => it.credentials.read(id ?? '')));
    assert.equal(kept[0]?.secret.accessToken, kept[1]?.secret.accessToken);
    assert.ok(rows.every(({ expiresAt }) => Date.parse(String(expiresAt)) > Date.now() + 300 * 86_400_000));
    assert.equal(await it.credentials.leave(page ?? '', kept[1]?.version ?? 0), 'left');
    assert.equal(await it.credentials.leave(member ?? '', kept[0]?.version ?? 0), 'last');
  });
});
