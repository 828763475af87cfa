/** How long to wait between tries, milliseconds. */
export interface BackOff {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** Far more doublings than any `maxMs` leaves room for; without this bound the product could become infinite. */
const maxDoublings = 40;

/**
 * Milliseconds until the next try: twice as long after each failure in a row.
 * @param failures in a row before the wait; 0: the first wait
 */
export const backOff = (failures: number, { firstMs, maxMs }: BackOff): number =>
  Math.min(maxMs, firstMs * 2 ** Math.min(failures, maxDoublings));
