/**
 * Thrown where this code breaks its own guarantee: a bug that no retry fixes. It has its own class so that a lane stops
 * at it; an error of an unknown class counts as temporary and is retried for ever.
 */
export class BrokenInvariant extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'BrokenInvariant';
  }
}
