/**
 * A channel of YouTube from its connect link to a video that is read from the network, not from us, before a strict YouTube: it
 * is looked at first, gets its comment and its cover, and a worker that is killed at the last byte makes no second one. Another
 * is handed to YouTube's own scheduler.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import sharp from 'sharp';
import { clip } from '#test/support/clip.ts';
import { startYouTube, type YouTubeNetwork } from '#test/support/networks/youtube/index.ts';
import type { Channel } from '#test/support/networks/youtube/state.ts';
import type { Declare } from '#test/support/suite.ts';
import { sparing, until } from '#test/support/until.ts';
import { uploaded } from '#test/support/uploads.ts';
import type { LiveWorld, Place } from './world.ts';

export const channelOfYouTube = (
  t: Declare,
  world: LiveWorld,
): Place & { onLastByte(words: string, run: () => void): void } => {
  let network: YouTubeNetwork;
  let channel: Channel;
  let clientId = '';
  let [video, cover] = ['', ''];
  const guest = world.guest();

  world.join(async (redirectUri) => {
    network = await startYouTube({ redirectUri, processingMs: 1_500 });
    channel = network.channel({ title: 'Café', handle: 'cafe' });
    // The machine's own ffmpeg may be an old one.
    const env = { ...network.env, OUTDATED_FFMPEG: 'take' };
    return { origin: network.origin, env, close: () => network.close() };
  });

  const fileOf = async (fileName: string, contentType: string, body: Buffer): Promise<string> => {
    const offer = await uploaded(world.http, { fileName, contentType, body });
    const id = String(offer.data.assetId);
    const made = await world.http.post('/media', { assetId: id, platforms: ['youtube'] });
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
  const composed = async (content: string, over: object = {}, overrides: object = {}) => {
    const made = await world.http.post('/posts', {
      ...{ clientId, content, mediaIds: [video], targets: { mode: 'group', clientId }, schedule: { type: 'now' } },
      ...{ variants: [{ platform: 'youtube', overrides }], ...over },
    });
    assert.equal(made.status, 200, made.text);
    return String(made.data.id);
  };
  const targetOf = async (id: string) =>
    ((await world.http.get(`/posts/${id}`)).data.targets as readonly Record<string, unknown>[])[0] ?? {};
  const published = (id: string) =>
    until('it is published', async () => {
      const one = await targetOf(id);
      assert.notEqual(one.status, 'failed', JSON.stringify(one));
      return one.status === 'published' ? one : null;
    });

  t('youtube: a guest connects the channel that they choose', async () => {
    clientId = await world.client('Café on YouTube');
    const link = await world.link(clientId, ['youtube']);
    const away = await guest.sent(link, { platform: 'youtube', way: 'consent', timezone: '' });
    const allowed = await fetch(`${away}&as=${channel.id}`, { redirect: 'manual' });
    assert.equal(allowed.status, 302, await allowed.text());
    assert.equal((await guest.get(allowed.headers.get('location') ?? '')).next, link);
    const [account] = await world.accounts(clientId);
    assert.deepEqual([account?.externalId, account?.username, account?.status], [channel.id, 'cafe', 'connected']);
  });

  t('youtube: the video is processed, then out, once, with its words, its comment and its cover', async () => {
    const body = await clip();
    const picture = await sharp({ create: { width: 1_280, height: 720, channels: 3, background: '#804020' } })
      .jpeg()
      .toBuffer();
    [video, cover] = [await fileOf('rolls.mp4', 'video/mp4', body), await fileOf('rolls.jpg', 'image/jpeg', picture)];
    const id = await composed(
      'Fresh rolls\nfrom seven',
      { coverMediaId: cover, aiDisclosure: true },
      { privacyStatus: 'unlisted', tags: ['rolls'], categoryId: '22', firstComment: 'Where: https://example.com' },
    );
    const { permalink } = await published(id);
    await until('its comment and its cover are there', () => {
      const [one] = network.state.videos;
      return network.state.comments.length === 1 && one?.thumbnails.length === 1;
    });
    const [made, ...others] = network.state.videos;
    assert.ok(made !== undefined && others.length === 0);
    assert.deepEqual(made.snippet, {
      ...{ title: 'Fresh rolls', description: 'Fresh rolls\nfrom seven', tags: ['rolls'], categoryId: '22' },
    });
    assert.deepEqual(made.status, {
      ...{ privacyStatus: 'unlisted', selfDeclaredMadeForKids: false, containsSyntheticMedia: true },
    });
    assert.deepEqual([made.bytes, permalink], [body.length, `https://www.youtube.com/shorts/${made.id}`]);
    assert.deepEqual(network.state.comments[0]?.text, 'Where: https://example.com');
    assert.ok(made.thumbnails[0] !== createHash('sha256').update('').digest('hex'));
  });

  t(
    'youtube: 20: a worker that is killed when YouTube has the last byte leaves one video and no second session',
    async () => {
      const [sessions, videos] = [network.state.sessions.size, network.state.videos.length];
      const route = 'PUT last';
      const killed = new Promise<void>((resolve) => {
        network.script({ route, then: { run: () => void world.publisher.kill().then(resolve) } });
      });
      const id = await composed('Killed');
      await killed;
      await world.startPublisher();
      await published(id);
      assert.deepEqual([network.state.sessions.size, network.state.videos.length], [sessions + 1, videos + 1]);
    },
  );

  t('youtube: a post for its own scheduler is there before its time, and is taken back', async () => {
    const before = network.state.videos.length;
    const at = new Date(Date.now() + 3_600_000).toISOString();
    const id = await composed('Later', { schedule: { type: 'at', scheduledAt: at }, scheduleMode: 'native' });
    await until('YouTube has it', async () => (await targetOf(id)).status === 'handed_to_platform');
    const handed = network.state.videos.at(-1);
    assert.deepEqual(
      [network.state.videos.length, handed?.status.privacyStatus, Date.parse(String(handed?.status.publishAt))],
      [before + 1, 'private', Date.parse(at)],
    );
    const target = await targetOf(id);
    assert.equal((await world.http.post(`/post-targets/${target.id}/cancel`, {})).status, 200);
    await until('YouTube has it no longer', () => network.state.deleted.has(handed?.id ?? ''));
    assert.deepEqual(network.state.unheld, []);
  });

  return {
    platform: 'youtube',
    /** YouTube has all of the video, and does not answer. */
    onLastByte: (says, run) => network.script({ route: 'PUT last', says, then: { run, then: 'silent_after' } }),
    connect: (link) => world.consent(link, 'youtube', network.channel({ title: 'Bakery' }).id),
    shown: (words) => network.state.videos.filter(({ snippet }) => snippet.description === words).map(({ id }) => id),
  };
};
