import assert from 'node:assert/strict';
import { testTwinIdOf } from '#domain/ids.ts';
import { overrideRules, rulesOf } from '#domain/platforms/index.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import { escapeHtml } from '#services/api/html.ts';
import { readyAsset } from '#test/support/assets.ts';
import { composedWorld, composer } from '#test/support/composing.ts';
import { markedValue } from '#test/support/override-values.ts';
import { suite } from '#test/support/suite.ts';

/** Whoever decides about a post sees everything that the hash of the decision covers: over REST, MCP and on the page. */

interface Item {
  readonly kind: string;
  readonly platforms: readonly string[];
  readonly part: number | null;
  readonly position: number | null;
  readonly key: string | null;
  readonly value: string;
  readonly id: string | null;
  readonly unsent: string | null;
}

const { world, tester } = await composedWorld([]);

suite('what a decision covers', (t) => {
  const home = testTwinIdOf(world.workspaceId);
  const own = composer(world, [...platforms], { name: 'Acme' });
  const clip = { altText: 'A clip of a cat', name: 'clip "one".mp4' };
  const assets = Promise.all([
    readyAsset(world.store, home, 'video', clip),
    readyAsset(world.store, home, 'image', { name: 'cover.jpg' }),
    readyAsset(world.store, home, 'image', { name: 'board.jpg' }),
  ]);

  const submit = async (more: Record<string, unknown>) => {
    const { body, clientId } = await own;
    await tester.patch(`/clients/${clientId}`, { approvalRequired: true });
    await world.settled();
    const made = await tester.post('/posts', body(more));
    assert.equal(made.status, 200, made.text);
    const id = String(made.data.approvalId);
    const link = await tester.post(`/approvals/${id}/links`, {});
    await world.settled();
    const { data } = await tester.get(`/approvals/${id}`);
    return {
      contentHash: String(data.contentHash),
      shown: (data.shown ?? []) as readonly Item[],
      page: await (await fetch(String(link.data.url))).text(),
    };
  };

  /** A value of each key of each network. */
  const marked = (platform: Platform): Record<string, unknown> =>
    Object.fromEntries(
      Object.entries(overrideRules(platform)).map(([key, rule]) => [key, markedValue(platform, key, rule)]),
    );
  const asShown = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
  const onlyText: readonly Platform[] = ['x', 'bluesky', 'threads', 'linkedin', 'telegram'];

  const everything = async () => {
    const [video, cover, board] = await assets;
    const variants = platforms.map((platform) => ({
      platform,
      ...(onlyText.includes(platform) ? { mediaIdsOverride: [] } : {}),
      ...(platform === 'pinterest' ? { mediaIdsOverride: [board.id] } : {}),
      // A reel: the settings of reels alone are sent, too.
      overrides: { ...marked(platform), ...(platform === 'instagram' ? { contentType: 'reel' } : {}) },
    }));
    return {
      ...{ content: 'The same for most.', mediaIds: [video.id], variants, coverMediaId: cover.id, coverFrameMs: 1234 },
      ...{ aiDisclosure: true, mediaAltTexts: { [board.id]: 'A board & <b>a cat</b>' } },
    };
  };

  /** The part of the page about one network. */
  const cardOf = (page: string, platform: Platform): string => {
    const { name } = rulesOf(platform);
    const cards = page.split('<section class="card" ').slice(1);
    const card = cards.find((one) => one.includes(`badge ${platform}"`) && one.includes(name));
    assert.ok(card, `the page has no card for ${name}`);
    return card;
  };

  t('has every key of every network, over REST and on the page', async () => {
    const { shown, page } = await submit(await everything());
    for (const platform of platforms) {
      const card = cardOf(page, platform);
      for (const [key, value] of Object.entries(marked(platform))) {
        const set = key === 'contentType' && platform === 'instagram' ? 'reel' : value;
        const item = shown.find((one) => one.key === key && one.platforms.includes(platform));
        assert.equal(item?.value, asShown(set), `${platform} ${key} over REST`);
        assert.equal(item?.unsent, null, `${platform} ${key}: ${item?.unsent}`);
        assert.ok(card.includes(escapeHtml(asShown(set))), `${platform} ${key} on the page`);
      }
    }
    assert.doesNotMatch(page, /<i>|<b>a cat/);
  });

  t(
    'has files with their hashes, alt texts, covers, the disclosure, and what the networks have alike once',
    async () => {
      const { shown, page } = await submit(await everything());
      const [video, cover, board] = await assets;
      const of = (kind: string, id: string | null = null) => shown.filter((one) => one.kind === kind && one.id === id);
      for (const { id } of [video, cover, board]) {
        const [bytes] = of('bytes', id);
        assert.match(bytes?.value ?? '', /SHA-256 [0-9a-f]{64}/);
        assert.ok(page.includes(bytes?.value ?? '-'), 'the page lacks a hash');
      }
      assert.deepEqual(of('file', board.id)[0]?.platforms, ['pinterest']);
      assert.deepEqual(of('alt_text', board.id)[0]?.value, 'A board & <b>a cat</b>');
      assert.ok(page.includes('A board &amp; &lt;b&gt;a cat&lt;/b&gt;'));
      assert.equal(
        of('alt_text', video.id)[0]?.value,
        clip.altText,
        'the text of the asset goes out where the post has none',
      );
      assert.deepEqual(of('cover', cover.id)[0]?.platforms, ['instagram', 'youtube', 'facebook']);
      assert.deepEqual(
        shown.filter(({ kind }) => kind === 'cover_frame').map(({ value, platforms: on }) => [value, on]),
        [['1234 ms', ['tiktok']]],
      );
      assert.match(page, /1234 ms/);
      const same = shown.filter(({ kind, value }) => kind === 'text' && value === 'The same for most.');
      assert.equal(same.length, 1);
      assert.deepEqual(
        same[0]?.platforms,
        platforms.filter((one) => one !== 'youtube'),
        'youtube has a description',
      );
      assert.equal(shown.filter(({ kind }) => kind === 'account').length, platforms.length);
      assert.equal(page.split('The same for most.').length - 1, 3, 'networks with equal texts and files share a card');
    },
  );

  t('has each segment of a thread, and what no network gets with the reason', async () => {
    const [, , board] = await assets;
    const { shown, page } = await submit({
      content: 'Base <script>',
      targets: { mode: 'group', clientId: (await own).clientId, platforms: ['x', 'threads', 'bluesky'] },
      thread: { segments: [{ content: 'One' }, { content: 'Two & three', mediaIds: [board.id] }] },
      variants: [
        { platform: 'x', contentOverride: 'EVIL on X', overrides: { reply_settings: 'following' } },
        { platform: 'bluesky', overrides: { link: 'https://evil.example/phish', constructor: 'mine' } },
        { platform: 'telegram', contentOverride: 'Nobody gets this', overrides: { parseMode: 'HTML' } },
      ],
      coverFrameMs: 77,
    });
    const texts = shown
      .filter(({ kind }) => kind === 'text')
      .map(({ part, platforms: on, value, unsent }) => [...[part, on.join(), value, unsent === null]]);
    assert.deepEqual(texts, [
      [null, 'bluesky', 'Base <script>', true],
      [1, 'x,threads', 'One', true],
      [2, 'x,threads', 'Two & three', true],
      [null, 'x', 'EVIL on X', false],
      [null, 'telegram', 'Nobody gets this', false],
    ]);
    const unsent = shown.filter((one) => one.unsent !== null).map(({ key, kind, value }) => [key ?? kind, value]);
    for (const one of [
      ['reply_settings', 'following'],
      ['constructor', 'mine'],
      ['parseMode', 'HTML'],
      ['cover_frame', '77 ms'],
    ]) {
      assert.ok(
        unsent.some(([key, value]) => key === one[0] && value === one[1]),
        one.join(),
      );
    }
    for (const { value } of shown) assert.ok(page.includes(escapeHtml(value)), `the page lacks ${value}`);
    assert.match(page, /Part 2 of 2/);
    assert.doesNotMatch(page, /<script/);
    assert.equal(shown.find(({ key }) => key === 'link')?.unsent, null);
  });
});
