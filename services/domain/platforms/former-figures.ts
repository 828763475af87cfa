import type { Platform } from '#schemas/common.ts';
import type { PostFigures } from '#schemas/insights.ts';

/**
 * Observations from before two figures had their present places: the follows of x were `subscribersGained`, and clicks
 * on the link of a post were `linkClicks` on networks other than instagram too. Stored observations keep what was
 * written; everything that reads them reads the present figures. `former-figures.sql.ts` says the same to ClickHouse.
 */

/** What the networks call clicks on a link. */
const linkKinds: Readonly<Partial<Record<Platform, string>>> = {
  facebook: 'link clicks',
  linkedin: 'LINK_CLICKS',
  pinterest: 'outbound_click',
};

export const presentFigures = <F extends PostFigures>(platform: Platform, figures: F): F => {
  if (platform === 'x') return ofFollows(figures);
  const kind = linkKinds[platform];
  const { linkClicks } = figures;
  if (kind === undefined || linkClicks === undefined || linkClicks === null) return figures;
  return { ...figures, linkClicks: null, clicksByType: figures.clicksByType ?? { [kind]: linkClicks } };
};

const ofFollows = <F extends PostFigures>(figures: F): F => {
  const { subscribersGained: gained, subscribersLost: lost, follows } = figures;
  return {
    ...figures,
    ...(gained === undefined ? {} : { follows: follows ?? gained, subscribersGained: null }),
    ...(lost === undefined ? {} : { subscribersLost: null }),
  };
};
