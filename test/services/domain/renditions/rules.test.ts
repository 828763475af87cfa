import { deepEqual, equal, ok } from 'node:assert/strict';
import { useRules } from '#domain/platforms/index.ts';
import type { ImageRules, SizeRules, VideoRules } from '#domain/platforms/media-rules.ts';
import { planRenditions } from '#domain/renditions/index.ts';
import { platforms } from '#schemas/common.ts';
import { type MediaNeed, type MediaProbe, mediaUses } from '#schemas/media.ts';
import { suite } from '#test/support/suite.ts';
import { sourceComplaints, specComplaints } from './checker.ts';
import { documentProbe, gifProbe, imageProbe, videoProbe } from './probes.ts';

/** Every network, use and rule: a source that just fits, one that breaks this rule alone, and what becomes of it. */

const needs: readonly MediaNeed[] = platforms.flatMap((platform) =>
  mediaUses.flatMap((use) => (useRules(platform, use) === null ? [] : [{ platform, use }])),
);
const place = ({ platform, use }: MediaNeed) => `${platform}/${use}`;

const outcome = (need: MediaNeed, probe: MediaProbe): string => {
  const [plan] = planRenditions(probe, [need]);
  if (plan === undefined) return 'nothing';
  if (plan.outcome === 'failed') return plan.failure.code;
  if (plan.outcome === 'fits') return 'fits';
  deepEqual(specComplaints(need, probe, plan.spec), [], place(need));
  return plan.spec.kind === 'video' ? plan.spec.mode : plan.spec.kind;
};

/** Sides that the rules take, near the ratio given, of even numbers. */
const sides = (rules: SizeRules): { width: number; height: number } => {
  for (const [width, height] of [
    [720, 1280],
    [1280, 720],
    [1080, 1080],
    [720, 720],
  ] as const) {
    const long = Math.max(width, height);
    const short = Math.min(width, height);
    const inside = (range: { min: number; max: number } | null, value: number) =>
      range === null || (value >= range.min && value <= range.max);
    if (
      inside(rules.aspect, width / height) &&
      inside(rules.width, width) &&
      inside(rules.height, height) &&
      inside(rules.long, long) &&
      inside(rules.short, short)
    )
      return { width, height };
  }
  throw new Error('no such sides');
};

type Seen = Partial<Omit<MediaProbe, 'video' | 'image'>>;

const videoFor = (rules: VideoRules, over: Seen = {}, video: object = {}): MediaProbe =>
  videoProbe({ ...sides(rules), bytes: 1_000_000, durationMs: rules.durationMs.min + 1000, ...over }, video);

/** What breaks one rule of a video; null where that rule is not of this network. */
type Case = readonly [name: string, made: (rules: VideoRules) => MediaProbe | null, expected: string];

