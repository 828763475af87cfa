import type { PeopleDeps } from './deps.ts';

/** What a form carries from one step of a person to the next: sealed for one purpose, and for some minutes. */

const stepMs = 5 * 60_000;

interface Sealed<Value> {
  readonly value: Value;
  /** ISO 8601 instant. */
  readonly until: string;
}

export const sealStep = (
  { secrets, clock }: Pick<PeopleDeps, 'secrets' | 'clock'>,
  purpose: string,
  value: unknown,
): string =>
  secrets.seal('forms', `${purpose}\n${JSON.stringify({ value, until: new Date(clock() + stepMs).toISOString() })}`);

/** Null where we did not seal it for this purpose, or it is too late. */
export const openStep = <Value>(
  { secrets, clock }: Pick<PeopleDeps, 'secrets' | 'clock'>,
  purpose: string,
  sealed: string,
): Sealed<Value> | null => {
  const [named, text] = secrets.open('forms', sealed.slice(0, 2_000))?.split('\n') ?? [];
  if (named !== purpose || text === undefined) return null;
  const opened = JSON.parse(text) as Sealed<Value>;
  return opened.until > new Date(clock()).toISOString() ? opened : null;
};
