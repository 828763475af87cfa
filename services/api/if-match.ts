import { Refusal } from './refusal.ts';

/**
 * If-Match as a guard on a stream's revision: `*` (it exists), or a list of `"<revision>"`. A weak or foreign tag
 * matches nothing: a write is refused when its condition is not understood.
 */
export const ifMatch = (header: string): ((loaded: { readonly revision: number }) => void) => {
  const tags = header.split(',').map((tag) => tag.trim());
  const any = tags.length === 1 && tags[0] === '*';
  return ({ revision }) => {
    if (header === '' || (any && revision >= 0) || tags.includes(`"${revision}"`)) return;
    throw new Refusal('revision_mismatch', `The current revision is ${revision}.`, {
      extra: { currentRevision: revision },
    });
  };
};
