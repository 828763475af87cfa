import type { ClientFields } from '#schemas/client.ts';
import { links } from './platforms/index.ts';

/**
 * The rules of a client for what its posts say. They are kept as they were sent, so a member of another type counts as
 * absent. A banned word and a link that is not allowed refuse a post; a missing hashtag or disclaimer does unless the
 * client only wants to be warned. Nothing is ever appended to a text.
 */

export interface Breach {
  readonly code: 'banned_word' | 'hashtag_missing' | 'disclaimer_missing' | 'link_not_allowed';
  /** Index of the segment. What is missing is missing in the first one. */
  readonly part: number;
  readonly message: string;
  /** The client wants to be warned, and the post may go out. */
  readonly isWarning: boolean;
}

/** What goes out on one network, in the order of its segments. */
export interface SentTexts {
  readonly segments: readonly string[];
  /** Texts beside the segments: a title, a first comment. */
  readonly others: readonly string[];
  /** Addresses that an override names. */
  readonly links: readonly string[];
}

type LinkPolicy = 'any' | 'none' | { readonly allowedHosts: readonly string[] };

/** Words, by their first token, then by the next; `word` at the end of one. */
interface Tokens {
  readonly next: Map<string, Tokens>;
  word: string | null;
}

export interface ClientRules {
  readonly banned: Tokens;
  /** Banned texts without a letter or a digit, folded. */
  readonly bannedSigns: readonly string[];
  readonly hashtags: readonly string[];
  readonly disclaimer: string | null;
  readonly linkPolicy: LinkPolicy;
  readonly warns: boolean;
}

/** Entries of one list that count, and characters of one that do. */
const maxEntries = 1_000;
const maxCharacters = 200;
const maxDisclaimer = 5_000;

/** Equal for texts that differ in case, width or composition alone. */
const folded = (text: string): string => text.normalize('NFKC').toUpperCase().toLowerCase().normalize('NFC');

