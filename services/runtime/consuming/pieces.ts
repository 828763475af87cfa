/** Applies records in order. After a failure it halves the piece until the failing record stands alone. */

export type PieceOutcome =
  | { readonly kind: 'applied' }
  /** The caller has given up; no piece follows. */
  | { readonly kind: 'over' }
  /** A record of the piece may be the cause. */
  | { readonly kind: 'failed'; readonly error: unknown };

export const applied: PieceOutcome = { kind: 'applied' };
export const over: PieceOutcome = { kind: 'over' };

export interface PieceWork<R> {
  readonly records: readonly R[];
  /** Whether the record is blamed or left out, or waits behind such a record, and so cannot make a piece fail. */
  judged(record: R): boolean;
  /** @param whole whether the piece reaches the end of the records */
  attempt(piece: readonly R[], whole: boolean): Promise<PieceOutcome>;
  /** Blames a record that fails alone. False: no piece follows. */
  blame(record: R, error: unknown): boolean;
  /** Handles the failure of a piece in which every record is already judged. */
  failed(error: unknown): void;
}

/** Length of the start of the piece that has half of its open records. */
const halfOf = <R>(piece: readonly R[], open: readonly R[]): number => {
  const last = open[Math.ceil(open.length / 2) - 1];
  return last === undefined ? piece.length : piece.indexOf(last) + 1;
};

/** Length of the piece with one more open record, or up to the end. */
const untilNextOpen = <R>({ records, judged }: PieceWork<R>, at: number, width: number): number => {
  const next = records.findIndex((one, index) => index >= at + width && !judged(one));
  return (next === -1 ? records.length : next + 1) - at;
};

/**
 * A blamed record is set aside together with the next piece that succeeds, or at the end of the records. So a fault
 * that only looks like a bad record fails all pieces and sets no record aside.
 */
export const applyInPieces = async <R>(work: PieceWork<R>): Promise<void> => {
  const { records } = work;
  let at = 0;
  for (let width = records.length; ; ) {
    const piece = records.slice(at, at + width);
    const whole = at + width >= records.length;
    const outcome = await work.attempt(piece, whole);
    if (outcome.kind === 'over') return;
    if (outcome.kind === 'applied') {
      if (whole) return;
      at += width;
      width = Math.min(width * 2, records.length - at);
      continue;
    }
    const open = piece.filter((one) => !work.judged(one));
    const [first] = open;
    if (first === undefined) return work.failed(outcome.error);
    if (open.length > 1) width = halfOf(piece, open);
    else if (!work.blame(first, outcome.error)) return;
    else width = untilNextOpen(work, at, width);
  }
};
