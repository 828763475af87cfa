import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import sharp from 'sharp';
import { capabilities, effectiveOverrides, overrideRules } from '#domain/platforms/index.ts';
import type { LedgerRow } from '#infra/platforms/sandbox/index.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import type { PostBody, Variant } from '#schemas/post.ts';
import { readyAsset } from '#test/support/assets.ts';
import { readyClip } from '#test/support/clip.ts';
import { rowsOfRun } from '#test/support/drawing.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { type Account, PublishingWorld, type Running } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

type Values = Readonly<Record<string, unknown>>;

/** Keys without which the network publishes nothing. */
const required: Readonly<Partial<Record<Platform, Values>>> = {
  tiktok: { privacyLevel: 'SELF_ONLY' },
  pinterest: { boardId: '1' },
};

/** Every key of each network with a value that is not its default, and what the network gets where it differs. */
const keys: Readonly<Record<Platform, readonly (readonly [key: string, value: unknown, sent?: unknown])[]>> = {
  x: [
    ['quoteTweetId', '1790000000000000000'],
    ['replySettings', 'following'],
    ['replySettings', 'mentionedUsers'],
    ['replySettings', 'subscribers'],
    ['replySettings', 'verified'],
    ['replySettings', 'verifiedOnly', 'verified'],
    ['madeWithAi', true],
    ['paidPartnership', true],
    ['firstComment', 'first on x'],
  ],
  linkedin: [
    ['visibility', 'CONNECTIONS'],
    ['firstComment', 'first on linkedin'],
  ],
  instagram: [
    ['contentType', 'feed'],
    ['contentType', 'reel'],
    ['contentType', 'story'],
    ['firstComment', 'first on instagram'],
    ['userTags', ['a', { username: 'b', x: 0.5, y: 0.25 }]],
    ['userTags', '@a, @b', ['a', 'b']],
    ['collaborators', ['a', 'b', 'c']],
    ['shareToFeed', false],
    ['coverUrl', 'https://example.com/cover.jpg'],
    ['locationId', '110843418940484'],
    ['paidPartnership', true],
  ],
  facebook: [
    ['contentType', 'reel'],
    ['contentType', 'story'],
    ['firstComment', 'first on facebook'],
  ],
  tiktok: [
    ['privacyLevel', 'PUBLIC_TO_EVERYONE'],
    ['privacyLevel', 'MUTUAL_FOLLOW_FRIENDS'],
    ['privacyLevel', 'FOLLOWER_OF_CREATOR'],
    ['yourBrand', true],
    ['disableComment', true],
    ['disableDuet', true],
    ['disableStitch', true],
  ],
  youtube: [
    ['title', 'A title'],
    ['privacyStatus', 'unlisted'],
    ['privacyStatus', 'private'],
    ...['1', '2', '10', '15', '17', '19', '20', '23', '24', '25', '26', '27', '28', '29'].map(
      (id) => ['categoryId', id] as const,
    ),
    ['madeForKids', true],
    ['tags', ['one', 'two words']],
    ['tags', 'one, two words', ['one', 'two words']],
    ['license', 'youtube'],
    ['license', 'creativeCommon'],
    ['description', 'Another text'],
    ['firstComment', 'first on youtube'],
  ],
  threads: [
    ['quotePostId', '18000000000000000'],
    ['replyControl', 'everyone'],
    ['replyControl', 'accounts_you_follow'],
    ['replyControl', 'mentioned_only'],
    ['firstComment', 'first on threads'],
  ],
  pinterest: [
    ['boardId', '918273645'],
    ['title', 'A title'],
    ['link', 'https://example.com/'],
  ],
  bluesky: [
    ['link', 'https://example.com/'],
    ['labelSexual', true],
    ['labelNudity', true],
    ['labelPorn', true],
    ['labelGraphicMedia', true],
    ['firstComment', 'first on bluesky'],
  ],
  telegram: [
    ['parseMode', 'HTML'],
    ['parseMode', 'Markdown'],
    ['parseMode', 'MarkdownV2'],
    ['disableNotification', true],
    ['protectContent', true],
    ['firstComment', 'first on telegram'],
  ],
};
/** Together with another key only. */
const paired: readonly (readonly [Platform, Values])[] = [
  ['tiktok', { brandedContent: true, privacyLevel: 'PUBLIC_TO_EVERYONE' }],
];

