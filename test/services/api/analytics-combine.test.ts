import assert from 'node:assert/strict';
import { instantsOf } from '#projections/analytics/instants.ts';
import type { PostFiguresRow } from '#projections/analytics/rollup.ts';
import { counters, PostFigures } from '#schemas/insights.ts';
import { combined } from '#services/api/analytics/combine.ts';
import { windowOf } from '#services/api/analytics/window.ts';
import { suite } from '#test/support/suite.ts';

const rowOf = (figures: PostFiguresRow['figures']): PostFiguresRow => ({
  postId: 'post',
  targetId: 'target',
  platform: 'x',
  figures: { platformRemovedAt: null, ...figures },
  engagementRate: 0.5,
  fetchedAt: '2026-05-01T00:00:00.000Z',
  day: '2026-05-01',
});

const together = (...rows: PostFiguresRow['figures'][]) => combined(rows.map(rowOf));

suite('a post of several targets', (t) => {
  t('without observations no member is shown; a single target shows its own figures', () => {
    assert.deepEqual(combined([]), {});
    assert.deepEqual(together({ likes: 0, saves: null }), {
      ...{ likes: 0, saves: null, platformRemovedAt: null, engagementRate: 0.5 },
    });
  });

  t(
    'a figure that all targets lack is absent; one that no network reports is null; else it is the sum of the reported values',
    () => {
      const found = together(
        { likes: 0, saves: null, reach: 5 },
        { likes: null, saves: null },
        { reach: 7, quotes: 0 },
      );
      assert.deepEqual(found, {
        ...{ reach: 12, likes: 0, saves: null, quotes: 0, platformRemovedAt: null, engagementRate: null },
      });
    },
  );

  t('kinds add up kind by kind; a figure that cannot be summed is shown where only one target has it', () => {
    const found = together(
      {
        reactionsByType: { like: 3, love: null },
        trafficSources: { search: 4 },
        permalink: 'https://a.example',
        skipRate: null,
      },
      { reactionsByType: { like: 1, sad: 0 }, trafficSources: null, permalink: null, avgViewPercentage: 40 },
      { avgViewPercentage: 60, clicksByType: null },
    );
    assert.deepEqual(found.reactionsByType, { like: 4, love: null, sad: 0 });
    assert.deepEqual(found.trafficSources, { search: 4 });
    assert.deepEqual(
      [found.permalink, found.skipRate, found.avgViewPercentage, found.clicksByType],
      [...['https://a.example', null, null, null]],
    );
    assert.equal('audienceRetention' in found, false);
  });

  t('the rate uses only the targets whose figures are known on both sides', () => {
    assert.equal(together({ likes: 10, impressions: 100 }, { likes: 500 }, { impressions: 900 }).engagementRate, 0.1);
    assert.equal(
      together({ likes: 10, impressions: 100 }, { totalInteractions: 20, likes: 8, impressions: 100 }).engagementRate,
      0.09,
    );
    assert.equal(
      together({ likes: 10, impressions: 100 }, { totalInteractions: 20, impressions: 200 }).engagementRate,
      0.1,
    );
    assert.equal(together({ likes: 10, impressions: 0 }, { likes: 1 }).engagementRate, null);
  });

  t('the post is removed once every network has removed it', () => {
    const [first, last] = ['2026-05-01T00:00:00.000Z', '2026-05-02T00:00:00.000Z'];
    assert.equal(together({ platformRemovedAt: first }, {}).platformRemovedAt, null);
    assert.equal(together({ platformRemovedAt: last }, { platformRemovedAt: first }).platformRemovedAt, last);
  });

  t('every member of the figures is combined in one of the ways', () => {
    const reported: Record<string, unknown> = Object.fromEntries(counters.map((name) => [name, 1]));
    for (const name of Object.keys(PostFigures.properties)) reported[name] ??= null;
    const found: Record<string, unknown> = together(reported as PostFiguresRow['figures'], {});
    for (const name of Object.keys(PostFigures.properties)) assert.equal(found[name], reported[name], name);
    const largest = Number.MAX_SAFE_INTEGER;
    assert.equal(together({ likes: largest }, { likes: largest }).likes, largest);
  });
});

suite('windows', (t) => {
  t('a day begins when it does in the zone, also where the clocks change', () => {
    const days = { from: '2026-03-29', to: '2026-03-29' };
    assert.deepEqual(instantsOf(days, 'Europe/Berlin'), {
      ...{ from: '2026-03-28T23:00:00.000Z', to: '2026-03-29T22:00:00.000Z' },
    });
    // Beirut's clocks are put forward at midnight: the day begins at one.
    assert.equal(instantsOf(days, 'Asia/Beirut').from, '2026-03-28T22:00:00.000Z');
    const { to } = windowOf({}, 'Pacific/Kiritimati', '2026-12-31T10:00:00.000Z');
    assert.equal(to, '2027-01-01');
  });
});
