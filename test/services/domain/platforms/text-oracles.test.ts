/** Counts and addresses against the official library of each network that has one. What differs stands here with its reason. */
import { deepEqual } from 'node:assert/strict';
import fc from 'fast-check';
import { textLength } from '#domain/platforms/index.ts';
import { links } from '#domain/platforms/networks/x.ts';
import { weightedLength } from '#domain/platforms/text-length.ts';
import { byteSpan, found, isHandle } from '#infra/platforms/bluesky/facets.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';
import { corpusText } from '#test/support/text-corpus.ts';

const numRuns = 2_000;

/** `twitter-text` 3.1.0: it has no types. */
interface TwitterText {
  parseTweet(text: string): { readonly weightedLength: number };
  extractUrlsWithIndices(text: string): readonly { readonly url: string; readonly indices: readonly number[] }[];
}

interface Feature {
  readonly $type: string;
  readonly uri?: string;
  readonly tag?: string;
  readonly did?: string;
}
interface Span {
  readonly byteStart: number;
  readonly byteEnd: number;
}
interface Facet {
  readonly index: Span;
  readonly features: readonly Feature[];
}
interface RichText {
  readonly facets?: readonly Facet[];
  readonly length: number;
  readonly graphemeLength: number;
  detectFacetsWithoutResolution(): void;
}

/** By a name that the compiler does not follow: one of them has no types, and the other's take seconds to read. */
const imported = async (name: string): Promise<unknown> => import(name);

/**
 * Emoji that `twitter-text` of 2019 does not know: those of Unicode 12 and later. X counts 2 for each emoji.
 */
const laterEmoji: readonly (readonly [text: string, ours: number, library: number])[] = [
  ['🫱🏽‍🫲🏿', 2, 9],
  ['🐦‍🔥', 2, 5],
  ['🧑‍🧑‍🧒', 2, 8],
  ['🧔‍♂️', 2, 5],
  ['👁️‍🗨️', 2, 5],
  ['👬🏽', 2, 4],
];

/**
 * Whether the library names the right place of an address: it looks a host up by its text, so of one that stands twice in
 * one run of letters it names the first.
 */
