import { backOff } from '#runtime/work/back-off.ts';
import type { DeliveryDecision } from './delivery-decision.ts';

/**
 * How an endpoint does, and when its breaker lets nothing through. Pure; instants are milliseconds of the database's
 * clock, the one clock all senders share.
 *
 * Closed: `opened` 0. Open: `openUntil` lies ahead. Half-open: `opened` above 0 and `openUntil` behind; one delivery may
 * go, and whoever claims it moves `openUntil` ahead, so that no second one does. A closed one may rest too, because the
 * receiver asked for time: then `openUntil` lies ahead and what follows needs no probe.
 */
export interface Health {
  /** `changedRevision` of the endpoint under which this was seen: of an older one nothing holds. */
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
  /** Opens after so many in a row. */
  readonly failures: number;
  /** Milliseconds of the first time; doubles up to twenty times that. */
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

/** What the answers of a batch, in their order, say about one endpoint. */
export interface Findings {
  readonly seenRevision: number;
  /** There was a success. */
  succeeded: boolean;
  /** It answered at all: that ends a streak. */
  answered: boolean;
  /** Times it was down since it last answered. */
  streak: number;
  /** Something failed since the last success. */
  failed: boolean;
  /** The one delivery that was let through an open breaker found it down. */
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
export const find = (findings: Findings, verdict: DeliveryDecision, probe: boolean): void => {
  findings.pauseMs = Math.max(findings.pauseMs, verdict.pauseMs);
  findings.disable ??= verdict.disable;
  findings.failed = verdict.endpoint !== 'well';
  findings.succeeded ||= verdict.endpoint === 'well';
  if (verdict.endpoint === 'down') {
    findings.streak += 1;
    findings.probeFailed ||= probe;
    return;
  }
  findings.answered = true;
  findings.probeFailed = false;
  findings.streak = 0;
};

/** True when nothing but success was found: what is well already needs no write. */
export const isAllWell = ({ failed, succeeded, disable, pauseMs }: Findings): boolean =>
  succeeded && !failed && disable === null && pauseMs === 0;

/** The same endpoint after a batch; null when the batch says nothing about it as it is now. */
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
