/**
 * Addresses as a reader takes them: for counts and policies of which no network publishes a grammar. Linear in the text:
 * every label and every look-behind is bounded.
 */
import { lazy } from '#domain/lazy.ts';
import { topLevelDomains } from './top-level-domains.ts';

const label = '[\\p{L}\\p{N}\\p{M}](?:[\\p{L}\\p{N}\\p{M}_-]{0,61}[\\p{L}\\p{N}\\p{M}])?';
const asciiLabel = '[a-z0-9](?:[a-z0-9-]{0,62})';
/**
 * With a scheme any script may be a host; a bare host is Latin only, and glued to what stands before it is no link. So a
 * run of labels is looked into from its start alone, not from behind each of its dots and dashes.
 */
const newCandidates = () =>
  new RegExp(
    `(?<![A-Za-z0-9@＠$#＃])(?:(https?://)((?:${label}\\.){1,10}${label})|(?<![-_./])((?:${asciiLabel}\\.){1,10}(?:[a-z]{2,24}|xn--[0-9a-z-]{2,59})(?![a-z0-9@])))`,
    'giu',
  );
const candidates = lazy(newCandidates);
const pathChar = /[a-z0-9!*';:=+,.$/%#[\]\-\u2013_~@|&\u00c0-\u024f\u0400-\u04ff\u1e00-\u1eff]|[\u0300-\u036f]/iu;
const pathEnd = /[+\-a-z0-9=_#/\u00c0-\u024f\u0400-\u04ff\u1e00-\u1eff]|[\u0300-\u036f]/iu;
const query = /\?[a-z0-9!?*'@();:&=+$/%#[\]\-_.,~|]{0,4000}/iuy;
const queryEnd = /[a-z0-9\-_&=#/]/i;
const port = /:\d{1,5}/y;

/** The most characters of one label of a domain, as Punycode writes it. */
const maxLabel = 63;

/** Whether each label of another script is short enough as the network sends it. */
const fitsDomain = (host: string): boolean =>
  /^[\x20-\x7e]*$/.test(host) ||
  (URL.parse(`http://${host}`)?.hostname ?? '').split('.').every((one) => one.length <= maxLabel);

/** Cuts a host back to its last label that is a top-level domain; null when none is. */
function linkHost(host: string): string | null {
  const found = domainOf(host.split('.'));
  return found !== null && fitsDomain(found) ? found : null;
}

function domainOf(labels: readonly string[]): string | null {
  for (let end = labels.length; end >= 2; end -= 1) {
    const last = labels[end - 1] ?? '';
    if (topLevelDomains.has(last.toLowerCase()) || /^xn--/i.test(last)) return labels.slice(0, end).join('.');
    // `example.comと` : readers take the Latin prefix of a label as the domain when another script follows it.
    const prefix = /^[a-z]{2,24}(?=[^a-z0-9@])/iu.exec(last)?.[0];
    if (prefix !== undefined && topLevelDomains.has(prefix.toLowerCase())) {
      return [...labels.slice(0, end - 1), prefix].join('.');
    }
  }
  return null;
}

/** Index after the path and query that begin at `from`. Parentheses belong to a path only in balance, two deep. */
function afterPath(text: string, from: number): number {
  let end = from;
  port.lastIndex = end;
  if (port.test(text)) end = port.lastIndex;
  if (text[end] === '/') {
    let depth = 0;
    let last = end + 1;
    for (let i = end + 1; i < text.length; i += 1) {
      const char = text[i] ?? '';
      if (char === '(') {
        if (depth === 2) break;
        depth += 1;
      } else if (char === ')') {
        if (depth === 0) break;
        depth -= 1;
        if (depth === 0) last = i + 1;
      } else if (!pathChar.test(char)) break;
      else if (depth === 0 && pathEnd.test(char)) last = i + 1;
    }
    end = last;
  }
  query.lastIndex = end;
  const asked = query.exec(text);
  if (asked === null) return end;
  let kept = asked[0].length;
  while (kept > 1 && !queryEnd.test(asked[0][kept - 1] ?? '')) kept -= 1;
  return kept > 1 ? end + kept : end;
}

/** Start and end of each, in order, found as they are asked for. */
export function* addresses(text: string): Generator<{ readonly start: number; readonly end: number }> {
  let at = 0;
  for (;;) {
    // Set before every search: a search in another text in between moves it.
    candidates().lastIndex = at;
    const match = candidates().exec(text);
    if (match === null) return;
    at = candidates().lastIndex;
    const scheme = match[1] ?? '';
    const host = linkHost(match[2] ?? match[3] ?? '');
    if (host === null) continue;
    at = afterPath(text, match.index + scheme.length + host.length);
    yield { start: match.index, end: at };
  }
}
