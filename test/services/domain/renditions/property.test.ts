import { deepEqual, equal, match, ok } from 'node:assert/strict';
import fc from 'fast-check';
import Schema from 'typebox/schema';
import { useRules } from '#domain/platforms/index.ts';
import { planRenditions, posterSpec } from '#domain/renditions/index.ts';
import { platforms } from '#schemas/common.ts';
import { MediaFailure, type MediaNeed, type MediaProbe, mediaUses, RenditionSpec } from '#schemas/media.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';
import { sourceComplaints, specComplaints } from './checker.ts';
import { documentProbe, gifProbe, imageProbe, videoProbe } from './probes.ts';

const { seed } = seeded('renditions');
const numRuns = 4_000;

const side = fc.oneof(
  {
    arbitrary: fc.constantFrom(320, 360, 480, 540, 640, 720, 854, 960, 1080, 1280, 1350, 1440, 1920, 2160, 3840),
    weight: 3,
  },
  { arbitrary: fc.integer({ min: 1, max: 12_000 }), weight: 1 },
);
const bytes = fc.oneof(fc.integer({ min: 100, max: 20_000_000 }), fc.integer({ min: 1, max: 5_000_000_000 }));
const often = <T>(usual: T, other: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof({ arbitrary: fc.constant(usual), weight: 4 }, { arbitrary: other, weight: 1 });
const rarely = fc.boolean().chain((one) => (one ? fc.boolean() : fc.constant(false)));
const duration = fc.oneof(
  fc.integer({ min: 1, max: 200_000 }),
  fc.integer({ min: 1, max: 4 * 3_600_000 }),
  fc.constantFrom(3000, 60_000, 90_000, 140_000, 300_000, 900_000),
);

const videos: fc.Arbitrary<MediaProbe> = fc
  .record({
    seen: fc.record({ width: side, height: side, bytes, durationMs: duration }),
    audio: fc.option(
      fc.record({
        codec: often('aac', fc.constantFrom('opus', 'mp3', 'pcm_s16le')),
        profile: often<string | null>('LC', fc.constantFrom('HE-AAC', null)),
        channels: fc.constantFrom(1, 2, 6),
        sampleRate: fc.constantFrom(44_100, 48_000, 96_000),
        bitrate: fc.option(fc.integer({ min: 8000, max: 400_000 })),
      }),
    ),
    video: fc.record({
      container: often('mp4', fc.constantFrom('mov', 'webm', 'matroska', 'avi', 'mpegts')),
      codec: often('h264', fc.constantFrom('hevc', 'vp9', 'vp8', 'av1', 'prores')),
      profile: often<string | null>('high', fc.constantFrom('main', 'main 10', 'high 10', 'profile 0', null)),
      pixelFormat: often<string | null>('yuv420p', fc.constantFrom('yuvj420p', 'yuv422p10le', null)),
      rotation: often(0, fc.constantFrom(90, 180, 270)),
      squarePixels: often(true, fc.boolean()),
      fps: fc.oneof(
        fc.constantFrom(24, 25, 30, 60, 29.97, 23.976, 12, 15, 120, null),
        fc.double({ min: 0.1, max: 240, noNaN: true }),
      ),
      constantRate: often(true, fc.boolean()),
      interlaced: rarely,
      hdr: rarely,
      bitrate: fc.option(fc.integer({ min: 10_000, max: 120_000_000 })),
      indexFirst: fc.boolean(),
      editList: rarely,
      located: rarely,
    }),
  })
  .map(({ seen, audio, video }) => videoProbe({ ...seen, audio }, video));

const images: fc.Arbitrary<MediaProbe> = fc
  .record({
    seen: fc.record({ width: side, height: side, bytes, frames: often<number | null>(1, fc.constantFrom(null, 12)) }),
    image: fc.record({
      format: fc.constantFrom('jpeg', 'png', 'webp', 'avif', 'tiff'),
      alpha: fc.boolean(),
      srgb: often(true, fc.boolean()),
      upright: often(true, fc.boolean()),
      located: rarely,
    }),
  })
  .map(({ seen, image }) => imageProbe(seen, image));

const gifs: fc.Arbitrary<MediaProbe> = fc
  .record({
    width: side,
    height: side,
    bytes,
    durationMs: duration,
    frames: fc.constantFrom(1, 2, 250, 251, 350, 351, null),
  })
  .map((seen) => gifProbe(seen));

const documents = fc.record({ bytes }).map((seen) => documentProbe(seen));

const probes = fc.oneof({ arbitrary: videos, weight: 6 }, { arbitrary: images, weight: 3 }, gifs, documents);

const everyNeed: readonly MediaNeed[] = platforms.flatMap((platform) => mediaUses.map((use) => ({ platform, use })));

/** What must hold for a refusal to be true, from the data alone. */
const justified = ({ platform, use }: MediaNeed, probe: MediaProbe, code: string): boolean => {
  const rules = useRules(platform, use);
  const still = probe.kind === 'image' || (probe.kind === 'gif' && probe.frames === 1);
  const { width, height, durationMs } = probe;
  switch (code) {
    case 'media_kind_not_taken':
      if (rules === null) return true;
      if (probe.kind === 'document') return rules.document === null;
      return still ? rules.image === null : rules.video === null && (use !== 'cover' || rules.image === null);
    case 'media_too_long':
      return !still && (durationMs ?? 0) > (rules?.video?.durationMs.max ?? 0);
    case 'media_too_short':
      // A gif goes round, but not for ever.
      return !still && (durationMs ?? 0) * (probe.kind === 'gif' ? 500 : 1) < (rules?.video?.durationMs.min ?? 0) + 50;
    case 'media_too_heavy':
      if (probe.kind === 'document') return probe.bytes > (rules?.document?.bytes.max ?? 0);
      // The floor of the ladder, half as much again at a high rate, and what rates overshoot.
      return (364 * 1.6 * (durationMs ?? 0)) / 8 + 200_000 > (rules?.video?.bytes.max ?? 0);
    case 'media_too_small': {
      const size = still || use === 'cover' ? rules?.image : rules?.video;
      const least = Math.max(
        size?.width?.min ?? 1,
        size?.height?.min ?? 1,
        size?.short?.min ?? 1,
        size?.long?.min ?? 1,
      );
      return Math.min(width ?? 0, height ?? 0) * 4 < least;
    }
    default:
      return false;
  }
};

suite('any plan', { drawn: true, costs: 2 }, (t) => {
  t('a source fits exactly if it keeps the rules; every rendition keeps them; every failure has its cause', () => {
    const seen = new Map<string, number>();
    fc.assert(
      fc.property(probes, (probe) => {
        for (const one of planRenditions(probe, everyNeed)) {
          const key = one.outcome === 'failed' ? one.failure.code : one.outcome;
          seen.set(key, (seen.get(key) ?? 0) + 1);
          const where = `${one.platform}/${one.use}`;
          const fitting = sourceComplaints(one, probe);
          if (one.outcome === 'fits') deepEqual(fitting, [], where);
          else ok(fitting.length > 0, `${where}: ${key} though the source fits`);
          if (one.outcome === 'rendition')
            deepEqual(specComplaints(one, probe, one.spec), [], `${where} ${JSON.stringify(one.spec)}`);
          if (one.outcome === 'failed') ok(justified(one, probe, one.failure.code), `${where}: ${one.failure.message}`);
        }
      }),
      { seed, numRuns },
    );
    for (const outcome of [
      'fits',
      'rendition',
      'media_kind_not_taken',
      'media_too_long',
      'media_too_short',
      'media_too_heavy',
      'media_too_small',
    ]) {
      ok((seen.get(outcome) ?? 0) > 20, `${outcome} was hardly seen: ${seen.get(outcome) ?? 0}`);
    }
  });

  t('is the same each time and for each need alone; equal specs, and only they, share an id', () => {
    fc.assert(
      fc.property(probes, fc.shuffledSubarray([...everyNeed]), (probe, needs) => {
        const plans = planRenditions(probe, needs);
        deepEqual(planRenditions(structuredClone(probe), needs), plans);
        deepEqual(
          needs.flatMap((need) => planRenditions(probe, [need])),
          plans,
        );
        const ids = new Map<string, unknown>();
        for (const one of plans) {
          if (one.outcome !== 'rendition') continue;
          match(one.id, /^[0-9a-f]{32}$/);
          deepEqual(one.spec, ids.get(one.id) ?? one.spec);
          ids.set(one.id, one.spec);
        }
        equal(new Set([...ids.values()].map((spec) => JSON.stringify(spec))).size, ids.size);
      }),
      { seed, numRuns: 1_000 },
    );
  });

  t('its specs and failures fit the schemas of their events', () => {
    const spec = Schema.Compile(RenditionSpec);
    const failure = Schema.Compile(MediaFailure);
    fc.assert(
      fc.property(probes, (probe) => {
        for (const one of planRenditions(probe, everyNeed)) {
          if (one.outcome === 'rendition') ok(spec.Check(one.spec), JSON.stringify(one.spec));
          if (one.outcome === 'failed') ok(failure.Check(one.failure), JSON.stringify(one.failure));
        }
        const poster = posterSpec(probe);
        if (poster !== null) ok(spec.Check(poster), JSON.stringify(poster));
        equal(poster === null, probe.kind === 'document');
      }),
      { seed, numRuns: 1_000 },
    );
  });
});
