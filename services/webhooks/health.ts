import { backOff } from '#contracts/base/back-off.ts';
import type { DeliveryDecision } from './delivery-decision.ts';

/**
 * The health of an endpoint and its circuit breaker. Pure; instants are milliseconds of the database's clock, which all
 * senders share.
 *
 * Closed: `opened` is 0. Open: `openUntil` is in the future. Half-open: `opened` is above 0 and `openUntil` is past;
 * one delivery may be sent, and the sender that claims it moves `openUntil` ahead, so that no second one is sent.
 * Nothing is sent through a closed breaker while the receiver asked for time: then `openUntil` is in the future, and
 * deliveries after it need no probe.
 */
export interface Health {
  /** `changedRevision` of the endpoint at these answers; a newer change makes them void. */
  readonly seenRevision: number;
  /** First failure since the last success, and the newest one. */
  readonly failingSince: number | null;
  readonly failedAt: number | null;
  /** `down` answers in a row. */
  readonly consecutive: number;
  readonly openUntil: number | null;
  /** How often the breaker opened in a row. */
  readonly opened: number;
  readonly disable: string | null;
}

export interface BreakerRules {
  /** `down` answers in a row that open the breaker. */
  readonly failures: number;
  /** Milliseconds for which it opens the first time; doubled each time, up to twenty times as long. */
  readonly openMs: number;
}

const maxDoubled = 20;

export const well = (seenRevision: number): Health => ({
  seenRevision,
  failingSince: null,
  failedAt: null,
  consecutive: 0,
  openUntil: null,
  opened: 0,
  disable: null,
});

/** The summary of one endpoint's answers in a batch, in their order. */
export interface Findings {
  readonly seenRevision: number;
  /** At least one was a success. */
  succeeded: boolean;
  /** At least one was not `down`, which ends a streak. */
  answered: boolean;
  /** `down` answers after the last other answer. */
  streak: number;
  /** The last answer was a failure. */
  failed: boolean;
  /** The answer to the delivery that passed the half-open breaker was `down`. */
  probeFailed: boolean;
  pauseMs: number;
  disable: string | null;
}

export const nothingFound = (seenRevision: number): Findings => ({
  seenRevision,
  succeeded: false,
  answered: false,
  streak: 0,
  failed: false,
  probeFailed: false,
  pauseMs: 0,
  disable: null,
});

/** Adds the next answer. */
export const find = (findings: Findings, decision: DeliveryDecision, probe: boolean): void => {
  findings.pauseMs = Math.max(findings.pauseMs, decision.pauseMs);
  findings.disable ??= decision.disable;
  findings.failed = decision.endpoint !== 'well';
  findings.succeeded ||= decision.endpoint === 'well';
  if (decision.endpoint === 'down') {
    findings.streak += 1;
    findings.probeFailed ||= probe;
    return;
  }
  findings.answered = true;
  findings.probeFailed = false;
  findings.streak = 0;
};

/** True when the batch holds only successes: the health of an endpoint that is well needs no write. */
export const isAllWell = ({ failed, succeeded, disable, pauseMs }: Findings): boolean =>
  succeeded && !failed && disable === null && pauseMs === 0;

/** The health after a batch; null when the batch belongs to an older revision of the endpoint. */
export const after = (before: Health, found: Findings, now: number, rules: BreakerRules): Health | null => {
  if (before.seenRevision > found.seenRevision) return null;
  const base = before.seenRevision === found.seenRevision ? before : well(found.seenRevision);
  const failingSince = found.succeeded ? null : base.failingSince;
  const consecutive = (found.answered ? 0 : base.consecutive) + found.streak;
  let opened = found.answered ? 0 : base.opened;
  let openUntil = found.answered && base.opened > 0 ? null : base.openUntil;
  const opens =
    opened === 0
      ? consecutive >= rules.failures
      : found.probeFailed || (found.streak > 0 && (openUntil === null || openUntil <= now));
  if (opens) {
    openUntil = now + backOff(opened, { firstMs: rules.openMs, maxMs: rules.openMs * maxDoubled });
    opened += 1;
  }
  if (found.pauseMs > 0) openUntil = Math.max(openUntil ?? 0, now + found.pauseMs);
  return {
    seenRevision: found.seenRevision,
    failingSince: found.failed ? (failingSince ?? now) : failingSince,
    failedAt: found.failed ? now : found.succeeded ? null : base.failedAt,
    consecutive,
    openUntil,
    opened,
    disable: found.disable ?? base.disable,
  };
};
