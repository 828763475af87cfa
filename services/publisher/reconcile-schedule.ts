import type { TargetCheckpoint } from '#domain/target.ts';

/** When the publisher asks about an unknown outcome, and the instant from which the answer `absent` is proof. */

const hourMs = 3_600_000;
/** The publisher asks hourly up to this age of the outcome; afterwards a person settles it. */
const givenUpAfterMs = 72 * hourMs;
/** Milliseconds that a given-up target rests; after each rest the publisher reads it and lets it rest again. */
export const restMs = 24 * hourMs;

/** Milliseconds from the unknown outcome to the next question: the delays added up, then every hour. */
const nextOffset = (elapsedMs: number, delaysMs: readonly number[]): number => {
  let offset = 0;
  for (const delay of delaysMs) {
    offset += delay;
    if (offset > elapsedMs) return offset;
  }
  while (offset <= elapsedMs) offset += hourMs;
  return offset;
};

/** Milliseconds since the epoch from which `absent` is proof; null: the adapter cannot prove it. */
export const provableAt = (
  { deadline }: TargetCheckpoint,
  settleWindowMs: number,
  absenceIsProof: boolean,
): number | null => (deadline === null || !absenceIsProof ? null : Date.parse(deadline) + settleWindowMs);

/** Milliseconds from now to the next question; null: the publisher has given up, and a person settles the outcome. */
export const nextQuestionMs = (
  now: number,
  unknownSince: number,
  delaysMs: readonly number[],
  provable: number | null,
): number | null => {
  const elapsed = now - unknownSince;
  if (elapsed >= givenUpAfterMs) return null;
  const next = unknownSince + nextOffset(elapsed, delaysMs);
  // From that instant absence is proof, so the publisher asks then too.
  const sooner = provable !== null && provable > now ? Math.min(next, provable) : next;
  return Math.max(1, sooner - now);
};
