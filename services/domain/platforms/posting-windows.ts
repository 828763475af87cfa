import type { Platform } from '#schemas/common.ts';

/**
 * How often a network lets one account publish, as its documents say; null figures are left out. A network counts
 * calls: a thread is one for each segment. What it reports of an account replaces a window of the same length.
 */
export interface PostingWindow {
  readonly name: string;
  readonly seconds: number;
  readonly limit: number;
}

const minute = 60;
const hour = 3_600;
const day = 86_400;

export const postingWindows: Readonly<Record<Platform, readonly PostingWindow[]>> = {
  // docs.x.com, "Rate limits": POST /2/tweets for each user; another page has 300 posts in 3 hours.
  x: [
    { name: '15 minutes', seconds: 15 * minute, limit: 100 },
    { name: '3 hours', seconds: 3 * hour, limit: 300 },
  ],
  // Graph API, "Content publishing": 50 on one page and 100 on another; the account itself reports the true one.
  instagram: [{ name: '24 hours', seconds: day, limit: 50 }],
  // Not published; about 15 are reported.
  tiktok: [{ name: '24 hours', seconds: day, limit: 15 }],
  // Its quota is that of a whole project, not of a channel.
  youtube: [],
  // Only reels have a limit of posts.
  facebook: [],
  // LinkedIn API, "Share on LinkedIn": requests of a member.
  linkedin: [{ name: '24 hours', seconds: day, limit: 150 }],
  // Threads API, "Rate limits".
  threads: [{ name: '24 hours', seconds: day, limit: 250 }],
  pinterest: [],
  // bsky-docs, "Rate limits": 5,000 points an hour and 35,000 a day; a record is 3.
  bluesky: [
    { name: '1 hour', seconds: hour, limit: 1_666 },
    { name: '24 hours', seconds: day, limit: 11_666 },
  ],
  // Bot API FAQ: messages to one group.
  telegram: [{ name: '1 minute', seconds: minute, limit: 20 }],
};
