import type { ClientFields } from '#schemas/client.ts';
import type { Issue } from '#schemas/issues.ts';
import { addresses } from './platforms/index.ts';

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

type LinkPolicy = 'any' | 'none' | { readonly allowedHosts: ReadonlySet<string> };

/** Words, by their first token, then by the next; `word` at the end of one. */
interface Tokens {
  readonly next: Map<string, Tokens>;
  word: string | null;
}

export interface ClientRules {
  readonly banned: Tokens;
  /** Banned texts without a letter or a digit, folded. */
  readonly bannedSigns: readonly string[];
  /** Each with its sign. */
  readonly hashtags: readonly string[];
  readonly disclaimer: string | null;
  readonly linkPolicy: LinkPolicy;
  readonly warns: boolean;
}

/** What a caller may send. All that is stored counts: a rule that is passed over is one that nobody knows is broken. */
const maxEntries = { bannedWords: 5_000, requiredHashtags: 100, allowedHosts: 5_000 } as const;
const maxCharacters = 200;
const maxDisclaimer = 5_000;

/** Rules that are too many or too long. Paths are relative to the rules. */
export const rulesIssues = (rules: ClientFields['rules']): readonly Issue[] => {
  const { bannedWords, requiredHashtags, disclaimer, linkPolicy } = rules;
  const allowedHosts =
    typeof linkPolicy === 'object' && linkPolicy !== null && 'allowedHosts' in linkPolicy
      ? linkPolicy.allowedHosts
      : [];
  const issues: Issue[] = [];
  for (const [path, value, max] of [
    ['/bannedWords', bannedWords, maxEntries.bannedWords],
    ['/requiredHashtags', requiredHashtags, maxEntries.requiredHashtags],
    ['/linkPolicy/allowedHosts', allowedHosts, maxEntries.allowedHosts],
  ] as const) {
    if (!Array.isArray(value)) continue;
    if (value.length > max) issues.push({ path, code: 'too_many', message: `must have at most ${max} entries` });
    const long = value.findIndex((one) => typeof one === 'string' && one.length > maxCharacters);
    const message = `must have at most ${maxCharacters} characters`;
    if (long >= 0) issues.push({ path: `${path}/${long}`, code: 'too_long', message });
  }
  if (typeof disclaimer === 'string' && disclaimer.length > maxDisclaimer) {
    issues.push({ path: '/disclaimer', code: 'too_long', message: `must have at most ${maxDisclaimer} characters` });
  }
  return issues;
};

/** Equal for texts that differ in case, width or composition alone. */
const folded = (text: string): string => text.normalize('NFKC').toLowerCase().toUpperCase().normalize('NFC');

const tokensOf = (text: string): readonly string[] => text.match(/#?[\p{L}\p{M}\p{N}_]+/gu) ?? [];
const bare = (token: string): string => (token.startsWith('#') ? token.slice(1) : token);

const textsIn = (value: unknown): readonly string[] =>
  (Array.isArray(value) ? value : [])
    .filter((one): one is string => typeof one === 'string' && one.trim() !== '')
    .map((one) => one.trim());

/** The host of an address, with a scheme or without, as a browser reads it; empty: a browser opens none. */
const hostOf = (address: string): string =>
  (URL.parse(`https://${address.replace(/^[a-z]+:\/\//iu, '')}`)?.hostname ?? '').replace(/\.$/, '');

const linkPolicyOf = (value: unknown): LinkPolicy => {
  if (value === 'none') return 'none';
  if (typeof value !== 'object' || value === null || !('allowedHosts' in value)) return 'any';
  const hosts = textsIn(value.allowedHosts).map((one) => hostOf(one.replace(/^\*?\./, '')));
  return { allowedHosts: new Set(hosts.filter((host) => host !== '')) };
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
  const isText = typeof disclaimer === 'string' && disclaimer.trim() !== '';
  return {
    banned,
    bannedSigns,
    hashtags: textsIn(rules.requiredHashtags)
      .map((one) => one.replace(/^[#＃\s]+/u, ''))
      .filter((one) => one !== '')
      .map((one) => `#${one}`),
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

/** Whether the policy names the host, or one above it. */
const allows = (policy: LinkPolicy, link: string): boolean => {
  if (policy === 'any' || policy === 'none') return policy === 'any';
  const labels = hostOf(link).split('.');
  return labels.some((_, at) => policy.allowedHosts.has(labels.slice(at).join('.')));
};

/** The first link of a text that is not allowed; null: it has none. */
const strangerIn = (policy: LinkPolicy, text: string): string | null => {
  if (policy === 'any') return null;
  // Some networks link every address with a scheme, whatever its last label.
  for (const [link] of text.matchAll(/https?:\/\/[^\s"'<>()[\]]{1,2000}/giu)) {
    if (!allows(policy, link)) return link;
  }
  for (const { start, end } of addresses(text)) {
    const link = text.slice(start, end);
    if (!allows(policy, link)) return link;
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
  const stranger = named.find((link) => !allows(linkPolicy, link));
  if (stranger !== undefined) found.push(notAllowed(stranger, 0));
  const said = folded([...segments, ...others].join('\n'));
  const tags = new Set(tokensOf(said));
  for (const hashtag of hashtags) {
    const wanted = folded(hashtag);
    // One with further signs, such as a dash or an emoji, is more than one token, or none.
    if (tokensOf(wanted)[0] === wanted ? tags.has(wanted) : said.includes(wanted)) continue;
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
