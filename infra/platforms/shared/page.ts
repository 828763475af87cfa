import type { NetworkCall, NetworkHttp, NetworkResult } from '#contracts/ports/network-http.ts';

/** What a page says of itself (ogp.me), for networks that do not look at the page of a link: we do, through the guard. */

const maxPageBytes = 512 << 10;
const maxPictureBytes = 1_000_000;
const maxHops = 3;
const pageMs = 8_000;

export interface PageReader {
  readonly http: NetworkHttp;
  readonly subject: NetworkCall['subject'];
  readonly signal: AbortSignal;
}

type Answered = Extract<NetworkResult, { readonly kind: 'answered' }>;

/** Follows redirects, each judged anew by the guard. Null: there is no page. */
const get = async (
  { http, subject, signal: until }: PageReader,
  url: string,
  accept: string,
): Promise<[Answered, string] | null> => {
  const signal = AbortSignal.any([until, AbortSignal.timeout(pageMs)]);
  let at = url;
  for (let hop = 0; hop <= maxHops; hop += 1) {
    const headers = { accept, 'user-agent': 'Mozilla/5.0 (compatible; Postline link preview)' };
    const result = await http.send({ method: 'GET', url: at, headers, body: [], subject }, signal);
    if (result.kind !== 'answered') return null;
    const { location } = result.headers;
    const isRedirect = result.status >= 300 && result.status < 400 && location !== undefined;
    if (!isRedirect) return result.status === 200 ? [result, at] : null;
    if (!URL.canParse(location, at)) return null;
    at = new URL(location, at).href;
  }
  return null;
};

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'", '#x27': "'" };
const plain = (text: string): string =>
  text
    .replaceAll(/&(#?\w{1,6});/g, (whole, name: string) => entities[name] ?? whole)
    .replaceAll(/\s+/g, ' ')
    .trim();

const cut = (text: string, max: number): string => (text.length <= max ? text : `${text.slice(0, max - 1).trimEnd()}…`);

/** `og:title`, `og:description`, `og:image` and the title, of the first 512 KiB. */
export const pageFacts = (
  html: string,
): { readonly title: string; readonly description: string; readonly image: string } => {
  const facts = new Map<string, string>();
  for (const [tag] of html.matchAll(/<meta\s[^<>]{1,4000}>/gi)) {
    const [, name = ''] = /\s(?:property|name)\s{0,4}=\s{0,4}["']?([\w:.-]{1,60})/i.exec(tag) ?? [];
    const [, double, single] = /\scontent\s{0,4}=\s{0,4}(?:"([^"]{0,3000})"|'([^']{0,3000})')/i.exec(tag) ?? [];
    const value = plain(double ?? single ?? '');
    if (value !== '' && !facts.has(name.toLowerCase())) facts.set(name.toLowerCase(), value);
  }
  const [, title = ''] = /<title[^<>]{0,200}>([^<]{0,1000})/i.exec(html) ?? [];
  const first = (...names: readonly string[]) => names.map((name) => facts.get(name)).find((one) => one !== undefined);
  return {
    title: cut(first('og:title', 'twitter:title') ?? plain(title), 300),
    description: cut(first('og:description', 'twitter:description', 'description') ?? '', 1_000),
    image: first('og:image:secure_url', 'og:image', 'og:image:url', 'twitter:image') ?? '',
  };
};

/** The first address in a text, without the signs of the sentence around it; null: there is none. */
export const linkIn = (text: string): string | null => {
  const [found = ''] = /https?:\/\/[^\s<>"]{1,2048}/i.exec(text) ?? [];
  let end = found.length;
  while (end > 0 && ".,;:!?)]}'’”»".includes(found.charAt(end - 1))) end -= 1;
  const link = found.slice(0, end);
  return URL.canParse(link) ? link : null;
};

/** What it says; `picture`: an absolute address, null where it names none. */
export interface PageFacts {
  /** Its host where it has no title. */
  readonly title: string;
  readonly description: string;
  readonly picture: string | null;
}

/** Null: there is no page, or it is no HTML. */
export const readPage = async (reader: PageReader, url: string): Promise<PageFacts | null> => {
  const got = await get(reader, url, 'text/html');
  if (got === null || got[0].headers['content-type']?.includes('html') !== true) return null;
  const [{ body }, at] = got;
  const { title, description, image } = pageFacts(body.subarray(0, maxPageBytes).toString('utf8'));
  const picture = image !== '' && URL.canParse(image, at) ? new URL(image, at).href : null;
  return { title: title === '' ? new URL(url).host : title, description, picture };
};

/** Null: there is none of these types and of at most a million bytes. */
export const readPicture = async (
  reader: PageReader,
  url: string,
  types: readonly string[],
): Promise<{ readonly type: string; readonly bytes: Buffer } | null> => {
  const got = await get(reader, url, 'image/*');
  if (got === null) return null;
  const [{ headers, body }] = got;
  const type = (headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
  return types.includes(type) && body.length > 0 && body.length <= maxPictureBytes ? { type, bytes: body } : null;
};
