import type { ReportRun } from '#domain/report.ts';
import type { Followers, OfDay, OfPlatform, TopPost, Totals } from '#projections/analytics/rollup.ts';
import type { Platform } from '#schemas/common.ts';
import type { AccountFigures, Demographics } from '#schemas/insights.ts';
import type { Completeness, ReportDefinition } from '#schemas/report.ts';

/** The contents of a report, read once, so that all exports of a run agree. They hold no personal member. */

export const maxTopPosts = 10;

export type Audience = Omit<AccountFigures, 'followerCount'>;
type Some<T> = T & Partial<Followers>;

export interface Contents {
  readonly reportId: string;
  readonly runId: string;
  readonly name: string;
  readonly kind: ReportDefinition['kind'];
  readonly workspace: string;
  /** Null: the report is not about one client. */
  readonly client: string | null;
  /** Network of the account in the filters, else the network in the filters; null: any network. */
  readonly platform: Platform | null;
  /** As in the report's definition. */
  readonly filters: ReportDefinition['filters'];
  readonly from: string;
  readonly to: string;
  readonly timezone: string;
  readonly asOf: string | null;
  readonly completeness: Completeness;
  /** When the run was requested: the same however often it is made. */
  readonly requestedAt: string;
  readonly totals: Some<Totals>;
  readonly byPlatform: readonly Some<OfPlatform>[];
  readonly series: readonly Some<OfDay>[];
  /** Posts of the days with the most interactions, at most `maxTopPosts`. */
  readonly topPosts?: readonly TopPost[];
  /** Of an account: sums over the days. An absent member was never asked for. */
  readonly audience?: Audience;
  /** Of an account. Absent: never asked for; null: the network does not report them. */
  readonly demographics?: Demographics | null;
}

export type RunOf = Pick<ReportRun, 'runId' | 'from' | 'to' | 'formats' | 'requestedAt'>;
