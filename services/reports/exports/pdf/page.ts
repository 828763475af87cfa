import { loadFonts } from './fonts.ts';

/** Turns text into text that the PDF can draw. The other exports keep the text unchanged. */

/** Replaces a letter that the font does not have. */
export const missing = '\u25a1';

const letters = new Intl.Segmenter('en', { granularity: 'grapheme' });
const rightToLeft = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;
/** Direction marks, and signs that only change how another sign looks. */
const invisible = /\p{Cf}|\p{Variation_Selector}/gu;

/** Joins words into one: the drawing library takes it for a letter and begins no word after it. */
const joined = '\u00a0';

/**
 * Each letter, sign or emoji that the font lacks becomes one box. The drawing library sets the letters of a word in the
 * direction of their script, but puts words from left to right: so neighbouring right-to-left words become one word
 * here.
 */
export const printable = (text: string, has: (codePoint: number) => boolean): string => {
  const shown: string[] = [];
  for (const { segment } of letters.segment(text.toWellFormed().normalize('NFC').replace(/\s+/gu, ' '))) {
    const plain = segment.replace(invisible, '').replace(/\p{Cc}/gu, '');
    if (plain === '') continue;
    shown.push([...plain].every((one) => has(one.codePointAt(0) ?? 0)) ? plain : missing);
  }
  let line = '';
  let before: string | null = null;
  for (const word of shown.join('').split(' ')) {
    if (before !== null) {
      const [was, is] = [rightToLeft.test(before), rightToLeft.test(word)];
      // The space after a right-to-left word is drawn on its left side; a second one separates it from the next word.
      line += was && is ? joined : was ? '  ' : ' ';
    }
    line += word;
    before = word;
  }
  return line;
};

/** A page that is filled from the top. Points of 1/72 inch; A4. */

export const page = { width: 595.28, height: 841.89, margin: 48 } as const;
export const inner = page.width - 2 * page.margin;
/** Below it stands the page's number. */
const bottom = page.height - 64;

export const colors = {
  ink: '#1c2430',
  soft: '#5d6875',
  line: '#d5dae0',
  band: '#f3f5f8',
  main: '#2f5fd0',
  second: '#c2571a',
} as const;

interface Style {
  readonly size?: number;
  readonly bold?: boolean;
  readonly color?: string;
  readonly align?: 'left' | 'right' | 'center';
}

export class Sheet {
  readonly doc: PDFKit.PDFDocument;
  /** Where the next item begins. */
  y: number = page.margin;

  constructor(doc: PDFKit.PDFDocument) {
    this.doc = doc;
    const { regular, bold } = loadFonts();
    doc.registerFont('regular', regular);
    doc.registerFont('bold', bold);
  }

  newPage(): void {
    this.doc.addPage();
    this.y = page.margin;
  }

  /** Begins a new page unless this one has so much room left. */
  need(height: number): void {
    if (this.y + height > bottom) this.newPage();
  }

  /** One line, cut off visibly where it does not fit into `width`. Leaves `this.y` as it is. */
  line(text: string, x: number, y: number, width: number, style: Style = {}): void {
    const shown = this.#fit(printable(text, loadFonts().has), width, style);
    const free = width - this.doc.widthOfString(shown);
    const indent = style.align === 'right' ? free : style.align === 'center' ? free / 2 : 0;
    this.doc.fillColor(style.color ?? colors.ink).text(shown, x + indent, y, { lineBreak: false });
  }

  /** As many lines as the text needs, at most `max`. @returns their height */
  block(text: string, x: number, y: number, width: number, max: number, style: Style = {}): number {
    const lines: string[] = [];
    for (const word of text.split(/\s+/u)) {
      const last = lines.at(-1);
      const longer = last === undefined ? word : `${last} ${word}`;
      const fits = last !== undefined && (lines.length === max || this.#width(longer, style) <= width);
      if (fits) lines[lines.length - 1] = longer;
      else lines.push(word);
    }
    const high = (style.size ?? 10) * 1.25;
    for (const [place, one] of lines.entries()) this.line(one, x, y + place * high, width, style);
    return lines.length * high;
  }

  heading(text: string): void {
    this.need(60);
    this.line(text, page.margin, this.y, inner, { size: 15, bold: true });
    this.y += 28;
  }

  /** A note under a table or chart. */
  note(text: string): void {
    this.need(30);
    this.y += 4 + this.block(text, page.margin, this.y, inner, 3, { size: 8, color: colors.soft });
  }

  #width(text: string, style: Style): number {
    this.#use(style);
    return this.doc.widthOfString(printable(text, loadFonts().has));
  }

  #use({ size = 10, bold = false }: Style): void {
    this.doc.font(bold ? 'bold' : 'regular').fontSize(size);
  }

  #fit(text: string, width: number, style: Style): string {
    this.#use(style);
    if (this.doc.widthOfString(text) <= width) return text;
    const signs = [...text];
    let [low, high] = [0, signs.length];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.doc.widthOfString(`${signs.slice(0, middle).join('')}…`) <= width) low = middle;
      else high = middle - 1;
    }
    return `${signs.slice(0, low).join('')}…`;
  }
}
