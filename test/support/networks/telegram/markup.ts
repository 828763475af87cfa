/** What a text shows, after its markup; throws what the server would say. Written from the formatting options of the docs. */

const cannot = (why: string): Error => new Error(`Bad Request: can't parse entities: ${why}`);
const bytesTo = (text: string, place: number): number => Buffer.byteLength(text.slice(0, place));

export const shown = (text: string, mode: string | undefined): string => {
  if (mode === 'HTML') return html(text);
  if (mode === 'MarkdownV2') return new V2(text).read();
  if (mode === 'Markdown') return legacy(text);
  return text;
};

const known = /^(b|strong|i|em|u|ins|s|strike|del|span|tg-spoiler|tg-emoji|a|code|pre|blockquote)$/;
const html = (text: string): string => {
  const stack: string[] = [];
  const pieces = text.split(/(<[^<>]*>)/);
  const out = pieces.map((piece, place) => {
    if (place % 2 === 0) {
      if (piece.includes('<')) throw cannot(`Unclosed start tag at byte offset ${piece.indexOf('<')}`);
      const named: Record<string, string> = { '&lt;': '<', '&gt;': '>', '&amp;': '&', '&quot;': '"' };
      return piece.replace(/&(lt|gt|amp|quot);/g, (one) => named[one] ?? one);
    }
    const [, slash, name = ''] = /^<(\/?)([a-z-]*)/i.exec(piece) ?? [];
    const tag = name.toLowerCase();
    if (slash === '/') {
      if (stack.pop() !== tag)
        throw cannot(`Unmatched end tag, expected "</${stack.at(-1) ?? ''}>", found "</${tag}>"`);
    } else {
      if (!known.test(tag)) throw cannot(`Unsupported start tag "${tag}" at byte offset 0`);
      if (tag === 'span' && !piece.includes('tg-spoiler')) throw cannot('Tag "span" must have class "tg-spoiler"');
      stack.push(tag);
    }
    return '';
  });
  if (stack.length > 0) throw cannot(`Can't find end tag corresponding to start tag "${stack.at(-1)}"`);
  return out.join('');
};

const kinds: Record<string, string> = {
  '*': 'Bold',
  _: 'Italic',
  __: 'Underline',
  '~': 'Strikethrough',
  '||': 'Spoiler',
};
/** By descent: each entity reads up to its own end. */
class V2 {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): string {
    return this.#until('', 0, []);
  }

  #until(end: string, begun: number, outer: readonly string[]): string {
    let out = '';
    while (this.#at < this.#text.length) {
      const rest = this.#text.slice(this.#at, this.#at + 3);
      const one = rest.charAt(0);
      const mark = rest.startsWith('__') || rest.startsWith('||') ? rest.slice(0, 2) : one;
      if (one === '\\' && rest.length > 1) {
        out += rest.charAt(1);
        this.#at += 2;
      } else if (end !== '' && mark === end) {
        this.#at += end.length;
        return out;
      } else if (this.#startsLine() && (one === '>' || rest === '**>')) {
        this.#at += one === '>' ? 1 : 3;
      } else if (outer.length === 0 && this.#unfolds()) {
        this.#at += 2;
      } else if (mark in kinds) {
        if (outer.includes(mark)) throw this.#reserved(one);
        const from = this.#at;
        this.#at += mark.length;
        out += this.#until(mark, from, [...outer, mark]);
      } else if (one === '`') out += this.#code(rest === '```' ? rest : one);
      else if (one === '[' || rest.startsWith('![')) {
        const from = this.#at;
        this.#at += one === '[' ? 1 : 2;
        out += this.#until(']', from, [...outer, ']']);
        if (this.#text[this.#at] === '(') this.#address();
      } else if (')]>#+-=|{}.!('.includes(one)) throw this.#reserved(one);
      else {
        out += one;
        this.#at += 1;
      }
    }
    if (end !== '')
      throw cannot(`Can't find end of ${kinds[end] ?? 'TextUrl'} entity at byte offset ${bytesTo(this.#text, begun)}`);
    return out;
  }

  /** The end of a quotation that can be unfolded. */
  #unfolds(): boolean {
    const line = this.#text.slice(this.#text.lastIndexOf('\n', this.#at - 1) + 1).split('\n', 1)[0] ?? '';
    const begins = line.startsWith('>') || line.startsWith('**>');
    const after = this.#text.charAt(this.#at + 2);
    return begins && this.#text.startsWith('||', this.#at) && (after === '' || after === '\n');
  }

  #startsLine(): boolean {
    return this.#at === 0 || this.#text[this.#at - 1] === '\n';
  }

  #reserved(one: string): Error {
    return cannot(`Character '${one}' is reserved and must be escaped with the preceding '\\'`);
  }

  #code(mark: string): string {
    const from = this.#at + mark.length;
    const found = new RegExp(`^(?:\\\\[\\s\\S]|[^\\\\])*?(?=${mark})`).exec(this.#text.slice(from));
    if (found === null) throw cannot(`Can't find end of Code entity at byte offset ${bytesTo(this.#text, this.#at)}`);
    this.#at = from + found[0].length + mark.length;
    return found[0].replace(/\\([\s\S])/g, '$1');
  }

  #address(): void {
    const found = /^\((?:\\[\s\S]|[^\\)])*\)/.exec(this.#text.slice(this.#at));
    if (found === null) throw cannot(`Can't find end of a URL at byte offset ${bytesTo(this.#text, this.#at)}`);
    this.#at += found[0].length;
  }
}

const legacy = (text: string): string => {
  const token = /\\([_*`[])|```([\s\S]*?)```|`([^`]*)`|\*([^*]*)\*|_([^_]*)_|\[([^\]]*)\](?:\([^)]*\))?|[_*`[]/g;
  return text.replace(token, (whole, ...groups) => {
    const inside = groups.slice(0, 6).find((one) => one !== undefined);
    if (inside === undefined) throw cannot("Can't find end of the entity starting at byte offset 0");
    return whole === '' ? '' : String(inside);
  });
};
