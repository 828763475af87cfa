/**
 * The key that sealed stored bytes is missing, or does not open them. The reader may conclude nothing from that, and no
 * event is to blame: the reader stops, and tries again, since an operator may restore the key.
 */
export class MissingKey extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'MissingKey';
  }
}
