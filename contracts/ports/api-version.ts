import type { Platform } from '#schemas/common.ts';

/** The version of a network's API that an adapter speaks. */
export interface ApiVersion {
  readonly version: string;
  /** A date, from which the network no longer answers; null: it has named none. */
  readonly endsAt: string | null;
  /** Where the network says so, and as of when. */
  readonly source: string;
}

export type ApiVersions = Readonly<Partial<Record<Platform, ApiVersion>>>;

/** What is left of a version. `ended`: its day is past, or the network has said so. */
export type VersionStage = 'ends_in_90_days' | 'ends_in_30_days' | 'ended';

const dayMs = 86_400_000;

/** Whole days until the version ends, 0 or less from its day on; null: no end is announced. @param now milliseconds since the epoch */
export const daysLeftOf = ({ endsAt }: Pick<ApiVersion, 'endsAt'>, now: number): number | null =>
  endsAt === null ? null : Math.ceil((Date.parse(endsAt) - now) / dayMs);

/** Null: nothing needs to be said yet. */
export const stageOf = (version: Pick<ApiVersion, 'endsAt'>, now: number): VersionStage | null => {
  const days = daysLeftOf(version, now);
  if (days === null || days > 90) return null;
  if (days <= 0) return 'ended';
  return days <= 30 ? 'ends_in_30_days' : 'ends_in_90_days';
};
