import { deepEqual, equal, ok } from 'node:assert/strict';
import { useRules } from '#domain/platforms/index.ts';
import type { VideoRules } from '#domain/platforms/media-rules.ts';
import type { Violation } from '#domain/platforms/media-violations.ts';
import { planVideo } from '#domain/renditions/video.ts';
import type { MediaProbe } from '#schemas/media.ts';
import { suite } from '#test/support/suite.ts';
import { gifProbe, videoProbe } from './probes.ts';

const telegram = useRules('telegram', 'feed')?.video;
if (!telegram) throw new Error('Telegram takes no videos');
const plan = (probe: MediaProbe, found: readonly Violation[], rules: Partial<VideoRules> = {}) => {
  const made = planVideo({ platform: 'telegram', use: 'feed' }, { ...telegram, ...rules }, probe, found);
  ok(made !== 'fits');
  return made;
};
const specOf = (...args: Parameters<typeof plan>) => {
  const made = plan(...args);
  ok('spec' in made && made.spec.kind === 'video', JSON.stringify(made));
  return made.spec;
};
const codeOf = (...args: Parameters<typeof plan>) => {
  const made = plan(...args);
  return 'failure' in made ? made.failure.code : null;
};

/** Ten seconds of a megabyte. */
const short = { bytes: 1_000_000, durationMs: 10_000 };
const sound = { codec: 'aac', profile: 'LC', channels: 2, sampleRate: 44_100, bitrate: 96_000 };

suite('video of a rendition', (t) => {
  t('is copied where only its container is refused, and its streams are such as an MP4 carries', () => {
    for (const codec of ['h264', 'hevc', 'vp9', 'av1', 'mpeg4'])
      equal(specOf(videoProbe(short, { codec }), ['container']).mode, 'remux', codec);
    for (const codec of ['prores', 'mpeg2video']) {
      equal(specOf(videoProbe(short, { codec }), ['container']).mode, 'encode', codec);
    }
    for (const codec of ['aac', 'mp3', 'ac3', 'eac3', 'opus', 'alac'])
      equal(specOf(videoProbe({ ...short, audio: { ...sound, codec } }), ['container']).sound, undefined, codec);
    equal(specOf(videoProbe({ ...short, audio: { ...sound, codec: 'vorbis' } }), ['container']).sound, 'encode');
    equal(specOf(videoProbe(short), ['container', 'pixel_format']).mode, 'encode');
    equal(specOf(videoProbe(short), ['container'], { containers: ['webm'] }).mode, 'encode');
  });

  t('names the rates of the streams that it copies: their own, else the average of the file', () => {
    const audio = { ...sound };
    const own = specOf(videoProbe({ ...short, audio }), ['index']);
    deepEqual([own.videoKbps, own.audio], [4_000, { kbps: 96, sampleRate: 44_100, channels: 2 }]);
    const unknown = specOf(videoProbe({ ...short, audio: { ...audio, bitrate: null } }, { bitrate: null }), ['index']);
    deepEqual([unknown.videoKbps, unknown.audio?.kbps], [800, 128]);
    equal(specOf(videoProbe({ ...short, audio: null }), ['index']).audio, null);
  });

  t('a copy is at most a little larger than its source, and is made only where the network takes that', () => {
    const most = 1_010_000 + 65_536;
    equal(specOf(videoProbe(short), ['index']).maxBytes, most);
    equal(specOf(videoProbe(short), ['index'], { bytes: { min: 1, max: most } }).mode, 'remux');
    equal(specOf(videoProbe(short), ['index'], { bytes: { min: 1, max: most - 1 } }).mode, 'encode');
    equal(specOf(videoProbe({ ...short, bytes: 1 }), ['index']).maxBytes, 76_800);
    // Ten seconds of sound of 128 kbit/s, which overshoots by a twentieth.
    const anew = specOf(videoProbe(short), ['sound']);
    ok(Math.abs((anew.maxBytes ?? 0) - most - 168_000) <= 1, String(anew.maxBytes));
    deepEqual([anew.mode, anew.sound, anew.audio], ['remux', 'encode', { kbps: 128, sampleRate: 48_000, channels: 2 }]);
  });

  t('its sound has 128 kbit/s, or less where the network takes less', () => {
    const kbpsOf = (maxKbps: number | null) =>
      specOf(videoProbe(short), ['sound'], { audio: { ...telegram.audio, maxKbps } }).audio?.kbps;
    deepEqual([kbpsOf(null), kbpsOf(96), kbpsOf(256)], [128, 96, 128]);
  });

  t('is the best that the network has room for', () => {
    const probe = videoProbe(short, { codec: 'prores' });
    const best = specOf(probe, ['codec']);
    const room = (max: number) => specOf(probe, ['codec'], { bytes: { min: 1, max } });
    deepEqual(room(best.maxBytes ?? 0), best);
    ok(room((best.maxBytes ?? 0) - 1).videoKbps < best.videoKbps);
    equal(codeOf(probe, ['codec'], { bytes: { min: 1, max: 1_000 } }), 'media_too_heavy');
  });

  t('has half as much again above thirty pictures a second', () => {
    const kbpsOf = (fps: number | null) => specOf(videoProbe(short, { codec: 'prores', fps }), ['codec']).videoKbps;
    deepEqual([kbpsOf(30), kbpsOf(30.05), kbpsOf(30.06), kbpsOf(null)], [5_000, 5_000, 7_500, 5_000]);
  });

  t('of a gif keeps no rate of its own, which no gif holds', () => {
    const gif = gifProbe();
    ok(gif.video !== null);
    equal(specOf({ ...gif, video: { ...gif.video, fps: 26 } }, ['container']).fps, 25);
    equal(specOf(videoProbe({}, { codec: 'prores', fps: 26 }), ['codec']).fps, null);
  });

  t(
    'of a gif goes round until it is long enough, at most five hundred times and no longer than the network takes',
    () => {
      const roundsOf = (durationMs: number, min: number, max: number) => {
        const made = plan(gifProbe({ durationMs }), ['container'], { durationMs: { min, max } });
        return 'spec' in made && made.spec.kind === 'video' ? (made.spec.rounds ?? 1) : codeOfFailure(made);
      };
      const codeOfFailure = (made: ReturnType<typeof plan>) => ('failure' in made ? made.failure.code : null);
      equal(roundsOf(5_000, 3_000, 60_000), 1);
      equal(roundsOf(10, 4_950, 60_000), 500);
      equal(roundsOf(10, 4_951, 60_000), 'media_too_short');
      equal(roundsOf(1_000, 2_960, 4_000), 4);
      equal(roundsOf(1_000, 2_960, 3_999), 'media_too_short');
    },
  );
});
