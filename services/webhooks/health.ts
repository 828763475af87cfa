import { backOff } from '#runtime/work/back-off.ts';
import type { DeliveryDecision } from './delivery-decision.ts';

/**
 * The health of an endpoint and its circuit breaker. Pure; instants are milliseconds of the database's clock, which all
 * senders share.
 *
 * Closed: `opened` is 0. Open: `openUntil` lies ahead. Half-open: `opened` is above 0 and `openUntil` lies behind; one
 * delivery may go, and the sender that claims it moves `openUntil` ahead, so that no second one goes. A closed breaker may
 * rest too when the receiver asked for time: then `openUntil` lies ahead, and deliveries after it need no probe.
 */
export interface Health {
  /** `changedRevision` of the endpoint under which this was seen; after a newer change it is void. */
  readonly seenRevision: number;
  /** First failure since the last success, and the newest one. */
  readonly failingSince: number | null;
  readonly failedAt: number | null;
  /** Times in a row it was down. */
  readonly consecutive: number;
  readonly openUntil: number | null;
  /** Times the breaker opened in a row. */
  readonly opened: number;
  readonly disable: string | null;
}

export interface BreakerRules {
  /** Failures in a row that open it. */
  readonly failures: number;
  /** Milliseconds that it is open the first time; doubled each time, up to twenty times as long. */
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

/** What the answers of a batch say about one endpoint, in their order. */
export interface Findings {
  readonly seenRevision: number;
  /** At least one was a success. */
  succeeded: boolean;
  /** It answered at least once, which ends a streak. */
  answered: boolean;
  /** Times it was down since it last answered. */
  streak: number;
  /** The last answer was a failure. */
  failed: boolean;
  /** The one delivery that passed the half-open breaker found it down. */
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

/** True when the batch holds nothing but successes: an endpoint that is well needs no write. */
export const isAllWell = ({ failed, succeeded, disable, pauseMs }: Findings): boolean =>
  succeeded && !failed && disable === null && pauseMs === 0;

/** The health after a batch; null when the batch was seen under an older revision of the endpoint. */
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
