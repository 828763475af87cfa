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
 * The sum of the parts that are known; the network's own total only where no part is; null when neither is. The total is
 * no better where it is told: networks count other things in it and stop telling it (X after 30 days), and a post whose
 * definition changes within its life loses interactions that it has.
 */
export function interactionsOf(figures: Parts): number | null {
  let sum: number | null = null;
  for (const part of interactionParts) {
    const count = figures[part];
    if (typeof count === 'number') sum = Math.min((sum ?? 0) + count, Number.MAX_SAFE_INTEGER);
  }
  return sum ?? figures.totalInteractions ?? null;
}
