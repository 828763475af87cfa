import { graphemes, topLevelDomains } from '#domain/platforms/index.ts';

/**
 * What in a text is a link, a tag or a mention. Offsets are bytes of the UTF-8 text (lexicon app.bsky.richtext.facet);
 * detection as in the official client: `@atproto/api` 0.21, "detection.ts". What it takes though no server does is left out:
 * an address that cannot be parsed, a handle that cannot be one, and what overlaps a link.
 */

export interface Span {
  readonly start: number;
  readonly end: number;
}

export type Found =
  | (Span & { readonly kind: 'link'; readonly uri: string })
  | (Span & { readonly kind: 'tag'; readonly tag: string })
  | (Span & { readonly kind: 'mention'; readonly handle: string });

/** What the list of the official client (`tlds` 1.261) has since the one that we share with X was made. */
const newer = new Set(['amazon', 'kids', 'music', 'spa']);
/** What it has no more. */
const gone = new Set(
  `
abarth active adac afamilycompany aigo alfaromeo an avianca bananarepublic bentley bl blanco bnl boots bq budapest
bugatti cancerresearch cartier caseih cbs ceb chloe chrysler cityeats comcast cookingchannel csc dabur dodge doha
doosan duck dunlop duns eh epost esurance etisalat everbank fiat flsmidth foodnetwork frontdoor fujixerox glade
goodhands guardian hgtv honeywell hoteles htc iinet intel iselect iveco iwc jcp jlc kerrylogistics kinder ladbrokes
lancaster lancia lancome liaison linde lipsy lixil loft lupin macys maserati mcd mcdonalds meo metlife mf mobily
montblanc mopar movistar mtpc mutual mutuelle nadex nationwide natura newholland northwesternmutual off oldnavy
onion onyourside orientexpress pamperedchef panerai passagens piaget pramerica qvc raid redstone rightathome rmit
rocher sapo sca scjohnson scor ses shaw showtime shriram spiegel spreadbetting srt starhub statoil swiftcover
symantec telecity telefonica tiffany tp travelchannel uconnect um vista vistaprint volkswagen vuelos warman xfinity
xperia zippo
`
    .trim()
    .split(/\s+/),
);

const endsInTop = (domain: string): boolean => {
  const top = domain.slice(domain.lastIndexOf('.') + 1);
  return domain.includes('.') && (newer.has(top) || (topLevelDomains.has(top) && !gone.has(top)));
};

const maxTagGraphemes = 64;
const maxTagBytes = 640;

const linkForm = /(?<=^|\s|\()(?:https?:\/\/\S+|([a-z][a-z0-9]*(?:\.[a-z0-9]+)+)\S*)/gim;
/** A tag begins after a blank; its last punctuation is none of it, and digits and punctuation alone are no tag. */
const tagForm = /(?<=^|\s)[#＃](?!\ufe0f)((?:(?![\u00ad\u2060\u200a-\u200d]|\u20e2)\S)+)/gu;
const saysSomething = /[^\d\s\p{P}]/u;
const cashtagForm = /(?<=^|\s|\()\$([A-Za-z][A-Za-z0-9]{0,4})(?=\s|$|[.,;:!?)"'\u2019])/gu;
const mentionForm = /(?<=^|\s|\()@([a-zA-Z0-9.-]+)\b/g;
const handleForm = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,20}[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

export const isHandle = (text: string): boolean => text.length <= 253 && handleForm.test(text);

const tagsIn = (text: string): readonly Found[] => [
  ...[...text.matchAll(tagForm)].flatMap(({ index, 1: written = '' }): Found[] => {
    if (!saysSomething.test(written)) return [];
    const tag = written.replace(/\p{P}{1,200}$/u, '');
    const isLong = [...graphemes().segment(tag)].length > maxTagGraphemes || Buffer.byteLength(tag) > maxTagBytes;
    return tag === '' || isLong ? [] : [{ kind: 'tag', start: index, end: index + 1 + tag.length, tag }];
  }),
  ...[...text.matchAll(cashtagForm)].map(({ index, 1: ticker = '' }): Found => {
    return { kind: 'tag', start: index, end: index + 1 + ticker.length, tag: `$${ticker.toUpperCase()}` };
  }),
];

const mentionsIn = (text: string): readonly Found[] =>
  [...text.matchAll(mentionForm)].flatMap(({ index, 1: written = '' }): Found[] => {
    const handle = written.toLowerCase();
    if (!isHandle(handle) || !(endsInTop(written) || written.endsWith('.test'))) return [];
    return [{ kind: 'mention', start: index, end: index + 1 + handle.length, handle }];
  });

const linksIn = (text: string): readonly Found[] =>
  [...text.matchAll(linkForm)].flatMap(({ index, 0: written, 1: domain }): Found[] => {
    if (domain === undefined ? !written.startsWith('http') : !endsInTop(domain)) return [];
    let address = written.replace(/[.,;:!?]$/, '');
    if (address.endsWith(')') && !address.includes('(')) address = address.slice(0, -1);
    const uri = domain === undefined ? address : `https://${address}`;
    return URL.canParse(uri) ? [{ kind: 'link', start: index, end: index + address.length, uri }] : [];
  });

/** In the order of the text, without overlaps: a link wins over a mention or a tag in it. Offsets are UTF-16 units. */
export const found = (text: string): readonly Found[] => {
  const all = [...linksIn(text), ...mentionsIn(text), ...tagsIn(text)];
  const kept: Found[] = [];
  for (const one of all) {
    if (kept.every((other) => one.end <= other.start || one.start >= other.end)) kept.push(one);
  }
  return kept.sort((a, b) => a.start - b.start);
};

/** The same place in bytes of UTF-8. */
export const byteSpan = (text: string, { start, end }: Span): { byteStart: number; byteEnd: number } => {
  const byteStart = Buffer.byteLength(text.slice(0, start));
  return { byteStart, byteEnd: byteStart + Buffer.byteLength(text.slice(start, end)) };
};
