import { deepEqual, equal } from 'node:assert/strict';
import type { Slot } from '#domain/cadence.ts';
import { RecentStarts } from '#services/publisher/recent-starts.ts';
import { suite } from '#test/support/suite.ts';

suite('recent starts of a publisher', (t) => {
  const slot = (at: number): Slot => ({ targetId: 'a', at, calls: 1, isOut: true });

  t('are remembered for half a minute', () => {
    const starts = new RecentStarts();
    starts.note('one', slot(0));
    starts.note('one', slot(20_000));
    equal(starts.of('one', 29_999).length, 2);
    deepEqual(starts.of('one', 30_000), [slot(20_000)]);
  });

  t('of accounts that never start again are forgotten', () => {
    const starts = new RecentStarts();
    for (let at = 0; at < 100; at += 1) starts.note(`account ${at}`, slot(at));
    starts.note('last', slot(30_100));
    equal(starts.size, 1);
  });

  t('are those of 10,000 accounts at most; the account that started longest ago goes first', () => {
    const starts = new RecentStarts();
    for (let at = 0; at < 10_000; at += 1) starts.note(`account ${at}`, slot(at / 1_000));
    starts.note('account 0', slot(10));
    starts.note('one more', slot(10));
    equal(starts.size, 10_000);
    equal(starts.of('account 0', 10).length, 2);
    equal(starts.of('account 1', 10).length, 0);
  });
});
