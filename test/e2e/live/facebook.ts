/**
 * A page of Facebook from its connect link to posts that are read from the network, not from us, before a strict Facebook: photos, a
 * reel that is looked at first, with its comment and its cover, a worker that is killed at the call that finishes a video, and a
 * post for Facebook's own scheduler.
 */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import sharp from 'sharp';
import { clip } from '#test/support/clip.ts';
import { type FacebookNetwork, startFacebook } from '#test/support/networks/facebook/index.ts';
import type { Page, Person } from '#test/support/networks/facebook/state.ts';
import type { Declare } from '#test/support/suite.ts';
import { sparing, until } from '#test/support/until.ts';
import { uploaded } from '#test/support/uploads.ts';
import { allowed, isOut, type LiveWorld, type Place } from './world.ts';

export const pageOfFacebook = (t: Declare, world: LiveWorld): Place => {
  let network: FacebookNetwork;
  let person: Person;
  let page: Page;
  let clientId = '';
  let [video, picture] = ['', ''];
  const guest = world.guest();

  world.join(async (redirectUri) => {
    network = await startFacebook({ redirectUri });
    person = network.person();
    page = network.pageOf(person, { name: 'Café', username: 'cafe' });
    network.pageOf(person, { name: 'Read only' }, ['ANALYZE']);
    // The machine's own ffmpeg may be an old one.
    return { origin: network.origin, env: { ...network.env, OUTDATED_FFMPEG: 'take' }, close: () => network.close() };
  });

  const fileOf = async (fileName: string, contentType: string, body: Buffer): Promise<string> => {
    const offer = await uploaded(world.http, { fileName, contentType, body });
    const id = String(offer.data.assetId);
    const made = await world.http.post('/media', { assetId: id, platforms: ['facebook'] });
    assert.equal(made.status, 200, made.text);
    await until(
      `${fileName} is ready`,
      async () => {
        const { publishable, failure } = (await world.http.get(`/media/${id}`)).data;
        assert.equal(failure, null, JSON.stringify(failure));
        return publishable === true;
      },
      sparing,
    );
    return id;
  };
  const composed = (content: string, over: object = {}, overrides: object = {}): Promise<string> =>
    world.compose(clientId, { content, variants: [{ platform: 'facebook', overrides }], ...over });
  const made = () => network.state.made;

  t('facebook: a guest connects the one page to which they may post', async () => {
    clientId = await world.client('Café on Facebook');
    const link = await world.link(clientId, ['facebook']);
    const away = await guest.sent(link, { platform: 'facebook', way: 'consent', timezone: '' });
    const { next } = await guest.get(await allowed(away, person.id));
    assert.match((await guest.get(next ?? '')).html, /your role there may not create content/);
    await guest.sent(next ?? '', { account: '0' });
    const [account] = await world.accounts(clientId);
    assert.deepEqual([account?.externalId, account?.username, account?.status], [page.id, 'cafe', 'connected']);
  });

  t('facebook: photos are out, once, with their comment', async () => {
    const body = await sharp({ create: { width: 1_280, height: 720, channels: 3, background: '#804020' } })
      .jpeg()
      .toBuffer();
    picture = await fileOf('cups.jpg', 'image/jpeg', body);
    const id = await composed('Fresh cups', { mediaIds: [picture] }, { firstComment: 'Where: https://example.com' });
    const { permalink } = await world.target(id, isOut);
    await until('its comment is there', () => network.state.comments.length === 1);
    const [post, ...others] = made();
    assert.ok(post !== undefined && others.length === 0);
    assert.deepEqual([post.text, post.files.length], ['Fresh cups', 1]);
    assert.equal(permalink, `https://www.facebook.com/${page.id}/posts/${post.id}`);
    assert.equal(network.state.comments[0]?.text, 'Where: https://example.com');
  });

  t('facebook: a reel is processed, then out, once, with its cover', async () => {
    video = await fileOf('rolls.mp4', 'video/mp4', await clip());
    network.fate({ says: 'Fresh rolls', then: 'shown', ms: 1_500 });
    const before = made().length;
    const id = await composed('Fresh rolls', { mediaIds: [video], coverMediaId: picture }, { contentType: 'reel' });
    await world.target(id, isOut);
    await until('its cover is there', () =>
      [...network.state.videos.values()].some(({ thumbnails }) => thumbnails.length === 1),
    );
    assert.equal(made().length, before + 1);
    assert.equal(made().at(-1)?.params.video_state, 'PUBLISHED');
  });

  t('facebook: a worker that is killed when Facebook has the last call leaves one post', async () => {
    const before = made().length;
    const route = 'POST /:id/video_reels finish';
    const killed = new Promise<void>((resolve) => {
      network.script({ route, then: { run: () => void world.publisher.kill().then(resolve), then: 'act' } });
    });
    const id = await composed('Killed', { mediaIds: [video] }, { contentType: 'reel' });
    await killed;
    await world.startPublisher();
    await world.target(id, isOut);
    assert.equal(made().length, before + 1);
  });

  t(
    'facebook: a post for its own scheduler is there before its time, gets another one, and is taken back',
    async () => {
      const at = new Date(Math.floor(Date.now() / 1_000) * 1_000 + 3_600_000).toISOString();
      const id = await composed('Later', { schedule: { type: 'at', scheduledAt: at }, scheduleMode: 'native' });
      const target = await world.target(id, ({ status }) => status === 'handed_to_platform');
      const handed = made().at(-1);
      assert.deepEqual([handed?.text, handed?.publishAt], ['Later', Date.parse(at)]);
      const later = new Date(Date.parse(at) + 7_200_000).toISOString();
      const before = made().length;
      const moved = await world.http.post(`/post-targets/${target.id}/reschedule`, { scheduledAt: later });
      assert.equal(moved.status, 200, moved.text);
      await until('Facebook has the other time', () => handed?.publishAt === Date.parse(later));
      await world.target(id, ({ status }) => status === 'handed_to_platform');
      assert.equal(made().length, before, 'it is the same post');
      assert.equal((await world.http.post(`/post-targets/${target.id}/cancel`, {})).status, 200);
      await until('Facebook has it no longer', () => network.state.deleted.has(handed?.id ?? ''));
    },
  );

  t('facebook: an owner who takes the consent back there must consent anew', async () => {
    const issued_at = Math.floor(Date.now() / 1_000);
    const said = { algorithm: 'HMAC-SHA256', issued_at, user_id: person.id };
    const payload = Buffer.from(JSON.stringify(said)).toString('base64url');
    const seal = createHmac('sha256', network.state.app.clientSecret).update(payload).digest('base64url');
    const body = new URLSearchParams({ signed_request: `${seal}.${payload}` });
    const answer = await fetch(`${world.base}/network/facebook/deauthorize`, { method: 'POST', body });
    assert.equal(answer.status, 200, await answer.text());
    await until('the page needs its owner', async () => {
      const [account] = (await world.http.get(`/accounts?clientId=${clientId}`)).rows;
      return account?.status === 'reauth_required';
    });
  });

  return {
    platform: 'facebook',
    connect: (link) => {
      const owner = network.person();
      network.pageOf(owner, { name: 'Bakery' });
      return world.consent(link, 'facebook', owner.id);
    },
    shown: (words) =>
      made()
        .filter(({ text }) => text === words)
        .map((one) => network.state.idOf(one)),
  };
};
