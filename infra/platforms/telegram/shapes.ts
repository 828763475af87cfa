import type { Json } from '#contracts/ports/platform.ts';
import { integerIn } from '../shared/members.ts';

/** Ids of chats come as numbers; as text they stand in accounts and posts. */
export const idIn = (value: Json | undefined, name: string): string | null => {
  const found = integerIn(value, name);
  return found === null ? null : String(found);
};
