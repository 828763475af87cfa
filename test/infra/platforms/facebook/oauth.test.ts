/** Facebook Login: the page, the code, pages of the person and of businesses, Instagram behind them, the end. */
import assert from 'node:assert/strict';
import type { ConsentConnector } from '#contracts/ports/connector.ts';
import { instagramScopes, pageScopes } from '#test/support/networks/facebook/consent.ts';
import { problems } from '#test/support/networks/facebook/index.ts';
import type { Person } from '#test/support/networks/facebook/state.ts';
import { type FacebookWorld, facebookWorld } from '#test/support/networks/facebook/world.ts';
import { suite } from '#test/support/suite.ts';

const redirectUri = 'https://postline.test/connect/callback';
const within = () => AbortSignal.timeout(5_000);

suite('a login of facebook', (t) => {
  let world: FacebookWorld;
  t.before.each(async () => {
    world = await facebookWorld();
  });
  t.after.each(() => world.close());

  const connectorOf = (kit: Pick<FacebookWorld, 'connectors'> = world): ConsentConnector => {
    const [connector] = kit.connectors;
    assert.ok(connector !== undefined);
    return connector;
  };
  const login = async (person: Person, by: Readonly<Record<string, string>> = {}, connector = connectorOf()) => {
    const begun = await connector.begin({ username: null, redirectUri, state: 'the state' }, within());
    assert.ok(begun.kind === 'begun');
    const url = new URL(begun.url);
    assert.equal(url.pathname, '/v27.0/dialog/oauth');
    for (const [name, value] of Object.entries({ as: person.id, ...by })) url.searchParams.set(name, value);
    const page = await fetch(url, { redirect: 'manual' });
    assert.equal(page.status, 302, await page.text());
    const answer = new Map(new URL(page.headers.get('location') ?? '').searchParams);
    return connector.finish({ answer, kept: begun.kept, redirectUri, workspaceId: '' }, within());
  };
  const offered = async (...asked: Parameters<typeof login>) => {
    const finished = await login(...asked);
    assert.ok(finished.kind === 'accounts', JSON.stringify(finished));
    return finished;
  };

  t('offers the pages of the person, each with a token of its own, and says why one cannot be chosen', async () => {
    const person = world.network.person();
    const page = world.network.pageOf(person, { name: 'Café' });
    const looked = world.network.pageOf(person, { name: 'Looked at', username: null }, ['ANALYZE']);
    const { accounts } = await offered(person);
    assert.deepEqual(
      accounts.map(({ platform, profile, holder, obstacle }) => [
        ...[platform, profile.externalId, profile.username, profile.displayName, holder, obstacle],
      ]),
      [
        ['facebook', page.id, page.username, 'Café', 'page', undefined],
        ['facebook', looked.id, null, 'Looked at', 'page', 'your role there may not create content'],
      ],
    );
    const [first] = accounts;
    assert.deepEqual(first?.profile.scopes, pageScopes);
    assert.equal(first?.credential.grant, person.id);
    assert.equal(first?.credential.expiresAt, null);
    const { accessToken, loginToken, account } = first?.credential.secret ?? {};
    assert.equal(account, page.id);
    assert.equal(world.network.state.access.get(String(accessToken))?.pageId, page.id);
    const kept = world.network.state.access.get(String(loginToken));
    assert.deepEqual([kept?.pageId, kept?.isLong], [null, true]);
  });

  t('10: pages that a business holds are offered beside those of the person, each once', async () => {
    const person = world.network.person();
    const business = { id: '77', isClient: false };
    const [listed, owned, client] = [
      world.network.pageOf(person, { business }),
      world.network.pageOf(person, { business }),
      world.network.pageOf(person, { business: { id: '77', isClient: true } }),
    ];
    for (const { id } of [owned, client]) person.unlisted.add(id);
    const strange = world.network.page({ business });
    const { accounts } = await offered(person);
    assert.deepEqual(
      accounts.map(({ profile, obstacle }) => [profile.externalId, obstacle]),
      [
        [listed.id, undefined],
        [owned.id, undefined],
        [strange.id, 'Facebook gives no access to this page: you have no role there'],
        [client.id, undefined],
      ],
    );
    const without = await offered(person, { leave: 'business_management' });
    assert.deepEqual(
      without.accounts.map(({ profile }) => profile.externalId),
      [listed.id],
    );
  });

  t('more pages than one list shows are all offered; of more than five hundred the choice is cut', async () => {
    const person = world.network.person();
    for (let at = 0; at < 130; at += 1) world.network.pageOf(person);
    assert.equal((await offered(person)).accounts.length, 130);
    for (let at = 0; at < 400; at += 1) world.network.pageOf(person);
    const { accounts, isCut } = await offered(person);
    assert.deepEqual([accounts.length, isCut], [500, true]);
  });

  t('pages and accounts of Instagram come from one consent, where the app asks for both', async () => {
    const person = world.network.person();
    const page = world.network.pageOf(person, { instagram: { id: '17841400000000001', username: 'cafe' } });
    assert.equal((await offered(person)).accounts.length, 1);
    const both = world.again({ FACEBOOK_SCOPES: [...pageScopes, ...instagramScopes].join(' ') });
    const { accounts } = await offered(person, {}, connectorOf(both));
    assert.deepEqual(
      accounts.map(({ platform, profile, credential }) => [platform, profile.externalId, credential.secret.account]),
      [
        ['facebook', page.id, page.id],
        ['instagram', '17841400000000001', page.id],
      ],
    );
    assert.deepEqual(new Set(accounts.map(({ credential }) => credential.grant)), new Set([person.id]));
    const half = await offered(person, { leave: 'instagram_content_publish' }, connectorOf(both));
    assert.deepEqual(
      half.accounts.map(({ platform, obstacle }) => [platform, obstacle]),
      [
        ['facebook', undefined],
        ['instagram', 'Facebook gave no permission for instagram_content_publish'],
      ],
    );
    const none = await offered(person, { leave: instagramScopes.join(',') }, connectorOf(both));
    assert.deepEqual(
      none.accounts.map(({ platform }) => platform),
      ['facebook'],
      'it was not asked for',
    );
    const posts = world.again({ FACEBOOK_SCOPES: [...pageScopes, 'instagram_content_publish'].join(' ') });
    const { accounts: lacking } = await offered(person, {}, connectorOf(posts));
    assert.equal(lacking[1]?.obstacle, 'Facebook gave no permission for instagram_basic');
  });

  t('who declines, leaves out what posting needs, or has no page, connects nothing, and is told why', async () => {
    const person = world.network.person();
    const none = await login(person);
    assert.ok(none.kind === 'refused' && /no account of this login/.test(none.words), JSON.stringify(none));
    world.network.pageOf(person);
    const declined = await login(person, { deny: 'yes' });
    assert.ok(declined.kind === 'refused' && /did not allow/.test(declined.words));
    const half = await login(person, { leave: 'pages_manage_posts' });
    assert.ok(half.kind === 'refused' && /no permission for posting as a page/.test(half.words), JSON.stringify(half));
    world.network.script({ route: 'GET /me/accounts', then: { answer: problems.service_down } });
    const away = await login(person);
    assert.ok(away.kind === 'refused' && /does not answer now/.test(away.words));
    const wrong = await login(person, {}, connectorOf(world.again({ FACEBOOK_CLIENT_SECRET: 'not-the-secret' })));
    assert.ok(
      wrong.kind === 'refused' && /Error validating client secret/.test(wrong.operator ?? ''),
      JSON.stringify(wrong),
    );
  });

  t('a revocation takes the whole consent back, by the login of the page', async () => {
    const account = await world.account();
    const kept = await world.credentials.read(account.id);
    assert.ok(kept !== null && world.revoker !== undefined);
    assert.equal(await world.revoker(kept, account.id, within()), 'revoked');
    assert.equal(world.network.state.access.size, 0);
    assert.equal(await world.revoker(kept, account.id, within()), 'revoked', 'what is over counts as revoked');
  });

  t('the inbox of Meta is that of this app', () => {
    assert.ok(world.inbox !== undefined);
  });
});
