import type { PostFigures } from '#schemas/insights.ts';

/** The parts of engagement. */
export const interactionParts = [
  'likes',
  'comments',
  'shares',
  'saves',
  'reposts',
  'quotes',
] as const satisfies readonly (keyof PostFigures)[];

type Parts = Pick<PostFigures, 'totalInteractions' | (typeof interactionParts)[number]>;

/**
 * The sum of the known parts; the network's own total only where no part is known; null when neither is known. The
 * total is the second choice, because networks count other things in it and stop reporting it (X after 30 days): a post
 * whose definition changes within its life would lose interactions.
 */
export function interactionsOf(figures: Parts): number | null {
  let sum: number | null = null;
  for (const part of interactionParts) {
    const count = figures[part];
    if (typeof count === 'number') sum = Math.min((sum ?? 0) + count, Number.MAX_SAFE_INTEGER);
  }
  return sum ?? figures.totalInteractions ?? null;
}
