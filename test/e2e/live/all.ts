/**
 * One post from one connect link to all networks, beside one another: the publisher is killed when YouTube has the last byte and
 * has not answered, Threads has no finished picture, and the others have the post. What is out is read from the networks, each of
 * which has the post once; then the api answers with the figures of each.
 */
import assert from 'node:assert/strict';
import { type Platform, platforms } from '#schemas/common.ts';
import { clip } from '#test/support/clip.ts';
import { gradient } from '#test/support/media/pictures.ts';
import type { Declare } from '#test/support/suite.ts';
import { sparing, until } from '#test/support/until.ts';
import { uploaded } from '#test/support/uploads.ts';
import { isOut, type LiveWorld, type Place, type Target } from './world.ts';

const words = 'One word for all of them';

/** Whose simulator, or server, has no figure of a new post, and why. */
const figureless: Readonly<Partial<Record<Platform, string>>> = {};

/** The network has it. */
const taken = ['published', 'processing'];
const failedOf = (all: readonly Target[]) => all.filter(({ status }) => status === 'failed');

interface Places {
  /** Bluesky is missing where its server cannot be installed. */
  readonly others: readonly Place[];
  readonly threads: Place & { hold(): () => void };
  readonly youtube: Place & { onLastByte(words: string, run: () => void): void };
}

export const postToAll = (t: Declare, world: LiveWorld, { others, threads, youtube }: Places): void => {
  const places = [...others, threads, youtube];
  let [clientId, postId] = ['', ''];

  const fileOf = async (fileName: string, contentType: string, body: Buffer, wanted: readonly Platform[]) => {
    const offer = await uploaded(world.http, { fileName, contentType, body });
    const assetId = String(offer.data.assetId);
    const made = await world.http.post('/media', { assetId, platforms: wanted });
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
  /** Of each network what it has itself. */
  const shown = async () =>
    new Map(await Promise.all(places.map(async (one) => [one.platform, await one.shown(words)] as const)));

  t('all: a guest connects an account of each by one link', async () => {
    clientId = await world.client('Café everywhere');
    const link = await world.link(
      clientId,
      places.map(({ platform }) => platform),
      { maxAccounts: places.length },
    );
    for (const place of places) await place.connect(link);
    const accounts = await world.accounts(clientId, places.length);
    assert.deepEqual(
      accounts.map(({ platform, status }) => `${platform} ${status}`).toSorted(),
      places.map(({ platform }) => `${platform} connected`).toSorted(),
    );
  });

  t('all: one post is out once on each, over the death of the publisher between them', async () => {
    const pictured = platforms.filter((platform) => platform !== 'youtube');
    const body = await gradient(1_000, 1_000).jpeg().toBuffer();
    const picture = await fileOf('rolls.jpg', 'image/jpeg', body, pictured);
    const video = await fileOf('rolls.mp4', 'video/mp4', await clip(), ['youtube']);
    const letGo = threads.hold();
    const lastByte = new Promise<void>((resolve) => youtube.onLastByte(words, resolve));
    await world.launch('services/insights/main.ts');
    postId = await world.compose(clientId, {
      ...{ content: words, mediaIds: [picture] },
      variants: places.map(({ platform, overrides }) => ({
        ...{ platform, overrides: overrides?.() ?? {} },
        ...(platform === 'youtube' ? { mediaIdsOverride: [video] } : {}),
      })),
    });
    // None of the others is at its call: some networks never say what became of one whose answer was lost.
    await until(
      'the others are out',
      async () => {
        const all = await world.targets(postId);
        assert.deepEqual(failedOf(all), []);
        const rest = all.filter(({ platform }) => platform !== 'youtube' && platform !== 'threads');
        return rest.length === places.length - 2 && rest.every(({ status }) => taken.includes(String(status)));
      },
      { ...sparing, withinMs: 45_000 },
    );
    for (const { seen } of places) seen?.(words);
    await lastByte;
    await world.publisher.kill();
    const atDeath = await shown();
    for (const [platform, ids] of atDeath) assert.equal(ids.length, platform === 'threads' ? 0 : 1, platform);
    letGo();
    await world.startPublisher();
    const targets = await until(
      'all are published',
      async () => {
        const all = await world.targets(postId);
        assert.deepEqual(failedOf(all), []);
        return all.length === places.length && all.every(isOut) && all;
      },
      { ...sparing, withinMs: 90_000 },
    );
    const idsBy = (all: readonly Target[]) =>
      all.map(({ platform, externalId }) => `${platform} ${externalId}`).toSorted();
    const there = [...(await shown())].flatMap(([platform, ids]) =>
      ids.map((externalId) => ({ platform, externalId })),
    );
    assert.deepEqual(idsBy(there), idsBy(targets));
    assert.equal(there.length, places.length);
  });

  t('all: the caller reads figures of each', async () => {
    const lacking = async (): Promise<readonly Platform[]> => {
      const { status, data, text } = await world.http.get(`/analytics/posts/${postId}`);
      assert.equal(status, 200, text);
      const targets = data.targets as readonly Target[];
      const known = targets.filter(({ metrics }) =>
        Object.values(metrics as object).some((one) => typeof one === 'number'),
      );
      return places.flatMap(({ platform }) => (known.some((one) => one.platform === platform) ? [] : [platform]));
    };
    const wanted = Object.keys(figureless).toSorted();
    await until('the figures', async () => (await lacking()).every((platform) => wanted.includes(platform)), {
      ...sparing,
      withinMs: 120_000,
    }).catch(async (cause: unknown) => {
      throw new Error(`without a figure: ${await lacking()}`, { cause });
    });
  });
};
