import type { Leased } from '#projections/webhooks/handover.ts';
import { retryAfterMs, retryDelayMs } from './schedule.ts';

/** Decides from an answer what happens to its delivery and its endpoint. Pure. */

/** How an exchange ended. */
export interface ReceiverAnswer {
  readonly status: number | null;
  /** Null when a status came. */
  readonly error: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly bodyStart: Buffer;
  readonly durationMs: number;
}

export interface DeliveryDecision {
  /** `again`: the delivery stays pending and is due after `waitMs`. */
  readonly outcome: 'delivered' | 'again' | 'failed';
  readonly waitMs: number;
  /** `well`: 2xx. `down`: no answer, 5xx or 429. `refuses`: any other status. */
  readonly endpoint: 'well' | 'refuses' | 'down';
  /** How long nothing is sent to the endpoint because the receiver asked for time, milliseconds. */
  readonly pauseMs: number;
  /** Why the endpoint must be turned off; null when it stays on. */
  readonly disable: 'gone' | 'receiver' | null;
}

/** Longest time for which one answer may delay all deliveries to its endpoint, milliseconds. */
const maxPauseMs = 5 * 60_000;

const isSuccess = (status: number | null): boolean => status !== null && status >= 200 && status < 300;

export const judge = (
  { status, headers }: ReceiverAnswer,
  { tries, trigger }: Pick<Leased, 'tries' | 'trigger'>,
  { delays, now, random }: { readonly delays: readonly number[]; readonly now: number; readonly random: number },
): DeliveryDecision => {
  const asked = headers['webhook-delivery']?.trim().toLowerCase();
  const disable = status === 410 ? 'gone' : status !== null && asked === 'disable' ? 'receiver' : null;
  if (isSuccess(status)) return { outcome: 'delivered', waitMs: 0, endpoint: 'well', pauseMs: 0, disable };
  const endpoint = status === null || status >= 500 || status === 429 ? 'down' : 'refuses';
  const hint = status === null ? null : retryAfterMs(headers, now);
  const pauseMs = hint !== null && (status === 429 || status === 503) ? Math.min(hint, maxPauseMs) : 0;
  const failed = { outcome: 'failed', waitMs: 0, endpoint, pauseMs, disable } as const;
  // A test has one attempt, because the person who requested it looks at its outcome.
  if (trigger === 'test' || asked === 'abort-message') return failed;
  const last = delays.length - 1;
  // An endpoint that asks to be turned off has not refused the delivery, so the delivery waits until the endpoint is
  // turned on, even after its last try.
  const scheduled = retryDelayMs(delays, disable === null ? tries + 1 : Math.min(tries + 1, last), random);
  if (scheduled === null) return failed;
  return { outcome: 'again', waitMs: Math.max(scheduled, hint ?? 0), endpoint, pauseMs, disable };
};

/** Bytes of an answer's body that are kept. */
const maxBody = 4_096;
/** jsonb cannot hold a NUL. */
const nul = String.fromCharCode(0);

/** The start of a body as well-formed text; null when it was empty. */
export const bodyText = (bodyStart: Buffer): string | null => {
  if (bodyStart.length === 0) return null;
  const cut = bodyStart.length > maxBody;
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bodyStart.subarray(0, maxBody), { stream: cut });
  return text.replaceAll(nul, '\ufffd');
};

/** An attempt as its delivery lists it. */
export interface Attempt {
  readonly number: number;
  readonly at: string;
  readonly trigger: Leased['trigger'];
  readonly status: number | null;
  readonly error: string | null;
  readonly durationMs: number;
  readonly responseBody: string | null;
}

export const attemptOf = (
  { attempt, trigger }: Pick<Leased, 'attempt' | 'trigger'>,
  startedAt: number,
  { status, error, durationMs, bodyStart }: ReceiverAnswer,
): Attempt => ({
  number: attempt,
  at: new Date(startedAt).toISOString(),
  trigger,
  status,
  error,
  durationMs,
  responseBody: bodyText(bodyStart),
});
