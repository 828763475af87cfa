import { equal, ok } from 'node:assert/strict';
import { DOWNLOAD_DEFAULTS } from '#runtime/egress/download.ts';
import { Pace } from '#runtime/egress/pace.ts';
import { suite } from '#test/support/suite.ts';

const tickMs = 50;

suite('pace of a download', (t) => {
  /** The second at which a server that sends so much until then is given up; null: all of it came. */
  const givenUpAt = (length: number, sentBy: (ms: number) => number, beginsMs = 0): number | null => {
    const pace = new Pace(DOWNLOAD_DEFAULTS);
    for (let at = 0; at < 30_000_000; at += tickMs) {
      if (at === beginsMs) pace.begin(0, at);
      const sent = at < beginsMs ? 0 : Math.floor(sentBy(at - beginsMs));
      if (sent >= length) return null;
      if (pace.isTooSlow(sent, at)) return at / 1_000;
    }
    throw new Error('it was never given up');
  };
  const steady = (bytesASecond: number) => (ms: number) => (bytesASecond * ms) / 1_000;

  t('20 MB over 1 Mbit/s succeed, also when the line pauses for a quarter of each minute', () => {
    equal(givenUpAt(20_000_000, steady(125_000)), null);
    equal(givenUpAt(20_000_000, steady(125_000), 25_000), null);
    const halting = (ms: number) => 170_000 * (Math.floor(ms / 60_000) * 45 + Math.min(45, (ms % 60_000) / 1_000));
    equal(givenUpAt(20_000_000, halting), null);
  });

  t('5 GiB succeed at the minimum rate; the head start counts once', () => {
    equal(givenUpAt(5 * 1_024 ** 3, steady(4_000_000)), null);
    equal(givenUpAt(5 * 1_024 ** 3, steady(262_144)), null);
    ok((givenUpAt(5 * 1_024 ** 3, steady(262_143 / 2)) ?? 0) <= 241);
  });

  t('a trickle fails after half a minute, a body just above the rate of a window within three minutes', () => {
    equal(givenUpAt(5 * 1_024 ** 3, steady(1)), 30);
    equal(givenUpAt(5 * 1_024 ** 3, steady(65_000)), 30);
    const slowest = givenUpAt(5 * 1_024 ** 3, steady(65_600)) ?? 0;
    ok(slowest > 120 && slowest < 180, `${slowest} s`);
  });

  t('the window slides: a fast start does not allow a trickle later', () => {
    const at = givenUpAt(5 * 1_024 ** 3, (ms) => Math.min(ms * 10_000, 500_000_000) + ms) ?? 0;
    ok(at >= 75 && at <= 82, `${at} s`);
  });

  t('a resumed body gets a new window, but no second head start', () => {
    const pace = new Pace(DOWNLOAD_DEFAULTS);
    for (let at = 0; at < 120_000; at += 20_000) {
      pace.begin(1, at);
      for (let after = 0; after < 20_000; after += tickMs) equal(pace.isTooSlow(1, at + after), false);
    }
    equal(pace.isTooSlow(1, 120_001), true);
  });
});
