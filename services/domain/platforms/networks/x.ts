import { lazy } from '../../lazy.ts';
import {
  asCount,
  count,
  derived,
  digits,
  type FigureSource,
  first,
  items,
  mapped,
  minutesOf,
  ofVideo,
} from '../figure-source.ts';
import { anyUse, type InsightsTable, unreportedAccount, unreportedPost } from '../insights-table.ts';
import { aac, anySize, eightBit420, h264, upTo, upToMB, within } from '../media-blocks.ts';
import type { MediaUseRules, NetworkMedia } from '../media-rules.ts';
import { talk } from '../prior-times.ts';
import type { NetworkRules } from '../rules.ts';
import { topLevelDomains } from '../top-level-domains.ts';

/** X. Figures: docs.x.com, "Media best practices", "Upload media". */
const files: MediaUseRules = {
  feed: {
    image: { ...anySize, formats: ['jpeg', 'png', 'webp', 'gif'], bytes: upToMB(5), target: 'large' },
    video: {
      ...anySize,
      containers: ['mp4', 'mov'],
      codecs: [h264],
      pixelFormats: eightBit420,
      fps: { min: 1, max: 60 },
      constantRate: false,
      maxKbps: null,
      bytes: upToMB(512),
      // Longer only for some subscribers, of a length that is written nowhere.
      durationMs: { min: 500, max: 140_000 },
      aspect: within(1 / 3, 3),
      // 1280x1024 is documented; 1080p is taken from subscribers only.
      long: { min: 32, max: 1280 },
      short: { min: 32, max: 1024 },
      indexFirst: false,
      noEditList: false,
      audio: aac,
      target: '720',
    },
    gif: {
      ...anySize,
      bytes: upToMB(15),
      width: upTo(1280),
      height: upTo(1080),
      maxFrames: 350,
      maxPixelsOfAll: 300_000_000,
    },
    document: null,
  },
};

const media: NetworkMedia = {
  // docs.x.com, "Media best practices": four photos, or one animated GIF, or one video.
  shapes: [
    { use: 'feed', kinds: ['image'], min: 0, max: 4 },
    { use: 'feed', kinds: ['gif'], min: 0, max: 1 },
    { use: 'feed', kinds: ['video'], min: 0, max: 1 },
  ],
  files,
};

/**
 * X, API v2. Sources: docs.x.com, "Metrics" (public_metrics; non_public_metrics of own posts of the last 30 days),
 * "Post analytics" and "Media analytics", whose values may be decimal strings.
 *
 * Of a post `{data, includes, analytics, media_analytics}`: the post of the lookup, the post's row of `/2/tweets/analytics`
 * and the first medium's of `/2/media/analytics`. `post.fields` has other names for the same members; both are read.
 */
const watched = digits('media_analytics.watch_time_ms');
const views = digits('media_analytics.video_views');

/** Null as soon as one of the two is null; undefined as soon as one is missing. */
const both = <A, B, C>(one: FigureSource<A>, other: FigureSource<B>, join: (a: A, b: B) => C | null): FigureSource<C> =>
  derived(`${one.name}, ${other.name}`, (raw) => {
    const a = one.read(raw);
    const b = other.read(raw);
    if (a === undefined || b === undefined) return undefined;
    return a === null || b === null ? null : join(a, b);
  });

const secondsEach = both(watched, views, (ms, plays) => (plays === 0 ? null : ms / 1000 / plays));
const durations = derived('duration_ms', (raw) => {
  const media = items(raw, 'includes.media');
  const reported = media?.find(({ duration_ms }) => duration_ms !== undefined)?.duration_ms;
  return reported === undefined || reported === null ? reported : asCount(reported, 'duration_ms');
});
const share = (seconds: number, durationMs: number): number | null =>
  durationMs === 0 ? null : Math.min(Math.round((seconds / (durationMs / 1000)) * 10_000) / 100, 1000);

const quarters = [
  'playback_0_count',
  'playback_25_count',
  'playback_50_count',
  'playback_75_count',
  'playback_100_count',
];

