import { noTotals } from '#projections/analytics/totals.ts';
import { type CounterName, counters } from '#schemas/insights.ts';
import type { Tag } from '../call/operation.ts';

export const analyticsTag: Tag = {
  place: 90,
  name: 'analytics',
  noun: 'post',
  about: 'Figures of posts and accounts as their networks report them, and the best times to post.',
};

/** One story in all examples: two days of a brand that posts to Instagram and x. */

const ids = {
  client: '315d0d36-9a7d-573e-8bc2-d5133b51f29b',
  account: '7d2f7f0e-6f43-5e0e-8d3c-2b6a4c1f0002',
  accountOnX: '3b1c9d8e-7f60-5a1b-9c2d-4e5f6a7b0003',
  post: '7d2f1c9e-3a64-5c2b-8a3e-6a9f0f1d4c33',
  onInstagram: '9a8b7c6d-5e4f-5a3b-8c2d-1e0f9a8b7c44',
  onX: '4c3b2a19-0f8e-5d7c-9b6a-5f4e3d2c1b55',
};
const seenAt = '2026-02-01T02:14:09.000Z';
const window = { from: '2026-01-31', to: '2026-02-01', asOf: seenAt };

/** Every counter was asked for; null: the network does not report it. */
const asked = Object.fromEntries(counters.map((counter) => [counter, null])) as Record<CounterName, null>;

const instagram = { ...asked, impressions: 1180, likes: 61, comments: 7, engagementRate: 0.0576 };
const onX = { ...asked, impressions: 240, likes: 12, comments: 0, shares: 3, engagementRate: 0.0625 };
const totals = {
  ...asked,
  impressions: 1420,
  likes: 73,
  comments: 7,
  shares: 3,
  engagementRate: 0.0585,
};
const none = { day: '2026-01-31', provisional: false, ...noTotals };

const rollup = {
  ...window,
  staleAccounts: 0,
  totals: { ...totals, followerCount: 21_360, posts: 1 },
  byPlatform: [
    { platform: 'instagram', ...instagram, followerCount: 18_204, posts: 1 },
    { platform: 'x', ...onX, followerCount: 3_156, posts: 1 },
  ],
  series: [
    { ...none, followerCount: 21_298 },
    { day: '2026-02-01', provisional: true, ...totals, followerCount: 21_360 },
  ],
};

export const overviewExample = { object: 'workspace_analytics', ...rollup };
export const clientAnalyticsExample = { object: 'client_analytics', clientId: ids.client, ...rollup };

const followers = { followerCount: 18_204 };

export const accountAnalyticsExample = {
  object: 'account_analytics',
  socialAccountId: ids.account,
  platform: 'instagram',
  ...window,
  totals: { ...instagram, ...followers },
  series: [
    { ...none, followerCount: null },
    { day: '2026-02-01', provisional: true, ...instagram, ...followers },
  ],
  audience: { profileViews: 312, accountsEngaged: null, profileLinkTaps: 8 },
  demographics: { country: { DE: 9_310, AT: 2_104 }, age: { '25-34': 6_020 } },
};

const figures = {
  instagram: {
    impressions: 1180,
    reach: 900,
    likes: 61,
    comments: 7,
    saves: 0,
    permalink: null,
    engagementRate: 0.0576,
  },
  x: { impressions: 240, likes: 12, comments: 0, shares: 3, engagementRate: 0.0625 },
};

export const postAnalyticsRowExample = {
  object: 'post_analytics',
  ...window,
  postId: ids.post,
  clientId: ids.client,
  accountId: null,
  excerpt: 'Our spring collection is here.',
  permalink: null,
  platforms: ['instagram', 'x'],
  publishedAt: '2026-01-31T17:00:03.120Z',
  metrics: {
    ...{ impressions: 1420, reach: 900, likes: 73, comments: 7, shares: 3, saves: 0, permalink: null },
    ...{ platformRemovedAt: null, engagementRate: 0.0585 },
  },
  fetchedAt: seenAt,
};

const looked = { fetchedAt: seenAt };

export const postAnalyticsExample = {
  ...postAnalyticsRowExample,
  targets: [
    {
      targetId: ids.onInstagram,
      platform: 'instagram',
      clientId: ids.client,
      accountId: ids.account,
      permalink: 'https://www.instagram.com/p/C3xYz1aBcDe/',
      metrics: { ...figures.instagram, platformRemovedAt: null },
      ...looked,
    },
    {
      targetId: ids.onX,
      platform: 'x',
      clientId: ids.client,
      accountId: ids.accountOnX,
      permalink: 'https://x.com/i/status/2017654321098765432',
      metrics: { ...figures.x, platformRemovedAt: null },
      ...looked,
    },
  ],
};

export const bestTimeExample = {
  object: 'best_time',
  weekday: 2,
  hour: 18,
  timezone: 'Europe/Berlin',
  score: 0.5833,
  lift: 1.4,
  sampleSize: 6,
  basis: 'observed',
};
