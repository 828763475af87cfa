import assert from 'node:assert/strict';
import { networkInboxCases } from '#contracts/ports/network-inbox.suite.ts';
import type { InboundCall, NetworkInbox } from '#contracts/ports/network-inbox.ts';
import { linkedinInbox } from '#infra/platforms/inboxes/linkedin.ts';
import { metaInbox } from '#infra/platforms/inboxes/meta.ts';
import { tiktokInbox } from '#infra/platforms/inboxes/tiktok.ts';
import { liveNetworks } from '#infra/platforms/live.ts';
import { sandboxCall, sandboxInboxes, sandboxProfile } from '#infra/platforms/sandbox/index.ts';
import { readConfig } from '#runtime/process/config.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import { suite } from '#test/support/suite.ts';

const asked = (call: Partial<InboundCall>): InboundCall => ({
  ...{ method: 'POST', topic: null, query: {}, headers: {}, body: Buffer.alloc(0) },
  ...call,
});

const signedBy =
  (platform: Platform) =>
  (secret: string, said: Parameters<typeof sandboxCall>[2]): InboundCall | null => {
    const made = sandboxCall(platform, secret, said);
    return made === null ? null : asked({ ...made, body: Buffer.from(made.body) });
  };

const calling = platforms.filter((platform) => sandboxInboxes('secret')[platform] !== undefined);

for (const platform of calling) {
  suite(`inbox of ${platform} in the sandbox`, (t) => {
    networkInboxCases(t, {
      inbox: (secret) => sandboxInboxes(secret)[platform] as NetworkInbox,
      call: signedBy(platform),
      person: sandboxProfile(platform, 'acme').externalId,
      ...{ isDated: platform !== 'linkedin', isSignedInBody: !['linkedin', 'tiktok'].includes(platform) },
    });
  });
}

/** The inboxes of an installation with these apps. */
const live = (env: Readonly<Record<string, string>>) =>
  liveNetworks({ stores: {} as never, http: {} as never, clock: Date.now, config: readConfig(env) }).inboxes;

for (const [platform, person] of [
  ['threads', '17841405793187218'],
  ['linkedin', 'urn:li:organization:5583111'],
] as const) {
  const name = platform.toUpperCase();
  suite(`inbox of ${platform}`, (t) => {
    networkInboxCases(t, {
      inbox: (secret) =>
        live({ [`${name}_CLIENT_ID`]: '1', [`${name}_CLIENT_SECRET`]: secret })[platform] as NetworkInbox,
      call: signedBy(platform),
      person,
      ...{ isDated: platform === 'threads', isSignedInBody: platform === 'threads' },
    });
  });
}

/** Signed by `openssl dgst -sha256 -hmac <secret>`, not by the code here. */
suite('forms in which networks call', (t) => {
  const now = 1_795_953_600_000;
  const form = (signed: string, topic = 'deauthorize') =>
    asked({ topic, body: Buffer.from(`signed_request=${encodeURIComponent(signed)}`) });

  t('none takes calls without an app, and none of a network that does not call', () => {
    assert.deepEqual(live({}), {});
    assert.deepEqual(
      Object.keys(live({ X_CLIENT_ID: '1', X_CLIENT_SECRET: 'secret-of-x', THREADS_CLIENT_ID: '1' })),
      [],
    );
    assert.deepEqual(calling.toSorted(), ['facebook', 'instagram', 'linkedin', 'threads', 'tiktok']);
  });

  t('Meta: a number beyond 2^53 keeps its digits, and the two addresses are two wishes', () => {
    const signed =
      'c00T8fmEyMFHztSOSmqNSmy1aPthWcloSfQ5ARjVN4k.eyJhbGdvcml0aG0iOiJITUFDLVNIQTI1NiIsImlzc3VlZF9hdCI6MTc5NTk1MzU5OSwidXNlcl9pZCI6MTc4NDE0MDU3OTMxODcyMTh9';
    const verify = (topic: string) => metaInbox('a1b2c3d4e5f6').verify(form(signed, topic), now);
    const who = { person: '17841405793187218', at: '2026-11-29T11:59:59.999Z' };
    assert.deepEqual(verify('deauthorize'), { kind: 'noticed', notices: [{ kind: 'deauthorized', ...who }] });
    assert.deepEqual(verify('delete'), { kind: 'noticed', notices: [{ kind: 'delete_data', ...who }] });
    assert.equal(verify('constructor').kind, 'refused');
  });

  t('TikTok: what is for another app is refused, though the same secret signed it', () => {
    const body = Buffer.from(
      '{"client_key":"aw123","event":"authorization.removed","create_time":1795953590,"user_openid":"-000abc","content":"{\\"reason\\": 1}"}',
    );
    const headers = {
      'tiktok-signature': 't=1795953600,s=b8bf7c4a14d4da51d2ef2a7216a594a7b98fafd4485908fafc07ba368dfed5f7',
    };
    const verify = (clientKey: string, at = now) =>
      tiktokInbox({ clientKey, secret: 'a1b2c3d4e5f6' }).verify(asked({ headers, body }), at);
    const notice = { kind: 'deauthorized', person: '-000abc', at: '2026-11-29T11:59:50.999Z' };
    assert.deepEqual(verify('aw123'), { kind: 'noticed', notices: [notice] });
    assert.equal(verify('aw124').kind, 'refused');
    assert.equal(verify('aw123', now + 300_000).kind, 'noticed');
    assert.equal(verify('aw123', now + 301_000).kind, 'refused', 'it was signed for another moment');
  });

  t('LinkedIn: a challenge is signed, and nothing else that anybody sends', () => {
    const inbox = linkedinInbox('a1b2c3d4e5f6');
    const challenge = (challengeCode: string) => inbox.verify(asked({ method: 'GET', query: { challengeCode } }), now);
    const code = '890e4665-4dfe-4ab1-b689-ed553bceeed0';
    assert.deepEqual(challenge(code), {
      kind: 'answered',
      body: JSON.stringify({
        challengeCode: code,
        challengeResponse: '1703a002aea20f3dd1ef4ead2b04feaef7ff83992f9051b0cc533edcc4f6ccbe',
      }),
    });
    for (const text of ['', `${code}0`, `${code}\n`, '{"notifications":[]}', `hmacsha256=${code}`]) {
      assert.equal(challenge(text).kind, 'refused', text);
    }
  });

  t('LinkedIn: signed with the prefix or without it; each organization once', () => {
    const entity = (id: number) => `{"action":"LIKE","organizationalEntity":"urn:li:organization:${id}"}`;
    const body = Buffer.from(
      `{"type":"ORGANIZATION_SOCIAL_ACTION_NOTIFICATIONS","notifications":[${[1, 2, 1].map(entity).join(',')},{"action":"LIKE"},null]}`,
    );
    const verify = (signature: string) =>
      linkedinInbox('a1b2c3d4e5f6').verify(asked({ headers: { 'x-li-signature': signature }, body }), now);
    const notices = [1, 2].map((id) => ({ kind: 'post_state', person: `urn:li:organization:${id}` }));
    const prefixed = 'c6e17d1cec1897e38e69a09f5b6f213b4787529d5616e783c5490bfbb82a8bb6';
    for (const signature of [
      prefixed,
      `hmacsha256=${prefixed}`,
      '16ba98cfe0e6d3063218bd8d8c8d0379156d82851c68da6901cf8b2e9e9742f9',
    ]) {
      assert.deepEqual(verify(signature), { kind: 'noticed', notices }, signature);
    }
    assert.equal(verify(prefixed.replace(/^./, 'g')).kind, 'refused');
  });
});