const insights: InsightsTable = {
  post: anyUse({
    ...unreportedPost,
    impressions: count('data.public_metrics.impression_count'),
    likes: count('data.public_metrics.like_count'),
    comments: count('data.public_metrics.reply_count'),
    // A repost is no share: X counts shares apart.
    shares: digits('analytics.shares'),
    saves: count('data.public_metrics.bookmark_count'),
    clicks: count('data.non_public_metrics.url_link_clicks'),
    follows: digits('analytics.follows'),
    profileVisits: digits('analytics.user_profile_clicks'),
    totalInteractions: count('data.non_public_metrics.engagements'),
    reposts: first(count('data.public_metrics.retweet_count'), count('data.public_metrics.repost_count')),
    quotes: count('data.public_metrics.quote_count'),
    // X counts the views of all posts that use the medium.
    videoViews: ofVideo(
      derived('includes.media[].public_metrics.view_count', (raw) => {
        const media = items(raw, 'includes.media');
        if (media === null || media === undefined) return media;
        const reported = media.flatMap(({ public_metrics }) => {
          const one = count('view_count').read(public_metrics ?? {});
          return one === null || one === undefined ? [] : [one];
        });
        return reported.length === 0
          ? undefined
          : asCount(
              reported.reduce((sum, one) => sum + one, 0),
              'view_count',
            );
      }),
    ),
    watchTimeMinutes: ofVideo(minutesOf(watched)),
    avgViewDurationSeconds: ofVideo(mapped(secondsEach, Math.floor)),
    avgViewPercentage: ofVideo(both(secondsEach, durations, share)),
    audienceRetention: ofVideo(
      derived(quarters.join(', '), (raw) => {
        const played = quarters.map((name) => digits(`media_analytics.${name}`).read(raw));
        const [from] = played;
        if (played.includes(undefined)) return undefined;
        if (from === null || from === undefined || from === 0 || played.includes(null)) return null;
        return played.map((one, quarter) => ({ position: quarter / 4, ratio: ratioOf(one ?? 0, from) }));
      }),
    ),
  }),
  account: { ...unreportedAccount, followerCount: count('data.public_metrics.followers_count') },
  demographics: null,
};

function ratioOf(played: number, from: number): number {
  return Math.round((played / from) * 10_000) / 10_000;
}

/** X, API v2. Figures: docs.x.com, "Counting characters", "Create Post", "Media best practices". */
export const x: NetworkRules = {
  platform: 'x',
  name: 'X',
  app: {
    addresses: { api: 'https://api.x.com', authorize: 'https://x.com/i/oauth2/authorize' },
    // A post is one read, an account two (docs.x.com, "Pricing", August 2026).
    monthlyReads: 100_000,
  },
  text: {
    limits: [{ unit: 'weighted', limit: 280 }],
  },
  media,
  // docs.x.com, "Create Media metadata": 1,000 characters, with a picture or a GIF.
  altTexts: [{ kinds: ['image', 'gif'], limits: [{ unit: 'code_points', limit: 1000 }] }],
  capabilities: {
    thread: true,
    firstComment: true,
    native: false,
    textOnly: true,
    altText: true,
    cover: false,
    aiLabel: true,
  },
  nativeWindow: null,
  publish: {
    // No idempotency key: a lost answer is looked for in the account's newest posts.
    handle: 'none',
    absenceIsProof: false,
    readsBack: 'own_posts',
    listsOwnPosts: true,
    settleWindowMs: 600_000,
    permalinks: ['https://x.com/{username}/status/{id}', 'https://x.com/i/web/status/{id}'],
  },
  overrides: {
    quoteTweetId: { about: 'Id of the post that this one quotes.', type: 'string', headOnly: true },
    replySettings: {
      about: 'Who may reply. Absent: everyone. `verifiedOnly` is read as `verified`.',
      type: 'enum',
      values: ['following', 'mentionedUsers', 'subscribers', 'verified'],
      aliases: { verifiedOnly: 'verified' },
      headOnly: true,
    },
    // Independent of the post's aiDisclosure, hence not `aiKey`.
    madeWithAi: {
      about: 'Marks the post as made with AI, whatever the `aiDisclosure` of the post says.',
      type: 'boolean',
      default: false,
    },
    paidPartnership: { about: 'Marks the post as a paid partnership.', type: 'boolean', default: false },
    firstComment: {
      about:
        'A reply from the same account once the post is out. If it fails, the post stays published and `firstCommentIssue` says why.',
      type: 'comment',
      asPost: true,
      headOnly: true,
    },
  },
  banned: [],
  aiKey: null,
  insights,
  priorTimes: talk,
};

/**
 * Where X finds an address in a text, as twitter-text 3.1 does ("extractUrlsWithIndices"; github.com/twitter/twitter-text).
 * Its expressions may look at a text many times over; this reads each run of letters once, so that 50,000 hostile
 * characters cost milliseconds.
 */
const maxAddress = 4_096;
/** Characters of a host that are looked at: bounds the time that a hostile text takes. */
const maxHost = 1_000;
const maxLabel = 63;
/** Characters of the id of an address that X itself has shortened. */
const maxShortId = 40;

