/**
 * The build before moved the planned time of a target with each attempt, and its rows keep those times until a rebuild. It
 * leaves columns that it does not know null.
 */
const otherwiseBefore: ReadonlySet<string> = new Set([
  ...['due_at', 'scheduled_at', 'retry_at', 'scheduledAt', 'retryAt'],
  ...['segments', 'overdue', 'unknown_since', 'unknownSince', 'deferred_since', 'cancel_reason', 'cancelReason'],
]);

/**
 * Whether `one` says nothing that `other` does not: members that only a newer build knows may be missing in it, at any
 * depth.
 */
export const saysNoOther = (one: unknown, other: unknown): boolean => {
  if (Array.isArray(one)) {
    return Array.isArray(other) && one.length === other.length && one.every((item, at) => saysNoOther(item, other[at]));
  }
  if (!isObject(one) || !isObject(other)) return one === other;
  return Object.entries(one).every(
    ([name, value]) => otherwiseBefore.has(name) || (name in other && saysNoOther(value, other[name])),
  );
};

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
