/** Consent at TikTok: the page with its challenge in hexadecimal digits, the code, tokens that rotate, their end. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Credential } from '#contracts/ports/credentials.ts';
import { allScopes } from '#test/support/networks/tiktok/index.ts';
import { type TikTokWorld, tiktokWorld } from '#test/support/networks/tiktok/world.ts';
import { suite } from '#test/support/suite.ts';

const within = () => AbortSignal.timeout(5_000);
const dayMs = 86_400_000;
const tokenRoute = 'POST /v2/oauth/token/';

suite('oauth of tiktok', (t) => {
  let world: TikTokWorld;
  t.before.each(async () => {
    world = await tiktokWorld();
  });
  t.after.each(() => world.close());

  const finished = async (
    pressed: Readonly<Record<string, string>> = {},
    change: (kept: object) => object = (it) => it,
  ) => {
    const { redirectUri } = world.network.state.app;
    const begun = await world.connector.begin({ username: null, redirectUri, state: 'the state' }, within());
    assert.ok(begun.kind === 'begun');
    const url = new URL(begun.url);
    assert.deepEqual(url.searchParams.get('scope')?.split(','), allScopes);
    assert.match(url.searchParams.get('code_challenge') ?? '', /^[0-9a-f]{64}$/);
    const person = world.network.person({ nickname: 'Café Aurora' });
    for (const [name, value] of Object.entries({ as: person.id, ...pressed })) url.searchParams.set(name, value);
    const page = await fetch(url, { redirect: 'manual' });
    assert.equal(page.status, 302, await page.text());
    const answer = new Map(new URL(page.headers.get('location') ?? '').searchParams);
    const kept = change(begun.kept as object) as typeof begun.kept;
    const given = { answer, kept, redirectUri, workspaceId: randomUUID() };
    return { person, outcome: await world.connector.finish(given, within()) };
  };
  const connected = async () => {
    const { person, outcome } = await finished();
    assert.ok(outcome.kind === 'accounts', JSON.stringify(outcome));
    const [account, ...others] = outcome.accounts;
    assert.ok(account !== undefined && others.length === 0);
    return { person, account, former: { ...account.credential, version: 1 } satisfies Credential };
  };
  const refresh = (former: Credential) => {
    assert.ok(world.refresher !== undefined);
    return world.refresher(former, within(), { accountId: randomUUID() } as Parameters<typeof world.refresher>[2]);
  };

  t('a consent gives tokens for two hours and 180 days, and the nickname', async () => {
    const { person, account } = await connected();
    const { profile, credential } = account;
    assert.deepEqual(
      [profile.externalId, profile.username, profile.displayName, profile.scopes],
      [person.id, person.username, 'Café Aurora', allScopes],
    );
    const now = world.network.state.now();
    const [access, ends] = [String(credential.secret.accessUntil), credential.expiresAt ?? ''].map(
      (one) => Date.parse(one) - now,
    );
    assert.ok(access !== undefined && access > 7_100_000 && access <= 7_200_000);
    assert.ok(ends !== undefined && ends > 179.9 * dayMs && ends <= 180 * dayMs);
  });

  t('a code is worth nothing without the verifier that belongs to its challenge', async () => {
    const { outcome } = await finished({}, () => ({ verifier: 'another' }));
    assert.equal(outcome.kind, 'refused');
    assert.equal(world.network.state.access.size, 0);
  });

  t('an owner who switches a permission off is told which, and the consent does not stay', async () => {
    const { outcome } = await finished({ without: 'video.publish' });
    assert.ok(outcome.kind === 'refused');
    assert.match(outcome.words, /no permission for posting for you/);
    assert.equal(world.network.state.access.size, 0);
  });

  t('an owner who declines is told so', async () => {
    const { outcome } = await finished({ deny: '1' });
    assert.ok(outcome.kind === 'refused');
    assert.match(outcome.words, /did not allow/);
  });

  t('a refresh token works once: the next refresh takes the new one', async () => {
    const { former } = await connected();
    const first = await refresh(former);
    assert.ok(first.kind === 'refreshed');
    assert.notEqual(first.credential.secret.refreshToken, former.secret.refreshToken);
    assert.equal((await refresh(former)).kind, 'refused');
    assert.equal((await refresh({ ...first.credential, version: 2 })).kind, 'refreshed');
  });

  t(
    'an answer that is lost with the new pair in it is told as such, and what is about our app ends no account',
    async () => {
      const { former } = await connected();
      world.network.script({ route: tokenRoute, then: 'drop_after' });
      const lost = await refresh(former);
      assert.ok(lost.kind === 'unavailable' && lost.isSilent === true);
      const { former: other } = await connected();
      const answer = {
        status: 400,
        body: { error: 'invalid_client', error_description: 'Client key or secret is incorrect.' },
      };
      world.network.script({ route: tokenRoute, then: { answer } });
      assert.equal((await refresh(other)).kind, 'unavailable');
      assert.equal((await refresh(other)).kind, 'refreshed');
    },
  );

  t('a disconnect ends the tokens at TikTok, and a second one does no harm', async () => {
    const { former } = await connected();
    assert.ok(world.revoker !== undefined);
    assert.equal(await world.revoker(former, randomUUID(), within()), 'revoked');
    assert.deepEqual([world.network.state.access.size, world.network.state.refresh.size], [0, 0]);
    assert.equal(await world.revoker(former, randomUUID(), within()), 'revoked');
  });
});