const tokensOf = (text: string): readonly string[] => text.match(/#?[\p{L}\p{M}\p{N}_]+/gu) ?? [];
const bare = (token: string): string => (token.startsWith('#') ? token.slice(1) : token);

const textsIn = (value: unknown): readonly string[] =>
  (Array.isArray(value) ? value : [])
    .slice(0, maxEntries)
    .filter((one): one is string => typeof one === 'string' && one.trim() !== '' && one.length <= maxCharacters)
    .map((one) => one.trim());

const hostOf = (text: string): string =>
  folded(text)
    .replace(/^\*?\./, '')
    .replace(/\.$/, '');

const linkPolicyOf = (value: unknown): LinkPolicy => {
  if (value === 'none') return 'none';
  if (typeof value !== 'object' || value === null || !('allowedHosts' in value)) return 'any';
  return { allowedHosts: textsIn(value.allowedHosts).map(hostOf) };
};

const empty = (): Tokens => ({ next: new Map(), word: null });

export const readRules = (rules: ClientFields['rules']): ClientRules => {
  const banned = empty();
  const bannedSigns: string[] = [];
  for (const word of textsIn(rules.bannedWords)) {
    const tokens = tokensOf(folded(word));
    if (tokens.length === 0) bannedSigns.push(folded(word));
    let at = banned;
    for (const token of tokens) {
      const next = at.next.get(token) ?? empty();
      at.next.set(token, next);
      at = next;
    }
    if (at !== banned) at.word ??= word;
  }
  const { disclaimer } = rules;
  const isText = typeof disclaimer === 'string' && disclaimer.trim() !== '' && disclaimer.length <= maxDisclaimer;
  return {
    banned,
    bannedSigns,
    hashtags: textsIn(rules.requiredHashtags).map((one) => (one.startsWith('#') ? one : `#${one}`)),
    disclaimer: isText ? disclaimer.trim() : null,
    linkPolicy: linkPolicyOf(rules.linkPolicy),
    warns: rules.enforce === 'warn',
  };
};

/** Null: the rules say nothing about texts. */
export const textRules = (rules: ClientFields['rules']): ClientRules | null => {
  const read = readRules(rules);
  return isSilent(read) ? null : read;
};

/** Whether the rules say anything about texts. */
export const isSilent = ({ banned, bannedSigns, hashtags, disclaimer, linkPolicy }: ClientRules): boolean =>
  banned.next.size === 0 &&
  bannedSigns.length === 0 &&
  hashtags.length === 0 &&
  disclaimer === null &&
  linkPolicy === 'any';

/** The first banned word of a text; null: it has none. Linear in the text for any number of words. */
const bannedIn = ({ banned, bannedSigns }: ClientRules, text: string): string | null => {
  const whole = folded(text);
  const tokens = tokensOf(whole);
  // A hashtag is the word in it, too.
  for (const words of [tokens, tokens.map(bare)]) {
    for (let start = 0; start < words.length; start += 1) {
      let at: Tokens | undefined = banned;
      for (let index = start; at !== undefined && index < words.length; index += 1) {
        at = at.next.get(words[index] ?? '');
        if (at !== undefined && at.word !== null) return at.word;
      }
    }
  }
  return bannedSigns.find((one) => whole.includes(one)) ?? null;
};

const allows = (policy: LinkPolicy, host: string): boolean =>
  policy === 'any' ||
  (policy !== 'none' && policy.allowedHosts.some((one) => host === one || host.endsWith(`.${one}`)));

const hostOfLink = (link: string): string => {
  const [host = ''] = link.replace(/^[a-z]+:\/\//iu, '').split(/[/?#]/u);
  // What stands before an @ is a user, not the host.
  return hostOf((host.split('@').at(-1) ?? '').replace(/:\d*$/u, ''));
};

/** The first link of a text that is not allowed; null: it has none. */
const strangerIn = (policy: LinkPolicy, text: string): string | null => {
  if (policy === 'any') return null;
  // Some networks link every address with a scheme, whatever its last label.
  for (const [link] of text.matchAll(/https?:\/\/[^\s"'<>()[\]]{1,2000}/giu)) {
    if (!allows(policy, hostOfLink(link))) return link;
  }
  for (const { start, end } of links(text)) {
    const link = text.slice(start, end);
    if (!allows(policy, hostOfLink(link))) return link;
  }
  return null;
};

export const breachesOf = (rules: ClientRules, { segments, others, links: named }: SentTexts): readonly Breach[] => {
  const found: Breach[] = [];
  const { hashtags, disclaimer, linkPolicy, warns } = rules;
  const texts = [...segments.map((text, part) => ({ text, part })), ...others.map((text) => ({ text, part: 0 }))];
  for (const { text, part } of texts) {
    const word = bannedIn(rules, text);
    if (word !== null) {
      found.push({ code: 'banned_word', part, message: `the client bans “${word}”`, isWarning: false });
    }
    const link = strangerIn(linkPolicy, text);
    if (link !== null) found.push(notAllowed(link, part));
  }
  const stranger = named.find((link) => !allows(linkPolicy, hostOfLink(link)));
  if (stranger !== undefined) found.push(notAllowed(stranger, 0));
  const said = folded([...segments, ...others].join('\n'));
  const tags = new Set(tokensOf(said));
  for (const hashtag of hashtags) {
    if (tags.has(folded(hashtag))) continue;
    const message = `the client wants ${hashtag} in every post`;
    found.push({ code: 'hashtag_missing', part: 0, message, isWarning: warns });
  }
  if (disclaimer !== null && !said.replace(/\s+/gu, ' ').includes(folded(disclaimer).replace(/\s+/gu, ' '))) {
    const message = 'the client wants its disclaimer in every post';
    found.push({ code: 'disclaimer_missing', part: 0, message, isWarning: warns });
  }
  return found;
};

const notAllowed = (link: string, part: number): Breach => ({
  code: 'link_not_allowed',
  part,
  message: `the client’s link policy does not allow ${link.slice(0, maxCharacters)}`,
  isWarning: false,
});
