/** Servers of Bluesky's protocol may be anybody's: what one claims of itself, of others, and of time. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import type { Credential } from '#contracts/ports/credentials.ts';
import type { NetworkCall, NetworkHttp, NetworkResult } from '#contracts/ports/network-http.ts';
import type { Json } from '#contracts/ports/platform.ts';
import { BlueskyInsights, connectByAppPassword, endSession, refreshSession } from '#infra/platforms/bluesky/index.ts';
import { suite } from '#test/support/suite.ts';

const did = `did:plc:${'a'.repeat(24)}`;
const stranger = `did:plc:${'b'.repeat(24)}`;
const service = 'https://pds.evil.example.com';
const subject = { accountId: '', targetId: null };
const within = () => AbortSignal.timeout(5_000);
const hour = () => Math.floor(Date.now() / 1_000) + 3_600;

const jwt = (exp: Json): string => `h.${Buffer.from(JSON.stringify({ exp })).toString('base64url')}.s`;

type Said = { readonly status?: number; readonly body: Json };

/** @param say by the end of the path; what it does not know is silent */
const serverThat = (say: Readonly<Record<string, Said | ((url: URL) => Said)>>) => {
  const calls: NetworkCall[] = [];
  const send = async (call: NetworkCall): Promise<NetworkResult> => {
    calls.push(call);
    const url = new URL(call.url);
    const known = Object.entries(say).find(([end]) => url.pathname.endsWith(end));
    if (known === undefined) return { kind: 'silent', reason: 'timeout' };
    const { status = 200, body } = typeof known[1] === 'function' ? known[1](url) : known[1];
    return { kind: 'answered', status, headers: {}, body: Buffer.from(JSON.stringify(body)) };
  };
  return { http: { send } satisfies NetworkHttp, calls };
};

const document = { id: did, service: [{ id: '#atproto_pds', serviceEndpoint: service }] };
/** Who has which handle, as the resolver knows. */
const owners: Readonly<Record<string, string>> = { 'mallory.example.com': did, 'news.example.org': stranger };
const resolveHandle = (url: URL): Said => {
  const owner = owners[url.searchParams.get('handle') ?? ''];
  return owner === undefined ? { status: 400, body: { error: 'InvalidRequest' } } : { body: { did: owner } };
};
const session = (more: Record<string, Json> = {}) => ({
  body: { did, handle: 'mallory.example.com', accessJwt: jwt(hour()), refreshJwt: jwt(hour()), ...more },
});

