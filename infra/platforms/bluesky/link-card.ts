import type { NetworkResult } from '#contracts/ports/network-http.ts';
import type { Found } from './facets.ts';
import type { LinkCard } from './record.ts';
import { blobOf } from './shapes.ts';
import type { Uploading } from './upload.ts';
import { xrpc } from './xrpc.ts';

/**
 * The card below a post: the network does not look at the page itself, so we do, through the guard. The page says its own
 * title, description and picture (ogp.me); a page that says nothing gives a card of its address.
 */

const maxPageBytes = 512 << 10;
const maxThumbBytes = 1_000_000;
const maxHops = 3;
const pageMs = 8_000;
const thumbTypes = new Set(['image/jpeg', 'image/png', 'image/webp']);

type Answered = Extract<NetworkResult, { readonly kind: 'answered' }>;

/** Follows redirects, each judged anew by the guard. Null: there is no page. */
const get = async (
  { http, request, steps }: Uploading,
  url: string,
  accept: string,
): Promise<[Answered, string] | null> => {
  const signal = AbortSignal.any([steps.signal, AbortSignal.timeout(pageMs)]);
  const subject = { accountId: request.account.id, targetId: request.targetId };
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

const thumbOf = async (uploading: Uploading, url: string) => {
  const { http, secret, request, steps } = uploading;
  const got = await get(uploading, url, 'image/*');
  if (got === null) return null;
  const [{ headers, body }] = got;
  const type = (headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
  if (!thumbTypes.has(type) || body.length === 0 || body.length > maxThumbBytes) return null;
  const result = await xrpc(
    http,
    {
      service: secret.service,
      nsid: 'com.atproto.repo.uploadBlob',
      input: { type, body: [body] },
      token: secret.token,
      subject: { accountId: request.account.id, targetId: request.targetId },
      onSent: (bytes) => steps.moved(bytes),
    },
    steps.signal,
  );
  return result.kind === 'ok' ? blobOf(result.data.blob) : null;
};

/** Of the override `link`, else of the first link in the text; null: neither, or the text's own link shows no page. */
export const cardOf = async (uploading: Uploading, parts: readonly Found[]): Promise<LinkCard | null> => {
  const { link } = uploading.request.overrides;
  const wanted = typeof link === 'string' ? link : null;
  const inText = parts.find((one) => one.kind === 'link')?.uri ?? null;
  const uri = wanted ?? inText;
  if (uri === null) return null;
  const got = await get(uploading, uri, 'text/html');
  const isPage = got?.[0].headers['content-type']?.includes('html') === true;
  if (got === null || !isPage) {
    return wanted === null ? null : { uri, title: new URL(uri).host, description: '', thumb: null };
  }
  const [{ body }, at] = got;
  const { title, description, image } = pageFacts(body.subarray(0, maxPageBytes).toString('utf8'));
  const picture = image !== '' && URL.canParse(image, at) ? new URL(image, at).href : null;
  const thumb = picture === null ? null : await thumbOf(uploading, picture);
  return { uri, title: title === '' ? new URL(uri).host : title, description, thumb };
};
