import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** DejaVu Sans. A PDF embeds the glyphs that it uses, because the fonts of PDF readers have only Latin letters. */

const bytesOf = (name: string): Buffer =>
  readFileSync(fileURLToPath(import.meta.resolve(`dejavu-fonts-ttf/ttf/${name}.ttf`)));

export interface Fonts {
  readonly regular: Buffer;
  readonly bold: Buffer;
  /** Whether both weights have a glyph for the code point. */
  has(codePoint: number): boolean;
}

/** Ranges of code points with a glyph, from a font's `cmap` of format 12 (OpenType 1.9, “cmap”). */
const rangesOf = (font: Buffer): readonly (readonly [first: number, last: number])[] => {
  const tables = font.readUInt16BE(4);
  for (let at = 12; at < 12 + tables * 16; at += 16) {
    if (font.toString('latin1', at, at + 4) !== 'cmap') continue;
    const cmap = font.readUInt32BE(at + 8);
    const count = font.readUInt16BE(cmap + 2);
    for (let n = 0; n < count; n += 1) {
      const table = cmap + font.readUInt32BE(cmap + 4 + n * 8 + 4);
      if (font.readUInt16BE(table) !== 12) continue;
      const groups = font.readUInt32BE(table + 12);
      return Array.from({ length: groups }, (_, group) => {
        const from = table + 16 + group * 12;
        return [font.readUInt32BE(from), font.readUInt32BE(from + 4)] as const;
      });
    }
  }
  throw new Error('the font has no cmap of format 12');
};

const membership = (font: Buffer): ((codePoint: number) => boolean) => {
  const ranges = rangesOf(font);
  return (codePoint) => {
    let [low, high] = [0, ranges.length - 1];
    while (low <= high) {
      const middle = (low + high) >> 1;
      const [first = 0, last = 0] = ranges[middle] ?? [];
      if (codePoint < first) high = middle - 1;
      else if (codePoint > last) low = middle + 1;
      else return true;
    }
    return false;
  };
};

let loaded: Fonts | null = null;

/** Each process reads them once. */
export const loadFonts = (): Fonts => {
  if (loaded !== null) return loaded;
  const [regular, bold] = [bytesOf('DejaVuSans'), bytesOf('DejaVuSans-Bold')];
  const [inRegular, inBold] = [membership(regular), membership(bold)];
  loaded = { regular, bold, has: (codePoint) => inRegular(codePoint) && inBold(codePoint) };
  return loaded;
};
