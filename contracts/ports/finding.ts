/** What an examination of an installation finds. */
export interface Finding {
  /** What was examined, in a few words. */
  readonly about: string;
  /**
   * `warn`: it works now, and will not for long. `fix`: it does not work until somebody mends it. `cannot_tell`: it
   * cannot be known from here. `off`: the operator has not set it up.
   */
  readonly verdict: 'ok' | 'warn' | 'fix' | 'cannot_tell' | 'off';
  /** One line, without secrets. It may quote what a network says. */
  readonly words: string;
  /** What to do; null: nothing. */
  readonly remedy: string | null;
}
