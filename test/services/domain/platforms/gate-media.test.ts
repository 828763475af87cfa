import { deepEqual, equal, ok } from 'node:assert/strict';
import {
  failureCodes,
  type GateMedia,
  gate,
  platformsWithUses,
  posterFits,
  publishCheck,
  rules,
  useOf,
} from '#domain/platforms/index.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import type { MediaKind, MediaProbe } from '#schemas/media.ts';
import { documentProbe, gifProbe, imageProbe, videoProbe } from '#test/services/domain/renditions/probes.ts';
import { suite } from '#test/support/suite.ts';

const fitting: Readonly<Record<MediaKind, MediaProbe>> = {
  image: imageProbe(),
  video: videoProbe(),
  gif: gifProbe(),
  document: documentProbe(),
};
const files = (kinds: readonly MediaKind[], probes: Readonly<Record<MediaKind, MediaProbe | null>> = fitting) =>
  kinds.map((kind, index): GateMedia => ({ id: `m${index}`, kind, probe: probes[kind] }));
const of = (words: string): readonly MediaKind[] =>
  words === ''
    ? []
    : words.split(' ').flatMap((word) => {
        const [kind = '', count = '1'] = word.split('*');
        return Array<MediaKind>(Number(count)).fill(kind as MediaKind);
      });
const input = (platform: Platform, media: readonly GateMedia[], contentType?: string, cover?: GateMedia) => ({
  platform,
  content: 'Hello',
  overrides: contentType === undefined ? {} : { contentType },
  media,
  ...(cover === undefined ? {} : { cover }),
});
const codes = (...args: Parameters<typeof input>) => gate(input(...args)).map(({ code }) => code);

/** Media, contentType, and the code they are refused with; none where they are taken. */
type Row = readonly [media: string, code?: string | null, contentType?: string];
const table: Readonly<Record<Platform, readonly Row[]>> = {
  x: [
    [''],
    ['image*4'],
    ['image*5', 'too_many_media'],
    ['gif'],
    ['gif*2', 'too_many_media'],
    ['video'],
    ['video*2', 'too_many_media'],
    ['image video', 'media_mixed'],
    ['image gif', 'media_mixed'],
    ['document', 'media_kind_not_taken'],
  ],
  instagram: [
    ['', 'too_few_media'],
    ['image'],
    ['video'],
    ['gif'],
    ['image*10'],
    ['image video gif'],
    ['image*11', 'too_many_media'],
    ['document', 'media_kind_not_taken'],
    ['video', null, 'feed'],
    ['video', null, 'reel'],
    ['gif', null, 'reel'],
    ['image', 'media_kind_not_taken', 'reel'],
    ['video*2', 'too_many_media', 'reel'],
    ['', 'too_few_media', 'reel'],
    ['image', null, 'story'],
    ['video', null, 'story'],
    ['image*2', 'too_many_media', 'story'],
    ['', 'too_few_media', 'story'],
  ],
  tiktok: [
    ['', 'too_few_media'],
    ['video'],
    ['gif'],
    ['image*20'],
    ['video*2', 'too_many_media'],
    ['image video', 'media_mixed'],
    ['document', 'media_kind_not_taken'],
  ],
  youtube: [
    ['', 'too_few_media'],
    ['video'],
    ['gif'],
    ['video*2', 'too_many_media'],
    ['image', 'media_kind_not_taken'],
    ['document', 'media_kind_not_taken'],
  ],
  facebook: [
    [''],
    ['image*10'],
    ['image*11', 'too_many_media'],
    ['video'],
    ['gif'],
    ['gif*2', 'too_many_media'],
    ['image gif', 'media_mixed'],
    ['image video', 'media_mixed'],
    ['document', 'media_kind_not_taken'],
    ['video', null, 'reel'],
    ['', 'too_few_media', 'reel'],
    ['image', 'media_kind_not_taken', 'reel'],
    ['image', null, 'story'],
    ['video', null, 'story'],
    ['image video', 'too_many_media', 'story'],
    ['', 'too_few_media', 'story'],
  ],
  linkedin: [
    [''],
    ['image*20'],
    ['image gif'],
    ['video'],
    ['video*2', 'too_many_media'],
    ['image video', 'media_mixed'],
    ['document'],
    ['document*2', 'too_many_media'],
    ['image document', 'media_mixed'],
  ],
  threads: [[''], ['image*10 video*10'], ['image*20 gif', 'too_many_media'], ['document', 'media_kind_not_taken']],
  pinterest: [
    ['', 'too_few_media'],
    ['image*5'],
    ['image*6', 'too_many_media'],
    ['video'],
    ['image video', 'media_mixed'],
    ['document', 'media_kind_not_taken'],
  ],
  bluesky: [
    [''],
    ['image*10'],
    ['image*11', 'too_many_media'],
    ['video'],
    ['gif'],
    ['gif*2', 'too_many_media'],
    ['image gif', 'media_mixed'],
    ['document', 'media_kind_not_taken'],
  ],
  telegram: [
    [''],
    ['image*5 video*5'],
    ['image gif'],
    ['image*11', 'too_many_media'],
    ['document*10'],
    ['document image', 'media_mixed'],
  ],
};

