import { deepEqual, equal, match, ok, throws } from 'node:assert/strict';
import fc from 'fast-check';
import { accountFiguresOf, fieldsOf, postFiguresOf } from '#domain/platforms/read-figures.ts';
import { platforms } from '#schemas/common.ts';
import { AccountFigures, Demographics, PostFigures } from '#schemas/insights.ts';
import { issuesOf } from '#schemas/validator.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';
import { accountAnswers, broken, postAnswers } from './answers.ts';

const figuresOf = (...args: Parameters<typeof postFiguresOf>) => {
  const mapped = postFiguresOf(...args);
  ok(mapped.kind === 'figures', mapped.kind === 'nonsense' ? mapped.reason : '');
  return mapped.figures;
};
const reasonOf = (...args: Parameters<typeof postFiguresOf>) => {
  const mapped = postFiguresOf(...args);
  ok(mapped.kind === 'nonsense', JSON.stringify(mapped));
  return mapped.reason;
};
/** The figures without those that are null. */
const reported = (figures: object) => Object.fromEntries(Object.entries(figures).filter(([, value]) => value !== null));

suite('figures of posts', (t) => {
  for (const { name, platform, use, raw, figures } of postAnswers) {
    t(`are read from an answer of ${name}`, () => {
      deepEqual(reported(figuresOf(platform, use, raw)), figures);
    });
  }

  t('are null where the table has no name for them', () => {
    for (const platform of platforms) {
      const figures = figuresOf(platform, 'feed', {});
      for (const [field, name] of Object.entries(fieldsOf(platform, 'feed'))) {
        if (name === null) equal(figures[field as keyof PostFigures], null, `${platform} ${field}`);
      }
    }
  });

  t('absent, null and 0 stay apart', () => {
    const of = (public_metrics: object) => figuresOf('x', 'feed', { data: { public_metrics } });
    ok(!('likes' in of({})));
    equal(of({ like_count: null }).likes, null);
    equal(of({ like_count: 0 }).likes, 0);
    equal(of({}).reach, null);
  });

  t('that were requested and not answered are null', () => {
    const figures = figuresOf('youtube', 'feed', { video: { statistics: { viewCount: '3' } } }, { fields: ['likes'] });
    equal(figures.likes, null);
    ok(!('comments' in figures));
  });

  t('of a video are null for a post without video, and absent while the video is unknown', () => {
    ok(!('videoViews' in figuresOf('facebook', 'feed', { post: {} })));
    equal(figuresOf('facebook', 'feed', { post: {} }, { hasVideo: false }).videoViews, null);
    ok(!('videoViews' in figuresOf('facebook', 'feed', { post: {} }, { hasVideo: true })));
  });

  t('an empty list of insights leaves the figure absent, not 0', () => {
    const figures = figuresOf('instagram', 'feed', { insights: { data: [] } });
    ok(!('likes' in figures) && !('reach' in figures));
    const account = accountFiguresOf('threads', { threads_insights: { data: [{ name: 'views', values: [] }] } });
    ok(account.kind === 'figures' && !('profileViews' in account.figures));
  });

  t('an insight without values leaves the figure absent, and null stays null', () => {
    const of = (insight: object) =>
      figuresOf('instagram', 'feed', { insights: { data: [{ name: 'reach', ...insight }] } });
    ok(!('reach' in of({})));
    equal(of({ values: null }).reach, undefined);
    equal(of({ values: [{ value: null }] }).reach, null);
  });

  t(
    'shares that Facebook leaves out are 0 where it reported the post; statistics that LinkedIn leaves out are 0',
    () => {
      equal(figuresOf('facebook', 'feed', { post: { id: '1_2' } }).shares, 0);
      ok(!('shares' in figuresOf('facebook', 'feed', {})));
      const unseen = figuresOf('linkedin', 'feed', { organizationalEntityShareStatistics: { elements: [] } });
      deepEqual([unseen.impressions, unseen.reach, unseen.clicks, unseen.saves], [0, 0, 0, null]);
      const half = { elements: [{ totalShareStatistics: { likeCount: 1 } }] };
      const listed = figuresOf('linkedin', 'feed', { organizationalEntityShareStatistics: half });
      ok(listed.likes === 1 && !('impressions' in listed));
    },
  );

  t('unknown members are ignored', () => {
    const raw = { data: { public_metrics: { like_count: 1, hearts: -1 }, new: { a: [{}] } }, errors: 'x' };
    equal(figuresOf('x', 'feed', raw).likes, 1);
  });
});

