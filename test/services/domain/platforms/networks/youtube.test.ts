import { deepEqual, equal, ok } from 'node:assert/strict';
import {
  choicesOf,
  coverFollows,
  effectiveOverrides,
  publishCheck,
  readingOf,
  rules,
  rulesOf,
} from '#domain/platforms/index.ts';
import { fieldsOf, postFiguresOf } from '#domain/platforms/read-figures.ts';
import { scheduleModeOf } from '#domain/post/scheduling.ts';
import { platforms } from '#schemas/common.ts';
import { mediaUses } from '#schemas/media.ts';
import { suite } from '#test/support/suite.ts';
import { imageProbe, plansOf, videoProbe } from '../../renditions/probes.ts';

const { planOf, fits } = plansOf('youtube');
const sounding = (codec: string, profile: string | null = null) =>
  videoProbe({ audio: { codec, profile, channels: 6, sampleRate: 96_000, bitrate: 512_000 } });

suite('YouTube', (t) => {
  // support.google.com, "Supported YouTube file formats" and "Recommended upload encoding settings".
  t('takes the files that its help names, as they are', () => {
    for (const container of ['mp4', 'mov', 'webm', 'matroska', 'avi', 'mpegts'])
      ok(fits(videoProbe({}, { container })), container);
    ok(!fits(videoProbe({}, { container: 'flv' })));
    const codecs = [
      ['h264', 'high'],
      ['hevc', 'main 10'],
      ['vp9', 'profile 2'],
      ['av1', 'main'],
      ['vp8', null],
      ['prores', 'hq'],
      ['mpeg4', 'simple profile'],
      ['mpeg2video', 'main'],
    ] as const;
    for (const [codec, profile] of codecs) ok(fits(videoProbe({}, { codec, profile })), codec);
    ok(!fits(videoProbe({}, { codec: 'theora', profile: null })));
    for (const pixelFormat of ['yuv420p', 'yuvj420p', 'yuv422p', 'yuv422p10le', 'yuv420p10le'])
      ok(fits(videoProbe({}, { codec: 'prores', profile: null, pixelFormat })), pixelFormat);
    ok(!fits(videoProbe({}, { codec: 'prores', profile: null, pixelFormat: 'yuv444p' })));
    for (const codec of ['aac', 'opus', 'vorbis', 'mp3', 'flac', 'ac3', 'pcm_s16le', 'pcm_s24le'])
      ok(fits(sounding(codec)), codec);
    ok(fits(sounding('aac', 'HE-AAC')), 'of any profile');
    ok(!fits(sounding('dts')));
  });

  t('takes a rate that changes, an index at the end, an edit list, HDR and a turned picture', () => {
    const taken = { constantRate: false, indexFirst: false, editList: true, rotation: 90 };
    for (const [name, value] of Object.entries(taken)) ok(fits(videoProbe({}, { [name]: value })), name);
    ok(fits(videoProbe({}, { codec: 'hevc', profile: 'main 10', pixelFormat: 'yuv420p10le', hdr: true })));
    for (const fps of [1, 60]) ok(fits(videoProbe({}, { fps })), `${fps}`);
    for (const fps of [0.5, 61]) ok(!fits(videoProbe({}, { fps })), `${fps}`);
  });

  t('gets a video in sizes up to 2160 lines', () => {
    const plan = planOf(videoProbe({ width: 7680, height: 4320 }, { codec: 'theora', profile: null }));
    ok(plan?.outcome === 'rendition');
    deepEqual([plan.spec.width, plan.spec.height], [3840, 2160]);
  });

  // "Thumbnails: set": image/jpeg and image/png, 16:9; the call names the video.
  t('takes a thumbnail of 16:9 as JPEG or PNG, once the video is there', () => {
    const size = { width: 1280, height: 720 };
    for (const format of ['jpeg', 'png']) ok(fits(imageProbe(size, { format }), 'cover'), format);
    ok(!fits(imageProbe(size, { format: 'webp' }), 'cover'));
    for (const width of [1240, 1320]) ok(!fits(imageProbe({ ...size, width }), 'cover'), `${width}x720`);
    deepEqual(
      mediaUses.filter((use) => coverFollows('youtube', use)),
      ['feed'],
    );
  });

  t('publishes on its own what is public at most 548 days ahead', () => {
    const now = '2026-01-01T00:00:00.000Z';
    const reasonOf = (overrides: Readonly<Record<string, unknown>>, days: number) =>
      scheduleModeOf({
        ...{ scheduleMode: 'native', isNow: false, platform: 'youtube', overrides, now },
        dueAt: new Date(Date.parse(now) + days * 86_400_000).toISOString(),
      }).scheduleModeReason;
    equal(reasonOf({ privacyStatus: 'public' }, 548), null);
    equal(reasonOf({}, 1), null);
    equal(reasonOf({}, 549), 'outside_native_window');
    for (const privacyStatus of ['unlisted', 'private'])
      equal(reasonOf({ privacyStatus }, 1), 'setting_not_schedulable', privacyStatus);
  });

  // "Resumable uploads": a session answers afterwards whether it made a video.
  t('says of an upload whether it made a video, and lists the videos of the channel', () => {
    const { handle, absenceIsProof } = rulesOf('youtube').publish;
    deepEqual([handle, absenceIsProof], ['upload', true]);
    equal(readingOf('youtube', 'UC1').readsBack, 'own_posts');
    for (const platform of platforms) equal(rules[platform].platform, platform);
  });

  // "Quota calculator": a bucket of uploads for each project, until midnight in California.
  t('counts the uploads of an app by the day', () => {
    deepEqual(rulesOf('youtube').appBudget, {
      ...{ name: 'videos.insert', limit: 100, zone: 'America/Los_Angeles', every: 'day', counts: 'calls' },
    });
  });

  // The same page: what is no upload costs units, of which a project has 10,000.
  t('counts the units of all other calls by the same day', () => {
    deepEqual(rulesOf('youtube').appUnits, {
      ...{ name: 'units', limit: 10_000, zone: 'America/Los_Angeles', every: 'day', counts: 'calls' },
    });
    equal(rulesOf('youtube').app?.countsCalls, true);
  });

  // The API's own default is public; it does not know a default of the channel.
  t('makes a video public where a post does not say who sees it', () => {
    equal(effectiveOverrides('youtube', {}, false).privacyStatus, 'public');
  });

  // developers.google.com/youtube and /identity: the servers of the two APIs, of uploads, of tokens and of consent.
  t('is called at the addresses of its documents', () => {
    deepEqual(rulesOf('youtube').app?.addresses, {
      api: 'https://www.googleapis.com/youtube/v3',
      authorize: 'https://accounts.google.com/o/oauth2/v2/auth',
      tokens: 'https://oauth2.googleapis.com',
      uploads: 'https://www.googleapis.com/upload/youtube/v3',
      figures: 'https://youtubeanalytics.googleapis.com/v2',
    });
  });

  t('keeps each value that it has for a setting, and no other', () => {
    // "VideoCategories: list", those that can be assigned.
    const categories = ['1', '2', '10', '15', '17', '19', '20', '22', '23', '24', '25', '26', '27', '28', '29'];
    const settings: readonly (readonly [key: string, values: readonly string[], other: string])[] = [
      ['privacyStatus', ['public', 'unlisted', 'private'], 'secret'],
      ['categoryId', categories, '18'],
      ['license', ['youtube', 'creativeCommon'], 'none'],
    ];
    for (const [key, values, other] of settings) {
      for (const value of values) equal(effectiveOverrides('youtube', { [key]: value }, false)[key], value);
      ok(effectiveOverrides('youtube', { [key]: other }, false)[key] !== other, key);
      equal(effectiveOverrides('youtube', { [key]: '' }, false)[key], effectiveOverrides('youtube', {}, false)[key]);
    }
    deepEqual(choicesOf('youtube'), { categoryId: 'The categories that a video of the channel can have.' });
  });

  t('says in words what is wrong with a title or a description', () => {
    const media = [{ id: 'clip', kind: 'video' as const, probe: null }];
    const wrong = (content: string, overrides: Readonly<Record<string, unknown>>) =>
      publishCheck({ platform: 'youtube', content, overrides, media })?.message;
    equal(
      wrong('', {}),
      'YouTube needs a title: the override title, or a first line of content, of 1 to 100 characters without < and >',
    );
    equal(wrong('a < b', { title: 'T' }), 'YouTube takes no < or > in a description');
  });

  // "Channel reports": no rows where there is nothing yet.
  t('a report without rows says nothing; a cell without a value says that there is none', () => {
    const read = (raw: object) => postFiguresOf('youtube', 'feed', raw);
    const figuresOf = (raw: object): Readonly<Record<string, unknown>> => {
      const mapped = read(raw);
      ok(mapped.kind === 'figures' && mapped.odd.length === 0);
      return mapped.figures;
    };
    const columns = (...names: readonly string[]) => names.map((name) => ({ name }));
    const shares = { columnHeaders: columns('shares') };
    for (const rows of [undefined, null, []]) deepEqual(read({ totals: { ...shares, rows } }), read({}));
    equal(figuresOf({ totals: { ...shares, rows: [[null]] } }).shares, null);
    const devices = { columnHeaders: columns('deviceType', 'views'), rows: null };
    deepEqual(read({ devices }), read({}));
    // Figures of a report count where the video itself has none.
    const reported = { columnHeaders: columns('likes', 'comments', 'views'), rows: [[1, 2, 3]] };
    const { likes, comments, videoViews } = figuresOf({ totals: reported });
    deepEqual([likes, comments, videoViews], [1, 2, 3]);
    equal(fieldsOf('youtube', 'feed').shares, 'totals.shares');
  });

  t('an answer that is none names the report and what it lacks', () => {
    const reasonsOf = (raw: object) => {
      const mapped = postFiguresOf('youtube', 'feed', { video: { statistics: { viewCount: 1 } }, ...raw });
      return mapped.kind === 'figures' ? mapped.odd.map(({ field, reason }) => `${field}: ${reason}`) : [mapped.reason];
    };
    const headers = (...names: readonly unknown[]) => names.map((name) => ({ name }));
    const label = 'is not a label of at most 100 characters';
    const list = 'is not a list of at most 1000';
    const traffic = (report: object) => reasonsOf({ traffic: report });
    deepEqual(traffic({ columnHeaders: headers(7), rows: [] }), [`trafficSources: traffic.columnHeaders ${label}`]);
    deepEqual(traffic({ columnHeaders: headers('views'), rows: 7 }), [`trafficSources: traffic.rows ${list}`]);
    deepEqual(traffic({ columnHeaders: headers('views'), rows: [7] }), [`trafficSources: traffic.rows ${list}`]);
    const retention = (...row: readonly unknown[]) =>
      reasonsOf({
        retention: { columnHeaders: headers('elapsedVideoTimeRatio', 'audienceWatchRatio'), rows: [row] },
      });
    deepEqual(retention('a', 1), ['audienceRetention: elapsedVideoTimeRatio is not an amount']);
    deepEqual(retention(1, 'a'), ['audienceRetention: audienceWatchRatio is not an amount']);
  });
});
