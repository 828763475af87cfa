import { deepEqual, equal } from 'node:assert/strict';
import {
  type Capabilities,
  capabilities,
  coverOf,
  failureCodes,
  gate,
  lateErrors,
  publishCheck,
  rules,
  takesCoverFrame,
  titleFor,
} from '#domain/platforms/index.ts';
import { youtubeTitle } from '#domain/platforms/networks/youtube.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import { suite } from '#test/support/suite.ts';

/** One that every network takes for every use, as far as anybody knows: nobody has looked into it. */
const media = [{ id: 'clip', kind: 'video' as const, probe: null }];

type Overrides = Readonly<Record<string, unknown>>;
const errors = (platform: Platform, overrides: Overrides, content = 'hello') =>
  gate({ platform, content, overrides, media }).map(({ path, code }) => `${path} ${code}`);
const failure = (platform: Platform, overrides: Overrides, content = 'hello') =>
  publishCheck({ platform, content, overrides, media })?.code ?? null;

suite('gate and publish check', (t) => {
  t('a known key of wrong type, enum or length is an error', () => {
    const table: readonly [Platform, Overrides, readonly string[]][] = [
      ['x', { replySettings: 'verifiedOnly' }, []],
      ['x', { replySettings: 'everyone' }, ['/overrides/replySettings override_enum']],
      ['x', { quoteTweetId: 12 }, ['/overrides/quoteTweetId override_type']],
      ['x', { firstComment: 'a'.repeat(281) }, ['/overrides/firstComment override_length']],
      ['x', { madeWithAi: 'true' }, ['/overrides/madeWithAi override_type']],
      ['linkedin', { visibility: 'connections' }, ['/overrides/visibility override_enum']],
      ['linkedin', { firstComment: 'a'.repeat(1250) }, []],
      ['linkedin', { firstComment: 'a'.repeat(1251) }, ['/overrides/firstComment override_length']],
      ['telegram', { firstComment: `<b>${'a'.repeat(4090)}`, parseMode: 'HTML' }, []],
      // A comment has no markup: what its author typed counts.
      [
        'telegram',
        { firstComment: `<b>${'a'.repeat(4090)}</b>`, parseMode: 'HTML' },
        ['/overrides/firstComment override_length'],
      ],
      ['instagram', { firstComment: 'a'.repeat(2201) }, ['/overrides/firstComment override_length']],
      ['instagram', { firstComment: '#a '.repeat(30) }, []],
      ['instagram', { firstComment: '#a '.repeat(31) }, ['/overrides/firstComment override_length']],
      ['facebook', { firstComment: 'a'.repeat(8001) }, ['/overrides/firstComment override_length']],
      ['youtube', { title: 'T', firstComment: 'a'.repeat(10_001) }, ['/overrides/firstComment override_length']],
      ['instagram', { userTags: [{ username: `@${'a'.repeat(30)}` }] }, []],
      ['instagram', { userTags: ['a'.repeat(31)] }, ['/overrides/userTags override_length']],
      ['instagram', { userTags: `b, @${'a'.repeat(31)}` }, ['/overrides/userTags override_length']],
      ['instagram', { collaborators: ['a'.repeat(31)] }, ['/overrides/collaborators override_length']],
      ['bluesky', { link: `https://example.com/${'a'.repeat(8_180)}` }, ['/overrides/link override_length']],
      ['instagram', { contentType: 'carousel' }, ['/overrides/contentType override_enum']],
      ['instagram', { userTags: '@a, @b' }, []],
      ['instagram', { userTags: [{ username: 'a', x: 0.5, y: 1 }, 'b'] }, []],
      ['instagram', { userTags: [{ username: 'a', x: 2 }] }, ['/overrides/userTags override_type']],
      ...[[''], ['a', ' '], ['@'], [{ username: '@' }], [{ username: ' ' }], '', ' , '].map(
        (userTags): [Platform, Overrides, readonly string[]] => [
          'instagram',
          { userTags },
          ['/overrides/userTags override_type'],
        ],
      ),
      ['instagram', { userTags: [] }, []],
      ['instagram', { userTags: Array(21).fill('a') }, ['/overrides/userTags override_length']],
      ['instagram', { collaborators: ['a', 'b', 'c', 'd'] }, ['/overrides/collaborators override_length']],
      ['instagram', { collaborators: 'a,b' }, ['/overrides/collaborators override_type']],
      ['instagram', { coverUrl: 'cover.jpg' }, ['/overrides/coverUrl override_type']],
      ['facebook', { contentType: 'story' }, []],
      ['tiktok', { privacyLevel: 'PUBLIC' }, ['/overrides/privacyLevel override_enum']],
      ['tiktok', { disableDuet: 0 }, ['/overrides/disableDuet override_type']],
      [
        'tiktok',
        { privacyLevel: 'SELF_ONLY', brandedContent: true },
        ['/overrides/brandedContent tiktok_branded_content_private'],
      ],
      ['tiktok', { privacyLevel: 'SELF_ONLY', brandedContent: false }, []],
      ['youtube', { title: 'a'.repeat(100) }, []],
      ['youtube', { title: '😀'.repeat(100) }, []],
      ['youtube', { title: 'a'.repeat(101) }, ['/overrides/title override_length']],
      ['youtube', { categoryId: 22 }, ['/overrides/categoryId override_type']],
      ['youtube', { categoryId: '3' }, ['/overrides/categoryId override_enum']],
      ['youtube', { tags: 'one, two words' }, []],
      ['youtube', { tags: ['a'.repeat(250), 'b'.repeat(249)] }, []],
      ['youtube', { tags: ['a'.repeat(250), 'b'.repeat(250)] }, ['/overrides/tags override_length']],
      ['youtube', { tags: [1] }, ['/overrides/tags override_type']],
      ['youtube', { description: 'é'.repeat(2501) }, ['/overrides/description override_length']],
      ['threads', { replyControl: 'followers' }, ['/overrides/replyControl override_enum']],
      ['pinterest', { title: 'a'.repeat(101) }, ['/overrides/title override_length']],
      ['pinterest', { link: 'javascript:alert(1)' }, ['/overrides/link override_type']],
      ['pinterest', { link: 'https://example.com' }, []],
      ['bluesky', { labelPorn: null }, []],
      ['bluesky', { labelPorn: 1, link: 4 }, ['/overrides/link override_type', '/overrides/labelPorn override_type']],
      ['telegram', { parseMode: 'html' }, ['/overrides/parseMode override_enum']],
      ['telegram', { aiGenerated: 'yes' }, ['/overrides/aiGenerated override_type']],
    ];
    for (const [platform, overrides, expected] of table) {
      deepEqual(errors(platform, overrides), expected, `${platform} ${JSON.stringify(overrides).slice(0, 80)}`);
    }
  });

  t('a value that this account does not allow is an error, where its scopes name any', () => {
    const scopes = ['sandbox.read', 'privacy_level.SELF_ONLY', 'privacy_level.MUTUAL_FOLLOW_FRIENDS'];
    const tiktok = { platform: 'tiktok', content: 'hi', media } as const;
    const said = (privacyLevel: unknown, granted?: readonly string[]) =>
      gate({ ...tiktok, overrides: { privacyLevel }, ...(granted === undefined ? {} : { scopes: granted }) }).map(
        ({ path, code, message }) => [path, code, message],
      );
    deepEqual(said('SELF_ONLY', scopes), []);
    deepEqual(said('PUBLIC_TO_EVERYONE', scopes), [
      [
        '/overrides/privacyLevel',
        'override_not_granted',
        'privacyLevel must be one of those that the account allows: SELF_ONLY, MUTUAL_FOLLOW_FRIENDS',
      ],
    ]);
    deepEqual(said('PUBLIC_TO_EVERYONE', ['sandbox.read']), []);
    deepEqual(said('PUBLIC_TO_EVERYONE'), []);
    deepEqual(said(null, scopes), []);
    const wrong = said('PUBLIC', scopes).map(([, code]) => code);
    deepEqual(wrong, ['override_enum']);
    // Only keys that are granted are held to scopes.
    deepEqual(gate({ ...tiktok, overrides: { yourBrand: true }, scopes }), []);
    const { failure } = {
      failure: publishCheck({ ...tiktok, overrides: { privacyLevel: 'PUBLIC_TO_EVERYONE' }, scopes }),
    };
    equal(failure?.code, 'override_not_granted');
  });

  t('an unknown key is never an error, whatever its value or name', () => {
    const odd = JSON.parse('{"__proto__": 1, "constructor": 2, "toString": 3, "titel": [], "privacylevel": 7}');
    for (const platform of platforms) deepEqual(errors(platform, odd), [], platform);
  });

  t('a text over the limit is an error at the text that is sent', () => {
    deepEqual(errors('x', {}, 'a'.repeat(280)), []);
    deepEqual(errors('x', {}, 'a'.repeat(281)), ['/content text_too_long']);
    deepEqual(errors('bluesky', {}, '👨‍👩‍👧‍👦'.repeat(301)), ['/content text_too_long', '/content text_too_long']);
    deepEqual(errors('youtube', { description: 'short' }, 'a'.repeat(6000)), [], 'the description is sent instead');
    deepEqual(errors('telegram', { parseMode: 'HTML' }, `<b>${'a'.repeat(4096)}</b>`), []);
    deepEqual(errors('telegram', {}, `<b>${'a'.repeat(4096)}</b>`), ['/content text_too_long']);
  });

  t('a refusal of a text or override names the counted unit, the limit and the count', () => {
    const say = (platform: Platform, content: string, overrides: Overrides = {}) =>
      gate({ platform, content, overrides, media }).map(({ message }) => message);
    const numbered = (sign: string) => Array.from({ length: 31 }, (_, n) => `${sign}a${n}`).join(' ');
    const family = '👨‍👩‍👧‍👦';
    const table: readonly [Platform, string, readonly string[]][] = [
      ['x', 'a'.repeat(281), ['X takes at most 280 weighted characters; the text has 281']],
      ['linkedin', 'a'.repeat(3_001), ['LinkedIn takes at most 3000 characters; the text has 3001']],
      ['facebook', 'a'.repeat(63_207), ['Facebook takes at most 63206 characters; the text has 63207']],
      ['pinterest', 'a'.repeat(801), ['Pinterest takes at most 800 characters; the text has 801']],
      ['tiktok', 'a'.repeat(2_201), ['TikTok takes at most 2200 characters; the text has 2201']],
      ['youtube', 'é'.repeat(2_501), ['YouTube takes at most 5000 bytes; the text has 5002']],
      [
        'telegram',
        'a'.repeat(4_097),
        ['Telegram takes at most 4096 characters after its markup is read; the text has 4097'],
      ],
      [
        'threads',
        '😀'.repeat(126),
        ['Threads takes at most 500 characters, an emoji counting as its bytes; the text has 504'],
      ],
      [
        'threads',
        numbered('https://a.com/').slice(0, 101),
        ['Threads takes at most 5 different links; the text has 6'],
      ],
      ['instagram', numbered('#'), ['Instagram takes at most 30 hashtags; the text has 31']],
      ['instagram', numbered('@'), ['Instagram takes at most 20 mentions; the text has 31']],
      [
        'bluesky',
        family.repeat(301),
        [
          'Bluesky takes at most 300 characters; the text has 301',
          'Bluesky takes at most 3000 bytes; the text has 7525',
        ],
      ],
    ];
    for (const [platform, content, expected] of table) deepEqual(say(platform, content), expected);
    deepEqual(say('x', '', { firstComment: 'a'.repeat(281) }), [
      "firstComment is over the network's own limit of 280: 281",
    ]);
  });

  t('a text of which a reader sees nothing fails at publish, as a title does', () => {
    const bare = (platform: Platform, content: string, overrides: Overrides = {}) =>
      publishCheck({ platform, content, overrides, media: [] })?.code ?? null;
    for (const platform of ['x', 'threads', 'bluesky', 'telegram', 'facebook', 'linkedin'] as const) {
      equal(bare(platform, ' \u200b'), 'text_empty', platform);
      equal(bare(platform, '\u200b.'), null, platform);
      equal(failure(platform, {}, '\u200b'), null, 'a file is enough');
    }
    equal(bare('telegram', '<b>\u2060</b>', { parseMode: 'HTML' }), 'text_empty');
    equal(failure('youtube', { title: '\u200b' }, '\u3164\n\u2800'), 'youtube_title_required');
    equal(youtubeTitle('\u200b\nSecond', {}), 'Second');
    equal(titleFor('pinterest', '', { title: '\u200b' }), null);
  });

  t('a missing required override fails at publish, never at the gate', () => {
    for (const platform of platforms) deepEqual(errors(platform, {}, ''), [], platform);
    equal(failure('tiktok', {}), 'tiktok_privacy_level_required');
    equal(failure('tiktok', { privacyLevel: null }), 'tiktok_privacy_level_required');
    equal(failure('tiktok', { privacyLevel: 'SELF_ONLY' }), null);
    equal(failure('tiktok', { privacyLevel: 'SELF_ONLY', brandedContent: true }), 'tiktok_branded_content_private');
    equal(failure('pinterest', {}), 'pinterest_board_required');
    equal(failure('pinterest', { boardId: '' }), 'pinterest_board_required');
    equal(failure('pinterest', { boardId: '12' }), null);
    equal(failure('youtube', {}, ''), 'youtube_title_required');
    equal(failure('youtube', { title: 'Own' }, ''), null);
    equal(failure('youtube', { title: 'Own' }, 'a < b'), 'youtube_description_invalid');
    equal(failure('youtube', {}, 'First\nsecond'), null);
    equal(failure('x', {}, 'a'.repeat(281)), 'text_too_long');
    for (const platform of ['x', 'instagram', 'facebook', 'linkedin', 'threads', 'bluesky', 'telegram'] as const) {
      equal(failure(platform, {}), null, platform);
    }
    deepEqual(publishCheck({ platform: 'tiktok', content: '', overrides: {}, media }), {
      category: 'invalid_content',
      code: 'tiktok_privacy_level_required',
      message: 'TikTok needs the override privacyLevel',
      platformCode: null,
      platformMessage: null,
      retryable: false,
      actor: 'user',
      mediaId: null,
    });
  });

  // A preview leads the caller to this member.
  t('what fails at publish is named at the member that would mend it', () => {
    const places = (platform: Platform, content: string, overrides: Overrides = {}) =>
      lateErrors({ platform, content, overrides, media }).map(({ path }) => path);
    const long = 'y'.repeat(101);
    deepEqual(places('youtube', long), ['/content']);
    deepEqual(places('youtube', long, { title: '' }), ['/content']);
    deepEqual(places('youtube', long, { title: '<' }), ['/overrides/title']);
    for (const content of ['', ' \n']) deepEqual(places('youtube', content), ['/overrides/title']);
    deepEqual(places('tiktok', long), ['/overrides/privacyLevel']);
    deepEqual(places('youtube', 'a < b', { title: 'Own' }), ['/content']);
    deepEqual(places('youtube', 'Fine', { title: 'Own', description: 'a < b' }), ['/overrides/description']);
  });

  t('the YouTube title is its override, else the first line, and is never shortened', () => {
    equal(youtubeTitle('One\nTwo', {}), 'One');
    equal(youtubeTitle('\n  One \r\nTwo', { title: '  ' }), 'One');
    for (const end of ['\n', '\r', '\r\n', '\u2028', '\u2029']) equal(youtubeTitle(`${end}One${end}Two`, {}), 'One');
    equal(youtubeTitle('One', { title: ' Own ' }), 'Own');
    equal(youtubeTitle('One', { title: 7 }), 'One');
    equal(youtubeTitle('', {}), null);
    equal(youtubeTitle(' \n ', { title: '' }), null);
    equal(youtubeTitle('😀'.repeat(100), {}), '😀'.repeat(100));
    equal(youtubeTitle('a'.repeat(100), {}), 'a'.repeat(100));
    equal(youtubeTitle('a'.repeat(101), {}), null);
    for (const sign of ['<', '>']) equal(youtubeTitle(`a ${sign} b`, {}), null);
  });

  t('the title that each network gets', () => {
    equal(titleFor('youtube', 'One\nTwo', {}), 'One');
    equal(titleFor('youtube', 'One', { title: 'Own' }), 'Own');
    equal(titleFor('youtube', 'a <b>', {}), null);
    equal(titleFor('pinterest', 'One', { title: 'Own' }), 'Own');
    for (const title of [undefined, null, '', '  ', 7]) equal(titleFor('pinterest', 'One', { title }), null);
    for (const platform of platforms) {
      if (platform !== 'youtube' && platform !== 'pinterest') equal(titleFor(platform, 'One', { title: 'Own' }), null);
    }
  });

  t('every code of a rule is in the catalogue of failures', () => {
    const codes = platforms.flatMap((platform) => [
      ...Object.values(rules[platform].overrides).flatMap(({ required }) => required?.code ?? []),
      ...(rules[platform].text.refused === undefined ? [] : [rules[platform].text.refused.code]),
      ...rules[platform].banned.map(({ code }) => code),
    ]);
    deepEqual(
      codes.filter((code) => !Object.hasOwn(failureCodes, code)),
      [],
    );
  });

  t('capabilities of the networks follow from their rules', () => {
    const who = (key: keyof Capabilities) => platforms.filter((platform) => capabilities(platform)[key]).join(' ');
    equal(who('thread'), 'x threads');
    equal(who('native'), 'youtube facebook');
    equal(who('firstComment'), 'x instagram youtube facebook linkedin threads bluesky telegram');
    const lists = platforms.filter((platform) => rules[platform].publish.listsOwnPosts).join(' ');
    equal(lists, 'x instagram youtube facebook linkedin threads pinterest bluesky');
    equal(who('textOnly'), 'x facebook linkedin threads bluesky telegram');
    equal(who('altText'), 'x instagram facebook linkedin threads pinterest bluesky');
    equal(who('aiLabel'), 'x instagram tiktok youtube');
    equal(who('cover'), 'instagram youtube facebook pinterest telegram');
    equal(platforms.filter(takesCoverFrame).join(' '), 'instagram tiktok');
    for (const platform of platforms) {
      equal(coverOf(platform), capabilities(platform).cover, platform);
      const { overrides, nativeWindow, publish } = rules[platform];
      equal('firstComment' in overrides, capabilities(platform).firstComment, platform);
      equal(nativeWindow !== null, capabilities(platform).native, platform);
      equal(publish.settleWindowMs >= 600_000, true, platform);
      // A network that shows only evidence lists nothing.
      if (publish.readsBack === 'evidence') equal(publish.listsOwnPosts, false, platform);
      // Only with a handle can a second crossing of the boundary make no second post.
      if (publish.absenceIsProof) equal(publish.handle !== 'none', true, platform);
    }
  });
});
