/**
 * A key that something stored is sealed with is not there, or does not open it. Nothing may be concluded from that, and
 * no event is to blame: whoever meets it stops and tries again once the key may be back.
 */
export class MissingKey extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'MissingKey';
  }
}
