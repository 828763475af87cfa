/** Figures of a post, in its network's own members and shapes. */

import type { Members } from '../shared/members.ts';
import { countingOf, dayMs } from './curves.ts';
import type { Shown } from './imitation.ts';
import { imitations } from './imitations.ts';

/** The figures of a story stop growing after a day. */
export function postAnswer(shown: Shown): Members {
  const { platform, post } = shown;
  const { spreadMs, postInsights } = imitations[platform];
  const ageMs = post.use === 'story' ? Math.min(shown.ageMs, dayMs) : shown.ageMs;
  return postInsights(shown, countingOf(spreadMs, post.externalId, ageMs));
}