const videoCases: readonly Case[] = [
  ['as it is', (rules) => videoFor(rules), 'fits'],
  ['silent', (rules) => videoFor(rules, { audio: null }), 'fits'],
  ['the longest', (rules) => videoFor(rules, { durationMs: rules.durationMs.max }), 'fits'],
  ['the shortest', (rules) => videoFor(rules, { durationMs: rules.durationMs.min }), 'fits'],
  ['the heaviest', (rules) => videoFor(rules, { bytes: rules.bytes.max }), 'fits'],
  ['the fastest', (rules) => videoFor(rules, {}, { fps: rules.fps.max }), 'fits'],
  ['too long', (rules) => videoFor(rules, { durationMs: rules.durationMs.max + 1 }), 'media_too_long'],
  [
    'too short',
    (rules) => (rules.durationMs.min > 1 ? videoFor(rules, { durationMs: rules.durationMs.min - 1 }) : null),
    'media_too_short',
  ],
  ['too light', (rules) => (rules.bytes.min > 1 ? videoFor(rules, { bytes: rules.bytes.min - 1 }) : null), 'remux'],
  ['too heavy', (rules) => videoFor(rules, { bytes: rules.bytes.max + 1 }), 'encode'],
  [
    'in Matroska',
    (rules) => (rules.containers.includes('matroska') ? null : videoFor(rules, {}, { container: 'matroska' })),
    'remux',
  ],
  [
    'in MPEG-TS, as heavy as may be',
    (rules) =>
      rules.containers.includes('mpegts') ? null : videoFor(rules, { bytes: rules.bytes.max }, { container: 'mpegts' }),
    'encode',
  ],
  ['index last', (rules) => (rules.indexFirst ? videoFor(rules, {}, { indexFirst: false }) : null), 'remux'],
  [
    'with sound nobody hears, as heavy as may be',
    (rules) =>
      videoFor(rules, {
        bytes: rules.bytes.max,
        audio: { codec: 'amr_nb', profile: null, channels: 1, sampleRate: 8000, bitrate: 12_000 },
      }),
    'encode',
  ],
  [
    'index last, where it may',
    (rules) => (rules.indexFirst ? null : videoFor(rules, {}, { indexFirst: false })),
    'fits',
  ],
  ['edit list', (rules) => (rules.noEditList ? videoFor(rules, {}, { editList: true }) : null), 'remux'],
  ['edit list, where it may', (rules) => (rules.noEditList ? null : videoFor(rules, {}, { editList: true })), 'fits'],
  ['with a place', (rules) => videoFor(rules, {}, { located: true }), 'remux'],
  ['an unknown codec', (rules) => videoFor(rules, {}, { codec: 'theora' }), 'encode'],
  ['a profile nobody plays', (rules) => videoFor(rules, {}, { profile: 'high 4:4:4 predictive' }), 'encode'],
  ['an unknown profile', (rules) => videoFor(rules, {}, { profile: null }), 'encode'],
  [
    'HEVC',
    (rules) =>
      rules.codecs.some(({ codec }) => codec === 'hevc')
        ? null
        : videoFor(rules, {}, { codec: 'hevc', profile: 'main' }),
    'encode',
  ],
  [
    'HEVC, where it may',
    (rules) =>
      rules.codecs.some(({ codec }) => codec === 'hevc')
        ? videoFor(rules, {}, { codec: 'hevc', profile: 'main' })
        : null,
    'fits',
  ],
  ['4:4:4', (rules) => videoFor(rules, {}, { pixelFormat: 'yuv444p' }), 'encode'],
  ['too fast', (rules) => videoFor(rules, {}, { fps: rules.fps.max + 1 }), 'encode'],
  ['too slow', (rules) => videoFor(rules, {}, { fps: rules.fps.min / 2 }), 'encode'],
  ['of unknown rate', (rules) => videoFor(rules, {}, { fps: null }), 'encode'],
  ['unsteady', (rules) => (rules.constantRate ? videoFor(rules, {}, { constantRate: false }) : null), 'encode'],
  [
    'unsteady, where it may',
    (rules) => (rules.constantRate ? null : videoFor(rules, {}, { constantRate: false })),
    'fits',
  ],
  [
    'of too many bits a second',
    (rules) => (rules.maxKbps === null ? null : videoFor(rules, {}, { bitrate: rules.maxKbps * 1101 })),
    'encode',
  ],
  [
    'of unknown bits a second',
    (rules) => (rules.maxKbps === null ? null : videoFor(rules, {}, { bitrate: null })),
    'encode',
  ],
  ['turned', (rules) => (rules.turned ? null : videoFor(rules, {}, { rotation: 90 })), 'encode'],
  ['turned, where it may', (rules) => (rules.turned ? videoFor(rules, {}, { rotation: 90 }) : null), 'fits'],
  ['of oblong pixels', (rules) => videoFor(rules, {}, { squarePixels: false }), 'encode'],
  ['interlaced', (rules) => videoFor(rules, {}, { interlaced: true }), 'encode'],
  ['HDR', (rules) => (rules.hdr ? null : videoFor(rules, {}, { hdr: true })), 'encode'],
  ['HDR, where it may', (rules) => (rules.hdr ? videoFor(rules, {}, { hdr: true }) : null), 'fits'],
  [
    'with sound nobody hears',
    (rules) =>
      videoFor(rules, { audio: { codec: 'amr_nb', profile: null, channels: 1, sampleRate: 8000, bitrate: 12_000 } }),
    'remux',
  ],
  [
    'with sound all round',
    (rules) =>
      videoFor(rules, { audio: { codec: 'aac', profile: 'LC', channels: 8, sampleRate: 48_000, bitrate: 128_000 } }),
    'remux',
  ],
  [
    'with sound too fine',
    (rules) =>
      videoFor(rules, { audio: { codec: 'aac', profile: 'LC', channels: 2, sampleRate: 192_000, bitrate: 128_000 } }),
    'remux',
  ],
  [
    'with sound of too many bits',
    (rules) =>
      rules.audio.maxKbps === null
        ? null
        : videoFor(rules, {
            audio: { codec: 'aac', profile: 'LC', channels: 2, sampleRate: 48_000, bitrate: 320_000 },
          }),
    'remux',
  ],
  [
    'too wide',
    (rules) =>
      rules.aspect === null ? null : videoFor(rules, { width: Math.ceil(rules.aspect.max * 1.02 * 540), height: 540 }),
    'encode',
  ],
  [
    'too tall',
    (rules) =>
      rules.aspect === null
        ? null
        : videoFor(rules, { width: 540, height: Math.ceil((540 * 1.02) / rules.aspect.min) }),
    'encode',
  ],
  [
    'too large',
    (rules) => {
      const most = rules.long?.max ?? rules.width?.max ?? null;
      return most === null
        ? null
        : videoFor(rules, { width: most + 2, height: Math.round((most + 2) / (rules.aspect?.max ?? 1)) });
    },
    'encode',
  ],
  [
    'too small',
    (rules) => {
      const least = rules.short?.min ?? 1;
      return least < 100
        ? null
        : videoFor(rules, {
            ...(rules.aspect !== null && rules.aspect.max < 1
              ? { width: least / 2, height: ((least / 2) * 16) / 9 }
              : { width: least / 2, height: least / 2 }),
          });
    },
    'encode',
  ],
  [
    'far too small',
    (rules) => ((rules.short?.min ?? 1) < 100 ? null : videoFor(rules, { width: 18, height: 32 })),
    'media_too_small',
  ],
];

