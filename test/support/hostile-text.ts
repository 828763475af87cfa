/**
 * Texts on which a regular expression works hardest: for each open repetition, a text that leads to it and then the
 * repeated unit over and over, with an end that matches and with ends that do not. A pattern that tries every split of
 * a run, or every start in it, takes quadratic time on one of them.
 */

type Node =
  | { readonly kind: 'set'; readonly source: string }
  | { readonly kind: 'none' }
  | { readonly kind: 'sequence'; readonly items: readonly Node[] }
  | { readonly kind: 'choice'; readonly items: readonly Node[] }
  | { readonly kind: 'repeat'; readonly item: Node; readonly min: number; readonly max: number };

const none: Node = { kind: 'none' };

/** One character of each kind that our patterns distinguish. */
const pool = [
  ...' a-.\\/0_日"([<,;:\tTzx1\n\rAb9+\'>)]{}*#@&?=%!~`|^$Zé\u00df＃',
  ...['😀', '👨', '\0', '\u00a0', '\u0301', '\u200d', '\u2028', '\ufeff', '\ufe0f', '🇩', 'ا', '\u202e'],
];

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): Node {
    const choices = [this.#sequence()];
    while (this.#text[this.#at] === '|') {
      this.#at += 1;
      choices.push(this.#sequence());
    }
    return choices.length === 1 ? (choices[0] ?? none) : { kind: 'choice', items: choices };
  }

  #sequence(): Node {
    const items: Node[] = [];
    while (this.#at < this.#text.length && this.#text[this.#at] !== '|' && this.#text[this.#at] !== ')') {
      items.push(this.#repeated(this.#atom()));
    }
    return { kind: 'sequence', items };
  }

  #take(pattern: RegExp): string | null {
    const found = new RegExp(pattern.source, 'y');
    found.lastIndex = this.#at;
    const text = found.exec(this.#text)?.[0] ?? null;
    if (text !== null) this.#at += text.length;
    return text;
  }

  #atom(): Node {
    const opened = this.#take(/\((\?(:|<?[=!]|<\w+>))?/);
    if (opened !== null) {
      const inner = this.read();
      this.#at += 1;
      return /[=!]$/.test(opened) ? none : inner;
    }
    if (this.#take(/\^|\$|\\[bB]/) !== null) return none;
    if (this.#text[this.#at] === '[') return { kind: 'set', source: this.#class() };
    const source = this.#take(/\\(?:[pP]\{[^}]*\}|u\{[^}]*\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)|[\s\S]/) ?? '';
    return { kind: 'set', source };
  }

  /** With classes inside it, as the flag `v` allows. */
  #class(): string {
    const from = this.#at;
    let depth = 0;
    do {
      const char = this.#text[this.#at];
      if (char === '\\') this.#at += 1;
      else if (char === '[' && (depth === 0 || this.#nests)) depth += 1;
      else if (char === ']') depth -= 1;
      this.#at += 1;
    } while (depth > 0);
    return this.#text.slice(from, this.#at);
  }

  /** Set by the flags. */
  #nests = false;
  nesting(): this {
    this.#nests = true;
    return this;
  }

  #repeated(item: Node): Node {
    const text = this.#take(/(?:[*+?]|\{\d+(?:,\d*)?\})\??/);
    if (text === null) return item;
    const [, least, comma, most] = /^\{(\d+)(,?)(\d*)\}/.exec(text) ?? [];
    if (least === undefined) {
      return {
        kind: 'repeat',
        item,
        min: text[0] === '+' ? 1 : 0,
        max: text[0] === '?' ? 1 : Number.POSITIVE_INFINITY,
      };
    }
    const max = comma === '' ? Number(least) : most === '' ? Number.POSITIVE_INFINITY : Number(most);
    return { kind: 'repeat', item, min: Number(least), max };
  }
}

const samplesOf = (source: string, flags: string): readonly string[] => {
  const one = new RegExp(`^(?:${source})$`, flags.replace(/[gy]/g, ''));
  const found = pool.filter((char) => one.test(char));
  const plain = source.replace(/^\\(?=[^\w])/, '');
  return found.length > 0 ? found : plain.length === 1 ? [plain] : ['a'];
};

/** Roughly the shortest match: look-arounds are ignored. */
const shortest = (node: Node, flags: string): string => {
  if (node.kind === 'set') return samplesOf(node.source, flags)[0] ?? '';
  if (node.kind === 'sequence') return node.items.map((one) => shortest(one, flags)).join('');
  if (node.kind === 'choice') return shortest(node.items[0] ?? none, flags);
  return node.kind === 'repeat' ? shortest(node.item, flags).repeat(node.min) : '';
};

interface Pump {
  readonly before: string;
  readonly units: readonly string[];
}

/** A repetition of at least this many can take long. */
const open = 50;

const pumpsOf = (node: Node, before: string, flags: string): readonly Pump[] => {
  if (node.kind === 'sequence') {
    let led = before;
    return node.items.flatMap((one) => {
      const found = pumpsOf(one, led, flags);
      // Optional units are included: the pattern continues behind them too.
      led += shortest(one, flags);
      return found;
    });
  }
  if (node.kind === 'choice') return node.items.flatMap((one) => pumpsOf(one, before, flags));
  if (node.kind !== 'repeat') return [];
  const units = node.item.kind === 'set' ? samplesOf(node.item.source, flags) : unitsOf(node.item, flags);
  return [...(node.max >= open ? [{ before, units }] : []), ...pumpsOf(node.item, before, flags)];
};

const unitsOf = (node: Node, flags: string): readonly string[] =>
  (node.kind === 'choice' ? node.items : [node]).map((one) => shortest(one, flags)).filter((one) => one !== '');

/** Enough units; the kinds that our patterns distinguish most often come first. */
const maxUnits = 8;

/** Generated lazily: all at once would fill the memory. */
export function* hostileTexts(source: string, flags: string, length: number): Generator<string> {
  const reader = new Reader(source);
  const node = (flags.includes('v') ? reader.nesting() : reader).read();
  const to = (unit: string): string => unit.repeat(Math.ceil(length / unit.length));
  const seen = new Set<string>();
  for (const { before, units } of pumpsOf(node, '', flags)) {
    for (const unit of units.slice(0, maxUnits)) {
      if (unit === '' || seen.has(`${before}\n${unit}`)) continue;
      seen.add(`${before}\n${unit}`);
      const run = to(unit);
      yield `${before}${run}\0`;
      yield `${before}${run}a`;
      // Not at the start of the text: an anchored pattern may match all of it there.
      yield `\0${before}${run}\0`;
      if (before !== '') yield to(`${before}${unit}`);
    }
  }
  yield to('a');
}
