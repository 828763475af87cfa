import { deepEqual, equal } from 'node:assert/strict';
import { within } from '#domain/platforms/media-blocks.ts';
import type { SizeRules, UseRules } from '#domain/platforms/media-rules.ts';
import { jpegFits, violations } from '#domain/platforms/media-violations.ts';
import type { MediaProbe } from '#schemas/media.ts';
import { documentProbe, gifProbe, imageProbe, videoProbe } from '#test/services/domain/renditions/probes.ts';
import { suite } from '#test/support/suite.ts';

/** Rules of no network: each property has limits of its own, so that a file can break one of them alone. */
const size: SizeRules = {
  aspect: within(0.5, 2),
  width: { min: 100, max: 2_000 },
  height: { min: 120, max: 2_100 },
  long: { min: 200, max: 1_900 },
  short: { min: 150, max: 1_500 },
  maxPixels: 1_805_000,
  maxSum: 2_850,
};
const rules: UseRules = {
  image: { ...size, formats: ['jpeg', 'png'], bytes: { min: 100, max: 1_000_000 }, target: 'large' },
  video: {
    ...size,
    containers: ['mp4', 'mov', 'webm'],
    codecs: [
      { codec: 'h264', profiles: ['main', 'high'] },
      { codec: 'vp8', profiles: null },
    ],
    pixelFormats: ['yuv420p'],
    fps: { min: 24, max: 60 },
    constantRate: true,
    maxKbps: 5_000,
    bytes: { min: 1_000, max: 20_000_000 },
    durationMs: { min: 3_000, max: 60_000 },
    indexFirst: true,
    noEditList: true,
    audio: {
      codecs: [{ codec: 'aac', profiles: ['lc'] }],
      maxChannels: 2,
      maxSampleRate: 48_000,
      maxKbps: 128,
    },
    target: '1080',
  },
  gif: { ...size, bytes: { min: 100, max: 3_000_000 }, maxFrames: 100, maxPixelsOfAll: 23_040_000 },
  document: { contentTypes: ['application/pdf'], bytes: { min: 100, max: 2_000_000 } },
};

const sound = { codec: 'aac', profile: 'LC', channels: 2, sampleRate: 48_000, bitrate: 128_000 } as const;
type Seen = Partial<Omit<MediaProbe, 'video' | 'image'>>;
const sides = (width: number | null, height: number | null): Seen => ({ width, height });

/** The sides of any picture, and what is wrong with them: at each limit, and one pixel beyond it. */
const sizes: readonly (readonly [width: number | null, height: number | null, ...wrong: string[]])[] = [
  [1_000, 500],
  [1_000, 499, 'aspect'],
  [500, 1_000],
  [500, 1_001, 'aspect'],
  [200, 150],
  [199, 150, 'size'],
  [200, 149, 'size'],
  [1_900, 950],
  [1_900, 951, 'size'],
  [1_901, 951, 'size'],
  [1_901, 950, 'aspect', 'size'],
  [1_000, 1_805],
  [1_000, 1_806, 'size'],
  [null, 500, 'size'],
  [500, null, 'size'],
  [null, null, 'size'],
];