const imageFor = (rules: ImageRules, over: Seen = {}, image: object = {}): MediaProbe =>
  imageProbe({ ...sides(rules), bytes: 500_000, ...over }, image);

const enlarged = (rules: ImageRules): boolean => (rules.width?.min ?? 1) > 4 || (rules.short?.min ?? 1) > 4;

const imageCases: readonly (readonly [
  name: string,
  made: (rules: ImageRules) => MediaProbe | null,
  expected: string,
])[] = [
  ['as it is', (rules) => imageFor(rules), 'fits'],
  [
    'see-through, in a format that may',
    (rules) => (rules.formats.includes('png') ? imageFor(rules, {}, { format: 'png', alpha: true }) : null),
    'fits',
  ],
  ['the heaviest', (rules) => imageFor(rules, { bytes: rules.bytes.max }), 'fits'],
  ['too heavy', (rules) => imageFor(rules, { bytes: rules.bytes.max + 1 }), 'image'],
  ['AVIF', (rules) => imageFor(rules, {}, { format: 'avif' }), 'image'],
  ['PNG', (rules) => (rules.formats.includes('png') ? null : imageFor(rules, {}, { format: 'png' })), 'image'],
  ['WebP', (rules) => (rules.formats.includes('webp') ? null : imageFor(rules, {}, { format: 'webp' })), 'image'],
  ['of other colours', (rules) => imageFor(rules, {}, { srgb: false }), 'image'],
  ['turned', (rules) => imageFor(rules, {}, { upright: false }), 'image'],
  ['with a place', (rules) => imageFor(rules, {}, { located: true }), 'image'],
  ['moving', (rules) => imageFor(rules, { frames: 10 }), 'image'],
  [
    'too wide',
    (rules) =>
      rules.aspect === null ? null : imageFor(rules, { width: Math.ceil(rules.aspect.max * 1.02 * 400), height: 400 }),
    'image',
  ],
  [
    'too tall',
    (rules) =>
      rules.aspect === null
        ? null
        : imageFor(rules, { width: 400, height: Math.ceil((400 * 1.02) / rules.aspect.min) }),
    'image',
  ],
  [
    '12,000 a side',
    (rules) =>
      (rules.width ?? rules.long ?? rules.maxPixels ?? rules.maxSum)
        ? imageFor(rules, { width: 12_000, height: 12_000 })
        : null,
    'image',
  ],
  ['one pixel', (rules) => (enlarged(rules) ? imageFor(rules, { width: 1, height: 1 }) : null), 'media_too_small'],
];