suite('bluesky: a hostile server', (t) => {
  const connected = async (handle: string, said: Said) => {
    const { http } = serverThat({
      resolveHandle,
      [encodeURIComponent(did)]: { body: document },
      createSession: said,
      getRecord: { status: 400, body: { error: 'RecordNotFound' } },
    });
    return connectByAppPassword({ http }, { handle, password: 'abcd-efgh' }, within());
  };
  const usernameOf = async (handle: string, claimed: Json) => {
    const made = await connected(handle, session({ handle: claimed }));
    assert.ok(made.kind === 'connected', JSON.stringify(made));
    return made.profile.username;
  };

  t('claims the handle of a stranger: the account shows the one that resolves to it, or none', async () => {
    assert.equal(await usernameOf('mallory.example.com', 'mallory.example.com'), 'mallory.example.com');
    assert.equal(await usernameOf('Mallory.example.com', 'news.example.org'), 'mallory.example.com');
    assert.equal(await usernameOf(did, 'Mallory.example.com'), 'mallory.example.com');
    assert.equal(await usernameOf(did, 'news.example.org'), null);
    assert.equal(await usernameOf(did, 'nobody.example.net'), null);
    assert.equal(await usernameOf(did, { $type: 'no text' }), null);
  });

  t('gives a token an end that no calendar has: it is stored without one, or not at all', async () => {
    for (const odd of [8.64e12, 1e300, -1, -6e10, 'soon', null]) {
      const made = await connected(did, session({ refreshJwt: jwt(odd) }));
      assert.ok(made.kind === 'connected', JSON.stringify(made));
      assert.equal(made.credential.expiresAt, null, String(odd));
      assert.equal((await connected(did, session({ accessJwt: jwt(odd) }))).kind, 'refused', String(odd));
    }
  });

  const kept = (secret: Record<string, Json>): Credential => ({
    ...{ version: 1, expiresAt: null },
    secret: { service, did, ...secret },
  });
  const byPassword = kept({ accessJwt: jwt(0), refreshJwt: 'refresh-token', accessUntil: new Date().toISOString() });
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const byConsent = kept({
    ...{ accessToken: 'access-token', refreshToken: 'refresh-token', accessUntil: new Date().toISOString() },
    ...{ dpopKey: privateKey.export({ format: 'jwk' }) as Json, issuer: service, clientId: 'http://localhost' },
    ...{ tokenEndpoint: `${service}/oauth/token`, revocationEndpoint: `${service}/oauth/revoke`, kid: null },
  });
  const tokens = { keys: [], clock: Date.now };

  t(
    'refuses to end a session: it counts as ended only where the server says that the token opens nothing',
    async () => {
      const ended = async (credential: Credential, said: Said) => {
        const { http } = serverThat({ deleteSession: said, 'oauth/revoke': said });
        return endSession({ ...tokens, http }, credential, subject, within());
      };
      const body = (error: string) => ({ error, message: 'no' });
      assert.equal(await ended(byPassword, { body: {} }), 'revoked');
      assert.equal(await ended(byConsent, { body: {} }), 'revoked');
      for (const error of ['ExpiredToken', 'InvalidToken', 'AccountTakedown'])
        assert.equal(await ended(byPassword, { status: 400, body: body(error) }), 'revoked', error);
      for (const credential of [byPassword, byConsent]) {
        for (const status of [302, 400, 401, 403, 404, 429, 500])
          assert.equal(await ended(credential, { status, body: body('invalid_client') }), 'unavailable', `${status}`);
      }
    },
  );

  t('answers a refresh with an odd end: the token is kept for an hour at most', async () => {
    for (const expires_in of [1e300, 9e15, -1, 0, 'soon', null, 86_400_000]) {
      const body = { access_token: 'next', refresh_token: 'other', sub: did, expires_in };
      const { http } = serverThat({ 'oauth/token': { body } });
      const made = await refreshSession({ ...tokens, http }, byConsent, subject, within());
      assert.ok(made.kind === 'refreshed', JSON.stringify(made));
      const lasts = Date.parse(String(made.credential.secret.accessUntil)) - Date.now();
      assert.ok(lasts <= 3_600_000 && lasts > -10_000, `${expires_in}: ${lasts}`);
    }
  });

  t('an app view that asks for a token costs no owner a new consent', async () => {
    const subjects = [{ targetId: '', externalId: `at://${did}/app.bsky.feed.post/3m5zabcde2k2x` }] as never;
    const account = { id: '', externalId: did } as never;
    for (const [status, error] of [
      ...([401, 403] as const).flatMap((status) => [[status, 'AuthMissing'] as const, [status, ''] as const]),
      ...['AuthenticationRequired', 'InvalidToken', 'ExpiredToken'].map((error) => [400, error] as const),
    ]) {
      const said = { status, body: { error, message: 'no' } };
      const { http } = serverThat({ getPosts: said, getProfile: said });
      const source = new BlueskyInsights({ http, credentials: null as never, clock: Date.now });
      const kinds: string[] = [(await source.fetchAccountInsights('bluesky', account, within())).kind];
      for await (const { kind } of source.fetchPostInsights('bluesky', account, subjects, within())) kinds.push(kind);
      assert.deepEqual(kinds, ['unavailable', 'unavailable'], `${status} ${error}`);
    }
  });
});
