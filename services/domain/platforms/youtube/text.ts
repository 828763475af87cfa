import type { Overrides } from '#domain/platforms/rules.ts';
import { showsNothing } from '#domain/platforms/visible-text.ts';

/** The title as it is sent: the override, else the first line of the content that has text; null when it is unusable. */
export function youtubeTitle(content: string, overrides: Overrides): string | null {
  const own = overrides.title;
  const set = typeof own === 'string' && !showsNothing(own);
  const title = set
    ? own.trim()
    : (content.split(/\r\n|[\n\r\u2028\u2029]/u).find((line) => !showsNothing(line)) ?? '').trim();
  // A line that is too long is not cut: a target without a usable title fails, it is not degraded in silence.
  return title === '' || [...title].length > 100 || /[<>]/.test(title) ? null : title;
}
