/** The adapter of Bluesky against the real server of its protocol, `@atproto/pds`. */
import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { SignJWT } from 'jose';
import sharp from 'sharp';
import { type Harness, platformSuite, RecordedSteps } from '#contracts/ports/platform.suite.ts';
import type { PublishMedia } from '#contracts/ports/platform.ts';
import { BlueskyAdapter, connectByAppPassword } from '#infra/platforms/bluesky/index.ts';
import { mediaFolder } from '#test/support/media/folder.ts';
import { orMissing } from '#test/support/missing.ts';
import { type BlueskyWorld, blueskyWorld } from '#test/support/networks/bluesky-world.ts';
import { type Pds, sharedPds } from '#test/support/networks/pds.ts';
import { scriptedFront, scriptedText } from '#test/support/networks/scripted-front.ts';
import { suite } from '#test/support/suite.ts';

/** Where no registry answers, the tests are left out, and say so. */
const opened = await orMissing(sharedPds().then((pds) => ({ pds })));

/** The network through a front that spoils the writes whose text asks for it. */
const harness = async (pds: Pds): Promise<Harness> => {
  const it = await blueskyWorld(pds);
  const refusal = (status: number, error: string, message: string) => ({ status, body: { error, message } });
  const front = await scriptedFront(
    pds.service,
    (at, body) => (at.endsWith('/com.atproto.repo.putRecord') ? String(JSON.parse(body).rkey) : null),
    {
      reject: refusal(400, 'InvalidRequest', 'Invalid app.bsky.feed.post record'),
      token_death: refusal(400, 'InvalidToken', 'Token could not be verified'),
      rate_limit: {
        ...refusal(429, 'RateLimitExceeded', 'Rate Limit Exceeded'),
        headers: (ms) => ({ 'ratelimit-reset': String(Math.ceil((Date.now() + ms) / 1_000)) }),
      },
    },
  );
  const accounts: Awaited<ReturnType<typeof it.connected>>[] = [];
  for (let at = 0; at < 3; at += 1) accounts.push(await it.connected(await pds.identity(), front.origin));
  const made = async (targetId: string, isReply: boolean) => {
    const keys = new Set(
      it.http.writes.filter((one) => one.targetId === targetId && one.isReply === isReply).map(({ key }) => key),
    );
    const all = await Promise.all(accounts.map(({ externalId }) => it.postsOf(externalId)));
    return all.flat().flatMap(({ uri }) => (keys.has(uri.split('/').at(-1) ?? '') ? [uri] : []));
  };
  let next = 0;
  return {
    open: async () => new BlueskyAdapter(it.options),
    close: async () => front.close(),
    posts: (targetId) => made(targetId, false),
    comments: (targetId) => made(targetId, true),
    scripted: scriptedText,
    without: ['duplicate', 'down'],
    platforms: ['bluesky'],
    account: () => {
      next += 1;
      return accounts[next % accounts.length] as (typeof accounts)[number];
    },
    silent: () => null,
    overrides: () => ({}),
    media: async () => [],
  };
};

suite('bluesky as a platform', { timeoutMs: 120_000, waits: true }, (t) => {
  if ('missing' in opened) return t.skip('runs against the real server', opened.missing);
  platformSuite(t, () => harness(opened.pds));
});

