import type { PlatformAdapter, ReconcileOutcome } from '#contracts/ports/platform.ts';
import type { TargetCheckpoint } from '#domain/target.ts';

/** When an outcome that is not known is asked for, and what the answer proves. */

const hourMs = 3_600_000;
/** Asked hourly until then; afterwards a person settles it. */
const givenUpAfterMs = 72 * hourMs;
/** How long a given-up one rests before its row is looked at again (and left alone again). */
export const restMs = 24 * hourMs;
/** An adapter that does not answer says nothing. */
export const reconcileLimitMs = 30_000;

/** Milliseconds after the outcome became unknown at which it is asked for: the delays added up, then hourly. */
const nextOffset = (elapsedMs: number, delaysMs: readonly number[]): number => {
  let offset = 0;
  for (const wait of delaysMs) {
    offset += wait;
    if (offset > elapsedMs) return offset;
  }
  while (offset <= elapsedMs) offset += hourMs;
  return offset;
};

/** Instant from which "absent" can be believed; null when nothing was called or the adapter cannot prove it. */
export const provableAt = (
  boundary: TargetCheckpoint | null,
  settleWindowMs: number,
  absenceIsProof: boolean,
): number | null =>
  boundary === null || boundary.deadline === null || !absenceIsProof
    ? null
    : Date.parse(boundary.deadline) + settleWindowMs;

/** Milliseconds from now to the next question; null when it is a person's turn. */
export const nextQuestionMs = (
  now: number,
  unknownSince: number,
  delaysMs: readonly number[],
  provable: number | null,
): number | null => {
  const elapsed = now - unknownSince;
  if (elapsed >= givenUpAfterMs) return null;
  const next = unknownSince + nextOffset(elapsed, delaysMs);
  // The moment from which absence is proof is worth a question of its own.
  const sooner = provable !== null && provable > now ? Math.min(next, provable) : next;
  return Math.max(1, sooner - now);
};

export interface ReconcileResult {
  readonly said: ReconcileOutcome;
  /** The network says "absent", and says it late enough that the attempt can never appear. */
  readonly provenAbsent: boolean;
}

export const reconcileResultOf = (
  said: ReconcileOutcome,
  askedAt: number,
  provable: number | null,
): ReconcileResult => ({
  said,
  provenAbsent: said.kind === 'absent' && provable !== null && askedAt >= provable,
});

export interface AdapterTimes {
  readonly boundaryDeadlineMs: number;
  readonly settleWindowMs: number;
}

/** The configuration's times where it has some, else the adapter's own. */
export const timesOf = (
  adapter: PlatformAdapter,
  platform: Parameters<PlatformAdapter['settleWindowMs']>[0],
  config: { readonly boundaryDeadlineMs: number | null; readonly settleWindowMs: number | null },
): AdapterTimes => ({
  boundaryDeadlineMs: config.boundaryDeadlineMs ?? adapter.boundaryDeadlineMs,
  settleWindowMs: config.settleWindowMs ?? adapter.settleWindowMs(platform),
});
