import { type Platform, platforms } from '#schemas/common.ts';
import type { Deps } from './deps.ts';

/** Networks on which this installation connects live accounts. */
export const liveNetworksOf = ({ live }: Pick<Deps, 'live'>): readonly Platform[] =>
  live === undefined ? [] : platforms.filter((platform) => live.connectors[platform] !== undefined);
