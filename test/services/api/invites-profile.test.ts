/** What a network says of an account is what its server likes to say, and that server may be anybody's. */
import assert from 'node:assert/strict';
import type { ConnectedProfile, FormConnector } from '#contracts/ports/connector.ts';
import { liveWorld } from '#test/support/live-world.ts';
import { suite } from '#test/support/suite.ts';

suite('a guest connects an account of a hostile server', (t) => {
  let it: Awaited<ReturnType<typeof liveWorld>>;
  let profile: ConnectedProfile;
  t.before(async () => {
    const connector: FormConnector = {
      ...{ kind: 'form', title: 'With an app password', usernameLabel: 'Handle' },
      secrets: [{ name: 'password', label: 'App password', hint: null, maxLength: 200 }],
      connect: async () => ({
        kind: 'connected',
        profile,
        credential: { secret: { token: 'abcdefgh' }, expiresAt: null },
      }),
    };
    it = await liveWorld(() => ({ bluesky: [connector] }));
  });
  t.after(() => it?.close());

  let clients = 0;
  const connected = async (said: Partial<ConnectedProfile>) => {
    clients += 1;
    profile = {
      ...{ externalId: `did:plc:${clients}`, username: 'name.example.com', displayName: 'Name', avatarUrl: null },
      ...{ scopes: ['atproto'], consentEndsAt: null, ...said },
    };
    const { owner } = it.world;
    const { id: clientId } = (await owner.post('/clients', { name: `Client ${clients}`, type: 'brand' })).data;
    const { url } = (await owner.post(`/clients/${clientId}/connect-invites`, { platforms: ['bluesky'] })).data;
    const form = { platform: 'bluesky', username: 'name.example.com', password: 'abcdefgh', timezone: '' };
    await it.guest().sent(new URL(String(url)).pathname, form);
    await it.world.settled();
    const [account] = (await owner.get(`/accounts?clientId=${clientId}`)).rows;
    assert.ok(account !== undefined, JSON.stringify(said).slice(0, 200));
    return account;
  };

  t('names without an end, and with letters that nothing can store, are cut', async () => {
    const long = `${'n'.repeat(240)}.example.com`;
    assert.equal((await connected({ username: long })).username, long.slice(0, 200));
    assert.equal(
      String((await connected({ displayName: `a\0b\ud800${'c'.repeat(500_000)}` })).displayName).length,
      200,
    );
    assert.equal((await connected({ displayName: '\0' })).displayName, null);
  });

  t('a picture is a whole https address, or none', async () => {
    const picture = 'https://cdn.example.com/a.jpg';
    assert.equal((await connected({ avatarUrl: picture })).avatarUrl, picture);
    for (const avatarUrl of [
      'javascript:alert(1)',
      'http://10.0.0.1/a.jpg',
      'nothing',
      `${picture}?${'x'.repeat(2_000)}`,
    ])
      assert.equal((await connected({ avatarUrl })).avatarUrl, null, avatarUrl.slice(0, 40));
  });

  t('permissions are bounded in number and length', async () => {
    const named = Array.from({ length: 10_000 }, (_, at) => `\0${at}${'s'.repeat(300)}`);
    const scopes = (await connected({ scopes: named })).scopes as readonly string[];
    assert.equal(scopes.length, 50);
    assert.ok(scopes.every((one) => one.length === 100));
  });
});
