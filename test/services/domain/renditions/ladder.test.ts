import { deepEqual, equal, ok } from 'node:assert/strict';
import type { VideoClass } from '#domain/platforms/media-rules.ts';
import { rateFor, rungsFor } from '#domain/renditions/ladder.ts';
import { suite } from '#test/support/suite.ts';

suite('ladder of renditions', (t) => {
  t('begins at the smallest box that holds the source, and at that of the class for a larger one', () => {
    const longOf = (target: VideoClass, width: number, height: number) => rungsFor(target, width, height)[0]?.box.long;
    const table: readonly (readonly [VideoClass, number, number, number])[] = [
      ['1080', 640, 360, 640],
      ['1080', 360, 640, 640],
      ['1080', 641, 360, 854],
      ['1080', 640, 361, 854],
      ['1080', 855, 480, 1_280],
      ['1080', 1_281, 720, 1_920],
      ['1080', 3_840, 2_160, 1_920],
      ['720', 1_920, 1_080, 1_280],
      ['720', 480, 480, 854],
      ['2160', 1_921, 1_080, 2_560],
      ['2160', 2_561, 1_440, 3_840],
      ['2160', 7_680, 4_320, 3_840],
    ];
    for (const [target, width, height, long] of table) equal(longOf(target, width, height), long, `${width}x${height}`);
  });

  t('goes down to the last rung, each cheaper than the one before', () => {
    for (const target of ['2160', '1080', '720'] as const) {
      const rates = rungsFor(target, 7_680, 4_320).map(({ videoKbps }) => videoKbps);
      deepEqual(
        rates,
        [...new Set(rates)].sort((a, b) => b - a),
      );
      equal(rates.at(-1), 300);
      // 480p at 2,000 kbit/s comes after 720p at 1,500: it would cost more and show less.
      ok(!rates.includes(2_000));
    }
    equal(rungsFor('1080', 854, 480)[0]?.videoKbps, 2_000);
  });

  t('a steady rate that players are made for is kept', () => {
    for (const fps of [23.95, 24, 30, 47, 60.05]) equal(rateFor(fps, true), null, String(fps));
    for (const fps of [60.06, 0, -1, null]) equal(rateFor(fps, true), 30, String(fps));
  });

  t('a slow rate becomes the smallest usual one that is a multiple of it, an unsteady one the nearest', () => {
    for (const [fps, made] of [
      [12, 24],
      [8.33, 25],
      [10, 30],
      // 60 is a multiple of 20, and twice as many pictures as a slow film needs.
      [20, 30],
      [11, 30],
    ] as const) {
      for (const steady of [true, false]) equal(rateFor(fps, steady), made, String(fps));
    }
    for (const [fps, made] of [
      [24.4, 24],
      [24.6, 25],
      [27.4, 25],
      [27.5, 30],
      [40, 30],
      [41, 50],
      [56, 60],
    ] as const) {
      equal(rateFor(fps, false), made, String(fps));
    }
  });
});