suite('bluesky', { timeoutMs: 120_000 }, (t) => {
  if ('missing' in opened) return t.skip('runs against the real server', opened.missing);
  const { pds } = opened;
  let it: BlueskyWorld;
  t.before(async () => {
    it = await blueskyWorld(pds);
  });

  const request: BlueskyWorld['request'] = (...asked) => it.request(...asked);
  const publish: BlueskyWorld['publish'] = (...asked) => it.publish(...asked);
  const picture = async (name: string, altText: string | null): Promise<PublishMedia> => {
    const folder = mediaFolder();
    const file = path.join(folder, name);
    const background = `#${createHash('sha256').update(name).digest('hex').slice(0, 6)}`;
    const body = await sharp({ create: { width: 60, height: 40, channels: 3, background } })
      .jpeg()
      .toBuffer();
    writeFileSync(file, body);
    const sha256 = createHash('sha256').update(body).digest('hex');
    return {
      ...{ mediaId: randomUUID(), kind: 'image', use: 'feed', contentType: 'image/jpeg', bytes: body.length, sha256 },
      ...{ width: 60, height: 40, durationMs: null, altText, file: async () => file, url: async () => '' },
    };
  };

  t('a post with pictures, alt texts, links, tags and a mention is read back from the network', async () => {
    const [ann, bob] = [await pds.identity(), await pds.identity()];
    const account = await it.connected(ann);
    const content = `☕ With @${bob.handle} and @nobody.test #winter https://example.com/a`;
    const media = [await picture('a.jpg', 'A cup'), await picture('b.jpg', null)];
    const { outcome, steps } = await publish(
      request(account, { content, media, overrides: { labelGraphicMedia: true } }),
    );
    assert.ok(outcome.kind === 'published', JSON.stringify(outcome));
    assert.deepEqual(
      steps.log.filter((entry) => !entry.endsWith(':begin')),
      ['record:end', 'boundary'],
    );
    assert.ok(steps.bytes >= media.reduce((sum, { bytes }) => sum + bytes, 0));
    const [post, ...more] = await it.postsOf(ann.did);
    assert.deepEqual(more, []);
    assert.equal(post?.uri, outcome.externalId);
    const value = post?.value ?? {};
    assert.equal(value.text, content);
    const facets = value.facets as readonly {
      readonly features: readonly Record<string, unknown>[];
      readonly index: { byteStart: number; byteEnd: number };
    }[];
    assert.deepEqual(
      facets.map(({ features: [one], index }) => [
        one?.did ?? one?.tag ?? one?.uri,
        Buffer.from(content).subarray(index.byteStart, index.byteEnd).toString(),
      ]),
      [
        [bob.did, `@${bob.handle}`],
        ['winter', '#winter'],
        ['https://example.com/a', 'https://example.com/a'],
      ],
    );
    const { images } = value.embed as {
      readonly images: readonly { readonly alt: string; readonly image: { size: number } }[];
    };
    assert.deepEqual(
      images.map(({ alt, image }) => [alt, image.size]),
      media.map(({ altText, bytes }) => [altText ?? '', bytes]),
    );
    assert.equal(outcome.permalink, `https://bsky.app/profile/${ann.did}/post/${outcome.externalId.split('/').at(-1)}`);
  });

  t('a token that has ended is renewed once, and the write is repeated under its key', async () => {
    const identity = await pds.identity();
    const account = await it.connected(identity);
    const kept = await it.credentials.read(account.id);
    const { accessJwt } = kept?.secret ?? {};
    const claims = JSON.parse(Buffer.from(String(accessJwt).split('.')[1] ?? '', 'base64url').toString());
    const key = new TextEncoder().encode(pds.jwtSecret);
    const ended = await new SignJWT({ ...claims, exp: Math.floor(Date.now() / 1_000) - 10 })
      .setProtectedHeader({ alg: 'HS256', typ: 'at+jwt' })
      .sign(key);
    const owner = it.credentials.kept.get(account.id)?.owner;
    assert.ok(owner && kept);
    await it.credentials.keep(owner, { ...kept, secret: { ...kept.secret, accessJwt: ended } });
    const asked = request(account);
    const { outcome } = await publish(asked);
    assert.equal(outcome.kind, 'published', JSON.stringify(outcome));
    const keys = it.http.writes.filter(({ targetId }) => targetId === asked.targetId).map((one) => one.key);
    assert.deepEqual([keys.length, new Set(keys).size], [2, 1]);
    assert.equal((await it.postsOf(identity.did)).length, 1);
    assert.equal((await it.credentials.read(account.id))?.version, 3);
  });

  t('a token that is about to end is renewed before it is used', async () => {
    const account = await it.connected(await pds.identity());
    const before = it.http.calls.length;
    it.credentials.kept.set(account.id, {
      ...(it.credentials.kept.get(account.id) as NonNullable<ReturnType<typeof it.credentials.kept.get>>),
      credential: {
        ...((await it.credentials.read(account.id)) as NonNullable<Awaited<ReturnType<typeof it.credentials.read>>>),
        secret: {
          ...(await it.credentials.read(account.id))?.secret,
          accessUntil: new Date(Date.now() + 300_000).toISOString(),
        },
      },
    });
    assert.equal((await publish(request(account))).outcome.kind, 'published');
    assert.deepEqual(
      it.http.calls.slice(before).map(({ url }) => url.split('.').at(-1)),
      ['refreshSession', 'putRecord'],
    );
  });

  t('an account that the network has taken down, or whose password was revoked, must be connected again', async () => {
    const identity = await pds.identity();
    const account = await it.connected(identity);
    const subject = { $type: 'com.atproto.admin.defs#repoRef', did: identity.did };
    const input = { subject, takedown: { applied: true, ref: '1' } };
    await pds.call('com.atproto.admin.updateSubjectStatus', { input, auth: pds.adminAuth });
    const { outcome } = await publish(request(account));
    assert.ok(outcome.kind === 'failed', JSON.stringify(outcome));
    assert.deepEqual([outcome.failure.category, outcome.failure.actor], ['reauth_required', 'user']);
    assert.match(outcome.failure.platformCode ?? '', /Takedown/);
  });

  t('a server that is gone makes a post wait; nothing was written', async () => {
    const account = await it.connected(await pds.identity(), 'http://127.0.0.1:9');
    const { outcome, steps } = await publish(request(account, { media: [await picture('c.jpg', null)] }));
    assert.ok(outcome.kind === 'deferred', JSON.stringify(outcome));
    assert.equal(outcome.failure.category, 'platform_down');
    assert.ok(!steps.log.includes('boundary'));
  });

  t('a server that is gone at the write has written nothing: the publisher writes again', async () => {
    const front = await scriptedFront(pds.service, () => null, {});
    const account = await it.connected(await pds.identity(), front.origin);
    const asked = request(account);
    const steps = new RecordedSteps(asked, it.adapter.boundaryDeadlineMs);
    steps.atBoundary = () => front.close();
    const outcome = await it.adapter.publish(asked, steps);
    assert.ok(outcome.kind === 'nothing_sent', JSON.stringify(outcome));
    assert.deepEqual([outcome.failure.category, outcome.failure.retryable], ['platform_down', true]);
    assert.deepEqual(await it.postsOf(account.externalId), []);
  });

  t('another text under a key that was written may be another post: it is not sent', async () => {
    const account = await it.connected(await pds.identity());
    const asked = request(account);
    const { steps } = await publish(asked);
    const changed = await publish({ ...asked, attempt: 2, content: 'Changed', checkpoints: steps.checkpoints });
    assert.ok(changed.outcome.kind === 'failed');
    assert.equal(changed.outcome.failure.code, 'content_changed');
  });

  t('a first comment is a reply, and a second try of it makes no second one', async () => {
    const identity = await pds.identity();
    const account = await it.connected(identity);
    const { outcome } = await publish(request(account));
    assert.ok(outcome.kind === 'published');
    const asked = {
      ...{ targetId: randomUUID(), platform: 'bluesky' as const, account: { ...account, scopes: [] } },
      ...{ externalId: outcome.externalId, content: 'First #comment' },
    };
    const tries = [await it.adapter.comment(asked, AbortSignal.timeout(5_000))];
    tries.push(await it.adapter.comment(asked, AbortSignal.timeout(5_000)));
    assert.deepEqual(tries[0], tries[1]);
    assert.equal(tries[0]?.kind, 'posted');
    const reply = (await it.postsOf(identity.did)).find(({ uri }) => uri !== outcome.externalId);
    const { root, parent } = (reply?.value.reply ?? {}) as {
      readonly root: { uri: string };
      readonly parent: { uri: string };
    };
    assert.deepEqual([root.uri, parent.uri], [outcome.externalId, outcome.externalId]);
    assert.equal((await it.postsOf(identity.did)).length, 2);
  });

  t('connecting: the words for a guest', async () => {
    const identity = await pds.identity();
    const words = async (handle: string, password: string) => {
      const made = await connectByAppPassword(it.connectOptions, { handle, password }, AbortSignal.timeout(10_000));
      return made.kind === 'refused' ? made.words : made.kind;
    };
    assert.match(await words('', 'x'), /Give the handle/);
    assert.match(await words('nobody.test', 'x'), /knows no account/);
    assert.match(await words(`@${identity.handle}`, 'wrong'), /does not take this password/);
    assert.equal(await words(identity.did, await pds.appPassword(identity)), 'connected');
    const reported = JSON.stringify(it.http.calls.filter(({ isSecret }) => isSecret !== true));
    assert.ok(!reported.includes('wrong'));
  });
});
