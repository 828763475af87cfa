/** The tags of the parse mode `HTML` (core.telegram.org/bots/api, "HTML style"). */
const tags = new Set('b strong i em u ins s strike del span tg-spoiler tg-emoji a code pre blockquote'.split(' '));
/** After `<`: `/`, the name. */
const head = /(\/?)([a-z][a-z0-9-]{0,20})(?=[\s/>])/iy;
const maxTag = 4_096;

/** Null where every tag is known, ends, and ends in its order; else what is wrong. */
export const checkHtml = (text: string): string | null => {
  const open: string[] = [];
  for (let place = text.indexOf('<'); place >= 0; place = text.indexOf('<', place)) {
    head.lastIndex = place + 1;
    const found = head.exec(text);
    const where = `at character ${place + 1}`;
    if (found === null) return `'<' ${where} begins no tag: write &lt;`;
    const name = (found[2] ?? '').toLowerCase();
    if (!tags.has(name)) return `Telegram knows no tag <${name}> (${where})`;
    const end = endOfTag(text, head.lastIndex);
    if (end === null) return `the tag ${where} does not end`;
    const rest = text.slice(head.lastIndex, end);
    place = end + 1;
    if (found[1] === '/') {
      const innermost = open.pop();
      if (innermost !== name) return `</${name}> ${where} does not end the innermost tag`;
    } else {
      if (name === 'span' && !/class\s{0,8}=\s{0,8}["']?tg-spoiler["']?/i.test(rest)) {
        return `<span> ${where} must have the class tg-spoiler`;
      }
      open.push(name);
    }
  }
  const left = open.at(-1);
  return left === undefined ? null : `<${left}> does not end`;
};

/** The place of `>`, which a quoted value may hold too. */
const endOfTag = (text: string, from: number): number | null => {
  let quote = '';
  for (let place = from; place < text.length && place - from < maxTag; place += 1) {
    const one = text.charAt(place);
    if (quote !== '') quote = one === quote ? '' : quote;
    else if (one === '"' || one === "'") quote = one;
    else if (one === '>') return place;
  }
  return null;
};
