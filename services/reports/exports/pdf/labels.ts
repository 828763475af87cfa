import type { AccountFigures, CounterName } from '#schemas/insights.ts';

/** Names and numbers of figures as a reader of the report sees them. */

export type Figure = CounterName | 'engagementRate' | 'followerCount';

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

/** Shown for a figure that the network did not report or that was never asked for. */
export const unknown = '–';

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const percent = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 2 });
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

export const written = (figure: Figure | null, value: number | null | undefined): string => {
  if (value === null || value === undefined) return unknown;
  return (figure === 'engagementRate' ? percent : whole).format(value);
};

/** The short form, for an axis. */
export const shortly = (figure: Figure | null, value: number): string =>
  (figure === 'engagementRate' ? percent : short).format(value);
