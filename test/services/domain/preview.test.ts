import { deepEqual, equal, match } from 'node:assert/strict';
import { type PostAsset, type PostAssets, type PostRendition, ruleIssues } from '#domain/post/compose.ts';
import {
  accountWarnings,
  contentWarnings,
  errorsOf,
  factsWarnings,
  previewContent,
  retryWarnings,
  unaskedWarnings,
  warning,
} from '#domain/post/preview.ts';
import type { Destination } from '#domain/post/scheduling.ts';
import type { AccountFacts } from '#schemas/account.ts';
import type { Platform } from '#schemas/common.ts';
import type { Issue } from '#schemas/issues.ts';
import type { PostBody, Variant } from '#schemas/post.ts';
import { imageProbe, videoProbe } from '#test/services/domain/renditions/probes.ts';
import { postBody } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const to = (platform: Platform): Destination => ({
  accountId: 'a',
  clientId: 'acme',
  platform,
  accountTimezone: null,
  clientTimezone: null,
  scopes: [],
});
const variant = (platform: Platform, over: Partial<Variant> = {}): Variant => ({
  platform,
  contentOverride: null,
  mediaIdsOverride: null,
  overrides: {},
  ...over,
});
const asset = (over: Partial<PostAsset> = {}): PostAsset => ({
  clientId: null,
  kind: 'image',
  status: 'transcoded',
  publishable: true,
  probe: imageProbe(),
  altText: null,
  needs: new Map(),
  sha256: null,
  ...over,
});
const clip = (over: Partial<PostAsset> = {}): PostAsset => asset({ kind: 'video', probe: videoProbe(), ...over });
const known = (assets: Readonly<Record<string, PostAsset>>): PostAssets => new Map(Object.entries(assets));
const shown = (platform: Platform, part: Partial<PostBody>, assets: PostAssets = new Map()) => {
  const body = postBody(part);
  const errors = [...ruleIssues(body, to(platform), assets)];
  const warnings = contentWarnings(body, to(platform), assets, errors);
  return { ...previewContent(body, to(platform), assets, errors), warnings };
};
const why = { code: 'media_too_heavy', message: 'Too heavy.' };

