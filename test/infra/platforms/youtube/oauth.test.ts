/** A login of Google: the page, the code, the channel, refresh and its end. */
import assert from 'node:assert/strict';
import type { ConsentConnector } from '#contracts/ports/connector.ts';
import type { Credential } from '#contracts/ports/credentials.ts';
import { allScopes, problems } from '#test/support/networks/youtube/index.ts';
import type { Channel, YouTubeOptions } from '#test/support/networks/youtube/state.ts';
import { type YouTubeWorld, youtubeWorld } from '#test/support/networks/youtube/world.ts';
import { suite } from '#test/support/suite.ts';

const redirectUri = 'https://postline.test/connect/callback';
const within = () => AbortSignal.timeout(5_000);
const dayMs = 86_400_000;
const owner = { accountId: 'a', workspaceId: 'w', clientId: 'c', platform: 'youtube' } as const;

suite('a login of youtube', (t) => {
  let world: YouTubeWorld;
  t.before.each(async () => {
    world = await youtubeWorld();
  });
  t.after.each(() => world.close());

  const connectorOf = (kit: Pick<YouTubeWorld, 'connectors'> = world): ConsentConnector => {
    const [connector] = kit.connectors;
    assert.ok(connector !== undefined);
    return connector;
  };
  /** What the owner presses on the page, and what the browser brings back. */
  const pressed = async (connector: ConsentConnector, by: Readonly<Record<string, string>>) => {
    const begun = await connector.begin({ username: null, redirectUri, state: 'the state' }, within());
    assert.ok(begun.kind === 'begun');
    const url = new URL(begun.url);
    assert.deepEqual(
      ['access_type', 'prompt', 'code_challenge_method'].map((name) => url.searchParams.get(name)),
      ['offline', 'consent', 'S256'],
    );
    for (const [name, value] of Object.entries(by)) url.searchParams.set(name, value);
    const page = await fetch(url, { redirect: 'manual' });
    assert.equal(page.status, 302, await page.text());
    const { searchParams } = new URL(page.headers.get('location') ?? '');
    return { answer: new Map(searchParams), kept: begun.kept };
  };
  const login = async (by: Readonly<Record<string, string>>, connector = connectorOf()) => {
    const { answer, kept } = await pressed(connector, by);
    return connector.finish({ answer, kept, redirectUri, workspaceId: '' }, within());
  };
  const offered = async (channel: Channel, by: Readonly<Record<string, string>> = {}, connector = connectorOf()) => {
    const finished = await login({ as: channel.id, ...by }, connector);
    assert.ok(finished.kind === 'accounts', JSON.stringify(finished));
    const [account, ...others] = finished.accounts;
    assert.ok(account !== undefined && others.length === 0);
    return account;
  };
  const credentialOf = (secret: Credential['secret']): Credential =>
    ({ secret, expiresAt: null, version: 1 }) as unknown as Credential;

  t('connects the channel that its owner chose, with its names, its picture and what was granted', async () => {
    const channel = world.network.channel({ title: 'Café Ada', handle: 'cafeada' });
    const { profile, credential } = await offered(channel);
    assert.deepEqual(
      [profile.externalId, profile.username, profile.displayName, profile.consentEndsAt],
      [channel.id, 'cafeada', 'Café Ada', null],
    );
    assert.match(profile.avatarUrl ?? '', /^https:\/\/yt3\.ggpht\.com/);
    assert.deepEqual(profile.scopes, allScopes);
    assert.equal(credential.grant, channel.person);
    assert.ok(typeof credential.secret.refreshToken === 'string');
  });

  t('channels of one login share its grant, and no refused consent ends that of another one', async () => {
    const [first, second] = [world.network.channel({ person: '77' }), world.network.channel({ person: '77' })];
    const grants = [(await offered(first)).credential.grant, (await offered(second)).credential.grant];
    assert.deepEqual(grants, ['77', '77']);
    const refused = await login({ as: second.id, leave: allScopes[1] ?? '' });
    assert.ok(refused.kind === 'refused', JSON.stringify(refused));
    assert.match(refused.words, /gave us no permission for uploading videos/);
    assert.ok([...world.network.state.refresh.values()].some(({ channelId }) => channelId === first.id));
  });

  t('an owner may leave out what an account works without, and it is known', async () => {
    for (const leave of allScopes.slice(3)) {
      const { profile } = await offered(world.network.channel(), { leave });
      assert.ok(!profile.scopes.includes(leave));
    }
  });

  t(
    'a Google account without a channel, an owner who declines, and a network that is away connect nothing',
    async () => {
      const channel = world.network.channel();
      const { network } = world;
      network.script({ route: 'GET /youtube/v3/channels', then: { answer: problems.no_channel } });
      assert.equal((await login({ as: channel.id })).kind, 'refused');
      network.script({ route: 'GET /youtube/v3/channels', then: { answer: { status: 200, body: { items: [] } } } });
      const none = await login({ as: channel.id });
      assert.ok(none.kind === 'refused' && /no account of this login/.test(none.words), JSON.stringify(none));
      network.script({ route: 'GET /youtube/v3/channels', then: { answer: problems.unavailable } });
      const away = await login({ as: channel.id });
      assert.ok(away.kind === 'refused' && /does not answer now/.test(away.words));
      const declined = await login({ as: channel.id, deny: 'yes' });
      assert.ok(declined.kind === 'refused' && /did not allow/.test(declined.words));
      const quota = network.script({ route: 'GET /youtube/v3/channels', then: { answer: problems.quota } });
      assert.equal(quota, undefined);
      const spent = await login({ as: channel.id });
      assert.ok(spent.kind === 'refused' && /does not answer now/.test(spent.words), JSON.stringify(spent));
    },
  );

  t('a token that ends is renewed by the refresh token, which stays', async () => {
    const channel = world.network.channel();
    const { credential } = await offered(channel);
    const former = credentialOf(credential.secret);
    const renewed = await world.refresher?.(former, within(), owner);
    assert.ok(renewed?.kind === 'refreshed', JSON.stringify(renewed));
    assert.notEqual(renewed.credential.secret.accessToken, credential.secret.accessToken);
    assert.ok(!('refreshToken' in renewed.credential.secret), 'the store keeps the former one');
    assert.equal(renewed.credential.expiresAt, null);
  });

  t(
    '22: a consent screen in testing: Google names the seventh day, and after it only a new consent helps',
    async () => {
      const options: YouTubeOptions = { isTesting: true };
      const own = await youtubeWorld(options);
      const channel = own.network.channel();
      const { credential, profile } = await offered(channel, {}, connectorOf(own));
      const left = Date.parse(credential.expiresAt ?? '') - own.network.state.now();
      assert.ok(left > 6.9 * dayMs && left <= 7 * dayMs, credential.expiresAt ?? 'no end');
      assert.equal(
        profile.consentEndsAt,
        credential.expiresAt,
        'the account shows it, so that its owner is told in time',
      );
      own.network.state.advance(7 * dayMs);
      const over = await own.refresher?.(credentialOf(credential.secret), within(), owner);
      assert.deepEqual(over, { kind: 'refused', reason: 'Token has been expired or revoked.' });
      own.close();
    },
  );

  t('a refresh that Google answers with an error of its own ends nothing', async () => {
    const { credential } = await offered(world.network.channel());
    for (const then of [{ answer: problems.unavailable }, { answer: problems.user_rate }, 'drop_after'] as const) {
      world.network.script({ route: 'POST /token', then });
      const said = await world.refresher?.(credentialOf(credential.secret), within(), owner);
      assert.equal(said?.kind, 'unavailable', JSON.stringify(said));
    }
    const wrong = world.again({ YOUTUBE_CLIENT_SECRET: 'another' });
    const said = await wrong.refresher?.(credentialOf(credential.secret), within(), owner);
    assert.equal(said?.kind, 'unavailable', 'our own mistake ends no account');
  });

  t('a revocation ends all that the person consented to, and a second one counts as done', async () => {
    const [first, second] = [world.network.channel({ person: '88' }), world.network.channel({ person: '88' })];
    const [one] = [await offered(first), await offered(second)];
    const credential = credentialOf(one.credential.secret);
    assert.equal(await world.revoker?.(credential, 'a', within()), 'revoked');
    assert.equal(world.network.state.refresh.size, 0);
    assert.equal(await world.revoker?.(credential, 'a', within()), 'revoked');
    world.network.script({ route: 'POST /revoke', then: { answer: problems.unavailable } });
    assert.equal(await world.revoker?.(credential, 'a', within()), 'unavailable');
  });
});
