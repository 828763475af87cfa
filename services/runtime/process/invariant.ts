/**
 * A promise of this code to itself is broken: a fault of ours, which no repetition mends. It has a class of its own so that
 * a lane stops at it; an error of no known class counts as a passing fault and is tried again for ever.
 */
export class BrokenInvariant extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'BrokenInvariant';
  }
}
