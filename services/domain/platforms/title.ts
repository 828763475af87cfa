import type { Platform } from '#schemas/common.ts';
import { rulesOf } from './registry.ts';
import type { Overrides } from './rules.ts';
import { youtubeTitle } from './youtube/text.ts';

/** The title that the network gets beside the text; null where it has none, or none that it would take. */
export const titleOf = (platform: Platform, content: string, overrides: Overrides): string | null => {
  if (platform === 'youtube') return youtubeTitle(content, overrides);
  const { title } = overrides;
  const isKnown = rulesOf(platform).overrides.title !== undefined;
  return isKnown && typeof title === 'string' && title !== '' ? title : null;
};
