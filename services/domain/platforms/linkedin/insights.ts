/**
 * LinkedIn, Marketing API 202609. Sources: learn.microsoft.com, "Organization Share Statistics", "Member Post
 * Statistics", "Video Analytics", "Social Metadata". A member and an organization are told different things by
 * different calls; which of the two an account is shows in what was answered.
 *
 * Of an organization `{organizationalEntityShareStatistics, videoAnalytics, socialMetadata}`, of a member
 * `{memberCreatorPostAnalytics, memberCreatorVideoAnalytics}`, calls for one metric each joined into one `elements`.
 */
import {
  asCount,
  asLabel,
  type Counted,
  count,
  counted,
  derived,
  dig,
  first,
  items,
  minutesOf,
  ofVideo,
  orNull,
  renamed,
  type Source,
  sumOf,
} from '#domain/platforms/figure-source.ts';
import { always, type InsightsTable, untold, untoldAccount } from '#domain/platforms/insights-table.ts';

const statistics = 'organizationalEntityShareStatistics.elements';
/** A post that nobody has seen is left out of the list: that is zero. A member that one of the list does not have is not. */
const ofShare = (...names: readonly string[]): Source<number> => {
  const told = first(...names.map((name) => count(`${statistics}.0.totalShareStatistics.${name}`)));
  return { ...told, read: (raw) => (items(raw, statistics)?.length === 0 ? 0 : told.read(raw)) };
};

/** `metricType` is a word since 202605, and was an object with one member that holds it. */
const metricOf = (one: { readonly [member: string]: unknown }): unknown => {
  const { metricType } = one;
  return typeof metricType === 'object' && metricType !== null ? Object.values(metricType)[0] : metricType;
};
const listed = (call: string, metric: string): Source<number> => ({
  ...count(metric),
  read: (raw) => {
    const one = items(raw, `${call}.elements`)?.find((each) => metricOf(each) === metric);
    return one?.count === undefined || one.count === null ? undefined : asCount(one.count, metric);
  },
});
const ofMember = (metric: string) => listed('memberCreatorPostAnalytics', metric);

/** Organizations are not told it. */
const memberOnly = (metric: string): Source<number> => ({
  ...ofMember(metric),
  read: (raw) => ofMember(metric).read(raw) ?? (dig(raw, statistics) === undefined ? undefined : null),
});
const organizationOnly = <T>(source: Source<T>): Source<T> => ({
  ...source,
  read: (raw) => source.read(raw) ?? (dig(raw, 'memberCreatorPostAnalytics') === undefined ? undefined : null),
});

const watchedMs = first(
  count('videoAnalytics.TIME_WATCHED.elements.0.value'),
  listed('memberCreatorVideoAnalytics', 'VIDEO_WATCH_TIME'),
);

const reactions: Source<Readonly<Record<string, unknown>>> = derived('socialMetadata.reactionSummaries', (raw) => {
  const told = dig(raw, 'socialMetadata.reactionSummaries');
  if (told === null || told === undefined) return told;
  return Object.fromEntries(
    ['LIKE', 'EMPATHY', 'ENTERTAINMENT'].flatMap((type) => {
      const one = dig(told, `${type}.count`);
      return one === undefined ? [] : [[type, one] as const];
    }),
  );
});

const facets = {
  followerCountsByGeoCountry: 'geo',
  followerCountsByFunction: 'function',
  followerCountsBySeniority: 'seniority',
  followerCountsByIndustry: 'industry',
  followerCountsByStaffCountRange: 'staffCountRange',
} as const;

export const insights: InsightsTable = {
  post: always({
    ...untold,
    impressions: first(ofMember('IMPRESSION'), ofShare('impressionCount')),
    // Its name is seen with and without an s.
    reach: first(ofMember('MEMBERS_REACHED'), ofShare('uniqueImpressionsCount', 'uniqueImpressionsCounts')),
    likes: first(ofMember('REACTION'), ofShare('likeCount')),
    comments: first(ofMember('COMMENT'), ofShare('commentCount')),
    // Its reshares; counted once, so that reposts are not told.
    shares: first(ofMember('RESHARE'), ofShare('shareCount')),
    saves: memberOnly('POST_SAVE'),
    clicks: organizationOnly(ofShare('clickCount')),
    linkClicks: memberOnly('LINK_CLICKS'),
    follows: memberOnly('FOLLOWER_GAINED_FROM_CONTENT'),
    profileVisits: memberOnly('PROFILE_VIEW_FROM_CONTENT'),
    videoViews: ofVideo(
      first(count('videoAnalytics.VIDEO_VIEW.elements.0.value'), listed('memberCreatorVideoAnalytics', 'VIDEO_PLAY')),
    ),
    watchTimeMinutes: ofVideo(minutesOf(watchedMs)),
    // Its other kinds have no place of ours: they are in likes alone.
    reactionsByType: organizationOnly(renamed(reactions, { like: 'LIKE', love: 'EMPATHY', haha: 'ENTERTAINMENT' })),
  }),
  account: {
    ...untoldAccount,
    followerCount: first(
      count('networkSizes.firstDegreeSize'),
      count('memberFollowersCount.elements.0.memberFollowersCount'),
    ),
    profileViews: orNull(
      count('organizationPageStatistics.elements.0.totalPageStatistics.views.allPageViews.pageViews'),
    ),
  },
  demographics: derived('organizationalEntityFollowerStatistics', demographicsOf),
};

function demographicsOf(raw: unknown): Record<string, Counted> | undefined {
  const path = 'organizationalEntityFollowerStatistics.elements.0';
  const followers = sumOf(count('followerCounts.organicFollowerCount'), count('followerCounts.paidFollowerCount'));
  const found = Object.entries(facets).flatMap(([member, label]) => {
    const list = items(raw, `${path}.${member}`);
    if (list === null || list === undefined) return [];
    return [
      [label, counted(list.map((one) => [asLabel(one[label], member), followers.read(one) ?? 0] as const))],
    ] as const;
  });
  return found.length === 0 ? undefined : Object.fromEntries(found);
}
