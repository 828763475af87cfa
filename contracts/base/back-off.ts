/** Waits between tries, in milliseconds. */
export interface BackOff {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** More doublings than any `maxMs` allows; without this bound the product could become infinite. */
const maxDoublings = 40;

/**
 * Milliseconds until the next try: twice as long after each failure in a row.
 * @param failures in a row before the wait; 0: the first wait
 */
export const backOff = (failures: number, { firstMs, maxMs }: BackOff): number =>
  Math.min(maxMs, firstMs * 2 ** Math.min(failures, maxDoublings));
