import { lazy } from '../lazy.ts';

/**
 * Characters that show nothing, as ranges of code points: white space, controls, what Unicode lets a renderer ignore
 * (joiners, marks of direction, selectors, tags, Hangul fillers), and the blank of Braille. Written out, so that
 * JavaScript and Postgres judge alike.
 */
const invisible =
  '\\u{1}-\\u{20}\\u{7f}-\\u{a0}\\u{ad}-\\u{ad}\\u{34f}-\\u{34f}\\u{61c}-\\u{61c}\\u{115f}-\\u{1160}\\u{1680}-\\u{1680}\\u{17b4}-\\u{17b5}\\u{180b}-\\u{180f}\\u{2000}-\\u{200f}\\u{2028}-\\u{202f}\\u{205f}-\\u{206f}\\u{2800}-\\u{2800}\\u{3000}-\\u{3000}\\u{3164}-\\u{3164}\\u{fe00}-\\u{fe0f}\\u{feff}-\\u{feff}\\u{ffa0}-\\u{ffa0}\\u{fff0}-\\u{fffb}\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}';

const visible = lazy(() => new RegExp(`[^\\0${invisible}]`, 'u'));

/** Whether a reader sees nothing of a text without markup. */
export const showsNothing = (text: string): boolean => !visible().test(text);

/** A condition of SQL: whether a reader sees something of it. @param text an expression of type text */
export const showsSomethingSql = (text: string): string =>
  `${text} ~ '[^${invisible.replaceAll(/\\u\{([0-9a-f]+)\}/g, (_, code: string) => `\\U${code.padStart(8, '0')}`)}]'`;
