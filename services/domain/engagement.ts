import type { PostFigures } from '#schemas/metrics.ts';

/** What makes up engagement where the network tells no total of its own. */
export const interactionParts = [
  'likes',
  'comments',
  'shares',
  'saves',
  'reposts',
  'quotes',
] as const satisfies readonly (keyof PostFigures)[];

type Parts = Pick<PostFigures, 'totalInteractions' | (typeof interactionParts)[number]>;

/** The network's own total; without one the sum of those of its parts that are known; null when none is. */
export function interactionsOf(figures: Parts): number | null {
  if (typeof figures.totalInteractions === 'number') return figures.totalInteractions;
  let sum: number | null = null;
  for (const part of interactionParts) {
    const count = figures[part];
    if (typeof count === 'number') sum = Math.min((sum ?? 0) + count, Number.MAX_SAFE_INTEGER);
  }
  return sum;
}
