/** Consent at Instagram by both logins: the pages, the codes, the tokens, whose accounts they are, and how long they last. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { ConsentConnector } from '#contracts/ports/connector.ts';
import type { Credential } from '#contracts/ports/credentials.ts';
import { problems, scopesOf } from '#test/support/networks/instagram/index.ts';
import type { Host } from '#test/support/networks/instagram/state.ts';
import { type InstagramWorld, instagramWorld } from '#test/support/networks/instagram/world.ts';
import { suite } from '#test/support/suite.ts';

const within = () => AbortSignal.timeout(5_000);
const dayMs = 86_400_000;
const owner = {
  ...{ accountId: randomUUID(), workspaceId: randomUUID(), clientId: randomUUID(), platform: 'instagram' as const },
};

suite('oauth of instagram', (t) => {
  let world: InstagramWorld;
  let ways: Readonly<Record<Host, ConsentConnector>>;
  t.before.each(async () => {
    world = await instagramWorld();
    const [ig, fb, ...others] = world.kit.connectors;
    assert.ok(ig !== undefined && fb !== undefined && others.length === 0);
    ways = { ig, fb };
  });
  t.after.each(() => world.close());

  const state = () => world.network.state;
  /** What the connector makes of a consent. @param as who is signed in */
  const finished = async (
    by: Host,
    as: string,
    { without = '', change = () => {} }: { without?: string; change?: (answer: Map<string, string>) => void } = {},
  ) => {
    const { redirectUri } = state().app;
    const begun = await ways[by].begin({ username: null, redirectUri, state: 'the state' }, within());
    assert.ok(begun.kind === 'begun');
    const url = new URL(begun.url);
    assert.equal(url.searchParams.get('scope'), scopesOf[by].join(','));
    for (const [name, value] of Object.entries({ as, without })) url.searchParams.set(name, value);
    const page = await fetch(url, { redirect: 'manual' });
    assert.equal(page.status, 302, await page.text());
    const answer = new Map(new URL(page.headers.get('location') ?? '').searchParams);
    change(answer);
    const done = () => ways[by].finish({ answer, kept: begun.kept, redirectUri, workspaceId: randomUUID() }, within());
    return { done, outcome: await done() };
  };
  const accounts = async (...given: Parameters<typeof finished>) => {
    const { outcome } = await finished(...given);
    assert.ok(outcome.kind === 'accounts', JSON.stringify(outcome));
    return outcome.accounts;
  };
  const words = async (...given: Parameters<typeof finished>) => {
    const { outcome } = await finished(...given);
    assert.ok(outcome.kind === 'refused', JSON.stringify(outcome));
    return outcome.words;
  };
  const refresh = (former: Credential) => {
    assert.ok(world.kit.refresher !== undefined);
    return world.kit.refresher(former, within(), owner);
  };
  const connected = async () => {
    const person = world.network.person();
    const [account, ...others] = await accounts('ig', person.id);
    assert.ok(account !== undefined && others.length === 0);
    return { person, ...account, former: { ...account.credential, version: 1 } satisfies Credential };
  };

  t('the two ways are told apart by where the guest signs in', () => {
    assert.deepEqual([ways.ig.by, ways.fb.by], [undefined, 'facebook']);
    assert.equal(ways.fb.title, 'By signing in to Facebook');
  });

  t('a code becomes a token of an hour, and that one of 60 days; the account is the one of the token', async () => {
    const { person, profile, credential } = await connected();
    assert.deepEqual([profile.externalId, profile.username], [person.id, person.username]);
    assert.ok(Number(profile.externalId) > Number.MAX_SAFE_INTEGER, 'the id is no number');
    assert.deepEqual(profile.scopes, scopesOf.ig);
    assert.equal(credential.grant, person.scopedId, 'Instagram names the person so when it calls');
    const access = state().access.get(String(credential.secret.accessToken));
    assert.deepEqual([access?.host, access?.isLong], ['ig', true]);
    const left = Date.parse(String(credential.secret.accessUntil)) - Date.now();
    assert.ok(left > 59 * dayMs && left <= 60 * dayMs);
    const shown = world.http.calls.filter(({ isSecret }) => isSecret !== true).map(({ url }) => url);
    assert.ok(!shown.some((url) => /token|secret=/.test(url)));
  });

  t('a personal account is shown with what is in the way', async () => {
    const [one] = await accounts('ig', world.network.person({ accountType: 'PERSONAL' }).id);
    assert.match(one?.obstacle ?? '', /business or creator account/);
  });

  t(
    '10: accounts behind pages of the person, and behind those that a business owns or works for, each with its own token',
    async () => {
      const people = Array.from({ length: 3 }, () => world.network.person());
      const [own, owned, client] = people.map((one) => world.network.page(one, `Page of ${one.username}`));
      assert.ok(own !== undefined && owned !== undefined && client !== undefined);
      const pages = [own, world.network.page(null, 'Without an account')];
      const business = { id: state().id(), owned: [owned, own], client: [client] };
      const holder = world.network.holder({ pages, businesses: [business] });
      const offered = await accounts('fb', holder.id);
      assert.deepEqual(
        offered.map(({ platform, profile }) => [platform, profile.externalId]),
        people.map(({ id }) => ['instagram', id]),
      );
      assert.ok(offered.every(({ credential }) => credential.grant === holder.id && credential.expiresAt === null));
      assert.equal(new Set(offered.map(({ credential }) => credential.secret.accessToken)).size, 3);
      for (const { credential, profile } of offered) {
        const access = state().access.get(String(credential.secret.accessToken));
        assert.deepEqual([access?.personId, access?.until], [profile.externalId, null]);
      }
      assert.deepEqual(offered[0]?.profile.scopes.includes('instagram_content_publish'), true);
    },
  );

  t(
    'a token of a page that Meta takes no more is minted anew by that of the login, which is never renewed',
    async () => {
      const person = world.network.person();
      const holder = world.network.holder({ pages: [world.network.page(person)] });
      const [account] = await accounts('fb', holder.id);
      assert.ok(account !== undefined);
      const former = { ...account.credential, version: 1 };
      const minted = await refresh(former);
      assert.ok(minted.kind === 'refreshed', JSON.stringify(minted));
      const access = state().access.get(String(minted.credential.secret.accessToken));
      assert.deepEqual([access?.personId, access?.host], [person.id, 'fb']);
      assert.notEqual(minted.credential.secret.accessToken, former.secret.accessToken);
      state().access.delete(String(former.secret.loginToken));
      assert.equal((await refresh(former)).kind, 'refused');
      assert.equal(
        await world.kit.revoker?.(former, randomUUID(), within()),
        'revoked',
        'there is nothing left to revoke',
      );
    },
  );

  t('a disconnect by Facebook takes the consent back; Instagram has no such call', async () => {
    const holder = world.network.holder({ pages: [world.network.page(world.network.person())] });
    const [account] = await accounts('fb', holder.id);
    assert.ok(account !== undefined && world.kit.revoker !== undefined);
    assert.equal(await world.kit.revoker({ ...account.credential, version: 1 }, randomUUID(), within()), 'revoked');
    assert.ok(![...state().access.values()].some(({ holderId }) => holderId === holder.id));
    const calls = world.http.calls.length;
    const { former } = await connected();
    const asked = world.http.calls.length;
    assert.equal(await world.kit.revoker(former, randomUUID(), within()), 'revoked');
    assert.ok(world.http.calls.length === asked && asked > calls);
  });

  t('a code works once; a guest is shown what to do', async () => {
    const { done } = await finished('ig', world.network.person().id);
    const again = await done();
    assert.match(again.kind === 'refused' ? again.words : '', /Start again/);
    const denied = {
      change: (answer: Map<string, string>) => {
        answer.delete('code');
        answer.set('error', 'access_denied');
      },
    };
    assert.match(await words('ig', world.network.person().id, denied), /did not allow/);
    world.network.script({ route: 'GET /ig/access_token', then: { answer: problems.unavailable } });
    assert.match(await words('ig', world.network.person().id), /a few minutes/);
    const without = 'instagram_business_content_publish';
    assert.match(await words('ig', world.network.person().id, { without }), /no permission for posting for you/);
    const holder = world.network.holder({ pages: [world.network.page(world.network.person())] });
    assert.match(
      await words('fb', holder.id, { without: 'instagram_content_publish' }),
      /no permission for posting for you/,
    );
    assert.match(await words('fb', world.network.holder().id), /no account of this login/);
  });

  t('25: a token younger than 24 hours is not extended, an older one is, and each new one is young again', async () => {
    const { former } = await connected();
    const asked = () => state().calls.filter(({ path }) => path === '/ig/refresh_access_token').length;
    for (const hours of [0, 23]) {
      state().advance(hours * 3_600_000);
      const young = await refresh(former);
      assert.deepEqual([young.kind, asked()], ['unavailable', 0]);
    }
    state().advance(3_700_000);
    const next = await refresh(former);
    assert.ok(next.kind === 'refreshed', JSON.stringify(next));
    const left = Date.parse(next.credential.expiresAt ?? '') - state().now();
    assert.ok(left > 59 * dayMs && left <= 60 * dayMs);
    assert.deepEqual([(await refresh({ ...next.credential, version: 2 })).kind, asked()], ['unavailable', 1]);
  });

  t(
    '25: a token that ended, or that Instagram takes for invalid, ends the account; anything else may pass',
    async () => {
      const { former } = await connected();
      state().advance(2 * dayMs);
      const route = 'GET /ig/refresh_access_token';
      for (const [answer, kind] of [
        [problems.app_limited, 'unavailable'],
        [problems.unavailable, 'unavailable'],
        [problems.unknown_error, 'unavailable'],
        [{ status: 200, body: {} }, 'unavailable'],
        [problems.token_invalid, 'refused'],
      ] as const) {
        world.network.script({ route, then: { answer } });
        assert.equal((await refresh(former)).kind, kind, JSON.stringify(answer));
      }
      world.network.script({ route, then: 'drop_after' });
      const lost = await refresh(former);
      assert.ok(lost.kind === 'unavailable' && lost.isSilent !== true, 'the former token still works');
      assert.equal((await refresh(former)).kind, 'refreshed');
      state().advance(60 * dayMs);
      assert.equal((await refresh(former)).kind, 'refused');
    },
  );

  t('an account whose credential is gone needs a new consent, and no call is made for it by either login', async () => {
    const account = await world.account({ by: 'fb' });
    await world.credentials.destroy(account.id);
    const { outcome } = await world.publish(world.request(account, { media: [world.media()] }));
    assert.ok(outcome.kind === 'failed');
    assert.equal(outcome.failure.category, 'reauth_required');
    assert.deepEqual(state().calls, []);
  });
});