suite('a source at and beyond each limit of each network', (t) => {
  t('videos', () => {
    let held = 0;
    for (const need of needs) {
      const rules = useRules(need.platform, need.use)?.video ?? null;
      if (rules === null) continue;
      for (const [name, made, expected] of videoCases) {
        const probe = made(rules);
        if (probe === null) continue;
        held += 1;
        equal(outcome(need, probe), expected, `${place(need)}: ${name}`);
        equal(sourceComplaints(need, probe).length === 0, expected === 'fits', `${place(need)}: ${name}`);
      }
    }
    ok(held > 400, `only ${held} cases`);
  });

  t('images, covers too', () => {
    let held = 0;
    for (const need of needs) {
      const rules = useRules(need.platform, need.use)?.image ?? null;
      if (rules === null) continue;
      for (const [name, made, expected] of imageCases) {
        const probe = made(rules);
        if (probe === null) continue;
        held += 1;
        equal(outcome(need, probe), expected, `${place(need)}: ${name}`);
      }
    }
    ok(held > 150, `only ${held} cases`);
  });

  t('gifs: kept where the network takes them, else a video; a single frame is an image', () => {
    for (const need of needs) {
      const { gif, video, image } = useRules(need.platform, need.use) ?? { gif: null, video: null, image: null };
      const still = outcome(need, gifProbe({ frames: 1, durationMs: 0, bytes: 300_000 }));
      if (image === null) equal(still, 'media_kind_not_taken', place(need));
      else ok(['fits', 'image'].includes(still), `${place(need)}: ${still}`);
      const moving = outcome(need, gifProbe());
      if (need.use === 'cover') equal(moving, 'frame', place(need));
      else equal(moving, gif === null ? 'encode' : 'fits', place(need));
      if (gif === null || video === null) continue;
      equal(outcome(need, gifProbe({ frames: gif.maxFrames })), 'fits', place(need));
      equal(outcome(need, gifProbe({ frames: gif.maxFrames + 1 })), 'encode', place(need));
      equal(outcome(need, gifProbe({ bytes: gif.bytes.max + 1 })), 'encode', place(need));
      equal(outcome(need, gifProbe({ frames: null })), 'encode', place(need));
      if (gif.width !== null) equal(outcome(need, gifProbe({ width: gif.width.max + 1 })), 'encode', place(need));
      if (gif.maxPixelsOfAll !== null)
        equal(outcome(need, gifProbe({ width: 1200, height: 1000, frames: 300 })), 'encode', place(need));
    }
  });

  t('documents', () => {
    const takers: string[] = [];
    for (const need of needs) {
      const rules = useRules(need.platform, need.use)?.document ?? null;
      if (rules === null) {
        equal(outcome(need, documentProbe()), 'media_kind_not_taken', place(need));
        continue;
      }
      takers.push(place(need));
      equal(outcome(need, documentProbe({ bytes: rules.bytes.max })), 'fits', place(need));
      equal(outcome(need, documentProbe({ bytes: rules.bytes.max + 1 })), 'media_too_heavy', place(need));
    }
    deepEqual(takers, ['linkedin/feed', 'telegram/feed']);
  });

  t('a use that the network does not have is refused', () => {
    for (const platform of platforms) {
      for (const use of mediaUses) {
        if (useRules(platform, use) !== null) continue;
        for (const probe of [videoProbe(), imageProbe(), gifProbe(), documentProbe()]) {
          equal(outcome({ platform, use }, probe), 'media_kind_not_taken', `${platform}/${use}`);
        }
      }
    }
  });
});