suite('figures of accounts', (t) => {
  for (const { platform, raw, figures, demographics } of accountAnswers) {
    t(`are read from an answer of ${platform}`, () => {
      const mapped = accountFiguresOf(platform, raw);
      ok(mapped.kind === 'figures', mapped.kind === 'nonsense' ? mapped.reason : '');
      deepEqual(reported(mapped.figures), figures);
      deepEqual(mapped.demographics, demographics);
    });
  }

  t('demographics have each breakdown that was answered, and leave out the others', () => {
    const answered = (results: object) => ({
      data: [{ name: 'follower_demographics', total_value: { breakdowns: [results] } }],
    });
    const counted = (label: string, value: number) => answered({ results: [{ dimension_values: [label], value }] });
    const mapped = accountFiguresOf('instagram', {
      user: { followers_count: 9 },
      follower_demographics: {
        country: counted('DE', 4),
        city: counted('Berlin', 3),
        age: { data: null },
        gender: answered({}),
      },
    });
    deepEqual(mapped.kind === 'figures' && mapped.demographics, { country: { DE: 4 }, city: { Berlin: 3 } });
  });

  t('demographics: absent where they were not requested, null where the network did not or never reports them', () => {
    const of = (...args: Parameters<typeof accountFiguresOf>) => accountFiguresOf(...args);
    ok(!('demographics' in of('instagram', {})));
    deepEqual(of('instagram', {}, { fields: ['demographics'] }), { ...of('instagram', {}), demographics: null });
    const { demographics } = of('x', {}) as { readonly demographics?: unknown };
    equal(demographics, null);
  });
});

