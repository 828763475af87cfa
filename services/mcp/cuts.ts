/**
 * What the answer to one call leaves out. A tool cuts through this alone, and the server tells of each answer what was
 * cut: a model would take the rest for the whole.
 */

interface Cut {
  /** The least that was left anywhere in the answer. */
  readonly shown: number;
  readonly of: number;
}

/** Cut to a length, in whole characters, with no line of its own: a text of a caller stays inside of its quotes. */
const shorten = (text: string, max: number): string => {
  const line = text.slice(0, max * 2).replace(/\s/g, ' ');
  const characters = [...line];
  return characters.length <= max && text.length <= max * 2 ? line : `${characters.slice(0, max - 1).join('')}…`;
};

export class Cuts {
  readonly #characters = new Map<string, Cut>();
  readonly #rows = new Map<string, Cut>();

  /** @param what the text is, for the reader of the answer */
  text(what: string, text: string, max: number): string {
    const short = shorten(text, max);
    if (text.length > short.length) note(this.#characters, what, { shown: max - 1, of: text.length });
    return short;
  }

  /** The same with its lines, for the data of an answer. */
  lines(what: string, text: string, max: number): string {
    const characters = [...text.slice(0, max * 2)];
    if (characters.length <= max && text.length <= max * 2) return text;
    note(this.#characters, what, { shown: max - 1, of: text.length });
    return `${characters.slice(0, max - 1).join('')}…`;
  }

  /** Text that somebody wrote, as a quotation: a model should not read it as a word of ours. */
  quoted(what: string, text: string, max = 80): string {
    return JSON.stringify(this.text(what, text, max));
  }

  /** The first of many. */
  rows<Row>(what: string, rows: readonly Row[], max: number): readonly Row[] {
    if (rows.length > max) note(this.#rows, what, { shown: max, of: rows.length });
    return rows.slice(0, max);
  }

  /** What was cut, one entry for each kind of text and of rows. */
  get list(): string[] {
    const count = (one: number): string => one.toLocaleString('en');
    return [
      ...[...this.#characters].map(
        ([what, { shown, of }]) => `${what}: ${count(shown)} of ${count(of)} characters where it ends with …`,
      ),
      ...[...this.#rows].map(([what, { shown, of }]) => `${what}: ${count(shown)} of ${count(of)}`),
    ];
  }
}

const note = (cuts: Map<string, Cut>, what: string, { shown, of }: Cut): void => {
  const known = cuts.get(what);
  cuts.set(what, { shown: Math.min(shown, known?.shown ?? shown), of: Math.max(of, known?.of ?? of) });
};
