/** Consent at Threads: the page, the code, the two tokens, and how long they last. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { ConsentConnector } from '#contracts/ports/connector.ts';
import type { Credential } from '#contracts/ports/credentials.ts';
import { allScopes, problems } from '#test/support/networks/threads/index.ts';
import { type ThreadsWorld, threadsWorld } from '#test/support/networks/threads/world.ts';
import { suite } from '#test/support/suite.ts';

const within = () => AbortSignal.timeout(5_000);
const dayMs = 86_400_000;
const owner = {
  accountId: randomUUID(),
  workspaceId: randomUUID(),
  clientId: randomUUID(),
  platform: 'threads',
} as const;

suite('oauth of threads', (t) => {
  let world: ThreadsWorld;
  let connector: ConsentConnector;
  t.before.each(async () => {
    world = await threadsWorld();
    const [first, ...others] = world.kit.connectors;
    assert.ok(first !== undefined && others.length === 0);
    connector = first;
  });
  t.after.each(() => world.close());

  const state = () => world.network.state;
  /** What the connector makes of the answer to a new person's consent. */
  const finished = async (change: (answer: Map<string, string>) => void = () => {}) => {
    const { redirectUri } = state().app;
    const begun = await connector.begin({ username: null, redirectUri, state: 'the state' }, within());
    assert.ok(begun.kind === 'begun');
    const url = new URL(begun.url);
    assert.equal(url.searchParams.get('scope'), allScopes.join(','));
    const person = world.network.person();
    url.searchParams.set('as', person.id);
    const page = await fetch(url, { redirect: 'manual' });
    assert.equal(page.status, 302, await page.text());
    const answer = new Map(new URL(page.headers.get('location') ?? '').searchParams);
    assert.equal(answer.get('state'), 'the state');
    change(answer);
    const done = () => connector.finish({ answer, kept: begun.kept, redirectUri, workspaceId: randomUUID() }, within());
    return { person, done, outcome: await done() };
  };
  const connected = async () => {
    const { person, outcome } = await finished();
    assert.ok(outcome.kind === 'accounts', JSON.stringify(outcome));
    const [account, ...others] = outcome.accounts;
    assert.ok(account !== undefined && others.length === 0);
    return { person, ...account, former: { ...account.credential, version: 1 } satisfies Credential };
  };
  const refusal = async (...given: Parameters<typeof finished>) => {
    const { outcome } = await finished(...given);
    assert.ok(outcome.kind === 'refused', JSON.stringify(outcome));
    return outcome;
  };
  const refresh = (former: Credential) => {
    assert.ok(world.kit.refresher !== undefined);
    return world.kit.refresher(former, within(), owner);
  };

  t('a code becomes a token of an hour, and that one of 60 days; the account is the one of the token', async () => {
    const { person, profile, credential } = await connected();
    assert.deepEqual([profile.externalId, profile.username], [person.id, person.username]);
    assert.ok(Number(profile.externalId) > Number.MAX_SAFE_INTEGER, 'the id is no number');
    assert.deepEqual(profile.scopes, allScopes);
    const { accessToken, accessFrom, accessUntil } = credential.secret;
    const access = state().access.get(String(accessToken));
    assert.deepEqual([access?.personId, access?.isLong], [person.id, true]);
    const left = Date.parse(String(accessUntil)) - Date.now();
    assert.ok(left > 59 * dayMs && left <= 60 * dayMs);
    assert.equal(credential.expiresAt, accessUntil);
    assert.ok(Math.abs(Date.parse(String(accessFrom)) - Date.now()) < 10_000);
    assert.ok(!('refreshToken' in credential.secret));
    const { secret } = world.app;
    const shown = world.http.calls.filter(({ isSecret }) => isSecret !== true).map(({ url }) => url);
    assert.ok(!shown.some((url) => url.includes('token') || url.includes(String(secret))));
    assert.equal(world.kit.refreshWindowMs, 10 * dayMs);
    assert.equal(world.kit.revoker, undefined, 'Threads has no call that ends a consent');
  });

  t('a code works once; a guest is shown what to do, and the operator what only they can mend', async () => {
    const { done } = await finished();
    const again = await done();
    assert.match(again.kind === 'refused' ? again.words : '', /Start again/);
    const error = (name: string) => (answer: Map<string, string>) => {
      answer.delete('code');
      answer.set('error', name);
    };
    assert.match((await refusal(error('access_denied'))).words, /did not allow/);
    const down = { route: 'GET /access_token', then: { answer: problems.unavailable } } as const;
    world.network.script(down);
    assert.match((await refusal()).words, /a few minutes/);
    world.network.script({ route: 'GET /:id', then: { answer: problems.user_restricted } });
    assert.match((await refusal()).words, /Is it locked or suspended/);
  });

  t('25: a token younger than 24 hours is not extended, an older one is, and each new one is young again', async () => {
    const { former } = await connected();
    const asked = () => state().calls.filter(({ path }) => path === '/refresh_access_token').length;
    for (const hours of [0, 23]) {
      state().advance(hours * 3_600_000);
      const young = await refresh(former);
      assert.deepEqual([young.kind, asked()], ['unavailable', 0]);
    }
    state().advance(3_700_000);
    const next = await refresh(former);
    assert.ok(next.kind === 'refreshed', JSON.stringify(next));
    assert.notEqual(next.credential.secret.accessToken, former.secret.accessToken);
    const left = Date.parse(next.credential.expiresAt ?? '') - state().now();
    assert.ok(left > 59 * dayMs && left <= 60 * dayMs);
    const renewed = { ...next.credential, version: 2 };
    assert.deepEqual([(await refresh(renewed)).kind, asked()], ['unavailable', 1]);
    state().advance(25 * 3_600_000);
    assert.deepEqual([(await refresh(renewed)).kind, asked()], ['refreshed', 2]);
  });

  t('25: a token that ended, or that Threads takes for invalid, ends the account; anything else may pass', async () => {
    const { former } = await connected();
    state().advance(2 * dayMs);
    const route = 'GET /refresh_access_token';
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
  });

  t('25: a post of an account whose token ends soon is not lost to a refresh that comes too early', async () => {
    const account = await world.account();
    const kept = world.credentials.kept.get(account.id);
    assert.ok(kept !== undefined);
    const soon = new Date(state().now() + 120_000).toISOString();
    const secret = { ...kept.credential.secret, accessUntil: soon };
    await world.credentials.keep(kept.owner, { secret, expiresAt: soon });
    const request = world.request(account);
    const young = await world.publish(request);
    assert.equal(young.outcome.kind, 'deferred', JSON.stringify(young.outcome));
    state().advance(dayMs + 1_000);
    const { outcome } = await world.publish(request);
    assert.equal(outcome.kind, 'published', JSON.stringify(outcome));
    const after = await world.credentials.read(account.id);
    assert.notEqual(after?.secret.accessToken, kept.credential.secret.accessToken);
  });
});
