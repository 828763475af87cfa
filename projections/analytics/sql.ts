import { BrokenInvariant } from '#runtime/process/invariant.ts';

/** What statements are put together from. Ids and days come from Postgres, which knows them as such, and stand in the text. */

export const list = (all: readonly string[]): string => all.join(', ');

/** @throws BrokenInvariant when it is no id and no day */
export const quoted = (text: string): string => {
  if (!/^[\da-f-]{10,36}$/.test(text)) throw new BrokenInvariant(`no id or day: ${text}`);
  return `'${text}'`;
};