suite('the content of a preview', (t) => {
  t('is the text, the title and the length that the network would get', () => {
    const x = shown('x', { content: 'Base.', variants: [variant('x', { contentOverride: 'Own.' })] });
    deepEqual([x.text, x.title, x.length, x.errors, x.warnings], ['Own.', null, { used: 4, limit: 280 }, [], []]);
    const film = { content: 'First line\nmore', mediaIds: ['v'] };
    const youtube = shown('youtube', film, known({ v: clip() }));
    deepEqual([youtube.text, youtube.title], ['First line\nmore', 'First line']);
    const overrides = { description: 'About.', title: 'Film' };
    const own = shown('youtube', { ...film, variants: [variant('youtube', { overrides })] }, known({ v: clip() }));
    deepEqual([own.text, own.title], ['About.', 'Film']);
    const titled = (title: unknown) =>
      shown('pinterest', { variants: [variant('pinterest', { overrides: { title, boardId: '1' } })] }).title;
    deepEqual([titled('Pin'), titled(''), titled(7)], ['Pin', null, null]);
    equal(shown('x', { variants: [variant('x', { overrides: { title: 'None' } })] }).title, null);
    const segments = [
      { content: 'Head.', mediaIds: [] },
      { content: 'Tail.', mediaIds: [] },
    ];
    equal(shown('threads', { thread: { segments } }).text, 'Head.');
  });

  t('says how far each file is', () => {
    const state = (over: Partial<PostAsset>) =>
      shown('x', { mediaIds: ['i'] }, known({ i: asset(over) })).media.map(({ status, failure }) => [status, failure]);
    const need = (one: PostRendition) => ({ needs: new Map([['x/feed', one]]) });
    deepEqual(state(need({ status: 'ready' })), [['ready', null]]);
    deepEqual(state(need({ status: 'fits' })), [['not_needed', null]]);
    deepEqual(state(need({ status: 'wanted' })), [['preparing', null]]);
    deepEqual(state(need({ status: 'planned' })), [['preparing', null]]);
    deepEqual(state(need({ status: 'failed', failure: why })), [['failed', why]]);
    deepEqual(state({}), [['not_needed', null]]);
    deepEqual(state({ probe: imageProbe({}, { format: 'tiff' }) }), [['not_requested', null]]);
    deepEqual(state({ probe: null, status: 'transcoding', publishable: false }), [['preparing', null]]);
    for (const status of ['failed', 'quarantined'])
      deepEqual(state({ status, publishable: false }), [['failed', null]]);
    deepEqual(shown('x', { mediaIds: ['unknown'] }).media, []);
    const refused = shown('youtube', { mediaIds: ['i'] }, known({ i: asset() }));
    deepEqual([refused.media[0]?.status, refused.media[0]?.failure?.code], ['failed', 'media_kind_not_taken']);
    deepEqual(refused.warnings, [], 'it is an error already');
  });

  t('shows the file that is made for the network, and none where the asset itself is published', () => {
    const rendition = (platform: Platform, over: Partial<PostAsset>) =>
      shown(platform, { mediaIds: ['i'] }, known({ i: asset(over) })).media.map((one) => one.rendition);
    const tiff = { probe: imageProbe({ width: 1_000, height: 500 }, { format: 'tiff' }) };
    const jpeg = { contentType: 'image/jpeg', width: 1_000, height: 500, fit: 'scale' };
    deepEqual(rendition('x', tiff), [jpeg]);
    deepEqual(rendition('x', { ...tiff, needs: new Map([['x/feed', { status: 'wanted' }]]) }), [jpeg]);
    deepEqual(rendition('x', { ...tiff, needs: new Map([['x/feed', { status: 'failed', failure: why }]]) }), [null]);
    deepEqual(rendition('x', {}), [null]);
    deepEqual(rendition('x', { probe: null, status: 'transcoding', publishable: false }), [null]);
    deepEqual(rendition('youtube', tiff), [null]);
    const narrow = { probe: imageProbe({ width: 300, height: 1_000 }, { format: 'tiff' }) };
    equal(rendition('instagram', narrow)[0]?.fit, 'pad');
    const film = shown(
      'instagram',
      { mediaIds: ['v'] },
      known({ v: clip({ probe: videoProbe({ width: 1_280, height: 720 }, { codec: 'vp9' }) }) }),
    ).media[0]?.rendition;
    deepEqual([film?.contentType, film?.fit], ['video/mp4', 'scale']);
  });

  t('shows the files of the first segment, and the cover of a video after them', () => {
    const assets = known({ v: clip(), i: asset(), c: asset() });
    const files = (platform: Platform, body: Partial<PostBody>) =>
      shown(platform, body, assets).media.map(({ mediaId, kind, use }) => `${mediaId} ${kind} ${use}`);
    deepEqual(files('youtube', { mediaIds: ['v'], coverMediaId: 'c' }), ['v video feed', 'c image cover']);
    deepEqual(files('x', { mediaIds: ['v'], coverMediaId: 'c' }), ['v video feed']);
    // The cover goes with the video, also after an image, and may be shown as a picture too.
    deepEqual(files('telegram', { mediaIds: ['c', 'v'], coverMediaId: 'c' }), [
      'c image feed',
      'v video feed',
      'c image cover',
    ]);
    deepEqual(files('instagram', { mediaIds: ['v', 'i'], coverMediaId: 'c' }), [
      'v video carousel',
      'i image carousel',
    ]);
    const segments = [
      { content: 'Head.', mediaIds: ['i'] },
      { content: 'Tail.', mediaIds: ['v'] },
    ];
    deepEqual(files('threads', { thread: { segments } }), ['i image feed']);
  });

  t('warns of a rendition that failed, at the place from which the target gets the file', () => {
    const failed = clip({ needs: new Map([['x/feed', { status: 'failed', failure: why }]]) });
    const warned = (body: Partial<PostBody>) => shown('x', body, known({ v: failed })).warnings;
    const expected = (path: string) => [warning(why.code, path, why.message, { willFail: true, mediaId: 'v' })];
    deepEqual(warned({ mediaIds: ['v'] }), expected('/mediaIds/0'));
    // An error of the text says nothing of the file.
    deepEqual(warned({ mediaIds: ['v'], content: 'y'.repeat(281) }), expected('/mediaIds/0'));
    const own = [variant('bluesky'), variant('x', { mediaIdsOverride: ['v'] })];
    deepEqual(warned({ variants: own }), expected('/variants/1/mediaIdsOverride/0'));
    const segments = [
      { content: 'Head.', mediaIds: [] },
      { content: 'Tail.', mediaIds: ['v'] },
    ];
    deepEqual(warned({ thread: { segments } }), expected('/thread/segments/1/mediaIds/0'));
  });

  t('warns of what the gate leaves to the publish, at the member that would mend it', () => {
    const late = (platform: Platform, body: Partial<PostBody>) =>
      shown(platform, { mediaIds: ['v'], ...body }, known({ v: clip() })).warnings.map(
        ({ code, path, willFail, mediaId, postId }) => [code, path, willFail, mediaId, postId],
      );
    const fails = (code: string, path: string) => [[code, path, true, null, null]];
    deepEqual(late('tiktok', {}), fails('tiktok_privacy_level_required', '/variants'));
    const tiktok = [variant('x'), variant('tiktok')];
    deepEqual(
      late('tiktok', { variants: tiktok }),
      fails('tiktok_privacy_level_required', '/variants/1/overrides/privacyLevel'),
    );
    deepEqual(late('youtube', { content: 'y'.repeat(101) }), fails('youtube_title_required', '/content'));
    deepEqual(late('youtube', { content: '' }), fails('youtube_title_required', '/variants'));
    const titled = [variant('youtube', { overrides: { title: '<' } })];
    deepEqual(late('youtube', { variants: titled }), fails('youtube_title_required', '/variants/0/overrides/title'));
    const described = [variant('youtube', { overrides: { title: 'Film', description: 'a < b' } })];
    deepEqual(
      late('youtube', { variants: described }),
      fails('youtube_description_invalid', '/variants/0/overrides/description'),
    );
    deepEqual(late('youtube', { content: 'Fine\n<b>' }), fails('youtube_description_invalid', '/content'));
  });

  t('warns where threads may refuse a text: over 500 bytes and not over 500 characters', () => {
    const reported = (body: Partial<PostBody>) => {
      const { errors, warnings } = shown('threads', body);
      return [...errors, ...warnings].map(({ code, path }) => `${code} ${path}`);
    };
    const curly = `${'a'.repeat(492)}’’’`;
    deepEqual(reported({ content: curly }), ['may_be_refused /content']);
    deepEqual(reported({ content: `${'a'.repeat(491)}’’’` }), [], 'that are 500 bytes');
    deepEqual(reported({ content: '日'.repeat(500) }), ['may_be_refused /content']);
    deepEqual(reported({ content: '日'.repeat(501) }), ['text_too_long /content']);
    equal(
      shown('threads', { content: curly }).warnings[0]?.message,
      'Threads documents 500 characters, and was seen to refuse texts of more than 500 bytes; this one has 501',
    );
    const segments = [
      { content: 'Head.', mediaIds: [] },
      { content: curly, mediaIds: [] },
    ];
    deepEqual(reported({ thread: { segments } }), ['may_be_refused /thread/segments/1/content']);
    const variants = [variant('threads', { overrides: { firstComment: curly } })];
    deepEqual(reported({ variants }), ['may_be_refused /variants/0/overrides/firstComment']);
    deepEqual(shown('x', { content: '日'.repeat(140) }).warnings, []);
  });

  t(
    'an alt text of the asset that is too long for the network is cut with a warning, one of the post is an error',
    () => {
      const long = `${'a'.repeat(999)} b`;
      const files = known({ i: asset({ altText: long }), v: clip({ altText: long }) });
      const reported = (platform: Platform, body: Partial<PostBody>) => {
        const { errors, warnings } = shown(platform, body, files);
        return [...errors, ...warnings].map(({ code, path, mediaId }) => `${code} ${path} ${mediaId}`);
      };
      deepEqual(reported('x', { mediaIds: ['i'] }), ['alt_text_cut /mediaIds/0 i']);
      equal(
        shown('x', { mediaIds: ['i'] }, files).warnings[0]?.message,
        'X takes at most 1000 characters as the alt text of a file: the end of that of the asset, which has 1001, is not sent',
      );
      deepEqual(reported('x', { mediaIds: ['v'] }), [], 'X takes none with a video');
      deepEqual(reported('bluesky', { mediaIds: ['i'] }), []);
      deepEqual(reported('x', { mediaIds: ['i'], mediaAltTexts: { i: 'short' } }), []);
      deepEqual(reported('x', { mediaIds: ['i'], mediaAltTexts: { i: '' } }), [], 'the post wants none');
      deepEqual(reported('x', { mediaIds: ['i'], mediaAltTexts: { i: long } }), [
        'alt_text_too_long /mediaAltTexts/i i',
      ]);
      const segments = [
        { content: 'Head.', mediaIds: [] },
        { content: 'Tail.', mediaIds: ['i'] },
      ];
      deepEqual(reported('x', { thread: { segments } }), ['alt_text_cut /thread/segments/1/mediaIds/0 i']);
      deepEqual(reported('x', { variants: [variant('x', { mediaIdsOverride: ['i'] })], mediaAltTexts: { i: long } }), [
        'alt_text_too_long /mediaAltTexts/i i',
      ]);
    },
  );

  t('names the settings that do not count for files that the network shows so', () => {
    const set = (over: Partial<PostBody>, files: PostAssets) => {
      const variants = [variant('instagram', { overrides: { shareToFeed: true, locationId: '1' } })];
      return shown('instagram', { ...over, variants }, files).warnings.map((one) => [one.code, one.path, one.message]);
    };
    const files = known({ i: asset(), v: clip() });
    const idleOnFeed = 'does not count for a post that is shown as feed';
    deepEqual(set({ mediaIds: ['i'] }, files), [
      ['member_without_effect', '/variants/0/overrides/shareToFeed', idleOnFeed],
    ]);
    deepEqual(set({ mediaIds: ['v'] }, files), [], 'a reel takes both');
    deepEqual(
      set({}, files),
      ['shareToFeed', 'locationId'].map((key) => [
        ...['member_without_effect', `/variants/0/overrides/${key}`, 'counts only with media'],
      ]),
    );
    deepEqual(set({ mediaIds: ['i', 'unknown'] }, files), [], 'nobody knows what the network shows them as');
  });

  t('judges the number of files only where all are known', () => {
    deepEqual(shown('instagram', { mediaIds: ['unknown'] }).errors, []);
    equal(shown('instagram', {}).errors[0]?.code, 'too_few_media');
    const long = shown('instagram', { mediaIds: ['unknown'], content: 'y'.repeat(2_201) });
    deepEqual(
      long.errors.map(({ code }) => code),
      ['text_too_long'],
    );
  });
});