suite('overrides and members that reach the network', { timeoutMs: 240_000 }, (t) => {
  let world: PublishingWorld;
  let publisher: Running;
  const accounts = new Map<Platform, Account>();
  /** Of tiktok: only a private account may limit a post to its followers. */
  let privateAccount: Account;

  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url, { boundaryDeadlineMs: 10_000 });
    const clientId = await world.client();
    for (const platform of platforms) accounts.set(platform, await world.connect(clientId, platform));
    privateAccount = await world.connect(clientId, 'tiktok', 'private-acme');
    // Many targets at once: no lease and no call of them may run out on a busy machine.
    publisher = world.publisher({ leaseTtlMs: 30_000 });
  });
  t.after(async () => {
    await publisher?.stop();
    await world?.close();
  });

  const accountOf = (platform: Platform): Account => {
    const account = accounts.get(platform);
    assert.ok(account);
    return account;
  };
  const variantOf = (platform: Platform, overrides: Values): Variant => ({
    platform,
    contentOverride: null,
    mediaIdsOverride: null,
    overrides: { ...required[platform], ...overrides },
  });
  const schedule = async (platform: Platform, overrides: Values, body: Partial<PostBody> = {}): Promise<string> => {
    const variants = [variantOf(platform, overrides)];
    const forFollowers = platform === 'tiktok' && overrides.privacyLevel === 'FOLLOWER_OF_CREATOR';
    const account = forFollowers ? privateAccount : accountOf(platform);
    return (await world.schedule([account], { variants, body, text: 'hello' })).targetIds[0] ?? '';
  };
  const sentFor = async (id: string): Promise<LedgerRow> => {
    await world.all([id], 'published');
    const [row, ...more] = await world.sandbox.creates(id);
    assert.ok(row !== undefined && more.length === 0);
    return row;
  };
  /** What the network gets where nothing is set beyond what it needs: a video has the first line of the text as title. */
  const plainOf = (platform: Platform): Values => ({
    ...effectiveOverrides(platform, { ...required[platform] }, false),
    ...(platform === 'youtube' && { title: 'hello' }),
  });
  const commented = async (id: string): Promise<readonly string[]> =>
    (await world.sandbox.comments([id])).map(({ content }) => content);

  const size = { width: 1_280, height: 720 };
  const picture = (background: string) =>
    sharp({ create: { ...size, channels: 3, background } })
      .jpeg()
      .toBuffer();
  /** A picture that fits as it is, wherever a network shows one. */
  const image = async (background: string, altText: string | null = null) => {
    const body = await picture(background);
    const probe = { kind: 'image', digitalSourceType: null, ...size } as const;
    const needs = platforms.flatMap((platform) =>
      (['feed', 'carousel', 'story', 'cover'] as const).map((use) => ({ platform, use })),
    );
    return readyAsset(world.store, world.workspaceId, 'image', { body, blobs: world.blobs, probe, needs, altText });
  };

  t('the table has every key of every network', () => {
    for (const platform of platforms) {
      const own = [
        ...keys[platform].map(([key]) => key),
        ...paired.filter(([one]) => one === platform).flatMap(([, values]) => Object.keys(values)),
      ];
      assert.deepEqual(
        [...new Set([...own, 'aiGenerated'])].sort(),
        Object.keys(overrideRules(platform)).sort(),
        platform,
      );
    }
  });

  t('the table has every value of every list of values, unless it is the default', () => {
    for (const platform of platforms) {
      for (const [key, rule] of Object.entries(overrideRules(platform))) {
        if (rule.type !== 'enum') continue;
        const own = [
          ...keys[platform],
          ...paired.filter(([one]) => one === platform).flatMap(([, one]) => Object.entries(one)),
        ];
        const given = own.filter(([one]) => one === key).map(([, value]) => value);
        const wanted = [...rule.values, ...Object.keys(rule.aliases ?? {})];
        assert.deepEqual(
          wanted.filter((value) => !given.includes(value) && value !== plainOf(platform)[key]),
          [],
          `${platform} ${key}`,
        );
      }
    }
  });

  t('each key reaches the network it belongs to', async () => {
    const all = [
      ...platforms.flatMap((platform) =>
        keys[platform].map(([key, value, sent = value]) => ({
          platform,
          given: { [key]: value },
          sent: { [key]: sent },
        })),
      ),
      ...paired.map(([platform, given]) => ({ platform, given, sent: given })),
    ];
    const nameOf = ({ platform, given }: (typeof all)[number]) => `${platform} ${Object.keys(given)}`;
    const rows = rowsOfRun('keys of networks', all, nameOf);
    const { id: clip } = await world.clip();
    const ids = await Promise.all(
      // Facebook takes a reel or a story with a file alone.
      rows.map(({ platform, given }) => schedule(platform, given, 'contentType' in given ? { mediaIds: [clip] } : {})),
    );
    for (const [index, { platform, given, sent }] of rows.entries()) {
      const id = ids[index] ?? '';
      const row = await sentFor(id);
      const { firstComment, ...others } = sent as Values;
      const plain = plainOf(platform);
      assert.deepEqual(row.overrides, { ...plain, ...others }, `${platform} ${JSON.stringify(given)}`);
      if (firstComment === undefined) assert.notDeepEqual(row.overrides, plain, 'a value that is not the default');
      else {
        const ends = /^TargetFirstComment(Posted|Failed)$/;
        await until('the comment has ended', async () => ends.test((await world.story(`target-${id}`)).at(-1) ?? ''));
        assert.deepEqual(await commented(id), [firstComment], (await world.story(`target-${id}`)).join(' '));
      }
    }
    const silent = ids.filter((_, index) => !('firstComment' in (rows[index]?.given ?? {})));
    assert.deepEqual(await world.sandbox.comments(silent), []);
  });

  t('unknown keys and keys of other networks are not sent, and cause neither an error nor a comment', async () => {
    const all: Record<string, unknown> = { nonsense: { deep: 1 }, firstcomment: 'misspelled', first_comment: 'too' };
    for (const platform of platforms) for (const [key, value] of keys[platform]) all[key] = value;
    const foreign = (platform: Platform): Values =>
      Object.fromEntries(Object.entries(all).filter(([key]) => !Object.hasOwn(overrideRules(platform), key)));
    assert.ok('firstComment' in foreign('tiktok') && 'firstComment' in foreign('pinterest'));
    const ids = await Promise.all(platforms.map((platform) => schedule(platform, foreign(platform))));
    for (const [index, platform] of platforms.entries()) {
      const row = await sentFor(ids[index] ?? '');
      assert.deepEqual(row.overrides, plainOf(platform), platform);
      const story = await world.story(`target-${ids[index]}`);
      assert.deepEqual(
        story.filter((type) => type.startsWith('TargetFirstComment')),
        [],
      );
    }
    assert.deepEqual(await world.sandbox.comments(ids), []);
  });

  t('keys for reels go with reels alone, and keys that a story cannot have not with a story', async () => {
    const [{ id: clip }, { id: photo }] = await Promise.all([world.clip(), image('#82a')]);
    const given = {
      ...{ shareToFeed: true, coverUrl: 'https://example.com/cover.jpg' },
      ...{ collaborators: ['a'], locationId: '110843418940484', userTags: ['b'], paidPartnership: true },
    };
    const anywhere = { userTags: ['b'], paidPartnership: true, aiGenerated: false };
    const { shareToFeed, coverUrl, collaborators, locationId } = given;
    const cases = [
      ['reel', [clip], {}, { shareToFeed, coverUrl, collaborators, locationId }],
      ['reel', [clip], { contentType: 'feed' }, { shareToFeed, coverUrl, collaborators, locationId }],
      ['feed', [photo], {}, { collaborators, locationId }],
      ['carousel', [photo, clip], {}, { collaborators, locationId }],
      ['story', [photo], { contentType: 'story' }, {}],
      ['story', [clip], { contentType: 'story' }, {}],
    ] as const;
    const ids = await Promise.all(
      cases.map(([, mediaIds, own]) => schedule('instagram', { ...given, ...own }, { mediaIds: [...mediaIds] })),
    );
    for (const [index, [use, , own, sent]] of cases.entries()) {
      const row = await sentFor(ids[index] ?? '');
      const about = `${use} ${JSON.stringify(own)}`;
      assert.ok(
        row.media.filter((one) => one.use !== 'cover').every((one) => one.use === use),
        about,
      );
      assert.deepEqual(row.overrides, { ...anywhere, ...own, ...sent }, about);
    }
    // The address of a cover and the asset of one are two settings: neither replaces the other.
    const both = await sentFor(await schedule('instagram', { coverUrl }, { mediaIds: [clip], coverMediaId: photo }));
    assert.equal(both.overrides.coverUrl, coverUrl);
    assert.deepEqual(
      both.media.map(({ mediaId, use }) => [mediaId, use]),
      [
        [clip, 'reel'],
        [photo, 'cover'],
      ],
    );
  });

  t('the disclosure of AI is copied to every variant, unless the variant says otherwise', async () => {
    const flags: Readonly<Partial<Record<Platform, string>>> = { youtube: 'containsSyntheticMedia', tiktok: 'isAigc' };
    const cases = [
      [true, {}, true],
      [true, { aiGenerated: false }, false],
      [false, { aiGenerated: true }, true],
      [false, {}, false],
    ] as const;
    for (const [aiDisclosure, overrides, wanted] of cases) {
      const ids = await Promise.all(platforms.map((platform) => schedule(platform, overrides, { aiDisclosure })));
      for (const [index, platform] of platforms.entries()) {
        const { overrides: sent } = await sentFor(ids[index] ?? '');
        assert.equal(sent.aiGenerated, wanted, platform);
        const flag = flags[platform];
        if (flag !== undefined) assert.equal(sent[flag], wanted, platform);
        if (platform === 'x') assert.equal(sent.madeWithAi, false, 'independent of the post');
      }
    }
    const own = await sentFor(await schedule('x', { madeWithAi: true }, { aiDisclosure: false }));
    assert.deepEqual([own.overrides.madeWithAi, own.overrides.aiGenerated], [true, false]);
  });

  t('a text and media of a variant go to its network alone; an empty text is one', async () => {
    const [base, own] = await Promise.all([world.clip(), world.clip()]);
    for (const contentOverride of ['of its own', '']) {
      const variant = { ...variantOf('facebook', {}), contentOverride, mediaIdsOverride: [own.id] };
      const accounts = [accountOf('facebook'), accountOf('telegram')];
      const body = { mediaIds: [base.id] };
      const { targetIds } = await world.schedule(accounts, { variants: [variant], text: 'for all', body });
      const rows = await Promise.all(targetIds.map(sentFor));
      assert.deepEqual(
        rows.map(({ platform, content, media }) => [platform, content, media[0]?.mediaId]),
        [
          ['facebook', contentOverride, own.id],
          ['telegram', 'for all', base.id],
        ],
      );
    }
  });

  t('a cover, a cover frame and alt texts reach the networks that take them', async () => {
    const [cover, photo, wall, { id: clip }] = await Promise.all([
      image('#28a', 'the cover'),
      image('#a82', 'own'),
      image('#2a8', 'too'),
      world.clip(),
    ]);
    const filmed = await Promise.all(
      platforms.map((platform) =>
        schedule(platform, {}, { mediaIds: [clip], coverMediaId: cover.id, coverFrameMs: 1_500 }),
      ),
    );
    const covered: Platform[] = [];
    const framed: Platform[] = [];
    for (const [index, platform] of platforms.entries()) {
      const { media, coverFrameMs } = await sentFor(filmed[index] ?? '');
      // A single video without a content type is a reel on instagram alone.
      assert.equal(media[0]?.use, platform === 'instagram' ? 'reel' : 'feed', platform);
      if (media.some(({ mediaId, use }) => mediaId === cover.id && use === 'cover')) covered.push(platform);
      if (coverFrameMs !== null) {
        assert.equal(coverFrameMs, 1_500);
        framed.push(platform);
      }
    }
    // Pinterest takes a cover too; the specification names the other four, of which youtube takes it once the video is out.
    const taking: Platform[] = ['facebook', 'instagram', 'pinterest', 'telegram'];
    const tube = filmed[platforms.indexOf('youtube')] ?? '';
    const isSet = async () => (await world.sandbox.afterSteps([tube]))[0]?.mediaId === cover.id;
    await until('youtube has it', isSet);
    assert.deepEqual(covered.sort(), taking);
    assert.deepEqual(framed.sort(), ['instagram', 'tiktok']);
    // Without a cover of the post its place has the poster of the video.
    const poster = { ...size, body: await picture('#8a2') };
    const film = await readyClip(world.store, world.workspaceId, world.blobs, { poster });
    const shown = [...taking, 'x' as const];
    const plain = await Promise.all(shown.map((platform) => schedule(platform, {}, { mediaIds: [film.id] })));
    const sha256 = createHash('sha256').update(poster.body).digest('hex');
    for (const [index, platform] of shown.entries()) {
      const { media } = await sentFor(plain[index] ?? '');
      assert.deepEqual(
        media.filter(({ use }) => use === 'cover').map((one) => [one.mediaId, one.sha256]),
        taking.includes(platform) ? [[film.id, sha256]] : [],
        platform,
      );
    }

    const showing = platforms.filter((platform) => platform !== 'youtube');
    const said = { [wall.id]: 'a green wall', [photo.id]: 'a brown wall' };
    const reported = async (mediaIds: string[], mediaAltTexts: PostBody['mediaAltTexts'] = null) =>
      Promise.all(showing.map((platform) => schedule(platform, {}, { mediaIds, mediaAltTexts })));
    const tale = await image('#82a', 'so '.repeat(500));
    const [described, left, long] = [
      await reported([photo.id, wall.id], said),
      await reported([photo.id]),
      await reported([tale.id]),
    ];
    const cuts: Readonly<Partial<Record<Platform, number>>> = {
      x: 1_000,
      instagram: 1_000,
      threads: 1_000,
      pinterest: 500,
    };
    for (const [index, platform] of showing.entries()) {
      const takes = capabilities(platform).altText;
      const cut = cuts[platform];
      // What the network takes, with an ellipsis that says that there was more.
      const tail =
        cut === undefined
          ? 'so '.repeat(500)
          : `${'so '
              .repeat(500)
              .slice(0, cut - 1)
              .trimEnd()}…`;
      const every = [['a brown wall', 'a green wall'], ['own'], [tail]];
      const texts = await Promise.all(
        [described, left, long].map(async (ids) =>
          (await sentFor(ids[index] ?? '')).media.map(({ altText }) => altText),
        ),
      );
      assert.deepEqual(texts, takes ? every : every.map((some) => some.map(() => null)), platform);
    }
  });
});