suite('violations of the rules of a use', (t) => {
  t('of the size, at each limit and beyond it', () => {
    for (const [width, height, ...wrong] of sizes) {
      const name = `${width} by ${height}`;
      const probes = [imageProbe(sides(width, height)), videoProbe(sides(width, height))];
      for (const probe of probes) deepEqual(violations(rules, probe), wrong, name);
      deepEqual(violations(rules, gifProbe({ ...sides(width, height), frames: 8 })), wrong, name);
    }
  });

  // Each limit of one side alone, with the others taken away.
  t('of each side alone', () => {
    const open = { aspect: null, width: null, height: null, long: null, short: null, maxPixels: null, maxSum: null };
    const only = (limit: Partial<SizeRules>, width: number, height: number) => {
      const { image } = rules;
      if (image === null) return null;
      return violations({ ...rules, image: { ...image, ...open, ...limit } }, imageProbe({ width, height }));
    };
    const table: readonly (readonly [Partial<SizeRules>, fits: [number, number], not: [number, number]])[] = [
      [{ width: { min: 10, max: 20 } }, [10, 900], [9, 900]],
      [{ width: { min: 10, max: 20 } }, [20, 900], [21, 900]],
      [{ height: { min: 10, max: 20 } }, [900, 10], [900, 9]],
      [{ height: { min: 10, max: 20 } }, [900, 20], [900, 21]],
      [{ long: { min: 10, max: 20 } }, [5, 10], [9, 5]],
      [{ long: { min: 10, max: 20 } }, [20, 5], [5, 21]],
      [{ short: { min: 10, max: 20 } }, [10, 50], [50, 9]],
      [{ short: { min: 10, max: 20 } }, [50, 20], [21, 50]],
      [{ maxPixels: 200 }, [10, 20], [11, 19]],
      [{ maxSum: 30 }, [10, 20], [10, 21]],
    ];
    for (const [limit, fits, not] of table) {
      deepEqual(only(limit, ...fits), [], JSON.stringify(limit));
      deepEqual(only(limit, ...not), ['size'], JSON.stringify(limit));
    }
    deepEqual(only({}, 1, 90_000), []);
  });

  t('of a video', () => {
    const table: readonly (readonly [Seen, object, ...string[]])[] = [
      [{}, {}],
      [{ bytes: 20_000_000 }, {}],
      [{ bytes: 20_000_001 }, {}, 'bytes'],
      [{ bytes: 1_000 }, {}],
      [{ bytes: 999 }, {}, 'too_light'],
      [{ durationMs: 3_000 }, {}],
      [{ durationMs: 2_999 }, {}, 'too_short'],
      [{ durationMs: 60_000 }, {}],
      [{ durationMs: 60_001 }, {}, 'too_long'],
      [{ durationMs: null }, {}, 'codec'],
      [{}, { container: 'mov' }],
      [{}, { container: 'matroska' }, 'container'],
      [{}, { codec: 'vp8', profile: null }],
      [{}, { codec: 'hevc' }, 'codec'],
      [{}, { profile: 'Main' }],
      [{}, { profile: 'high 10' }, 'codec'],
      [{}, { profile: null }, 'codec'],
      [{}, { pixelFormat: 'yuv444p' }, 'pixel_format'],
      [{}, { pixelFormat: null }, 'pixel_format'],
      // Networks take 23.976 for 24, and 60.05 is a measured 60.
      [{}, { fps: 23.95 }],
      [{}, { fps: 23.9 }, 'rate'],
      [{}, { fps: 60.05 }],
      [{}, { fps: 60.1 }, 'rate'],
      [{}, { fps: null }, 'rate'],
      [{}, { constantRate: false }, 'rate'],
      // A tenth more than the limit is measured where the limit was kept.
      [{}, { bitrate: 5_500_000 }],
      [{}, { bitrate: 5_500_002 }, 'bitrate'],
      [{}, { bitrate: null }, 'bitrate'],
      [{}, { rotation: 90 }, 'rotated'],
      [{}, { squarePixels: false }, 'pixel_shape'],
      [{}, { interlaced: true }, 'interlaced'],
      [{}, { hdr: true }, 'hdr'],
      [{}, { indexFirst: false }, 'index'],
      [{}, { container: 'mov', indexFirst: false }, 'index'],
      // Only these two containers have an index that can come last.
      [{}, { container: 'webm', indexFirst: false }],
      [{}, { editList: true }, 'edit_list'],
      [{}, { located: true }, 'located'],
      [{ audio: null }, {}],
      [{ audio: { ...sound, profile: 'HE-AAC' } }, {}, 'sound'],
      [{ audio: { ...sound, codec: 'opus' } }, {}, 'sound'],
      [{ audio: { ...sound, channels: 3 } }, {}, 'sound'],
      [{ audio: { ...sound, sampleRate: 48_001 } }, {}, 'sound'],
      [{ audio: { ...sound, bitrate: 140_800 } }, {}],
      [{ audio: { ...sound, bitrate: 140_802 } }, {}, 'sound'],
      [{ audio: { ...sound, bitrate: null } }, {}, 'sound'],
    ];
    for (const [seen, video, ...wrong] of table) {
      deepEqual(violations(rules, videoProbe(seen, video)), wrong, JSON.stringify([seen, video]));
    }
    deepEqual(violations(rules, { ...videoProbe(), video: null }), ['codec']);
  });

  t('that a network does not have', () => {
    const { video } = rules;
    if (video === null) return;
    const lenient: UseRules = {
      ...rules,
      video: {
        ...{ ...video, constantRate: false, maxKbps: null, indexFirst: false, noEditList: false },
        ...{ hdr: true, turned: true, audio: { ...video.audio, maxKbps: null } },
      },
    };
    for (const over of [{ constantRate: false }, { bitrate: null }, { rotation: 90 }, { hdr: true }]) {
      deepEqual(violations(lenient, videoProbe({}, over)), [], JSON.stringify(over));
    }
    deepEqual(violations(lenient, videoProbe({}, { indexFirst: false, editList: true })), []);
    deepEqual(violations(lenient, videoProbe({ audio: { ...sound, bitrate: null } })), []);
  });

  t('of an image', () => {
    const table: readonly (readonly [Seen, object, ...string[]])[] = [
      [{}, {}],
      [{ bytes: 100 }, { format: 'png' }],
      [{ bytes: 99 }, {}, 'bytes'],
      [{ bytes: 1_000_000 }, {}],
      [{ bytes: 1_000_001 }, {}, 'bytes'],
      [{}, { format: 'webp' }, 'format'],
      [{}, { srgb: false }, 'colours'],
      [{}, { upright: false }, 'rotated'],
      [{}, { located: true }, 'located'],
      [{ frames: null }, {}],
      [{ frames: 2 }, {}, 'frames'],
    ];
    for (const [seen, image, ...wrong] of table) {
      deepEqual(violations(rules, imageProbe(seen, image)), wrong, JSON.stringify([seen, image]));
    }
    deepEqual(violations(rules, { ...imageProbe(), image: null }), ['format']);
  });

  t('of a gif, and one of a single frame is an image', () => {
    const table: readonly (readonly [Partial<MediaProbe>, ...string[]])[] = [
      [{}],
      [{ frames: 100 }],
      [{ frames: 101, ...sides(400, 400) }, 'frames'],
      // 480 by 480 pixels 101 times are too many pixels too.
      [{ ...sides(480, 481), frames: 100 }, 'frames'],
      [{ frames: null }, 'frames'],
      [{ bytes: 3_000_000 }],
      [{ bytes: 3_000_001 }, 'bytes'],
      [{ frames: 1 }, 'bytes', 'format'],
    ];
    for (const [seen, ...wrong] of table) deepEqual(violations(rules, gifProbe(seen)), wrong, JSON.stringify(seen));
  });

  t('of a document', () => {
    deepEqual(violations(rules, documentProbe()), []);
    deepEqual(violations(rules, documentProbe({ bytes: 2_000_001 })), ['bytes']);
    deepEqual(violations(rules, documentProbe({ contentType: 'application/msword' })), ['content_type']);
  });

  t('of a use that takes no file of the kind', () => {
    const nothing: UseRules = { image: null, video: null, gif: null, document: null };
    for (const probe of [imageProbe(), videoProbe(), gifProbe(), gifProbe({ frames: 1 }), documentProbe()]) {
      deepEqual(violations(nothing, probe), ['kind'], probe.kind);
    }
  });

  t('of a JPEG that was made for another purpose', () => {
    const fits = (over: object, uses: UseRules = rules): boolean =>
      jpegFits(uses, { bytes: 500_000, width: 1_000, height: 1_000, ...over });
    equal(fits({}), true);
    for (const over of [{ bytes: 1_000_001 }, { width: 100 }, { width: null }, { height: null }]) {
      equal(fits(over), false, JSON.stringify(over));
    }
    const { image } = rules;
    equal(fits({}, { ...rules, image: null }), false);
    equal(image !== null && fits({}, { ...rules, image: { ...image, formats: ['png'] } }), false);
  });
});
