/**
 * Characters that show nothing, as ranges of code points: white space, controls, what Unicode lets a renderer ignore
 * (joiners, marks of direction, selectors, tags, Hangul fillers), and the blank of Braille. Written out, so that
 * JavaScript and Postgres judge alike.
 */
const ranges: readonly (readonly [from: number, to: number])[] = [
  [0x01, 0x20],
  [0x7f, 0xa0],
  [0xad, 0xad],
  [0x34f, 0x34f],
  [0x61c, 0x61c],
  [0x115f, 0x1160],
  [0x1680, 0x1680],
  [0x17b4, 0x17b5],
  [0x180b, 0x180f],
  [0x2000, 0x200f],
  [0x2028, 0x202f],
  [0x205f, 0x206f],
  [0x2800, 0x2800],
  [0x3000, 0x3000],
  [0x3164, 0x3164],
  [0xfe00, 0xfe0f],
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
  [0xfff0, 0xfffb],
  [0x1bca0, 0x1bca3],
  [0x1d173, 0x1d17a],
  [0xe0000, 0xe0fff],
];

const classOf = (write: (code: number) => string): string =>
  ranges.map(([from, to]) => `${write(from)}-${write(to)}`).join('');

const visible = new RegExp(`[^\\0${classOf((code) => `\\u{${code.toString(16)}}`)}]`, 'u');

/** Whether a reader sees nothing of a text without markup. */
export const showsNothing = (text: string): boolean => !visible.test(text);

/** A condition of SQL: whether a reader sees something of it. @param text an expression of type text */
export const showsSomethingSql = (text: string): string =>
  `${text} ~ '[^${classOf((code) => `\\U${code.toString(16).padStart(8, '0')}`)}]'`;
