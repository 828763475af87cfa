import { deepEqual } from 'node:assert/strict';
import { presentFigures } from '#domain/platforms/index.ts';
import { suite } from '#test/support/suite.ts';

suite('figures of former observations', (t) => {
  t('the follows of x were subscribers', () => {
    deepEqual(presentFigures('x', { likes: 1, follows: null, subscribersGained: 3, subscribersLost: 2 }), {
      likes: 1,
      follows: 3,
      subscribersGained: null,
      subscribersLost: null,
    });
    const now = { follows: 4, subscribersGained: null, subscribersLost: null };
    deepEqual(presentFigures('x', now), now);
    deepEqual(presentFigures('x', { ...now, subscribersGained: 3 }), now);
    deepEqual(presentFigures('x', { likes: 1 }), { likes: 1 });
    deepEqual(presentFigures('x', { subscribersLost: 2 }), { subscribersLost: null });
    const video = { follows: null, subscribersGained: 3, subscribersLost: 2 };
    deepEqual(presentFigures('youtube', video), video);
  });

  t('clicks on links are a kind of clicks, except on instagram', () => {
    const clicked = (clicksByType: Readonly<Record<string, number>>) => ({ linkClicks: null, clicksByType });
    deepEqual(presentFigures('linkedin', { linkClicks: 5, clicksByType: null }), clicked({ LINK_CLICKS: 5 }));
    deepEqual(presentFigures('facebook', { linkClicks: 5 }), clicked({ 'link clicks': 5 }));
    deepEqual(presentFigures('pinterest', { linkClicks: 0 }), clicked({ outbound_click: 0 }));
    const kinds = { 'link clicks': 5, 'photo view': 2 };
    deepEqual(presentFigures('facebook', { linkClicks: 5, clicksByType: kinds }), clicked(kinds));
    for (const linkClicks of [null, undefined] as const) {
      const figures = linkClicks === undefined ? {} : { linkClicks };
      deepEqual(presentFigures('linkedin', figures), figures);
    }
    deepEqual(presentFigures('instagram', { linkClicks: 5 }), { linkClicks: 5 });
  });
});
