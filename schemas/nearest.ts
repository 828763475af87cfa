/** The name that a caller probably meant. */

/** Longer names are compared with none: the work grows with the square of the length. */
const maxCompared = 40;

const plain = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, '');

/** Insertions, deletions and replacements between two texts, up to `most`; `most + 1` where there are more. */
const editsBetween = (a: string, b: string, most: number): number => {
  if (Math.abs(a.length - b.length) > most) return most + 1;
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      next[j] = Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + same);
    }
    row = next;
  }
  return Math.min(row[b.length] ?? 0, most + 1);
};

/** The known name that differs in case and separators alone (`reply_settings`, `Reply-Settings`); null: none does. */
export const sameName = (name: string, known: Iterable<string>): string | null => {
  if (name.length > maxCompared) return null;
  const wanted = plain(name);
  for (const one of known) if (plain(one) === wanted) return one;
  return null;
};

/** The known name nearest to this one: the same, else at most two edits away, else one that has it in it; null: none. */
export const nearestName = (name: string, known: readonly string[]): string | null => {
  if (name.length > maxCompared) return null;
  const wanted = plain(name);
  const same = sameName(name, known);
  if (same !== null || wanted.length < 3) return same;
  const most = wanted.length < 6 ? 1 : 2;
  let best: string | null = null;
  let fewest = most + 1;
  for (const one of known) {
    const edits = editsBetween(wanted, plain(one), most);
    if (edits < fewest) [best, fewest] = [one, edits];
  }
  if (best !== null || wanted.length < 5) return best;
  return known.find((one) => plain(one).includes(wanted) || wanted.includes(plain(one))) ?? null;
};
