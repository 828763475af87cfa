import { deepEqual } from 'node:assert/strict';
import { addSegment, renderSegments, type SegmentsOut } from '#projections/models/targets.ts';
import { targetStatuses } from '#schemas/target.ts';
import { instant } from '#test/support/projecting.ts';
import { suite } from '#test/support/suite.ts';

const none = { externalId: null, permalink: null, publishedAt: null };
const out = (index: number) => ({ externalId: `x-${index}`, permalink: null, publishedAt: instant(index) });
const after = (count: number, of = 3): SegmentsOut | null =>
  Array.from({ length: count }, (_none, index) => index).reduce<SegmentsOut | null>(
    (known, index) => addSegment(known, { segment: { of }, ...out(index) }),
    null,
  );

suite('segments of a target', (t) => {
  t('each status, with one segment of three out and with none', () => {
    const rest = {
      awaiting_approval: ['pending', 'pending', 'pending'],
      pending: ['pending', 'pending', 'pending'],
      handed_to_platform: ['pending', 'pending', 'pending'],
      publishing: ['publishing', 'pending', 'pending'],
      processing: ['publishing', 'pending', 'pending'],
      published: ['published', 'published', 'published'],
      failed: ['failed', 'failed', 'failed'],
      rate_limited: ['pending', 'pending', 'pending'],
      canceled: ['canceled', 'canceled', 'canceled'],
      outcome_unknown: ['outcome_unknown', 'pending', 'pending'],
    } as const;
    for (const status of targetStatuses) {
      const [next, ...later] = rest[status];
      deepEqual(
        renderSegments(status, null, 3),
        [next, ...later].map((one, index) => ({ index, status: one, ...none })),
      );
      deepEqual(renderSegments(status, after(1), 3), [
        { index: 0, status: 'published', ...out(0) },
        { index: 1, status: next, ...none },
        { index: 2, status: later[0], ...none },
      ]);
    }
  });

  t('a target that is no thread has none', () => {
    for (const status of targetStatuses) deepEqual(renderSegments(status, null, 1), []);
  });

  t('once a segment is out, the events say how many there are, whatever the post says now', () => {
    deepEqual(
      renderSegments('published', after(3), 2),
      [0, 1, 2].map((index) => ({ index, status: 'published', ...out(index) })),
    );
    deepEqual(renderSegments('failed', after(2), 1).length, 3);
  });
});