suite('media at the gate of a network', (t) => {
  t('counts and kinds of media per network and use, with or without a probe', () => {
    const blind = { image: null, video: null, gif: null, document: null };
    for (const platform of platforms) {
      for (const [media, code, contentType] of table[platform]) {
        const expected = code ? [code] : [];
        const name = `${platform} ${contentType ?? ''}: ${media}`;
        deepEqual(codes(platform, files(of(media)), contentType), expected, name);
        deepEqual(codes(platform, files(of(media), blind), contentType), expected, `${name}, without a probe`);
      }
    }
  });

  t('the table above has every shape of the rules at its maximum', () => {
    for (const platform of platforms) {
      for (const { use, kinds, max } of rules[platform].media.shapes) {
        const tried = table[platform].some(([media, code, contentType]) => {
          const list = of(media);
          return (
            !code &&
            list.length >= Math.min(max, 20) &&
            list.every((kind) => kinds.includes(kind) || kind === 'gif') &&
            useOf(platform, { contentType }, list) === use
          );
        });
        ok(tried, `${platform} ${use} ${kinds.join()}`);
      }
    }
  });

  t('a gif beyond the limits for gifs counts as a video', () => {
    const long = files(['gif'], { ...fitting, gif: gifProbe({ frames: 400, durationMs: 20_000 }) });
    deepEqual(codes('linkedin', long), []);
    deepEqual(codes('linkedin', [...long, { ...files(['image'])[0], id: 'other' } as GateMedia]), ['media_mixed']);
  });

  t('a gif that cannot be made to fit counts as a video where the network takes no gifs', () => {
    const tiny = files(['image', 'gif'], { ...fitting, gif: gifProbe({ width: 2, height: 2 }) });
    deepEqual(codes('tiktok', tiny), ['media_mixed', 'media_too_small']);
  });

  t('a gif of one frame counts as an image', () => {
    const still = files(['gif', 'image'], { ...fitting, gif: gifProbe({ frames: 1 }) });
    for (const platform of ['x', 'facebook', 'bluesky', 'linkedin'] as const)
      deepEqual(codes(platform, still), [], platform);
  });

  t('several images on Pinterest need one aspect ratio', () => {
    const two = (width: number): readonly GateMedia[] => [
      { id: 'a', kind: 'image', probe: imageProbe({ width: 1000, height: 1500 }) },
      { id: 'b', kind: 'image', probe: imageProbe({ width, height: 900 }) },
    ];
    deepEqual(codes('pinterest', two(600)), []);
    deepEqual(codes('pinterest', two(601)), []);
    deepEqual(codes('pinterest', two(900)), ['media_aspects_differ']);
    deepEqual(codes('threads', two(900)), []);
    const square = { id: 'a', kind: 'image' as const, probe: imageProbe({ width: 1_000, height: 1_000 }) };
    const wider = { id: 'b', kind: 'image' as const, probe: imageProbe({ width: 1_010, height: 1_000 }) };
    deepEqual(codes('pinterest', [square, wider]), [], 'one percent is no difference');
  });

  t('a file that cannot be made to fit is named at the gate and at the publish check', () => {
    const [short, long] = [videoProbe(), videoProbe({ durationMs: 200_000 })];
    const media: readonly GateMedia[] = [{ id: 'clip', kind: 'video', probe: long }];
    const message = 'X takes videos of at most 140 s; this one has 200 s';
    deepEqual(gate(input('x', media)), [{ path: '/mediaIds', code: 'media_too_long', message, mediaId: 'clip' }]);
    deepEqual(publishCheck(input('x', media)), {
      category: 'invalid_content',
      code: 'media_too_long',
      message,
      platformCode: null,
      platformMessage: null,
      retryable: false,
      actor: 'user',
      mediaId: 'clip',
    });
    deepEqual(codes('instagram', media), [], 'a reel may be longer');
    deepEqual(codes('instagram', media, 'story'), ['media_too_long']);
    deepEqual(
      codes('instagram', [...media, { id: 'b', kind: 'video', probe: short }]),
      ['media_too_long'],
      'in a carousel',
    );
    equal(publishCheck(input('x', [{ id: 'clip', kind: 'video', probe: short }])), null);
  });

  t('a cover is checked only where the network takes one', () => {
    const cover = (probe: MediaProbe): GateMedia => ({ id: 'cover', kind: 'image', probe });
    const tiny = cover(imageProbe({ width: 16, height: 9 }));
    const video = files(['video']);
    deepEqual(
      gate(input('youtube', video, undefined, tiny)).map(({ path, code, mediaId }) => [path, code, mediaId]),
      [['/coverMediaId', 'media_too_small', 'cover']],
    );
    deepEqual(codes('youtube', video, undefined, cover(imageProbe())), []);
    deepEqual(codes('x', video, undefined, tiny), [], 'X takes no cover');
    deepEqual(codes('instagram', video, 'story', tiny), [], 'a story has no cover');
    deepEqual(codes('instagram', files(['image']), undefined, tiny), [], 'an image has no cover');
  });

  t('a poster frame is sent as the cover where it keeps the rules of the network', () => {
    const takers = (width: number, height: number, bytes = 100_000) =>
      platforms.filter((platform) => posterFits(platform, { bytes, width, height })).join(' ');
    equal(takers(1280, 720), 'instagram youtube facebook pinterest telegram');
    equal(takers(720, 1280), 'instagram facebook pinterest telegram');
    equal(takers(160, 90), 'facebook telegram');
    equal(takers(1280, 720, 9_000_000), 'pinterest telegram');
  });

  t('messages name the network, the limit and the count', () => {
    const words = (platform: Platform, media: string, contentType?: string) =>
      gate(input(platform, files(of(media)), contentType))[0]?.message;
    equal(words('x', 'image*5'), 'X takes at most 4 images; there are 5');
    equal(words('instagram', ''), 'Instagram takes no post without media');
    equal(words('instagram', 'image*11'), 'Instagram takes at most 10 images or videos in a carousel; there are 11');
    equal(words('facebook', 'image video'), 'Facebook takes no images and videos in one post');
    equal(words('youtube', 'image'), 'YouTube takes no images');
    equal(words('instagram', 'image', 'reel'), 'Instagram takes no images as a reel');
    const unseen: readonly GateMedia[] = [{ id: 'm0', kind: 'document', probe: null }];
    equal(gate(input('x', unseen))[0]?.message, 'X takes no documents');
    equal(words('linkedin', 'image video document'), 'LinkedIn takes no images, videos and documents in one post');
    equal(words('linkedin', 'video*2'), 'LinkedIn takes at most 1 video; there are 2');
    const two = [1_500, 900].map((height, n) => ({
      ...{ id: `m${n}`, kind: 'image' as const },
      probe: imageProbe({ width: 1_000, height }),
    }));
    equal(
      gate(input('pinterest', two))[0]?.message,
      'Pinterest takes several images only of one ratio of width to height',
    );
  });

  t('a text for people who do not see a file is held to the limit of its network, at the gate and at publish', () => {
    const said = (platform: Platform, kind: MediaKind, own: string, contentType?: string) => {
      const media = files([kind]).map((one) => ({ ...one, alt: { own, asset: null } }));
      return gate(input(platform, media, contentType)).map(({ path, code }) => `${path} ${code}`);
    };
    const refused = ['/mediaAltTexts/m0 alt_text_too_long'];
    const limits = { x: 1_000, instagram: 1_000, threads: 1_000, pinterest: 500 } as const;
    for (const [platform, limit] of Object.entries(limits) as [Platform, number][]) {
      deepEqual(said(platform, 'image', '😀'.repeat(limit)), [], platform);
      deepEqual(said(platform, 'image', `${'a'.repeat(limit)}.`), refused, platform);
    }
    const long = 'a'.repeat(2_000);
    deepEqual(said('x', 'gif', long), refused);
    deepEqual(said('threads', 'gif', long), refused, 'it is shown as a video, for which Threads takes one too');
    deepEqual(said('threads', 'video', long), refused);
    // No such text goes out with these.
    deepEqual([said('x', 'video', long), said('instagram', 'video', long)], [[], []]);
    deepEqual(said('instagram', 'image', long, 'story'), []);
    for (const platform of ['bluesky', 'linkedin', 'facebook', 'telegram', 'tiktok', 'youtube'] as const) {
      deepEqual(said(platform, 'image', long).includes(refused[0] ?? ''), false, platform);
    }
    for (const platform of platforms) {
      const takes = rules[platform].altTexts.length > 0;
      equal(rules[platform].capabilities.altText, takes, platform);
    }
    const failure = publishCheck(
      input('pinterest', [{ id: 'm0', kind: 'image', probe: imageProbe(), alt: { own: long, asset: null } }]),
    );
    const { code, message, mediaId } = publishCheck({
      ...input('x', [{ id: 'm0', kind: 'image', probe: imageProbe(), alt: { own: long, asset: null } }]),
    }) ?? { code: '', message: '', mediaId: null };
    deepEqual([code, mediaId], ['alt_text_too_long', 'm0']);
    equal(message, 'X takes at most 1000 characters as the alt text of a file; that of this one has 2000');
    equal(failure?.code, 'pinterest_board_required', 'what comes before it');
  });

  t('each code of the shapes is in the catalogue of failures', () => {
    for (const code of ['too_few_media', 'too_many_media', 'media_mixed', 'media_aspects_differ'])
      ok(Object.hasOwn(failureCodes, code), code);
  });
});

