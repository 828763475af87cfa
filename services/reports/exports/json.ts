import { type Static, type TSchema, Type } from 'typebox';
import { Instant, Nullable, Platform, Uuid } from '#schemas/common.ts';
import { counters, Demographics, LocalDate } from '#schemas/insights.ts';
import { Completeness } from '#schemas/report.ts';
import type { Contents } from '../contents.ts';

/** A report for programs: a reader may rely on the schema. */

/** Absent: never fetched; null: no network reported it. */
const Gain = Type.Optional(Nullable(Type.Integer()));
const ReportedFigure = Type.Optional(Nullable(Type.Integer({ minimum: 0 })));
const figures = {
  ...(Object.fromEntries(counters.map((one) => [one, Gain])) as Record<(typeof counters)[number], typeof Gain>),
  engagementRate: Nullable(Type.Number()),
};
const Followers = Type.Optional(Nullable(Type.Integer({ minimum: 0 })));
const Figures = Type.Object({ ...figures, followerCount: Followers });

export const ReportJson = Type.Object({
  object: Type.Literal('report_export'),
  version: Type.Literal(1),
  reportId: Uuid,
  runId: Uuid,
  name: Type.String(),
  kind: Type.Enum(['workspace', 'client', 'account']),
  workspace: Type.String(),
  client: Nullable(Type.String()),
  platform: Nullable(Platform),
  filters: Type.Object({
    clientId: Nullable(Uuid),
    socialAccountId: Nullable(Uuid),
    platform: Nullable(Platform),
  }),
  from: LocalDate,
  to: LocalDate,
  timezone: Type.String(),
  asOf: Nullable(Instant),
  /** Absent in reports that were made before this member existed. */
  completeness: Type.Optional(Completeness),
  requestedAt: Instant,
  totals: Figures,
  byPlatform: Type.Array(Type.Object({ platform: Platform, ...figures, followerCount: Followers })),
  series: Type.Array(
    Type.Object({
      day: LocalDate,
      /**
       * The next observation of a post may change the day; absent in reports that were made before this member existed.
       */
      provisional: Type.Optional(Type.Boolean()),
      ...figures,
      followerCount: Followers,
    }),
  ),
  topPosts: Type.Optional(
    Type.Array(
      Type.Object({
        postId: Uuid,
        publishedAt: Instant,
        platforms: Type.Array(Platform),
        impressions: ReportedFigure,
        interactions: ReportedFigure,
        engagementRate: Nullable(Type.Number()),
      }),
    ),
  ),
  audience: Type.Optional(
    Type.Object({
      profileViews: ReportedFigure,
      accountsEngaged: ReportedFigure,
      profileLinkTaps: ReportedFigure,
      videoViews: ReportedFigure,
      videoWatchTimeMinutes: ReportedFigure,
      contentPlays: ReportedFigure,
    }),
  ),
  demographics: Type.Optional(Nullable(Demographics)),
}) satisfies TSchema;
export type ReportJson = Static<typeof ReportJson>;

export const jsonOf = (contents: Contents): string =>
  `${JSON.stringify({ object: 'report_export', version: 1, ...contents }, null, 2)}\n`;
