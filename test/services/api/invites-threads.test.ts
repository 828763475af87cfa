/** A guest who connects an account of Threads: the real connector, over a strict Threads, on whose page they allow it. */
import assert from 'node:assert/strict';
import { account as accounts } from '#domain/account.ts';
import { accountIdOf } from '#domain/ids.ts';
import { networkOf } from '#infra/platforms/kit/network.ts';
import { threadsNetwork } from '#infra/platforms/threads/index.ts';
import { liveWorld } from '#test/support/live-world.ts';
import { MemoryAppLimits } from '#test/support/networks/memory-app-limits.ts';
import { MemoryCredentials } from '#test/support/networks/memory-credentials.ts';
import {
  allScopes,
  type Person,
  problems,
  startThreads,
  type ThreadsNetwork,
} from '#test/support/networks/threads/index.ts';
import { appOf } from '#test/support/networks/threads/world.ts';
import { suite } from '#test/support/suite.ts';

suite('a guest connects an account of threads', { timeoutMs: 90_000 }, (t) => {
  let network: ThreadsNetwork;
  let it: Awaited<ReturnType<typeof liveWorld>>;

  t.before(async () => {
    network = await startThreads();
    it = await liveWorld(({ http }) => {
      const clock = () => network.state.now();
      const tools = { http, clock, credentials: new MemoryCredentials(), appLimits: new MemoryAppLimits() };
      return { threads: networkOf(threadsNetwork(), tools, appOf(network)).connectors };
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
    const made = await it.world.owner.post(`/clients/${clientId}/connect-invites`, { platforms: ['threads'] });
    assert.equal(made.status, 200, made.text);
    return { clientId: String(clientId), path: new URL(String(made.data.url)).pathname };
  };
  const accountsOf = async (clientId: string) => {
    await it.world.settled();
    return (await it.world.owner.get(`/accounts?clientId=${clientId}`)).rows;
  };
  /** What the person presses on the page, and where Threads sends the browser: as a browser does, without the mark behind #. */
  const pressed = async (page: string, by: Record<string, string>): Promise<string> => {
    const url = new URL(page);
    for (const [name, value] of Object.entries(by)) url.searchParams.set(name, value);
    const answer = await fetch(url, { redirect: 'manual' });
    assert.equal(answer.status, 302, await answer.text());
    const to = answer.headers.get('location') ?? '';
    assert.ok(to.endsWith('#_'));
    return to.replace('#_', '');
  };
  const asked = { platform: 'threads', way: 'consent', timezone: 'Europe/Berlin' };
  const connected = async (person: Person = network.person()) => {
    const link = await linkOf();
    const guest = it.guest();
    const page = await guest.sent(link.path, asked);
    return { ...link, guest, person, page, back: await guest.get(await pressed(page, { as: person.id })) };
  };

  t('from the link to the account: the page of Threads, the two tokens, and a credential that is sealed', async () => {
    const { clientId, path, guest, person, page, back } = await connected();
    const query = new URL(page).searchParams;
    assert.equal(query.get('client_id'), network.state.app.clientId);
    assert.equal(query.get('scope'), allScopes.join(','));
    assert.equal(query.get('code_challenge'), null, 'Threads knows no PKCE');
    assert.deepEqual([back.status, back.next], [303, path]);
    const shown = await guest.get(path);
    assert.ok(shown.html.includes(`Threads: <strong><bdi>${person.username}</bdi></strong> (connected)`), shown.html);
    const [account, ...others] = await accountsOf(clientId);
    assert.deepEqual(
      [account?.platform, account?.status, account?.externalId, account?.username, others],
      ['threads', 'connected', person.id, person.username, []],
    );
    const id = accountIdOf(clientId, 'threads', person.id);
    const kept = await it.credentials.read(id);
    const access = network.state.access.get(String(kept?.secret.accessToken));
    assert.deepEqual([access?.personId, access?.isLong], [person.id, true]);
    const { rows } = await it.pool.query("select string_agg(t::text, e'\\n') as text from ops.network_credentials t");
    assert.ok(!String(rows[0].text).includes(String(kept?.secret.accessToken)));
    const { state } = await it.world.store.load(accounts, id);
    assert.ok('scopes' in state && allScopes.every((scope) => state.scopes.includes(scope)));
  });

  t('who denies it, and whose token cannot be had, connects nothing and is told how to go on', async () => {
    const link = await linkOf();
    const guest = it.guest();
    const denied = await guest.get(
      await pressed(await guest.sent(link.path, asked), { as: network.person().id, deny: '1' }),
    );
    const page = denied.next === null ? denied : await guest.get(denied.next);
    assert.match(page.html, /You did not allow the access/);
    network.script({ route: 'GET /access_token', then: { answer: problems.unavailable } });
    const failed = await connected();
    const after = failed.back.next === null ? failed.back : await failed.guest.get(failed.back.next);
    assert.match(after.html, /Threads does not answer now/);
    assert.deepEqual([await accountsOf(link.clientId), await accountsOf(failed.clientId)], [[], []]);
  });

  t('a second consent of the same person keeps the account, with the newer token', async () => {
    const first = await connected();
    const id = accountIdOf(first.clientId, 'threads', first.person.id);
    const before = await it.credentials.read(id);
    const page = await first.guest.sent(first.path, asked);
    await first.guest.get(await pressed(page, { as: first.person.id }));
    const after = await it.credentials.read(id);
    assert.notEqual(after?.secret.accessToken, before?.secret.accessToken);
    assert.equal((await accountsOf(first.clientId)).length, 1);
  });
});
