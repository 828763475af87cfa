/** Reads members of answers, which may be anything. */
import type { Json } from '#contracts/ports/platform.ts';

export type Members = { readonly [name: string]: Json };

export const membersOf = (value: Json | undefined): Members | null =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Members) : null;

export const textIn = (value: Json | undefined, name: string): string | null => {
  const found = membersOf(value)?.[name];
  return typeof found === 'string' ? found : null;
};

/** An integer that is exact. */
export const integerIn = (value: Json | undefined, name: string): number | null => {
  const found = membersOf(value)?.[name];
  return typeof found === 'number' && Number.isSafeInteger(found) ? found : null;
};

/** Ids of chats come as numbers; as text they stand in accounts and posts. */
export const idIn = (value: Json | undefined, name: string): string | null => {
  const found = integerIn(value, name);
  return found === null ? null : String(found);
};
