/** A login of LinkedIn: the page, the code, the member and the organizations, refresh and its end. */
import assert from 'node:assert/strict';
import type { ConsentConnector, OfferedAccount } from '#contracts/ports/connector.ts';
import type { Credential } from '#contracts/ports/credentials.ts';
import { problems } from '#test/support/networks/linkedin/index.ts';
import type { LinkedInOptions, Person } from '#test/support/networks/linkedin/state.ts';
import { type LinkedInWorld, linkedinWorld } from '#test/support/networks/linkedin/world.ts';
import { suite } from '#test/support/suite.ts';

const redirectUri = 'https://postline.test/connect/callback';
const within = () => AbortSignal.timeout(5_000);
const dayMs = 86_400_000;

suite('a login of linkedin', (t) => {
  let world: LinkedInWorld;
  t.before.each(async () => {
    world = await linkedinWorld();
  });
  t.after.each(() => world.network.close());

  const connectorOf = (kit: Pick<LinkedInWorld, 'connectors'> = world): ConsentConnector => {
    const [connector] = kit.connectors;
    assert.ok(connector !== undefined);
    return connector;
  };
  /** What the member presses on the page, and what the browser brings back. */
  const pressed = async (connector: ConsentConnector, by: Readonly<Record<string, string>>) => {
    const begun = await connector.begin({ username: null, redirectUri, state: 'the state' }, within());
    assert.ok(begun.kind === 'begun');
    const url = new URL(begun.url);
    assert.ok(!url.search.includes('+') && url.searchParams.get('code_challenge') === null);
    for (const [name, value] of Object.entries(by)) url.searchParams.set(name, value);
    const page = await fetch(`${url.origin}${url.pathname}?${url.searchParams.toString().replaceAll('+', '%20')}`, {
      redirect: 'manual',
    });
    assert.equal(page.status, 302, await page.text());
    const { searchParams } = new URL(page.headers.get('location') ?? '');
    assert.equal(searchParams.get('state'), 'the state');
    return { answer: new Map(searchParams), kept: begun.kept };
  };
  const login = async (person: Person, connector = connectorOf()) => {
    const { answer, kept } = await pressed(connector, { as: person.id });
    return connector.finish({ answer, kept, redirectUri, workspaceId: '' }, within());
  };
  const offered = async (person: Person, connector = connectorOf()): Promise<readonly OfferedAccount[]> => {
    const finished = await login(person, connector);
    assert.ok(finished.kind === 'accounts', JSON.stringify(finished));
    return finished.accounts;
  };
  const inWorld = async (options: LinkedInOptions, run: (own: LinkedInWorld) => Promise<void>) => {
    const own = await linkedinWorld(options);
    await run(own).finally(() => own.network.close());
  };

  t('offers the member and each organization, with what each is and why one cannot be chosen', async () => {
    const person = world.network.person('Grace Hopper');
    const of = (role: string) => world.network.organization(person, role);
    const [admin, content, sponsored, curator, analyst] = [
      ...['ADMINISTRATOR', 'CONTENT_ADMINISTRATOR', 'DIRECT_SPONSORED_CONTENT_POSTER', 'CURATOR', 'ANALYST'].map(of),
    ];
    person.roles.set(String(admin?.id), ['ANALYST', 'ADMINISTRATOR']);
    of('LEAD_CAPTURE_ADMINISTRATOR');
    const all = await offered(person);
    assert.deepEqual(
      all.map(({ profile, holder, obstacle }) => [profile.displayName, holder, obstacle?.split(':')[0]]),
      [
        ['Grace Hopper', 'person', undefined],
        [admin?.name, 'organization', undefined],
        [content?.name, 'organization', undefined],
        [sponsored?.name, 'organization', undefined],
        [curator?.name, 'organization', 'your role there is curator'],
        [analyst?.name, 'organization', 'your role there is analyst'],
      ],
    );
    const [member, page] = all;
    assert.deepEqual(
      [member?.profile.externalId, page?.profile.externalId],
      [`urn:li:person:${person.id}`, `urn:li:organization:${admin?.id}`],
    );
    assert.equal(page?.profile.username, admin?.vanityName);
    assert.match(member?.profile.avatarUrl ?? '', /^https:\/\/media\.licdn\.com/);
    for (const { credential, profile } of all) {
      assert.equal(credential.grant, `urn:li:person:${person.id}`);
      assert.equal(credential.secret.accessToken, member?.credential.secret.accessToken);
      const left = Date.parse(profile.consentEndsAt ?? '') - Date.now();
      assert.ok(left > 364 * dayMs && left <= 365 * dayMs, 'the refresh token lasts a year');
      assert.ok(profile.scopes.includes('w_organization_social'));
    }
  });

  t('lists more organizations than a page of LinkedIn has, and names them fifty at a time', async () => {
    const person = world.network.person();
    for (let at = 0; at < 130; at += 1) world.network.organization(person, 'CONTENT_ADMINISTRATOR');
    const all = await offered(person);
    assert.equal(new Set(all.map(({ profile }) => profile.externalId)).size, 131);
    assert.ok(all.every(({ profile }) => (profile.displayName ?? '') !== ''));
    const paths = world.network.state.calls.map(({ path }) => path);
    assert.equal(paths.filter((path) => path === '/rest/organizations').length, 3);
    assert.equal(paths.filter((path) => path === '/rest/organizationAcls').length, 6);
  });

  t('of a member with a role in very many organizations the first are offered, with few calls', async () => {
    const person = world.network.person();
    for (let at = 0; at < 620; at += 1) world.network.organization(person, 'CONTENT_ADMINISTRATOR');
    const done = await login(person);
    assert.ok(done.kind === 'accounts' && done.isCut === true, done.kind);
    assert.equal(done.accounts.length, 501);
    const paths = world.network.state.calls.map(({ path }) => path);
    assert.equal(paths.filter((path) => path === '/rest/organizations').length, 10);
    assert.ok(paths.filter((path) => path === '/rest/organizationAcls').length <= 10);
  });

  t('pages of organizations that repeat without end are read a few times', async () => {
    const person = world.network.person();
    const { id } = world.network.organization(person);
    const elements = Array.from({ length: 100 }, () => ({ organization: `urn:li:organization:${id}` }));
    const answer = { status: 200, body: { elements } };
    world.network.script({ route: 'GET /rest/organizationAcls', times: 500, then: { answer } });
    const done = await login(person);
    assert.ok(done.kind === 'accounts' && done.isCut === true && done.accounts.length === 2, JSON.stringify(done));
    assert.ok(world.network.state.calls.filter(({ path }) => path === '/rest/organizationAcls').length <= 10);
  });

  t('what is no id of an organization is none, and reaches no list', async () => {
    const person = world.network.person();
    const { id } = world.network.organization(person);
    const named = [
      `urn:li:organization:${id}`,
      'urn:li:organization:1)&x=(2',
      'urn:li:organization:',
      'urn:li:organization:a',
    ];
    const body = { elements: named.map((organization) => ({ organization })) };
    world.network.script({ route: 'GET /rest/organizationAcls', then: { answer: { status: 200, body } } });
    const all = await offered(person);
    assert.deepEqual(
      all.map(({ profile }) => profile.externalId),
      [`urn:li:person:${person.id}`, `urn:li:organization:${id}`],
    );
  });

  t('an app that has Share on LinkedIn alone asks for that, and offers the member', async () => {
    await inWorld({ appScopes: ['openid', 'profile', 'w_member_social'], givesRefresh: false }, async (own) => {
      const person = own.network.person();
      own.network.organization(person);
      const refused = await login(person, connectorOf(own));
      assert.ok(refused.kind === 'refused');
      assert.match(refused.operator ?? '', /unauthorized_scope_error: Scope "w_organization_social" is not authorized/);
      const small = connectorOf(own.again({ LINKEDIN_SCOPES: 'openid profile w_member_social' }));
      const all = await offered(person, small);
      assert.deepEqual(
        all.map(({ holder, obstacle }) => [holder, obstacle]),
        [['person', undefined]],
      );
      const left = Date.parse(all[0]?.profile.consentEndsAt ?? '') - Date.now();
      assert.ok(left > 59 * dayMs && left <= 60 * dayMs, 'the access token lasts sixty days');
      assert.equal(all[0]?.credential.expiresAt, all[0]?.profile.consentEndsAt);
    });
  });

  t('without the permission to post for organizations none is listed', async () => {
    const person = world.network.person();
    world.network.organization(person);
    const scopes = 'openid profile w_member_social rw_organization_admin';
    const all = await offered(person, connectorOf(world.again({ LINKEDIN_SCOPES: scopes })));
    assert.deepEqual(
      all.map(({ holder }) => holder),
      ['person'],
    );
  });

  t('an app without Sign In with LinkedIn knows the member by the profile', async () => {
    const scopes = 'r_basicprofile w_organization_social r_organization_social rw_organization_admin';
    await inWorld({ appScopes: scopes.split(' ') }, async (own) => {
      const person = own.network.person('Ada Lovelace');
      own.network.organization(person);
      const all = await offered(person, connectorOf(own.again({ LINKEDIN_SCOPES: scopes })));
      assert.deepEqual(
        all.map(({ profile, obstacle }) => [profile.externalId.split(':')[2], obstacle !== undefined]),
        [
          ['person', true],
          ['organization', false],
        ],
      );
      assert.deepEqual(
        [all[0]?.profile.displayName, all[0]?.profile.username],
        ['Ada Lovelace', `vanity-${person.id.toLowerCase()}`],
      );
    });
  });

  t('a member who declines, an app that is refused and a network that is down are told apart', async () => {
    const person = world.network.person();
    const connector = connectorOf();
    const { answer, kept } = await pressed(connector, { as: person.id, deny: '1' });
    const declined = await connector.finish({ answer, kept, redirectUri, workspaceId: '' }, within());
    assert.ok(declined.kind === 'refused');
    assert.match(declined.words, /You did not allow the access/);
    const wrong = connectorOf(world.again({ LINKEDIN_CLIENT_SECRET: 'another' }));
    const refused = await login(person, wrong);
    assert.match((refused.kind === 'refused' && refused.operator) || '', /invalid_client/);
    for (const [route, words] of [
      ['GET /v2/userinfo', /does not answer now/],
      ['GET /rest/organizationAcls', /does not answer now/],
      ['GET /rest/organizations', /does not answer now/],
    ] as const) {
      world.network.organization(person);
      world.network.script({ route, then: { answer: problems.unavailable } });
      const down = await login(person);
      assert.ok(down.kind === 'refused', route);
      assert.match(down.words, words);
    }
    world.network.script({ route: 'GET /v2/userinfo', then: { answer: problems.access_denied } });
    const unread = await login(person);
    assert.match((unread.kind === 'refused' && unread.words) || '', /does not let us read this account/);
  });

  t('where the list of organizations is refused, the member can be connected', async () => {
    const person = world.network.person();
    world.network.organization(person);
    world.network.script({ route: 'GET /rest/organizationAcls', times: 5, then: { answer: problems.access_denied } });
    assert.deepEqual(
      (await offered(person)).map(({ holder }) => holder),
      ['person'],
    );
  });

  t('a version that has ended refuses the organizations of a login for now', async () => {
    const person = world.network.person();
    world.network.state.versions = ['202701'];
    const refused = await login(person);
    assert.ok(refused.kind === 'refused');
    assert.match(refused.words, /does not answer now/);
  });

  t('a refresh keeps the refresh token and its end; one that LinkedIn ended asks for a new consent', async () => {
    const [member] = await offered(world.network.person());
    const { refresher } = world;
    assert.ok(member !== undefined && refresher !== undefined);
    const former: Credential = { ...member.credential, version: 1 };
    const owner = { accountId: 'a', workspaceId: 'w', clientId: 'c', platform: 'linkedin' as const };
    world.network.state.advance(30 * dayMs);
    const first = await refresher(former, within(), owner);
    assert.ok(first.kind === 'refreshed', JSON.stringify(first));
    assert.notEqual(first.credential.secret.accessToken, former.secret.accessToken);
    assert.equal(first.credential.secret.refreshToken, former.secret.refreshToken);
    const moved = Date.parse(first.credential.expiresAt ?? '') - Date.parse(former.expiresAt ?? '');
    assert.ok(Math.abs(moved) < 10_000, 'the end of the consent does not move');
    world.network.script({ route: 'POST /oauth/v2/accessToken', then: { answer: problems.unavailable } });
    assert.equal((await refresher(former, within(), owner)).kind, 'unavailable');
    world.network.state.refresh.clear();
    const ended = await refresher(former, within(), owner);
    assert.ok(ended.kind === 'refused');
    assert.match(ended.reason, /invalid, expired or revoked/);
    const wrong = world.again({ LINKEDIN_CLIENT_SECRET: 'another' });
    const ofApp = await wrong.refresher?.(former, within(), owner);
    assert.equal(ofApp?.kind, 'unavailable', 'what is about the app ends no account');
  });

  t('nothing is taken back: LinkedIn has no call for it', () => {
    assert.equal(world.revoker, undefined);
  });
});