suite('invalid answers', (t) => {
  const x = (like_count: unknown) => reasonOf('x', 'feed', { data: { public_metrics: { like_count } } });

  t('is named by the network’s member, and its value is not repeated', () => {
    for (const value of [-1, 1.5, 1e308, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, '12', 'canary', true, [], {}]) {
      equal(x(value), 'data.public_metrics.like_count is not a count');
    }
    equal(reasonOf('x', 'feed', { data: [] }), 'data is not an object');
    equal(reasonOf('x', 'feed', { data: 'canary' }), 'data is not an object');
    equal(reasonOf('x', 'feed', []), 'the answer is not an object');
    equal(reasonOf('x', 'feed', null), 'the answer is not an object');
  });

  t('decimal strings are numbers only where the network writes them so, and only whole ones', () => {
    const youtube = (viewCount: unknown) => postFiguresOf('youtube', 'feed', { video: { statistics: { viewCount } } });
    deepEqual(youtube('1203'), youtube(1203));
    for (const value of ['', ' 1', '01', '1.0', '-1', '1e3', '0x10', '99999999999999999', 'canary']) {
      deepEqual(youtube(value), { kind: 'nonsense', reason: 'video.statistics.viewCount is not a count' });
    }
  });

  t('labels that are too long, not text, or would name a prototype', () => {
    const facebook = (value: unknown) =>
      reasonOf('facebook', 'feed', { insights: { data: [{ name: 'post_clicks_by_type', values: [{ value }] }] } });
    for (const label of ['a'.repeat(101), 'a\u0000', '\ud800', '__proto__']) {
      match(facebook(JSON.parse(`{${JSON.stringify(label)}:1}`)), /^post_clicks_by_type is not a label/);
    }
    match(facebook(Object.fromEntries(Array.from({ length: 1001 }, (_, i) => [i, 1]))), /at most 1000/);
    match(facebook({ 'link clicks': -1 }), /^post_clicks_by_type.link clicks is not a count/);
  });

  t('addresses that are not plain https URLs', () => {
    for (const share_url of [
      'javascript:alert(1)',
      'https://a b',
      `https://a/${'b'.repeat(2000)}`,
      'https://a/\n',
      1,
    ]) {
      equal(reasonOf('tiktok', 'feed', { share_url }), 'share_url is not an address');
    }
  });

  t('rates out of range, and sums beyond a safe integer', () => {
    const reel = (value: unknown) => ({ insights: { data: [{ name: 'reels_skip_rate', values: [{ value }] }] } });
    match(reasonOf('instagram', 'reel', reel(101)), /^skipRate/);
    match(reasonOf('instagram', 'reel', reel(-0.5)), /^reels_skip_rate is not/);
    const most = Number.MAX_SAFE_INTEGER;
    match(
      reasonOf('telegram', 'feed', {
        message_reaction_count: { reactions: [{ total_count: most }, { total_count: most }] },
      }),
      /is not a count$/,
    );
  });

  t('an answer that is too large to be kept', () => {
    const of = (characters: number) => {
      const empty = { data: { public_metrics: { like_count: 1 } }, more: '' };
      return { ...empty, more: 'a'.repeat(characters - JSON.stringify(empty).length) };
    };
    equal(figuresOf('x', 'feed', of(262_144)).likes, 1);
    equal(reasonOf('x', 'feed', of(262_145)), 'the answer has more than 262144 characters');
    equal(accountFiguresOf('x', of(262_145)).kind, 'nonsense');
  });

  t('what is no object is no answer, of a post or of an account', () => {
    for (const raw of [undefined, null, 'canary', 7, true, [], [{}]]) {
      const expected = { kind: 'nonsense', reason: 'the answer is not an object' };
      deepEqual(postFiguresOf('x', 'feed', raw), expected);
      deepEqual(accountFiguresOf('x', raw), expected);
    }
  });

  t('an error of ours is no fault of the answer', () => {
    const raw = {
      toJSON: () => ({}),
      get data() {
        throw new RangeError('ours');
      },
    };
    throws(() => postFiguresOf('x', 'feed', raw), RangeError);
  });
});

