const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"' };

/** Tokens of Telegram's two markdowns; a `[text](` is a link only if its address ends, which is looked for apart. */
const markdownV2 = /\\([\s\S])|!?\[((?:\\.|[^[\]\\\n]){0,4096})\]\(|\|\||^\*{0,2}>|[*_~`]/gmu;
const markdown = /\\([_*`[])|\[([^[\]\n]{0,4096})\]\(|[*_`]/gu;
const addressEnd = /[)\s]/g;
const maxAddress = 2_100;

/** @param shownOf what a link shows of its text. */
function withoutMarkdown(text: string, token: RegExp, shownOf: (text: string) => string): string {
  const out: string[] = [];
  let at = 0;
  // Where the next address can end: kept while links begin before it, or each of many `[](` would look for it anew.
  let end = 0;
  for (;;) {
    token.lastIndex = at;
    const found = token.exec(text);
    if (found === null) break;
    const [whole, escaped, linked] = found;
    out.push(text.slice(at, found.index));
    at = found.index + whole.length;
    if (linked === undefined) {
      out.push(escaped ?? '');
      continue;
    }
    if (end < at) {
      addressEnd.lastIndex = at;
      end = addressEnd.exec(text)?.index ?? text.length;
    }
    if (text[end] === ')' && end > at && end - at <= maxAddress) {
      out.push(shownOf(linked));
      at = end + 1;
    } else {
      out.push(whole.slice(0, 1));
      at = found.index + 1;
    }
  }
  out.push(text.slice(at));
  return out.join('');
}

/**
 * The text Telegram shows: markup of the parse mode taken out. Markup that Telegram would refuse is not judged here;
 * what is left in counts, so a length is never too small by it.
 */
export function shownText(text: string, parseMode: unknown): string {
  if (parseMode === 'HTML') {
    return text
      .replace(/<\/?[a-z][^<>]{0,2100}>/gi, '')
      .replace(/&(?:(lt|gt|amp|quot)|#(\d{1,7})|#x([0-9a-f]{1,6}));/gi, (whole, name, decimal, hex) => {
        if (name !== undefined) return entities[String(name).toLowerCase()] ?? whole;
        const code = decimal !== undefined ? Number(decimal) : Number.parseInt(String(hex), 16);
        return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole;
      });
  }
  if (parseMode === 'MarkdownV2') {
    return withoutMarkdown(text, markdownV2, (linked) => shownText(linked, parseMode));
  }
  return parseMode === 'Markdown' ? withoutMarkdown(text, markdown, (linked) => linked) : text;
}