const spaces = '\\x09-\\x0D \\x85\\xA0\\u1680\\u180E\\u2000-\\u200A\\u2028\\u2029\\u202F\\u205F\\u3000';
const invalid = '\\uFFFE\\uFEFF\\uFFFF';
const directions = '\\u202A-\\u202E\\u061C\\u200E\\u200F\\u2066-\\u2069';
const latin =
  '\\xC0-\\xD6\\xD8-\\xF6\\xF8-\\u024F\\u0253\\u0254\\u0256\\u0257\\u0259\\u025B\\u0263\\u0268\\u026F\\u0272\\u0289\\u028B\\u02BB\\u0300-\\u036F\\u1E00-\\u1EFF';

/** What may stand before an address; before one without a scheme fewer. */
const before = new RegExp(`[^A-Za-z0-9@＠$#＃${invalid}]|[${directions}]`);
const gluesBareHost = /[-_./]/;
const scheme = /https?:\/\//gi;
const domainChar = new RegExp(`[^!'#%&()*+,\\\\\\-./:;<=>?@[\\]^_{|}~$${spaces}${invalid}${directions}]`);
const latinChar = new RegExp(`[-a-z0-9${latin}]`, 'i');
const afterDomain = /[0-9a-zA-Z@+-]/;
const punycode = /xn--[-0-9a-z]+/iy;
const port = /:[0-9]+/y;
const pathChar = new RegExp(`[a-z\\u0400-\\u04FF0-9!*';:=+,.$/%#[\\]\\-\\u2013_~@|&${latin}]`, 'i');
const pathEnd = new RegExp(`[+\\-a-z\\u0400-\\u04FF0-9=_#/${latin}]`, 'i');
const query = /\?[a-z0-9!?*'@();:&=+$/%#[\]\-_.,~|]*/iy;
const queryEnd = /[a-z0-9\-_&=#/]/i;
const shortened = /^https?:\/\/t\.co\/([a-z0-9]+)(?:\?[a-z0-9!?*'@();:&=+$/%#[\]\-_.,~|]*[a-z0-9\-_&=#/])?/i;

const longestTop = lazy(() => Math.max(...[...topLevelDomains].map(({ length }) => length)));

/** The place after the top-level domain at `at`; null: there is none. */
const afterTop = (text: string, at: number, to: number): number | null => {
  const most = Math.min(to, at + longestTop());
  const dot = text.slice(at, most).indexOf('.');
  for (let end = dot < 0 ? most : at + dot; end > at + 1; end -= 1) {
    if (end < to && afterDomain.test(text.charAt(end))) continue;
    if (topLevelDomains.has(text.slice(at, end).toLowerCase())) return end;
  }
  punycode.lastIndex = at;
  return punycode.test(text) && punycode.lastIndex <= to ? punycode.lastIndex : null;
};

type Domain =
  | { readonly kind: 'found'; readonly end: number }
  /** No domain begins from here up to `next`. */
  | { readonly kind: 'none'; readonly next: number };

/** Which characters a label has; `isWide`: it may have `_` and `-` inside, and `_` not in the last one. */
interface Labels {
  readonly char: RegExp;
  readonly isWide: boolean;
}
const wide: Labels = { char: domainChar, isWide: true };
const narrow: Labels = { char: latinChar, isWide: false };

/** The longest domain that begins at `at`: labels with a dot behind each, and a top-level domain. */
const domainAt = (text: string, at: number, limit: number, { char, isWide }: Labels): Domain => {
  const to = Math.min(limit, at + maxHost);
  const labels: { readonly dot: number; readonly underscore: number }[] = [];
  let from = at;
  let next: number;
  for (;;) {
    let [end, underscore] = [from, -1];
    for (; end < to; end += 1) {
      const one = text.charAt(end);
      if (char.test(one)) continue;
      if (!isWide || (one !== '_' && one !== '-')) break;
      if (one === '_') underscore = end;
    }
    next = end;
    if (end === from || text[end] !== '.' || end >= to) break;
    if (isWide && !char.test(text.charAt(from))) {
      next = from;
      break;
    }
    if (isWide && !char.test(text.charAt(end - 1))) break;
    labels.push({ dot: end, underscore });
    from = end + 1;
  }
  for (const { dot, underscore } of labels.toReversed()) {
    const end = afterTop(text, dot + 1, to);
    if (end === null) continue;
    if (underscore < 0) return { kind: 'found', end };
    // The part of the label behind it may be one.
    next = underscore;
  }
  return { kind: 'none', next };
};

/** The place after a group of parentheses with one more inside at most; null: none begins here. */
const afterGroup = (text: string, at: number): number | null => {
  let [depth, inside, groups] = [1, 0, 0];
  for (let here = at + 1; here < text.length; here += 1) {
    const one = text.charAt(here);
    if (one === '(') {
      if (depth === 2 || groups > 0) return null;
      [depth, inside, groups] = [2, 0, 1];
    } else if (one === ')') {
      if (inside === 0 && !(depth === 1 && groups > 0)) return null;
      if (depth === 1) return here + 1;
      depth = 1;
    } else if (pathChar.test(one)) inside += 1;
    else return null;
  }
  return null;
};

/** The place after the path that begins at `at`, which ends with a letter, a digit, a few signs or a group. */
const afterPath = (text: string, at: number): number => {
  if (text[at] !== '/') return at;
  let end = at + 1;
  for (let here = at + 1; here < text.length; ) {
    const one = text.charAt(here);
    const group = one === '(' ? afterGroup(text, here) : null;
    if (group === null && !pathChar.test(one)) break;
    const after = group ?? here + 1;
    // A group ends a path only right behind what may end one itself.
    if (group === null ? pathEnd.test(one) : here === end) end = after;
    here = after;
  }
  return end;
};

const afterQuery = (text: string, at: number): number => {
  query.lastIndex = at;
  if (!query.test(text)) return at;
  let end = query.lastIndex;
  while (end > at + 1 && !queryEnd.test(text.charAt(end - 1))) end -= 1;
  return end > at + 1 ? end : at;
};

/** Whether each label is short enough as the network sends it. */
const fitsDomain = (domain: string): boolean => {
  const labels = domain.split('.');
  if (/^[\x20-\x7e]*$/.test(domain)) return labels.every((one) => one.length <= maxLabel);
  return labels.every((one) => {
    const isAscii = /^[\x20-\x7e]*$/.test(one);
    return (isAscii ? one : (URL.parse(`http://${one}`)?.hostname ?? '')).length <= maxLabel;
  });
};

interface Link {
  readonly start: number;
  readonly end: number;
}

/** Of an address without a scheme X takes the parts with Latin letters. */
function* bareLinks(text: string, start: number, domainEnd: number, pathFrom: number, end: number): Generator<Link> {
  const found: Link[] = [];
  for (let at = start; at < domainEnd; ) {
    const domain = domainAt(text, at, domainEnd, narrow);
    if (domain.kind === 'found') found.push({ start: at, end: domain.end });
    at = domain.kind === 'found' ? domain.end : Math.max(domain.next, at + 1);
  }
  const last = found.pop();
  yield* found;
  if (last === undefined) return;
  const hasPath = text[pathFrom] === '/';
  yield hasPath ? { start: last.start, end: last.end + (end - domainEnd) } : last;
}

/** Start and end of each address that X would shorten, in order, found as they are asked for. */
export function* links(text: string): Generator<Link> {
  let nextScheme = -1;
  for (let at = 0; at < text.length; ) {
    const isFirst = at === 0;
    const starts = [...(before.test(text.charAt(at)) ? [at + 1] : []), ...(isFirst ? [0] : [])];
    let jump = at + 1;
    for (const start of starts) {
      if (nextScheme < start) {
        scheme.lastIndex = start;
        nextScheme = scheme.exec(text)?.index ?? Number.POSITIVE_INFINITY;
      }
      const host = nextScheme === start ? text.indexOf('//', start) + 2 : start;
      const domain = domainAt(text, host, text.length, wide);
      if (domain.kind === 'none') {
        if (host === start) jump = Math.max(jump, Math.min(domain.next, nextScheme - 1));
        continue;
      }
      port.lastIndex = domain.end;
      const pathFrom = port.test(text) ? port.lastIndex : domain.end;
      const end = afterQuery(text, afterPath(text, pathFrom));
      jump = end;
      const length = end - start + (host === start ? 'https://'.length : host - start);
      if (length > maxAddress || !fitsDomain(text.slice(host, domain.end))) break;
      if (host === start) {
        if (start === 0 || start === at || !gluesBareHost.test(text.charAt(at)))
          yield* bareLinks(text, start, domain.end, pathFrom, end);
        break;
      }
      const own = shortened.exec(text.slice(start, end));
      if (own === null) yield { start, end };
      else if ((own[1] ?? '').length <= maxShortId) yield { start, end: start + own[0].length };
      break;
    }
    at = jump;
  }
}
