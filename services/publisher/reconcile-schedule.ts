import { undoClosesMs } from '#domain/post/scheduling.ts';
import type { AbsencePolicy, TargetCheckpoint } from '#domain/post-target/target.ts';

/** When the publisher asks about an unknown outcome, and the instant from which the answer `absent` counts. */

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

/** Three looks of a client's rules, at least a minute apart. */
export const absencePolicy: AbsencePolicy = { looks: 3, gapMs: 60_000 };

/** Milliseconds between two questions about a post that its network accepted. */
export interface ProcessingRest {
  readonly minMs: number;
  readonly maxMs: number;
}
export const processingRest: ProcessingRest = { minMs: 2_000, maxMs: hourMs };

/** Milliseconds from now to the instant that a network names for the next question; one that is past or far is bounded. */
export const askAfter = (askAt: string, now: number, { minMs, maxMs }: ProcessingRest): number => {
  const at = Date.parse(askAt);
  return Math.min(Math.max(Number.isNaN(at) ? 0 : at - now, minMs), maxMs);
};

/** A question without an answer is put again after a quarter of the matter's age, but not sooner than this. Milliseconds. */
const unansweredRestMs = 60_000;

/**
 * Milliseconds until a question is put again that the network did not answer: it goes out ever less often, and one lost answer
 * does not hide for an hour what is minutes old.
 * @param ageMs of what is asked about
 */
export const unansweredRest = (ageMs: number): number => Math.max(ageMs / 4, unansweredRestMs);

/**
 * Milliseconds since the epoch at which the network's settle window ends, by a clock that is so far ahead. The call of a worker
 * that is gone takes as long as it takes: a move of the clock since does not shorten it.
 */
export const windowEndsAt = (
  { deadline, aheadMs: thenAheadMs = 0 }: TargetCheckpoint,
  settleWindowMs: number,
  clockAheadMs: number,
): number | null => (deadline === null ? null : Date.parse(deadline) - thenAheadMs + settleWindowMs + clockAheadMs);

/** One question to a network, in milliseconds since the epoch. */
export interface Moment {
  readonly askedAt: number;
  readonly answeredAt: number;
}

/**
 * Milliseconds since the epoch at which the network's own scheduler has published a post of that time. If the network
 * answered the question while it may be publishing, it may have shown the post neither as scheduled nor as published;
 * this then is the instant. Null: it did not, so that `absent` is no effect of it. The network's clock may be ahead, so
 * it may begin as early as a post is no longer taken back.
 */
export const publishedBy = (dueAt: string, settleWindowMs: number, { askedAt, answeredAt }: Moment): number | null => {
  const due = Date.parse(dueAt);
  const until = due + settleWindowMs;
  return answeredAt >= due - undoClosesMs && askedAt < until ? until : null;
};

/**
 * Milliseconds from now to the next question; null: the publisher has given up, and a person settles the outcome.
 * @param askedFrom milliseconds since the epoch at which the outcome of the latest call became unknown
 * @param counts milliseconds since the epoch from which the answer `absent` counts; null: it does not
 */
export const nextQuestionMs = (
  now: number,
  askedFrom: number,
  delaysMs: readonly number[],
  counts: number | null,
): number | null => {
  const elapsed = now - askedFrom;
  if (elapsed >= givenUpAfterMs) return null;
  // It was written by a clock that is right again since.
  if (elapsed < 0) return hourMs;
  const next = askedFrom + nextOffset(elapsed, delaysMs);
  const sooner = counts !== null && counts > now ? Math.min(next, counts) : next;
  return Math.max(1, sooner - now);
};
