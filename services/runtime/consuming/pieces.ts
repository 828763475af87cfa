/** Applying records in order, in ever smaller pieces once the whole failed, until the one that fails stands alone. */

export type PieceOutcome =
  | { readonly kind: 'applied' }
  /** Whoever applies them has given up: no further piece. */
  | { readonly kind: 'over' }
  /** Some record of the piece may be to blame. */
  | { readonly kind: 'failed'; readonly error: unknown };

export const applied: PieceOutcome = { kind: 'applied' };
export const over: PieceOutcome = { kind: 'over' };

export interface PieceWork<R> {
  readonly records: readonly R[];
  /** Whether it was blamed or left out already, or waits behind one that was, and so cannot make a piece fail. */
  judged(record: R): boolean;
  /** @param whole whether the piece reaches the end of the records */
  attempt(piece: readonly R[], whole: boolean): Promise<PieceOutcome>;
  /** It fails alone. False: nothing further is tried. */
  blame(record: R, error: unknown): boolean;
  /** A piece fails in which nobody is left to blame. */
  failed(error: unknown): void;
}

/** So many of the records that half of those are among them that may be to blame. */
const halfOf = <R>(piece: readonly R[], open: readonly R[]): number => {
  const last = open[Math.ceil(open.length / 2) - 1];
  return last === undefined ? piece.length : piece.indexOf(last) + 1;
};

/** With one more record that may fail, or to the end. */
const untilNextOpen = <R>({ records, judged }: PieceWork<R>, at: number, width: number): number => {
  const next = records.findIndex((one, index) => index >= at + width && !judged(one));
  return (next === -1 ? records.length : next + 1) - at;
};

/**
 * What is blamed waits for the piece that follows, and is judged with it: so nothing is set aside before something else
 * succeeded, or the records end. A fault that only looks like a bad record fails them all, and sets none of them aside.
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
