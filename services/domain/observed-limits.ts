import type { ObservedWindow } from '#schemas/cadence.ts';

/**
 * Which reports of an account's limits are worth an event. The cadence counts our own posts by itself; it needs the
 * network's limit, and how much others used of it. Pure: milliseconds since the epoch.
 */

export const maxObservedWindows = 20;
/** A wrong clock of a network rests an account no longer. */
const maxAheadMs = 86_400_000;

/** As the cadence may use it; null: it says nothing. */
const sound = (seen: ObservedWindow, now: number): ObservedWindow | null => {
  const { name, seconds, limit, used, resetsAt } = seen;
  const isCount = [seconds, limit, used].every((one) => Number.isSafeInteger(one) && one >= 0);
  // No network lets an account connect that may never post: such a limit is a mistake, and nothing would ever lift it.
  if (!isCount || limit < 1 || seconds < 1 || seconds > 31 * 86_400 || name === '') return null;
  const at = Date.parse(resetsAt ?? '');
  if (Number.isNaN(at)) return { ...seen, resetsAt: null };
  const latest = now + Math.max(maxAheadMs, seconds * 1_000);
  return { ...seen, resetsAt: new Date(Math.min(Math.max(at, 0), latest)).toISOString() };
};

/** Used now, as far as the report still holds. */
const usedAt = ({ used, resetsAt }: ObservedWindow, now: number): number =>
  resetsAt !== null && Date.parse(resetsAt) > now ? used : 0;

const differs = (seen: ObservedWindow, known: ObservedWindow | undefined, now: number): boolean => {
  if (known === undefined || known.limit !== seen.limit || known.seconds !== seen.seconds) return true;
  const [was, is] = [usedAt(known, now), usedAt(seen, now)];
  const isFull = (used: number): boolean => used >= seen.limit;
  return isFull(is) !== isFull(was) || Math.abs(is - was) >= Math.max(1, seen.limit / 10);
};

/**
 * All windows of the account after a report, which may name some of them; null: nothing that matters has changed.
 * @param known as the account's stream has them
 */
export const afterReport = (
  known: readonly ObservedWindow[],
  reported: readonly ObservedWindow[],
  now: number,
): readonly ObservedWindow[] | null => {
  const seen = reported.slice(0, maxObservedWindows).flatMap((one) => sound(one, now) ?? []);
  const of = (name: string) => known.find((one) => one.name === name);
  if (!seen.some((one) => differs(one, of(one.name), now))) return null;
  const others = known.filter(({ name }) => !seen.some((one) => one.name === name));
  return [...seen, ...others].slice(0, maxObservedWindows);
};
