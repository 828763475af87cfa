/**
 * An account of Instagram before a strict Instagram: connected by its link, a carousel whose files Instagram fetches from our
 * address as JPEG, with people, a place and a first comment; a reel, whose worker is killed at the call that publishes it; a story;
 * a post that Instagram blocks in its words and that is out; and Instagram's own call that its owner took the consent back. What
 * is out is read from the network, not from us.
 */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { clip } from '#test/support/clip.ts';
import { gradient } from '#test/support/media/pictures.ts';
import {
  type InstagramNetwork,
  type Person,
  problems,
  startInstagram,
} from '#test/support/networks/instagram/index.ts';
import type { Declare } from '#test/support/suite.ts';
import { sparing, until } from '#test/support/until.ts';
import { uploaded } from '#test/support/uploads.ts';
import { allowed, isOut, type LiveWorld, type Place } from './world.ts';

const publish = 'POST /:id/media_publish';

export const accountOfInstagram = (t: Declare, world: LiveWorld): Place => {
  let network: InstagramNetwork;
  let person: Person;
  let clientId = '';
  let accountId = '';
  let [cup, plate, film] = ['', '', ''];
  const guest = world.guest();

  world.join(async (redirectUri) => {
    network = await startInstagram({ redirectUri });
    person = network.person();
    // The machine's own ffmpeg may be an old one.
    const env = { ...network.env.ig, OUTDATED_FFMPEG: 'take' };
    return { origin: network.origin, env, close: () => network.close() };
  });

  const fileOf = async (fileName: string, contentType: string, body: Buffer, altText?: string): Promise<string> => {
    const offer = await uploaded(world.http, { fileName, contentType, body });
    const assetId = String(offer.data.assetId);
    const made = await world.http.post('/media', { assetId, platforms: ['instagram'], ...(altText && { altText }) });
    assert.equal(made.status, 200, made.text);
    await until(
      `${fileName} is ready`,
      async () => {
        const { publishable, failure } = (await world.http.get(`/media/${assetId}`)).data;
        assert.equal(failure, null, JSON.stringify(failure));
        return publishable === true;
      },
      sparing,
    );
    return assetId;
  };
  const composed = (content: string, mediaIds: readonly string[], overrides: object = {}): Promise<string> =>
    world.compose(clientId, { content, mediaIds, variants: [{ platform: 'instagram', overrides }] });
  /** The target of a post, once it is out. */
  const published = (postId: string) =>
    world.target(
      postId,
      (one) => {
        assert.notEqual(one.status, 'failed', JSON.stringify(one));
        return isOut(one);
      },
      { ...sparing, withinMs: 60_000 },
    );

  t('instagram: is connected by its link', async () => {
    clientId = await world.client('Café on Instagram');
    const link = await world.link(clientId, ['instagram']);
    const page = await guest.sent(link, { platform: 'instagram', way: 'consent', timezone: '' });
    const done = await guest.get((await allowed(page, person.id)).replace('#_', ''));
    assert.deepEqual([done.status, done.next], [303, link]);
    const [account] = await world.accounts(clientId);
    accountId = String(account?.id);
    assert.deepEqual(
      [account?.status, account?.externalId, account?.username],
      ['connected', person.id, person.username],
    );
  });

  t('instagram: posts a carousel of JPEGs, whose files Instagram fetches, and comments on it', async () => {
    cup = await fileOf('cup.png', 'image/png', await gradient(640, 640).png().toBuffer(), 'A cup');
    plate = await fileOf('plate.jpg', 'image/jpeg', await gradient(640, 640).jpeg().toBuffer());
    const overrides = {
      ...{ collaborators: ['ada'], userTags: '@bob', locationId: '106078429431815' },
      firstComment: 'And a word below.',
    };
    const target = await published(await composed('Fresh rolls', [cup, plate], overrides));
    await until('the comment', () => network.state.comments.length > 0, sparing);
    const [post, ...others] = network.state.media;
    assert.ok(post !== undefined && others.length === 0);
    const { params, children } = post.container;
    assert.deepEqual(
      [params.caption, params.collaborators, params.location_id],
      ['Fresh rolls', '["ada"]', '106078429431815'],
    );
    assert.deepEqual(
      children.map((one) => [one.params.alt_text, one.params.user_tags]),
      [
        ['A cup', '[{"username":"bob","x":0.5,"y":0.5}]'],
        [undefined, '[{"username":"bob","x":0.5,"y":0.5}]'],
      ],
    );
    // The simulator fetches every file, and takes JPEG alone.
    assert.ok(network.state.fetched.every((address) => address.startsWith(`${world.base}/`)));
    assert.deepEqual(
      [target.externalId, target.permalink, network.state.comments[0]?.text],
      [post.id, `https://www.instagram.com/p/${post.code}/`, 'And a word below.'],
    );
  });

  t('instagram: a reel whose worker is killed as Instagram publishes it is out once', async () => {
    film = await fileOf('film.mp4', 'video/mp4', await clip());
    const from = network.state.media.length;
    const killed = new Promise<void>((resolve) => {
      const run = () => void world.publisher.kill().then(resolve);
      network.script({ route: publish, says: 'It pours', then: { run, then: 'silent_after' } });
    });
    const id = await composed('It pours', [film], { shareToFeed: true });
    await killed;
    await world.startPublisher();
    const target = await published(id);
    const made = network.state.media.slice(from);
    assert.deepEqual(
      made.map(({ container, caption }) => [container.type, caption]),
      [['REELS', 'It pours']],
    );
    assert.equal(made[0]?.container.params.share_to_feed, 'true');
    assert.deepEqual(
      [target.externalId, target.permalink],
      [made[0]?.id, `https://www.instagram.com/reel/${made[0]?.code}/`],
    );
    assert.equal(network.state.publishes.filter(({ mediaId }) => mediaId === made[0]?.id).length, 1);
  });

  t('instagram: a story has no words, and is out', async () => {
    const target = await published(await composed('Not shown', [plate], { contentType: 'story' }));
    const story = network.state.media.at(-1);
    assert.deepEqual([story?.container.type, story?.caption, target.externalId], ['STORIES', '', story?.id]);
  });

  t(
    'instagram: 4: a post that Instagram blocks in its words and that is out is found, and is not out twice',
    async () => {
      const from = network.state.media.length;
      network.script({ route: publish, says: 'Blocked', then: { answerAfter: problems.action_blocked } });
      const target = await published(await composed('Blocked, they said', [plate]));
      assert.deepEqual(
        network.state.media.slice(from).map(({ id }) => id),
        [target.externalId],
      );
    },
  );

  t('instagram: an operator checks it, and is told that the post stays', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'postline-instagram-'));
    try {
      const file = path.join(folder, 'cup.jpg');
      writeFileSync(file, await gradient(640, 640).jpeg().toBuffer());
      const given = ['--account', accountId, '--yes', '--media', file, '--leave-it'];
      const said = await world.admin('network', 'check', 'instagram', ...given);
      const post = network.state.media.at(-1);
      assert.match(String(said.published), new RegExp(`/p/${post?.code}/$`));
      assert.equal(said.deleted, false);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  t('instagram: an owner who takes the consent back at Instagram must consent anew', async () => {
    const said = { algorithm: 'HMAC-SHA256', user_id: person.scopedId, issued_at: Math.floor(Date.now() / 1_000) + 6 };
    const payload = Buffer.from(JSON.stringify(said)).toString('base64url');
    const signature = createHmac('sha256', network.state.app.clientSecret).update(payload).digest('base64url');
    const body = new URLSearchParams({ signed_request: `${signature}.${payload}` });
    const call = await fetch(`${world.base}/network/instagram/deauthorize`, { method: 'POST', body });
    assert.equal(call.status, 200, await call.text());
    await until(
      'the account needs a consent',
      async () => (await world.accounts(clientId))[0]?.status === 'reauth_required',
      sparing,
    );
  });

  return {
    platform: 'instagram',
    connect: (link) => world.consent(link, 'instagram', network.person().id),
    shown: (words) => network.state.media.filter(({ caption }) => caption === words).map(({ id }) => id),
  };
};