suite('what a preview says of one account', (t) => {
  t('an account that must be connected again fails first', () => {
    deepEqual(
      accountWarnings('reauth_required').map(({ code, path, willFail }) => [code, path, willFail]),
      [['account_reauth_required', '/targets', true]],
    );
    for (const status of ['connected', 'disconnected', '']) deepEqual(accountWarnings(status), []);
  });

  const facts = (over: Partial<AccountFacts> = {}): AccountFacts => ({
    ...{ observedAt: '2026-06-01T08:00:00.000Z', allows: {}, maxDurationMs: null, canPostNow: true, until: null },
    ...over,
  });
  const film = postBody({
    ...{ content: 'Film', mediaIds: ['v'] },
    variants: [variant('tiktok', { overrides: { privacyLevel: 'SELF_ONLY' } })],
  });
  const said = (over: Partial<AccountFacts>, goesAt = '2026-06-01T09:00:00.000Z') =>
    factsWarnings(film, to('tiktok'), known({ v: clip() }), facts(over), goesAt);

  t('what the network does not allow it now fails, at the member that would mend it', () => {
    deepEqual(said({}), []);
    deepEqual(said({ allows: { privacyLevel: ['SELF_ONLY'] }, maxDurationMs: 600_000 }), []);
    const refused = said({ allows: { privacyLevel: ['PUBLIC_TO_EVERYONE'] }, maxDurationMs: 1_000 });
    deepEqual(
      refused.map(({ code, path, willFail, mediaId }) => [code, path, willFail, mediaId]),
      [
        ['override_not_granted', '/variants/0/overrides/privacyLevel', true, null],
        ['media_too_long', '/mediaIds/0', true, 'v'],
      ],
    );
    match(refused[0]?.message ?? '', /those that the account allows now: PUBLIC_TO_EVERYONE$/);
  });

  t('one that may post nothing fails, or waits until its network lets it', () => {
    const seen = (over: Partial<AccountFacts>, goesAt?: string) =>
      said({ canPostNow: false, ...over }, goesAt).map(({ code, path, willFail }) => [code, path, willFail]);
    deepEqual(seen({}), [['account_not_permitted', '/targets', true]]);
    const until = '2026-06-01T10:00:00.000Z';
    deepEqual(seen({ until }), [['account_posts_later', '/targets', false]]);
    const [waits] = said({ canPostNow: false, until });
    equal(waits?.message, `TikTok lets the account post nothing until ${until}, and the target waits`);
    deepEqual(seen({ until }, until), [], 'it goes out when it may');
    deepEqual(seen({ until }, '2026-06-01T11:00:00.000Z'), []);
    deepEqual(said({ until: '2026-06-01T10:00:00.000Z' }), [], 'it may post now');
    // What is wrong with the post stands beside it.
    deepEqual(
      seen({ until, allows: { privacyLevel: [] } }).map(([code]) => code),
      ['account_posts_later', 'override_not_granted'],
    );
  });

  t('one that nobody could ask about is asked again before the post goes out', () => {
    deepEqual(
      unaskedWarnings('tiktok').map(({ code, path, willFail }) => [code, path, willFail]),
      [['account_not_asked', '/targets', false]],
    );
    match(unaskedWarnings('tiktok')[0]?.message ?? '', /^TikTok did not say .* right before the post goes out$/);
  });

  t('its errors are those that concern it, each once', () => {
    const body = postBody({
      mediaIds: ['m'],
      coverMediaId: 'c',
      variants: [variant('x', { mediaIdsOverride: ['n'] }), variant('tiktok')],
      thread: {
        segments: [
          { content: 'a', mediaIds: [] },
          { content: '', mediaIds: [] },
        ],
      },
    });
    const at = (path: string, more: Partial<Issue> = {}): Issue => ({ path, code: 'empty', message: 'no', ...more });
    const refused = [
      at('/mediaIds/0'),
      at('/coverMediaId'),
      at('/coverFrameMs'),
      at('/thread/segments/1'),
      at('/variants/0/overrides/firstComment'),
      at('/variants/1/overrides/privacyLevel'),
      at('/variants/7/overrides/none'),
      at('/timezone'),
      at('/schedule', { accountId: 'a', platform: 'x' }),
      at('/schedule', { accountId: 'b', platform: 'x', message: 'of another' }),
    ];
    const paths = (platform: Platform, own: readonly Issue[] = []) =>
      errorsOf(body, to(platform), refused, own).map(({ path }) => path);
    deepEqual(paths('x'), ['/thread/segments/1', '/variants/0/overrides/firstComment', '/schedule']);
    deepEqual(paths('tiktok'), ['/mediaIds/0', '/coverFrameMs', '/variants/1/overrides/privacyLevel', '/schedule']);
    equal(paths('youtube').includes('/coverMediaId'), true);
    deepEqual(paths('bluesky', [at('/schedule'), at('/content'), at('/content', { mediaId: 'm' })]), [
      '/mediaIds/0',
      '/schedule',
      '/content',
      '/content',
    ]);
  });

  t('a second try may publish twice where the network lists its own posts, and its scheduler has none of them', () => {
    const codes = (platform: Platform, scheduleMode: 'managed' | 'native', externalId = '1') =>
      retryWarnings({ platform, scheduleMode }, externalId).map(({ code, path, willFail }) => [code, path, willFail]);
    const duplicate = [['duplicate_possible', '/clientId', false]];
    deepEqual(codes('facebook', 'managed'), duplicate);
    match(
      retryWarnings({ platform: 'facebook', scheduleMode: 'managed' }, '1')[0]?.message ?? '',
      /duplicate is possible/,
    );
    deepEqual(codes('facebook', 'native'), []);
    // Of LinkedIn only pages are listed, never a person’s posts.
    deepEqual(codes('linkedin', 'managed', 'urn:li:organization:1'), duplicate);
    deepEqual(codes('linkedin', 'managed', 'urn:li:person:a'), []);
    deepEqual(codes('telegram', 'managed'), []);
    deepEqual(codes('telegram', 'native'), []);
  });
});
