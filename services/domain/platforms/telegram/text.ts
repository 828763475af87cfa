const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"' };

/** The place after the language and the first line break of a block of code. */
const afterLanguage = (text: string, at: number): number => {
  let end = at;
  while (end < text.length && !/[\s`]/.test(text.charAt(end))) end += 1;
  const from = end < text.length && text[end] !== '`' ? end : at;
  const breaks = text.slice(from, from + 2);
  return from + (breaks === '\r\n' || breaks === '\n\r' ? 2 : /^[\r\n]/.test(breaks) ? 1 : 0);
};

/** The former Markdown: nothing is markup inside of anything else, and nothing is escaped there. */
const withoutMarkdown = (text: string): string => {
  const out: string[] = [];
  for (let at = 0; at < text.length; at += 1) {
    const one = text.charAt(at);
    if (one === '\\' && '_*`['.includes(text.charAt(at + 1) || ' ')) {
      at += 1;
      out.push(text.charAt(at));
      continue;
    }
    if (!'_*`['.includes(one)) {
      out.push(one);
      continue;
    }
    const isBlock = text.startsWith('```', at);
    const mark = isBlock ? '```' : one === '[' ? ']' : one;
    const from = isBlock ? afterLanguage(text, at + 3) : at + 1;
    const found = text.indexOf(mark, from);
    const end = found < 0 ? text.length : found;
    out.push(text.slice(from, end));
    at = end + mark.length - 1;
    // Behind a link without a text the address is text too.
    if (one !== '[' || end === from || text[end + 1] !== '(') continue;
    const close = text.indexOf(')', end + 2);
    at = close < 0 ? text.length : close;
  }
  return out.join('');
};

const withoutMarkdownV2 = (text: string): string => {
  const out: string[] = [];
  let code: '`' | '```' | null = null;
  let links = 0;
  // Whether only markup stands before it in its line: a quotation may begin.
  let isLineStart = true;
  const show = (one: string) => {
    out.push(one);
    isLineStart = one === '\n';
  };
  for (let at = 0; at < text.length; at += 1) {
    const one = text.charAt(at);
    const next = text.charCodeAt(at + 1);
    if (one === '\\' && next > 0 && next <= 126) {
      at += 1;
      out.push(text.charAt(at));
      isLineStart = false;
      continue;
    }
    if (code !== null) {
      if (text.startsWith(code, at)) {
        at += code.length - 1;
        code = null;
      } else if (one !== '`') show(one);
    } else if (one === '`') {
      code = text.startsWith('```', at) ? '```' : '`';
      at = code === '`' ? at : afterLanguage(text, at + 3) - 1;
    } else if (one === '[' || (one === '!' && text[at + 1] === '[')) {
      links += 1;
      at += one === '!' ? 1 : 0;
    } else if (one === ']' && links > 0) {
      links -= 1;
      if (text[at + 1] !== '(') continue;
      at += 2;
      while (at < text.length && text[at] !== ')') at += text[at] === '\\' ? 2 : 1;
    } else if (text.startsWith('||', at)) at += 1;
    else if (!(one === '>' && isLineStart) && !'*_~'.includes(one)) show(one);
  }
  return out.join('');
};

const entityOf = (whole: string, name?: string, decimal?: string, hex?: string): string => {
  if (name !== undefined) return entities[name] ?? whole;
  const code = decimal !== undefined ? Number(decimal) : Number.parseInt(String(hex), 16);
  return code > 0 && code < 0x10ffff ? String.fromCodePoint(code) : whole;
};

/**
 * The text Telegram shows: markup of the parse mode taken out, as TDLib does ("MessageEntity.cpp"). Markup that Telegram
 * would refuse is not judged here.
 */
export function shownText(text: string, parseMode: unknown): string {
  if (parseMode === 'HTML') {
    // In one pass: a tag ends an entity that has no semicolon.
    return text.replace(
      /<\/?[a-z][^<>]{0,2100}>|&(?:([A-Za-z]{2,4})(?![A-Za-z])|#(\d{1,7})|#x([0-9a-fA-F]{1,6}));?/gi,
      (whole: string, ...parts: (string | undefined)[]) =>
        whole.startsWith('<') ? '' : entityOf(whole, parts[0], parts[1], parts[2]),
    );
  }
  if (parseMode === 'MarkdownV2') return withoutMarkdownV2(text);
  return parseMode === 'Markdown' ? withoutMarkdown(text) : text;
}
