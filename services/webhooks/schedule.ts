/** Decides when a delivery is tried again. Pure. */

/** The longest `Retry-After` that counts, milliseconds. */
const maxHintMs = 24 * 3_600_000;
const jitter = 0.1;

/**
 * Milliseconds to wait after a failure: at least the scheduled delay, at most a tenth more. Null after the last try.
 * @param delays one for each attempt, counted from the attempt before; the first is not used here
 * @param failures attempts that failed, this one included
 * @param random 0–1
 */
export const retryDelayMs = (delays: readonly number[], failures: number, random: number): number | null => {
  const delay = delays[failures];
  return delay === undefined ? null : delay * (1 + jitter * random);
};

/**
 * The only form that senders may still use (RFC 9110, 5.6.7). NOTE: `Date.parse` alone takes almost any text for a
 * date.
 */
const httpDate = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

const instantOf = (text: string | undefined): number | null => {
  if (text === undefined || !httpDate.test(text)) return null;
  const instant = Date.parse(text);
  return Number.isNaN(instant) ? null : instant;
};

/**
 * The wait of `Retry-After`, milliseconds, at most 24 h; null when the header is absent or not valid. A date is
 * compared with the receiver's own clock where its answer has one: the clocks may differ by more than the wait.
 * @param now milliseconds since 1970
 */
export const retryAfterMs = (headers: Readonly<Record<string, string>>, now: number): number | null => {
  const text = headers['retry-after']?.trim();
  if (text === undefined) return null;
  const instant = instantOf(text);
  const wait = /^\d+$/.test(text)
    ? Number(text) * 1_000
    : instant === null
      ? 0
      : instant - (instantOf(headers.date) ?? now);
  return wait > 0 ? Math.min(wait, maxHintMs) : null;
};
