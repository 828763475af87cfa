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
