/**
 * The "little text format" as LinkedIn's document has it ("Language grammar"): reserved signs are markup or are escaped. A
 * reserved sign that is neither ends the text there without a word, as LinkedIn was seen to do (github.com/n8n-io/n8n 10179).
 */

export interface LittleText {
  /** What readers see. */
  readonly shown: string;
  readonly hashtags: readonly string[];
  readonly mentions: readonly { readonly name: string; readonly urn: string }[];
  readonly isCut: boolean;
}

const reserved = '\\|{}@[]()<>#*_~';

class Reader {
  readonly #text: string;
  #at = 0;
  shown = '';
  readonly hashtags: string[] = [];
  readonly mentions: { name: string; urn: string }[] = [];
  isCut = false;

  constructor(text: string) {
    this.#text = text;
  }

  read(): LittleText {
    while (this.#at < this.#text.length && !this.isCut) this.#element();
    const { shown, hashtags, mentions, isCut } = this;
    return { shown, hashtags, mentions, isCut };
  }

  #element(): void {
    const sign = this.#text.charAt(this.#at);
    if (sign === '\\') {
      this.#escape();
      return;
    }
    if (
      sign === '@' &&
      this.#take(/@\[((?:\\.|[^\\\]])+)\]\((urn:li:(?:person|organization):[\w-]+)\)/y, this.#mention)
    )
      return;
    if (sign === '{' && this.#take(/\{hashtag\|\\?([#＃])\|((?:\\.|[^\\|{}])+)\}/y, this.#template)) return;
    if ((sign === '#' || sign === '＃') && this.#take(/[#＃]([\p{L}\p{N}]+)/uy, this.#hashtag)) return;
    if (reserved.includes(sign)) {
      this.isCut = true;
      return;
    }
    this.shown += sign;
    this.#at += 1;
  }

  #escape(): void {
    const next = this.#text.charAt(this.#at + 1);
    if (next === '' || !`${reserved}＃`.includes(next)) {
      this.isCut = true;
      return;
    }
    this.shown += next;
    this.#at += 2;
  }

  #take(pattern: RegExp, act: (found: RegExpExecArray) => void): boolean {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (found === null) return false;
    act.call(this, found);
    this.#at += found[0].length;
    return true;
  }

  #mention([, name = '', urn = '']: RegExpExecArray): void {
    const plain = unescaped(name);
    this.mentions.push({ name: plain, urn });
    this.shown += plain;
  }

  #template([, sign = '#', tag = '']: RegExpExecArray): void {
    this.hashtags.push(unescaped(tag));
    this.shown += `${sign}${unescaped(tag)}`;
  }

  #hashtag([whole, tag = '']: RegExpExecArray): void {
    this.hashtags.push(tag);
    this.shown += whole;
  }
}

const unescaped = (text: string): string => text.replaceAll(/\\(.)/gsu, '$1');

export const littleText = (text: string): LittleText => new Reader(text).read();
