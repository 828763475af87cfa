import { BrokenInvariant } from '#runtime/process/invariant.ts';

/** Builds statements from ids and days, which stand in the text: Postgres has checked their types. */

export const list = (all: readonly string[]): string => all.join(', ');

/** @throws BrokenInvariant when the text is neither an id nor a day */
export const quoted = (text: string): string => {
  if (!/^[\da-f-]{10,36}$/.test(text)) throw new BrokenInvariant(`no id or day: ${text}`);
  return `'${text}'`;
};
