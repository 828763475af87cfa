/**
 * An account of TikTok from its connect link to its posts, before a strict TikTok: pictures that it fetches from our address after it
 * has found the proof there, a post that it looks at while the publisher is killed, an answer that is lost, an app that it has
 * not audited, and its call to us. What is out is read from the network, not from us. Videos, which the media worker takes with
 * a current ffmpeg alone, go out in `test/infra/platforms/tiktok/resume.test.ts`.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gradient } from '#test/support/media/pictures.ts';
import { type Person, startTikTok, type TikTokNetwork } from '#test/support/networks/tiktok/index.ts';
import type { Declare } from '#test/support/suite.ts';
import { sparing, until } from '#test/support/until.ts';
import { uploaded } from '#test/support/uploads.ts';
import type { LiveWorld, Place } from './world.ts';

type Target = Readonly<Record<string, unknown>>;

const proof = 'MrYmGFtSFSb0FMQcrgGYRdJnZDueUoXT';
const everyone = { privacyLevel: 'PUBLIC_TO_EVERYONE' };

export const accountOfTikTok = (t: Declare, world: LiveWorld): Place => {
  let network: TikTokNetwork;
  let person: Person;
  let clientId = '';
  let accountId = '';
  let picture = '';
  const guest = world.guest();
  const folder = mkdtempSync(path.join(tmpdir(), 'postline-tiktok-'));

  world.join(async (redirectUri) => {
    network = await startTikTok({ redirectUri });
    person = network.person({ nickname: 'Café Aurora' });
    const { clientKey, clientSecret } = network.state.app;
    const env = {
      ...{ TIKTOK_API: network.api, TIKTOK_AUTHORIZE: network.authorize, TIKTOK_SITE_PROOF: proof },
      ...{ TIKTOK_CLIENT_ID: clientKey, TIKTOK_CLIENT_SECRET: clientSecret },
    };
    const close = (): void => {
      network.close();
      rmSync(folder, { recursive: true, force: true });
    };
    return { origin: network.origin, env, close };
  });

  const kept = async (fileName: string, contentType: string, body: Buffer): Promise<string> => {
    const offer = await uploaded(world.http, { fileName, contentType, body });
    const id = String(offer.data.assetId);
    const made = await world.http.post('/media', { assetId: id, platforms: ['tiktok'] });
    assert.equal(made.status, 200, made.text);
    await until(
      'the file is ready',
      async () => {
        const { publishable, failure } = (await world.http.get(`/media/${id}`)).data;
        assert.equal(failure, null, JSON.stringify(failure));
        return publishable === true;
      },
      sparing,
    );
    return id;
  };
  const composed = async (content: string, mediaIds: readonly string[], overrides: object): Promise<string> => {
    const made = await world.http.post('/posts', {
      ...{ clientId, content, mediaIds, targets: { mode: 'group', clientId }, schedule: { type: 'now' } },
      variants: [{ platform: 'tiktok', overrides }],
    });
    assert.equal(made.status, 200, made.text);
    return String(made.data.id);
  };
  const becomes = (postId: string, ...wanted: readonly string[]): Promise<Target> =>
    until(
      `the target is ${wanted.join(' or ')}`,
      async () => {
        const [one] = (await world.http.get(`/posts/${postId}`)).data.targets as readonly Target[];
        return one !== undefined && wanted.includes(String(one.status)) ? one : null;
      },
      { ...sparing, withinMs: 60_000 },
    );
  const ended = async (...asked: Parameters<typeof composed>): Promise<Target> =>
    becomes(await composed(...asked), 'published', 'failed');
  /** As TikTok calls the app. */
  const call = async (event: string, content: object): Promise<number> => {
    const { body, headers } = network.state.webhook(event, person.id, content);
    return (await fetch(`${world.base}/network/tiktok`, { method: 'POST', headers, body })).status;
  };

  t('tiktok: a guest connects it, and sees its nickname', async () => {
    clientId = await world.client('Café on TikTok');
    const link = await world.link(clientId, ['tiktok']);
    const page = new URL(await guest.sent(link, { platform: 'tiktok', way: 'consent', timezone: '' }));
    page.searchParams.set('as', person.id);
    const back = await fetch(page, { redirect: 'manual' });
    assert.equal(back.status, 302, await back.text());
    const done = await guest.get(back.headers.get('location') ?? '');
    assert.deepEqual([done.status, done.next], [303, link]);
    const [account] = await world.accounts(clientId);
    accountId = String(account?.id);
    assert.deepEqual(
      [account?.status, account?.externalId, account?.displayName],
      ['connected', person.id, 'Café Aurora'],
    );
  });

  t('tiktok: tells the privacy levels of the account as they are now', async () => {
    const { rows } = await world.http.get(`/accounts/${accountId}/options/privacyLevel`);
    assert.deepEqual(
      rows.map(({ value }) => value),
      ['PUBLIC_TO_EVERYONE', 'MUTUAL_FOLLOW_FRIENDS', 'SELF_ONLY'],
    );
  });

  t('tiktok: fetches pictures from our address once it has found the proof there', async () => {
    await network.prove(`${world.base}/blobs/`, proof);
    picture = await kept('rolls.jpg', 'image/jpeg', await gradient(640, 480).jpeg().toBuffer());
    const second = await kept('cup.jpg', 'image/jpeg', await gradient(480, 640).jpeg().toBuffer());
    const target = await ended('Two of them', [picture, second], { ...everyone, yourBrand: true });
    assert.equal(target.status, 'published', JSON.stringify(target));
    const post = network.state.posts.at(-1);
    assert.deepEqual([post?.kind, post?.photos.length, post?.info.brand_organic_toggle], ['photo', 2, true]);
    assert.ok(post?.photos.every((one) => one.startsWith(`${world.base}/blobs/`)));
  });

  t('tiktok: what it looks at while the publisher dies comes out once', async () => {
    const from = network.state.posts.length;
    network.state.lookMs = 600_000;
    const postId = await composed('Fresh rolls', [picture], { ...everyone, disableComment: true });
    await becomes(postId, 'processing');
    await world.publisher.kill();
    await world.startPublisher();
    const post = network.state.posts[from];
    assert.ok(post !== undefined);
    network.state.lookMs = 0;
    post.lookMs = 0;
    assert.equal(await call('post.publish.complete', { publish_id: post.publishId }), 200);
    const target = await becomes(postId, 'published');
    assert.equal(target.externalId, post.postId);
    const { description, disable_comment } = post.info;
    assert.deepEqual([description, disable_comment, post.personId], ['Fresh rolls', true, person.id]);
    assert.equal(network.state.posts.length, from + 1);
  });

  t('tiktok: a public post whose answer is lost is found in its list, and is not made again', async () => {
    const from = network.state.posts.length;
    network.script({ route: 'POST /v2/post/publish/content/init/', says: 'Lost', then: 'drop_after' });
    const target = await ended('Lost and found', [picture], everyone);
    assert.deepEqual([target.status, network.state.posts.length], ['published', from + 1], JSON.stringify(target));
    assert.equal(target.externalId, network.state.posts.at(-1)?.postId);
  });

  t(
    'tiktok: an app that is not audited posts for private accounts alone; none of its posts stays unknown',
    async () => {
      network.state.isAudited = false;
      const refused = await ended('Not yet', [picture], everyone);
      assert.equal(refused.status, 'failed');
      assert.match(JSON.stringify(refused), /the account itself is private/);
      person.isPrivate = true;
      const target = await ended('For me alone', [picture], { privacyLevel: 'SELF_ONLY' });
      assert.deepEqual([target.status, target.permalink], ['published', null], JSON.stringify(target));
      assert.equal(target.externalId, network.state.posts.at(-1)?.publishId);
    },
  );

  t('tiktok: an operator checks it with a file of the machine, and is told to delete the post by hand', async () => {
    const file = path.join(folder, 'cup.jpg');
    writeFileSync(file, await gradient(640, 480).jpeg().toBuffer());
    const args = ['--account', accountId, '--yes', '--media', file, '--set', 'privacyLevel=SELF_ONLY', '--leave-it'];
    const said: Readonly<Record<string, unknown>> = await world.admin('network', 'check', 'tiktok', ...args);
    assert.deepEqual([said.deleted, said.published], [false, network.state.posts.at(-1)?.publishId]);
  });

  t(
    'tiktok: a consent that its owner takes back is told by TikTok, and a disconnect leaves no token behind',
    async () => {
      assert.equal(await call('authorization.removed', { reason: 1 }), 200);
      await until(
        'the account needs a consent',
        async () => (await world.http.get(`/accounts/${accountId}`)).data.status === 'reauth_required',
        sparing,
      );
      assert.equal((await world.http.post(`/accounts/${accountId}/disconnect`, {})).status, 200);
      await world.nothingIsKept();
    },
  );

  return {
    platform: 'tiktok',
    connect: async (link) => {
      network.state.isAudited = true;
      await network.prove(`${world.base}/blobs/`, proof);
      return world.consent(link, 'tiktok', network.person().id);
    },
    overrides: () => everyone,
    shown: (words) => network.state.posts.filter(({ info }) => info.description === words).map(({ postId }) => postId),
  };
};
