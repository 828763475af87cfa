import { checkHtml } from './html.ts';

/**
 * Judges markup before the call, as the server's parser does (core.telegram.org/bots/api, "Formatting options"): null
 * where it is well-formed, else what is wrong. One pass over the text each.
 */
export const checkEntities = (text: string, parseMode: unknown): string | null => {
  if (parseMode === 'MarkdownV2') return checkMarkdownV2(text);
  if (parseMode === 'Markdown') return checkMarkdown(text);
  return parseMode === 'HTML' ? checkHtml(text) : null;
};

const at = (place: number): string => `at character ${place + 1}`;

const reserved = new Set('_*[]()~`>#+-=|{}.!');
const names: Readonly<Record<string, string>> = {
  '*': 'bold',
  _: 'italic',
  __: 'underline',
  '~': 'strikethrough',
  '||': 'spoiler',
  '[': 'link',
  '![': 'custom emoji',
};

interface Open {
  readonly mark: string;
  readonly place: number;
}

/** @returns the place after the end of the code that begins here; null: it does not end. */
const afterCode = (text: string, place: number): number | null => {
  const mark = text.startsWith('```', place) ? '```' : '`';
  for (let here = place + mark.length; here < text.length; here += 1) {
    if (text[here] === '\\') here += 1;
    else if (text.startsWith(mark, here)) return here + mark.length;
  }
  return null;
};

/** @returns the place after the address that begins here; null: it does not end. */
const afterAddress = (text: string, place: number): number | null => {
  for (let here = place; here < text.length; here += 1) {
    if (text[here] === '\\') here += 1;
    else if (text[here] === ')') return here + 1;
  }
  return null;
};

const markAt = (text: string, place: number): string | null => {
  const two = text.slice(place, place + 2);
  if (two === '__' || two === '||' || two === '![') return two;
  const one = text.charAt(place);
  return one !== '' && '*_~['.includes(one) ? one : null;
};

const isLineStart = (text: string, place: number): boolean => place === 0 || text[place - 1] === '\n';

const isLineEnd = (text: string, place: number): boolean => place >= text.length || text[place] === '\n';

const checkMarkdownV2 = (text: string): string | null => {
  const open: Open[] = [];
  let isQuote = false;
  for (let place = 0; place < text.length; ) {
    const one = text.charAt(place);
    if (one === '\\') {
      place += 2;
      continue;
    }
    if (!reserved.has(one)) {
      if (one === '\n') isQuote = false;
      place += 1;
      continue;
    }
    if (one === '`') {
      const after = afterCode(text, place);
      if (after === null) return `the code that begins ${at(place)} does not end`;
      place = after;
      continue;
    }
    const innermost = open.at(-1)?.mark;
    if (one === ']' && (innermost === '[' || innermost === '![')) {
      open.pop();
      place += 1;
      if (text[place] === '(') {
        const after = afterAddress(text, place + 1);
        if (after === null) return `the address that begins ${at(place)} does not end`;
        place = after;
      } else if (innermost === '![') {
        return `the custom emoji that ends ${at(place - 1)} has no address`;
      }
      continue;
    }
    if (isLineStart(text, place) && (one === '>' || text.startsWith('**>', place))) {
      isQuote = true;
      place += one === '>' ? 1 : 3;
      continue;
    }
    // Ends a quotation that can be unfolded.
    if (isQuote && open.length === 0 && text.startsWith('||', place) && isLineEnd(text, place + 2)) {
      place += 2;
      continue;
    }
    const mark = markAt(text, place);
    if (mark === null) return `'${one}' ${at(place)} is reserved: put \\ before it`;
    place += mark.length;
    if (innermost === mark && !mark.endsWith('[')) open.pop();
    else if (open.some((outer) => outer.mark === mark)) {
      return `the ${names[mark]} ${at(place - mark.length)} begins or ends inside another markup`;
    } else open.push({ mark, place: place - mark.length });
  }
  const left = open.at(-1);
  return left === undefined ? null : `the ${names[left.mark]} that begins ${at(left.place)} does not end`;
};

/** The former Markdown: nothing inside anything else. */
const checkMarkdown = (text: string): string | null => {
  for (let place = 0; place < text.length; place += 1) {
    const one = text.charAt(place);
    if (one === '\\' && '_*`['.includes(text.charAt(place + 1) || ' ')) {
      place += 1;
      continue;
    }
    if (!'_*`['.includes(one)) continue;
    const mark = text.startsWith('```', place) ? '```' : one === '[' ? ']' : one;
    const end = text.indexOf(mark, place + (one === '[' ? 1 : mark.length));
    if (end < 0) return `the markup that begins ${at(place)} does not end`;
    place = end + mark.length - 1;
    if (one === '[' && text[place + 1] === '(') {
      const after = text.indexOf(')', place + 2);
      if (after < 0) return `the address that begins ${at(place + 1)} does not end`;
      place = after;
    }
  }
  return null;
};
