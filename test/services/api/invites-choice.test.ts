/** A login with more accounts than a page has room for: the guest looks for theirs, and ticks go from page to page. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { ConsentConnector, OfferedAccount } from '#contracts/ports/connector.ts';
import type { Guest, Shown } from '#test/support/guest.ts';
import { liveWorld } from '#test/support/live-world.ts';
import { suite } from '#test/support/suite.ts';

suite('a choice among the accounts of a login', (t) => {
  let it: Awaited<ReturnType<typeof liveWorld>>;
  let offered: readonly OfferedAccount[] = [];
  /** A network whose consent gives what the test offers. */
  const connector: ConsentConnector = {
    ...{ kind: 'consent', title: 'By signing in there', usernameLabel: null },
    begin: async ({ state }) => ({ kind: 'begun', url: `https://network.invalid/?state=${state}`, kept: {} }),
    finish: async () => ({ kind: 'accounts', accounts: offered, isCut }),
  };
  let isCut = false;
  t.before(async () => {
    it = await liveWorld(() => ({ facebook: [connector] }));
  });
  t.after(() => it?.close());

  const pageOf = (at: number, more: Partial<OfferedAccount> = {}): OfferedAccount => ({
    profile: {
      ...{ externalId: `page-${at}`, username: null, displayName: `Filiale ${String(at).padStart(3, '0')}` },
      ...{ avatarUrl: null, scopes: [], consentEndsAt: null },
    },
    credential: { secret: { accessToken: randomUUID() }, expiresAt: null },
    ...more,
  });
  const pages = (count: number): readonly OfferedAccount[] => Array.from({ length: count }, (_, at) => pageOf(at));
  let clients = 0;
  const linkOf = async () => {
    clients += 1;
    const client = await it.world.owner.post('/clients', { name: `Bäckerei ${clients}`, type: 'brand' });
    const invite = { platforms: ['facebook'], maxAccounts: 100 };
    const made = await it.world.owner.post(`/clients/${client.data.id}/connect-invites`, invite);
    assert.equal(made.status, 200, made.text);
    return { clientId: client.data.id, path: new URL(String(made.data.url)).pathname };
  };
  /** Presses the button of the link, and comes back from the network. */
  const backIn = async (guest: Guest, path: string): Promise<Shown> => {
    const away = await guest.sent(path, { platform: 'facebook', way: 'consent', timezone: '' });
    const { search } = new URL(away);
    return guest.get(`/connect/callback${search}&code=one`);
  };
  const choiceOf = async (guest: Guest, path: string): Promise<string> => {
    const { next, html } = await backIn(guest, path);
    assert.match(next ?? html, /^\/connect\/choice\/[\w-]{43}$/);
    return String(next);
  };
  const ticked = ({ html }: Shown) => [...html.matchAll(/value="(\d+)" checked/g)].map(([, at]) => Number(at));
  const boxes = ({ html }: Shown) => [...html.matchAll(/name="account" value="(\d+)"/g)].map(([, at]) => Number(at));
  const hidden = ({ html }: Shown) =>
    [...html.matchAll(/type="hidden" name="(\w+)" value="([^"]*)"/g)].map(([, name = '', value = '']) => [name, value]);
  /** Ticks these, as well as what the page has, and presses a button. */
  const press = (guest: Guest, path: string, page: Shown, go: string | null, ticks: readonly number[], query = '') =>
    guest.post(path, [
      ...(go === null ? [] : [['go', go]]),
      ...hidden(page),
      ['query', query],
      ...ticks.map((at) => ['account', String(at)]),
    ] as [string, string][]);
  const connectedOf = async (clientId: string) => {
    await it.world.settled();
    const { rows } = await it.world.owner.get(`/accounts?clientId=${clientId}&limit=100`);
    return rows.map(({ externalId }) => String(externalId)).toSorted();
  };

  t('130 pages are on three of ours, and what was ticked on one is connected from another', async () => {
    offered = pages(130);
    const { clientId, path } = await linkOf();
    const guest = it.guest();
    const choice = await choiceOf(guest, path);
    const first = await guest.get(choice);
    assert.deepEqual(
      boxes(first),
      Array.from({ length: 50 }, (_, at) => at),
    );
    assert.match(first.html, /1 to 50 of 130\./);
    assert.doesNotMatch(first.html, /Page before|role="alert"/);
    const second = await press(guest, choice, first, 'next', [3, 7]);
    assert.match(second.html, /51 to 100 of 130\. 2 more chosen on other pages\./);
    const third = await press(guest, choice, second, 'next', [60]);
    assert.deepEqual(
      boxes(third),
      Array.from({ length: 30 }, (_, at) => 100 + at),
    );
    assert.doesNotMatch(third.html, /Next page/);
    const again = await press(guest, choice, third, 'back', [129]);
    assert.deepEqual(ticked(again), [60]);
    const found = await press(guest, choice, again, 'search', [60], 'filiale 00');
    assert.deepEqual(boxes(found), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert.deepEqual(ticked(found), [3, 7]);
    assert.match(found.html, /1 to 10 of 10\. 2 more chosen on other pages\./);
    const none = await press(guest, choice, found, 'search', [3], '<b>"nobody"');
    assert.match(none.html, /None has this in its name\./);
    assert.match(none.html, /value="&lt;b&gt;&quot;nobody&quot;"/);
    const done = await press(guest, choice, none, null, [], '<b>"nobody"');
    assert.equal(done.next, path);
    assert.deepEqual(await connectedOf(clientId), ['page-129', 'page-3', 'page-60'].toSorted());
  });

  t('what each account is, why one cannot be chosen and which is connected already is said', async () => {
    const roles = 'your role there may not publish';
    offered = [pageOf(1, { holder: 'page' }), pageOf(2, { holder: 'organization', obstacle: roles }), pageOf(3)];
    const { clientId, path } = await linkOf();
    const guest = it.guest();
    const choice = await choiceOf(guest, path);
    const shown = await guest.get(choice);
    assert.match(shown.html, /Filiale 001<\/bdi> <small>a page<\/small>/);
    assert.match(
      shown.html,
      new RegExp(`<p class="tick"><span><bdi>Filiale 002</bdi> <small>an organization; ${roles}`),
    );
    assert.deepEqual(boxes(shown), [0, 2]);
    assert.doesNotMatch(shown.html, /name="query"/, 'three need no search');
    assert.equal((await guest.post(choice, { account: '1' })).status, 422);
    assert.equal(await guest.sent(choice, { account: '0' }), path);
    const second = await guest.get(await choiceOf(guest, path));
    assert.match(second.html, /Filiale 001<\/bdi> <small>a page; connected already; choose it to renew the permission/);
    assert.deepEqual(await connectedOf(clientId), ['page-1']);
    offered = [pageOf(2, { obstacle: roles })];
    const refused = await backIn(guest, path);
    assert.equal(refused.status, 422);
    assert.match(refused.html, new RegExp(`Filiale 002: ${roles}`));
  });

  t('of a login of which the network tells no more the guest is told, also where all fit on one page', async () => {
    offered = pages(3);
    for (const cut of [true, false]) {
      isCut = cut;
      const { path } = await linkOf();
      const guest = it.guest();
      const { html } = await guest.get(await choiceOf(guest, path));
      const words = 'The login has more than 3 accounts; only the first 3 are here.';
      assert.equal(html.includes(words), cut);
    }
  });

  t('the one account that a login was cut to is not connected unasked', async () => {
    offered = pages(1);
    isCut = true;
    const { clientId, path } = await linkOf();
    const guest = it.guest();
    const choice = await choiceOf(guest, path);
    isCut = false;
    assert.match((await guest.get(choice)).html, /The login has more than 1 account; only the first is here\./);
    assert.deepEqual(await connectedOf(clientId), []);
    assert.equal(await guest.sent(choice, { account: '0' }), path);
    assert.deepEqual(await connectedOf(clientId), ['page-0']);
  });

  t('of more accounts than are kept the guest is told, and no form reaches what is not there', async () => {
    offered = pages(2_100);
    const { clientId, path } = await linkOf();
    const guest = it.guest();
    const choice = await choiceOf(guest, path);
    const first = await guest.get(choice);
    assert.match(first.html, /The login has 2100 accounts; only the first 2000 are here\./);
    for (const fields of [
      { account: '2000' },
      { chosen: '2050,-1,1e3,9999' },
      { account: 'x', chosen: ',,,' },
      { account: '__proto__' },
    ]) {
      const answer = await guest.post(choice, fields);
      assert.equal(answer.status, 422, JSON.stringify(fields));
      assert.match(answer.html, /Choose at least one account\./);
    }
    const far = await guest.post(choice, { go: 'next', page: '9999', query: '', asked: '' });
    assert.match(far.html, /1951 to 2000 of 2000\./);
    const long = await guest.post(choice, { go: 'search', query: 'x'.repeat(5_000) });
    assert.equal(long.status, 200);
    assert.ok(!long.html.includes('x'.repeat(201)));
    assert.deepEqual(await connectedOf(clientId), []);
  });
});