const isPlaced = (text: string, url: string): boolean => {
  const [host = ''] = url.replace(/^https?:\/\//i, '').split(/[/?:]/);
  return text.indexOf(host) === text.lastIndexOf(host);
};

/**
 * What the client marks as a link though no server takes it: words that begin with "http" and have no scheme, which it
 * takes for addresses as they are (atproto, "detection.ts": `startsWith('http')`), and addresses without a host. Nothing
 * is compared on them: what stands in one is a facet on one side and part of an address on the other.
 */
const isAddress = ({ features: [feature] }: Facet): boolean =>
  feature?.uri === undefined || (/^https?:\/\//.test(feature.uri) && URL.canParse(feature.uri));
const isHttpWord = (written: string): boolean => /^http/.test(written) && !/^https?:\/\//.test(written);

const overlap = (one: Span, other: Span): boolean => one.byteStart < other.byteEnd && other.byteStart < one.byteEnd;

const rankOf = ({ features: [feature] }: Facet): number =>
  feature?.uri !== undefined ? 0 : feature?.did !== undefined ? 1 : feature?.tag?.startsWith('$') ? 3 : 2;

suite('texts against official libraries', (t) => {
  let twitter: TwitterText;
  let rich: new (given: { readonly text: string }) => RichText;

  t.before(async () => {
    const x = (await imported('twitter-text')) as { readonly default: TwitterText };
    twitter = x.default;
    rich = ((await imported('@atproto/api')) as { readonly RichText: typeof rich }).RichText;
  });

  t('X: weights and addresses of twitter-text', () => {
    const { seed } = seeded('twitter-text');
    fc.assert(
      fc.property(corpusText, (raw) => {
        const text = raw.normalize('NFC');
        const named = twitter.extractUrlsWithIndices(text);
        const theirs = named.map(({ url, indices: [start = 0] }) => [isPlaced(text, url) ? start : null, url.length]);
        const ours = [...links(text)].map(({ start, end }, n) => [theirs[n]?.[0] === null ? null : start, end - start]);
        deepEqual(ours, theirs);
        deepEqual(weightedLength(raw), twitter.parseTweet(raw).weightedLength);
      }),
      { seed, numRuns, examples: [['foo.рфfoo.рф/a((b))c'], ['foo.рфfoo.рф'], ['foo.рфbar.рф']] },
    );
  });

  t('X: the weight of each character, alone and as an emoji', () => {
    const differing: string[] = [];
    for (let code = 1; code < 0x20000; code += 1) {
      if (code >= 0xd800 && code < 0xe000) continue;
      const one = String.fromCodePoint(code);
      const tails = /\p{Emoji}/u.test(one) ? ['', '\ufe0f', '\ufe0e', '\u20e3', '\ufe0f\u20e3', '\u200d'] : [''];
      for (const tail of tails) {
        const [ours, theirs] = [weightedLength(one + tail), twitter.parseTweet(one + tail).weightedLength];
        // A selector behind half of a flag shows nothing, and the two signs became emoji later.
        const isLater = /[\u{1f1e6}-\u{1f1ff}\u267e\u26a7]/u.test(one) && tail.startsWith('\ufe0f');
        if (ours !== theirs && !isLater) differing.push(`${code.toString(16)} ${tail.length} ${ours} ${theirs}`);
      }
    }
    deepEqual(differing, []);
    for (const [text, ours, library] of laterEmoji) {
      deepEqual([weightedLength(text), twitter.parseTweet(text).weightedLength], [ours, library], text);
    }
  });

  t('Bluesky: lengths, and the same facets on the same bytes', () => {
    const { seed } = seeded('atproto');
    fc.assert(
      fc.property(corpusText, (text) => {
        const theirs = new rich({ text });
        theirs.detectFacetsWithoutResolution();
        const ours = found(text).map((one) => ({ ...one, ...byteSpan(text, one) }));
        const words = [
          ...ours.filter(({ kind, start, end }) => kind === 'link' && isHttpWord(text.slice(start, end))),
          ...(theirs.facets ?? []).filter((one) => !isAddress(one)).map(({ index }) => index),
        ];
        const isApart = (span: Span): boolean => words.every((word) => !overlap(word, span));
        const said = ours.filter(isApart).map((one) => {
          const name = one.kind === 'link' ? one.uri : one.kind === 'tag' ? one.tag : one.handle;
          return `${one.byteStart}-${one.byteEnd} ${name}`;
        });
        // No server knows such a handle, and the client leaves out what it cannot resolve.
        const known = (theirs.facets ?? []).filter(({ index, features: [feature] }) => {
          return isApart(index) && (feature?.did === undefined || isHandle(feature.did.toLowerCase()));
        });
        // The lexicon forbids facets that overlap: a link is kept, else a mention, else a tag, else a ticker.
        const facets: Facet[] = [];
        for (const one of known.toSorted((a, b) => rankOf(a) - rankOf(b))) {
          if (facets.every(({ index }) => !overlap(index, one.index))) facets.push(one);
        }
        const marked = facets.map(({ index, features: [feature] }) => {
          const name = feature?.uri ?? feature?.tag ?? feature?.did?.toLowerCase();
          return `${index.byteStart}-${index.byteEnd} ${name}`;
        });
        deepEqual(said.toSorted(), marked.toSorted());
        const { parts } = textLength('bluesky', text);
        deepEqual(
          parts.map(({ used }) => used),
          [theirs.graphemeLength, theirs.length],
        );
      }),
      { seed, numRuns, examples: [['#1a($a1234.'], ['httpbin.org/日($a1234.example.com']] },
    );
  });
});