suite('one invalid figure', (t) => {
  const odd: readonly (readonly [string, unknown])[] = [
    ['negative', -1],
    ['fractional', 1.5],
    ['a word', 'many'],
    ['digits where the network writes numbers', '12'],
    ['not a number', Number.NaN],
    ['without an end', Number.POSITIVE_INFINITY],
    ['above what is exact', 2 ** 53],
    ['a list', [1]],
    ['an object', { count: 1 }],
    ['yes', true],
  ];
  for (const [what, value] of odd) {
    t(`${what}: the figure is left out and named, the others are kept`, () => {
      const raw = { data: { public_metrics: { like_count: value, reply_count: 3, retweet_count: 0 } } };
      const mapped = postFiguresOf('x', 'feed', raw, { hasVideo: false, fields: ['likes', 'comments', 'saves'] });
      ok(mapped.kind === 'figures');
      const { comments, reposts, saves } = mapped.figures;
      deepEqual({ comments, reposts, saves }, { comments: 3, reposts: 0, saves: null });
      ok(!('likes' in mapped.figures), 'neither null nor 0: nobody knows it');
      deepEqual(mapped.odd, [{ field: 'likes', reason: 'data.public_metrics.like_count is not a count' }]);
    });
  }

  t('an invalid part of a split, a rate out of range and an invalid item are left out', () => {
    const insights = {
      data: [
        null,
        'canary',
        { name: 'reach', values: [{ value: 7 }] },
        { name: 'reels_skip_rate', values: [{ value: 101 }] },
        { name: 'likes', values: [{ value: 2 }] },
      ],
    };
    const reel = postFiguresOf('instagram', 'reel', { insights });
    ok(reel.kind === 'figures');
    deepEqual([reel.figures.reach, reel.figures.likes, reel.odd.map(({ field }) => field)], [7, 2, ['skipRate']]);
    const clicks = { name: 'post_clicks_by_type', values: [{ value: { 'link clicks': 4, other: -1 } }] };
    const media = { name: 'post_media_view', values: [{ value: 9 }] };
    const facebook = postFiguresOf('facebook', 'feed', { insights: { data: [clicks, media] } });
    ok(facebook.kind === 'figures');
    equal(facebook.figures.impressions, 9);
    ok(facebook.odd.some(({ field }) => field === 'clicksByType') && !('clicksByType' in facebook.figures));
  });

  t('an answer with nothing but invalid figures, an address or an empty split is invalid', () => {
    const views = { name: 'views', values: [{ value: -1 }] };
    const media = { permalink: 'https://a.example/p' };
    equal(postFiguresOf('instagram', 'feed', { media, insights: { data: [views] } }).kind, 'nonsense');
    const navigation = { name: 'navigation', total_value: { breakdowns: [{ results: [] }] } };
    equal(postFiguresOf('instagram', 'story', { insights: { data: [views, navigation] } }).kind, 'nonsense');
    equal(postFiguresOf('instagram', 'story', { media, insights: { data: [navigation] } }).kind, 'figures');
  });

  t('invalid demographics leave the figures, and an invalid figure leaves the demographics', () => {
    const of = (followers: unknown, value: unknown) =>
      accountFiguresOf('facebook', {
        page: { followers_count: followers },
        insights: { data: [{ name: 'page_follows_country', values: [{ value }] }] },
      });
    const kept = of(10, { DE: 'most' });
    ok(kept.kind === 'figures');
    equal(kept.figures.followerCount, 10);
    ok(!('demographics' in kept));
    deepEqual(
      kept.odd.map(({ field }) => field),
      ['demographics'],
    );
    const other = of(-10, { DE: 3 });
    ok(other.kind === 'figures');
    deepEqual([other.figures.followerCount, other.demographics], [undefined, { country: { DE: 3 } }]);
    equal(of(-10, { DE: -3 }).kind, 'nonsense', 'nothing is left of it');
  });
});

suite('any answer of a network', (t) => {
  const fits = (schema: Parameters<typeof issuesOf>[0], value: unknown) => deepEqual(issuesOf(schema, value), []);
  const check = (platform: (typeof platforms)[number], raw: unknown) => {
    for (const use of ['feed', 'reel', 'story'] as const) {
      const mapped = postFiguresOf(platform, use, raw);
      if (mapped.kind === 'figures') fits(PostFigures, mapped.figures);
      else ok(mapped.reason.length > 0 && mapped.reason.length <= 500);
    }
    const mapped = accountFiguresOf(platform, raw);
    if (mapped.kind === 'nonsense') ok(mapped.reason.length > 0 && mapped.reason.length <= 500);
    else {
      fits(AccountFigures, mapped.figures);
      if (mapped.demographics) fits(Demographics, mapped.demographics);
    }
  };

  t('any JSON gives figures or is invalid', () => {
    fc.assert(fc.property(fc.constantFrom(...platforms), fc.jsonValue({ maxDepth: 4 }), check), {
      seed: seeded('any JSON').seed,
      numRuns: 500,
    });
  });

  t('an answer with one broken member gives figures or is invalid', () => {
    const answers = [...postAnswers, ...accountAnswers].map(({ platform, raw }) => ({ platform, raw }));
    const wrong = fc.oneof(
      fc.jsonValue({ maxDepth: 2 }),
      fc.constantFrom(-1, 0.5, 1e308, '', '1', null, [], {}, 'a'.repeat(200), [[]], [{}], { value: {} }),
    );
    let nonsense = 0;
    fc.assert(
      fc.property(fc.constantFrom(...answers), fc.nat(), wrong, ({ platform, raw }, where, value) => {
        const one = broken(raw, where, value);
        check(platform, one);
        if (postFiguresOf(platform, 'feed', one).kind === 'nonsense') nonsense += 1;
      }),
      { seed: seeded('broken answers').seed, numRuns: 3_000 },
    );
    // Some 120 of them, give or take a dozen.
    ok(nonsense > 40, `${nonsense} were nonsense`);
  });
});
