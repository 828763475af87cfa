/** Accounts of Bluesky by consent: the real server, its own page in a real Chromium, and tokens bound to a key. */
import assert from 'node:assert/strict';
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { createLocalJWKSet, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from 'jose';
import type { Browser } from 'playwright-core';
import type { Credential } from '#contracts/ports/credentials.ts';
import type { NetworkCall, NetworkHttp, NetworkResult } from '#contracts/ports/network-http.ts';
import { RecordedSteps } from '#contracts/ports/platform.suite.ts';
import {
  BlueskyAdapter,
  blueskyConsent,
  endSession,
  type ProofKeys,
  refreshSession,
} from '#infra/platforms/bluesky/index.ts';
import { clientAt, proofOfClient } from '#infra/platforms/bluesky/oauth/client.ts';
import { xrpc } from '#infra/platforms/bluesky/xrpc.ts';
import { openBrowser } from '#test/support/browser.ts';
import { findChromium } from '#test/support/chromium.ts';
import { orMissing } from '#test/support/missing.ts';
import { answerOf } from '#test/support/networks/bluesky-consent.ts';
import { type BlueskyWorld, blueskyWorld, boundaryDeadlineMs } from '#test/support/networks/bluesky-world.ts';
import { type Identity, type Pds, sharedPds } from '#test/support/networks/pds.ts';
import { suite } from '#test/support/suite.ts';

const newKey = (kid: string): ProofKeys[number] => ({
  ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' }),
  kid,
});
const keys = [newKey('2026-11'), newKey('2025-11')];
const redirectUri = 'http://127.0.0.1:8009/connect/callback';
const within = () => AbortSignal.timeout(20_000);
const subject = { accountId: '', targetId: null };

/** Where no registry answers, or there is no browser, the tests are left out, and say so. */
const opened = await orMissing(Promise.all([sharedPds(), findChromium()]).then(([pds, program]) => ({ pds, program })));

type Change = (call: NetworkCall, result: NetworkResult) => NetworkResult;

/** The network, whose answers a stranger on the way may change. */
class SpoiledHttp implements NetworkHttp {
  readonly calls: NetworkCall[] = [];
  change: Change = (_, result) => result;
  readonly #http: NetworkHttp;

  constructor(http: NetworkHttp) {
    this.#http = http;
  }

  async send(call: NetworkCall, signal: AbortSignal): Promise<NetworkResult> {
    this.calls.push(call);
    return this.change(call, await this.#http.send(call, signal));
  }
}

suite('bluesky by consent: our client', (t) => {
  t('it is the address of its metadata, on this machine alone the one that every server knows', () => {
    assert.deepEqual(clientAt('https://app.example.com/connect/callback', keys), {
      ...{ kind: 'confidential', id: 'https://app.example.com/connect/client-metadata.json', keys },
    });
    const local = clientAt(redirectUri, keys);
    assert.ok('id' in local && local.kind === 'loopback' && local.id.startsWith('http://localhost?redirect_uri='));
    for (const wrong of ['http://app.example.com/connect/callback', 'http://localhost:8080/connect/callback'])
      assert.ok('wrong' in clientAt(wrong, keys), wrong);
  });

  t('its documents name the address of the answer, and of its keys the public part alone', async () => {
    const connector = blueskyConsent({ http: { send: () => assert.fail('no call') }, keys, clock: Date.now });
    const documents = connector.documents?.('https://app.example.com') ?? {};
    assert.deepEqual(Object.keys(documents), ['client-metadata.json', 'jwks.json']);
    const metadata = documents['client-metadata.json'] as Record<string, unknown>;
    assert.deepEqual(metadata.redirect_uris, ['https://app.example.com/connect/callback']);
    assert.equal(metadata.jwks_uri, 'https://app.example.com/connect/jwks.json');
    for (const { d } of keys) assert.ok(!JSON.stringify(documents).includes(String(d)));
    const published = documents['jwks.json'] as unknown as JSONWebKeySet;
    const proof = { clientId: String(metadata.client_id), kid: '2025-11', issuer: 'https://bsky.social' };
    const fields = (await proofOfClient(proof, keys)) ?? {};
    const { payload } = await jwtVerify(fields.client_assertion ?? '', createLocalJWKSet(published), {
      ...{ issuer: proof.clientId, subject: proof.clientId, audience: proof.issuer, maxTokenAge: 60 },
    });
    assert.ok(typeof payload.jti === 'string');
    assert.equal(await proofOfClient({ ...proof, kid: '2024-11' }, keys), null);
    assert.deepEqual(await proofOfClient({ ...proof, kid: null }, keys), { client_id: proof.clientId });
  });
});

suite('bluesky by consent', { timeoutMs: 180_000 }, (t) => {
  if ('missing' in opened) return t.skip('runs against the real server', opened.missing);
  const { pds, program } = opened as { readonly pds: Pds; readonly program: string };
  let browser: Browser;
  let it: BlueskyWorld;
  let http: SpoiledHttp;
  let ann: Identity;
  let account: { readonly id: string; readonly externalId: string; readonly username: string | null };

  const connectorOf = () => blueskyConsent({ ...it.connectOptions, http, keys, clock: Date.now });
  const begun = async (username: string, state: string, to = redirectUri) => {
    const made = await connectorOf().begin({ username, redirectUri: to, state }, within());
    assert.ok(made.kind === 'begun', JSON.stringify(made));
    return made;
  };
  const answered = async (owner: Identity, press: 'Authorize' | 'Deny access' = 'Authorize', to = redirectUri) => {
    const state = randomUUID();
    const { url, kept } = await begun(owner.handle, state, to);
    const back = await answerOf(browser, { url, redirectUri: to }, owner, press);
    assert.equal(back.searchParams.get('state'), state);
    return { answer: new Map(back.searchParams), kept, redirectUri: to, workspaceId: randomUUID() };
  };
  const finished = (returned: Awaited<ReturnType<typeof answered>>) => connectorOf().finish(returned, within());
  const tokens = { keys, clock: Date.now };
  const credentialOf = async (): Promise<Credential> => {
    const kept = await it.credentials.read(account.id);
    assert.ok(kept !== null);
    return kept;
  };
  const change = async (secret: Record<string, string>) => {
    const former = await credentialOf();
    const owner = it.credentials.kept.get(account.id)?.owner;
    assert.ok(owner !== undefined);
    await it.credentials.keep(owner, { ...former, secret: { ...former.secret, ...secret } });
  };
  const publish = (content: string) => {
    const asked = it.request(account, { content });
    const adapter = new BlueskyAdapter({ ...it.options, http, clientKeys: keys });
    return adapter.publish(asked, new RecordedSteps(asked, boundaryDeadlineMs));
  };
  const textsOf = async () => (await it.postsOf(ann.did)).map(({ value }) => String(value.text));

  t.before(async () => {
    browser = await openBrowser(program);
    it = await blueskyWorld(pds);
    http = new SpoiledHttp(it.http);
    ann = await pds.identity();
  });
  t.after(() => browser?.close());

  t('the owner allows it on the page of their server: the account has what was asked for, and no more', async () => {
    const done = await finished(await answered(ann));
    assert.ok(done.kind === 'accounts', JSON.stringify(done));
    const [{ profile, credential }, ...more] = done.accounts as [(typeof done.accounts)[number]];
    assert.deepEqual(more, []);
    assert.deepEqual([profile.externalId, profile.username], [ann.did, ann.handle]);
    assert.deepEqual(profile.scopes, [
      ...['atproto', 'repo:app.bsky.feed.post', 'blob:*/*', 'rpc:com.atproto.repo.uploadBlob?aud=*'],
      ...['rpc:app.bsky.video.getUploadLimits?aud=*', 'rpc:app.bsky.video.startUpload?aud=*'],
      ...['rpc:app.bsky.video.uploadPart?aud=*', 'rpc:app.bsky.video.finishUpload?aud=*'],
      ...['rpc:app.bsky.video.getUploadStatus?aud=*', 'rpc:app.bsky.video.abortUpload?aud=*'],
    ]);
    const days = (Date.parse(profile.consentEndsAt ?? '') - Date.now()) / 86_400_000;
    assert.ok(days > 13.9 && days <= 14, 'a client without a key has two weeks');
    for (const call of http.calls.filter(({ method }) => method === 'POST'))
      assert.equal(call.isSecret, true, call.url);
    account = { id: randomUUID(), ...profile };
    const owner = { accountId: account.id, workspaceId: randomUUID(), clientId: randomUUID(), platform: 'bluesky' };
    await it.credentials.keep(owner as never, credential);
  });

  t('a post goes out with the token and a proof of its key, and is read from the network', async () => {
    http.calls.length = 0;
    const outcome = await publish('By consent');
    assert.ok(outcome.kind === 'published', JSON.stringify(outcome));
    assert.deepEqual(await textsOf(), ['By consent']);
    const write = http.calls.findLast(({ url }) => url.endsWith('putRecord'));
    const { accessToken, dpopKey } = (await credentialOf()).secret;
    assert.equal(write?.headers.authorization, `DPoP ${accessToken}`);
    const { jwk, typ } = decodeProtectedHeader(write?.headers.dpop ?? '');
    assert.deepEqual([typ, jwk?.x, jwk && 'd' in jwk], ['dpop+jwt', (dpopKey as { x: string }).x, false]);
  });

  t(
    'its server gives tokens for the methods of the consent alone, as the service of videos asks for them',
    async () => {
      const { service, accessToken, dpopKey } = (await credentialOf()).secret;
      const ask = (lxm: string) => {
        const token = { token: accessToken, key: dpopKey } as never;
        const params = { aud: 'did:web:video.bsky.app', lxm };
        const nsid = 'com.atproto.server.getServiceAuth';
        return xrpc(http, { service: String(service), nsid, params, token, subject }, within());
      };
      for (const method of ['startUpload', 'uploadPart', 'finishUpload', 'getUploadStatus', 'abortUpload']) {
        const given = await ask(`app.bsky.video.${method}`);
        assert.equal(given.kind, 'ok', JSON.stringify(given));
      }
      const refused = await ask('app.bsky.video.uploadVideo');
      assert.ok(refused.kind === 'refused');
      assert.deepEqual([refused.status, refused.message.includes('Missing required scope')], [403, true]);
    },
  );

  t('a nonce that the server no longer takes costs one more call, and no second post', async () => {
    let isSpoiled = false;
    http.change = (call, result) => {
      if (isSpoiled || result.kind !== 'answered' || !call.url.includes('/xrpc/')) return result;
      isSpoiled = true;
      return { ...result, headers: { ...result.headers, 'dpop-nonce': 'of-another-time' } };
    };
    await publish('Before the nonce');
    assert.ok(isSpoiled);
    http.change = (_, result) => result;
    http.calls.length = 0;
    const outcome = await publish('After the nonce');
    assert.ok(outcome.kind === 'published', JSON.stringify(outcome));
    assert.equal(http.calls.filter(({ url }) => url.endsWith('putRecord')).length, 2);
    assert.equal((await textsOf()).filter((one) => one === 'After the nonce').length, 1);
  });

  t('a server that refuses every nonce is asked twice, not for ever', async () => {
    http.calls.length = 0;
    http.change = (call, result) =>
      call.url.endsWith('putRecord')
        ? {
            ...{ kind: 'answered', status: 401, body: Buffer.from('{"error":"use_dpop_nonce","message":"again"}') },
            headers: { 'dpop-nonce': randomUUID(), 'www-authenticate': 'DPoP error="use_dpop_nonce"' },
          }
        : result;
    const outcome = await publish('Refused');
    http.change = (_, result) => result;
    assert.equal(outcome.kind, 'nothing_sent', JSON.stringify(outcome));
    assert.equal(http.calls.filter(({ url }) => url.endsWith('putRecord')).length, 2);
  });

  t('a token that the server no longer takes is refreshed at the write, and one that ends soon before it', async () => {
    await change({ accessToken: `${(await credentialOf()).secret.accessToken}x` });
    assert.equal((await publish('After the end')).kind, 'published');
    const { version, secret } = await credentialOf();
    await change({ accessUntil: new Date(Date.now() + 60_000).toISOString() });
    assert.equal((await publish('Before the end')).kind, 'published');
    const later = await credentialOf();
    assert.ok(later.version > version);
    assert.notEqual(later.secret.refreshToken, secret.refreshToken);
  });

  t('a refresh whose answer was lost says so; tokens of somebody else are none', async () => {
    const former = await credentialOf();
    http.change = () => ({ kind: 'silent', reason: 'timeout' });
    // Nothing was sent here: the pair stays good.
    const lost = { send: async () => ({ kind: 'silent', reason: 'timeout' }) as const };
    assert.deepEqual(await refreshSession({ ...tokens, http: lost }, former, subject, within()), {
      ...{ kind: 'unavailable', reason: 'timeout', isSilent: true },
    });
    const ofBob = { access_token: 'a', refresh_token: 'b', expires_in: 3_600, sub: 'did:plc:bob' };
    const other = {
      send: async () =>
        ({ kind: 'answered', status: 200, headers: {}, body: Buffer.from(JSON.stringify(ofBob)) }) as const,
    };
    const refreshed = await refreshSession({ ...tokens, http: other }, former, subject, within());
    assert.deepEqual([refreshed.kind, 'isSilent' in refreshed], ['unavailable', true]);
    http.change = (_, result) => result;
  });

  t('the owner refuses: words, and another try', async () => {
    const done = await finished(await answered(ann, 'Deny access'));
    assert.ok(done.kind === 'refused');
    assert.match(done.words, /did not allow/);
    assert.equal(done.operator, undefined);
  });

  t('an answer opens nothing twice, with the kept part of another attempt, or from another server', async () => {
    const returned = await answered(ann);
    const other = await begun(ann.handle, randomUUID());
    const mixed = await finished({ ...returned, kept: other.kept });
    assert.equal(mixed.kind, 'refused');
    const elsewhere = new Map([...returned.answer, ['iss', 'https://evil.example.com']]);
    assert.equal((await finished({ ...returned, answer: elsewhere })).kind, 'refused');
    // The wrong verifier has ended the code.
    assert.equal((await finished(returned)).kind, 'refused');
  });

  t('a server that speaks for an account of another server is refused', async () => {
    const returned = await answered(ann);
    // One in 32 identities ends with any given character: a fixed one would at times leave it as it is.
    const stranger = ann.did.replace(/.$/, (last) => (last === 'a' ? 'b' : 'a'));
    http.change = (call, result) => {
      if (result.kind !== 'answered' || !call.url.endsWith('/oauth/token') || result.status !== 200) return result;
      const data = { ...JSON.parse(result.body.toString()), sub: stranger };
      return { ...result, body: Buffer.from(JSON.stringify(data)) };
    };
    const done = await finished(returned);
    http.change = (_, result) => result;
    assert.equal(done.kind, 'refused', JSON.stringify(done));
  });

  t('an owner who allows less is told, and what was given is taken back', async () => {
    const returned = await answered(ann);
    http.calls.length = 0;
    http.change = (call, result) => {
      if (result.kind !== 'answered' || !call.url.endsWith('/oauth/token') || result.status !== 200) return result;
      return {
        ...result,
        body: Buffer.from(JSON.stringify({ ...JSON.parse(result.body.toString()), scope: 'atproto' })),
      };
    };
    const done = await finished(returned);
    http.change = (_, result) => result;
    assert.ok(done.kind === 'refused');
    assert.match(done.words, /allow all/);
    assert.ok(http.calls.some(({ url }) => url.endsWith('/oauth/revoke')));
  });

  t('a handle that nobody has, a silent network and a server without consent have words of their own', async () => {
    const begin = (username: string) => connectorOf().begin({ username, redirectUri, state: 's' }, within());
    const words = async (username: string) => {
      const made = await begin(username);
      assert.ok(made.kind === 'refused', JSON.stringify(made));
      return made.words;
    };
    assert.match(await words('nobody-at-all.test'), /knows no account/);
    assert.match(await words(''), /Give the handle/);
    assert.match(await words('https://evil.example.com/'), /Give the handle/);
    http.change = () => ({ kind: 'silent', reason: 'timeout' });
    assert.match(await words(ann.handle), /does not answer now/);
    http.change = (call, result) =>
      call.url.includes('/.well-known/oauth-')
        ? { kind: 'answered', status: 404, headers: {}, body: Buffer.from('{}') }
        : result;
    const old = await begin((await pds.identity()).handle);
    http.change = (_, result) => result;
    assert.ok(old.kind === 'refused');
    assert.match(old.words, /app password/);
  });

  t('a disconnected account has nothing more: its refresh is refused for good', async () => {
    const former = await credentialOf();
    const options = { ...tokens, http };
    assert.equal(await endSession(options, former, subject, within()), 'revoked');
    const refreshed = await refreshSession(options, former, subject, within());
    assert.equal(refreshed.kind, 'refused', JSON.stringify(refreshed));
    await change({ accessUntil: new Date().toISOString() });
    const outcome = await publish('After the end');
    assert.ok(outcome.kind === 'failed' && outcome.failure.category === 'reauth_required', JSON.stringify(outcome));
  });

  t('a client with a key: the server reads its documents, and takes the key at each call for tokens', async () => {
    // Servers refuse reserved names. Nobody is asked there: see `publish`.
    const origin = 'https://postline.invalid.dev';
    for (const [path, document] of Object.entries(connectorOf().documents?.(origin) ?? {}))
      await pds.publish(`${origin}/connect/${path}`, document);
    const cleo = await pds.identity();
    const done = await finished(await answered(cleo, 'Authorize', `${origin}/connect/callback`));
    assert.ok(done.kind === 'accounts', JSON.stringify(done));
    const [{ profile, credential }] = done.accounts as [(typeof done.accounts)[number]];
    const days = (until: string | null) => Math.round((Date.parse(until ?? '') - Date.now()) / 86_400_000);
    assert.deepEqual([days(profile.consentEndsAt), days(credential.expiresAt)], [730, 90]);
    assert.equal(credential.secret.kid, '2026-11');
    const former = { ...credential, version: 1 };
    const gone = await refreshSession({ ...tokens, keys: keys.slice(1), http }, former, subject, within());
    assert.deepEqual([gone.kind, 'isSilent' in gone], ['unavailable', false]);
    // A newer key in front: the session keeps that with which it began.
    const turned = { ...tokens, keys: [newKey('2027-11'), ...keys], http };
    const refreshed = await refreshSession(turned, former, subject, within());
    assert.ok(refreshed.kind === 'refreshed', JSON.stringify(refreshed));
    const stolen = { ...tokens, keys: [newKey('2026-11')], http };
    const next = { ...refreshed.credential, version: 2 };
    assert.equal((await refreshSession(stolen, next, subject, within())).kind, 'unavailable');
    assert.equal(await endSession(turned, next, subject, within()), 'revoked');
    assert.equal((await refreshSession(turned, next, subject, within())).kind, 'refused');
  });

  t('a client whose documents the server cannot read: the guest hears later, the operator why', async () => {
    const to = 'https://nobody.example.com/connect/callback';
    await pds.publish('https://nobody.example.com/connect/client-metadata.json', { client_id: 'another' });
    const made = await connectorOf().begin({ username: ann.handle, redirectUri: to, state: 's' }, within());
    assert.ok(made.kind === 'refused');
    assert.match(made.words, /does not answer now|takes no consent/);
    assert.match(made.operator ?? '', /client/i);
  });
});
