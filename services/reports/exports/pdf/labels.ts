import type { Platform } from '#schemas/common.ts';
import type { AccountFigures, Counter } from '#schemas/insights.ts';

/** How figures are called and written, for a person. */

export type Figure = Counter | 'engagementRate' | 'followerCount';

export const figureNames: Readonly<Record<Figure, string>> = {
  impressions: 'Impressions',
  reach: 'Reach',
  likes: 'Likes',
  comments: 'Comments',
  shares: 'Shares',
  saves: 'Saves',
  clicks: 'Clicks',
  follows: 'Follows',
  profileVisits: 'Profile visits',
  linkClicks: 'Link clicks',
  totalInteractions: 'Interactions',
  reposts: 'Reposts',
  quotes: 'Quotes',
  videoViews: 'Video views',
  videoCompletions: 'Watched to the end',
  watchTimeMinutes: 'Minutes watched',
  subscribersGained: 'Subscribers gained',
  subscribersLost: 'Subscribers lost',
  engagementRate: 'Engagement rate',
  followerCount: 'Followers',
};

export const audienceNames: Readonly<Record<keyof Omit<AccountFigures, 'followerCount'>, string>> = {
  profileViews: 'Profile views',
  accountsEngaged: 'Accounts engaged',
  profileLinkTaps: 'Profile link taps',
  videoViews: 'Video views',
  videoWatchTimeMinutes: 'Minutes watched',
  contentPlays: 'Plays',
};

export const platformNames: Readonly<Record<Platform, string>> = {
  instagram: 'Instagram',
  facebook: 'Facebook',
  threads: 'Threads',
  x: 'X',
  linkedin: 'LinkedIn',
  tiktok: 'TikTok',
  youtube: 'YouTube',
  pinterest: 'Pinterest',
  bluesky: 'Bluesky',
  telegram: 'Telegram',
};

/** Nobody told it, or nobody looked. */
export const unknown = '–';

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const percent = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 2 });
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

export const written = (figure: Figure | null, value: number | null | undefined): string => {
  if (value === null || value === undefined) return unknown;
  return (figure === 'engagementRate' ? percent : whole).format(value);
};

/** For an axis, where there is little room. */
export const shortly = (figure: Figure | null, value: number): string =>
  (figure === 'engagementRate' ? percent : short).format(value);
