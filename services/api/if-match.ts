import { Refusal } from './refusal.ts';

/**
 * If-Match as a guard on a stream's revision: `*` (it exists), or a list of `"<revision>"`. A weak or foreign tag and
 * an empty list match nothing: a write is refused when its condition is not understood.
 * @param header undefined: the caller sent none, and the guard refuses nothing
 */
export const ifMatch = (header: string | undefined): ((loaded: { readonly revision: number }) => void) => {
  if (header === undefined) return () => undefined;
  const tags = header.split(',').map((tag) => tag.trim());
  const any = tags.length === 1 && tags[0] === '*';
  return ({ revision }) => {
    if ((any && revision >= 0) || tags.includes(`"${revision}"`)) return;
    throw new Refusal('revision_mismatch', `The current revision is ${revision}.`, {
      extra: { currentRevision: revision },
    });
  };
};