suite('use of the media of a target', (t) => {
  t('follows from the content type and the kinds of media', () => {
    const rows: readonly (readonly [Platform, string | undefined, string, string])[] = [
      ['instagram', undefined, 'image', 'feed'],
      ['instagram', undefined, 'video', 'reel'],
      ['instagram', 'feed', 'video', 'reel'],
      ['instagram', undefined, 'gif', 'reel'],
      ['instagram', 'feed', 'image video', 'carousel'],
      ['instagram', 'reel', 'video', 'reel'],
      ['instagram', 'story', 'image*2', 'story'],
      ['instagram', 'nonsense', 'image', 'feed'],
      ['facebook', undefined, 'video', 'feed'],
      ['facebook', 'reel', 'video', 'reel'],
      ['facebook', 'story', 'image', 'story'],
      ['tiktok', 'reel', 'video', 'feed'],
      ['threads', undefined, 'image*3', 'feed'],
    ];
    for (const [platform, contentType, kinds, use] of rows) {
      equal(useOf(platform, { contentType }, of(kinds)), use, `${platform} ${contentType} ${kinds}`);
    }
  });

  // Posts of any other network are in its feed, and nobody looks into their files to say so.
  t('is other than the feed on two networks', () => {
    equal(platformsWithUses.join(' '), 'instagram facebook');
    const asked = [undefined, 'reel', 'story'].flatMap((contentType) =>
      ['image', 'video', 'image video'].map((kinds) => [contentType, of(kinds)] as const),
    );
    const others = platforms.filter((platform) =>
      asked.some(([contentType, kinds]) => useOf(platform, { contentType }, kinds) !== 'feed'),
    );
    deepEqual(others, platformsWithUses);
  });
});
