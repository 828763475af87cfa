import { interactionsOf } from '#domain/engagement.ts';
import type { PostFiguresRow } from '#projections/analytics/rollup.ts';
import { rateOf } from '#projections/analytics/totals.ts';
import { counters } from '#schemas/insights.ts';

/** The figures of a post over all of its targets. */

type Figures = PostFiguresRow['figures'];
type Metrics = Figures & { readonly engagementRate?: number | null };
type Counts = Readonly<Record<string, number | null>>;

/** Members that count by kind; each kind adds up by itself. */
const countsByKind = ['reactionsByType', 'clicksByType', 'profileActivity', 'navigation', 'trafficSources'] as const;
/** Members that do not add up. */
const single = [
  'permalink',
  'skipRate',
  'avgViewDurationSeconds',
  'avgViewPercentage',
  'audienceRetention',
  'audienceBreakdown',
] as const;

/** Null when all values are null: no network reports the figure. */
const sum = (values: readonly (number | null)[]): number | null => {
  const known = values.filter((one) => one !== null);
  return known.length === 0
    ? null
    : Math.min(
        known.reduce((a, b) => a + b, 0),
        Number.MAX_SAFE_INTEGER,
      );
};

const sumByKind = (values: readonly (Counts | null)[]): Counts | null => {
  const known = values.filter((one) => one !== null);
  if (known.length === 0) return null;
  const kinds = new Set(known.flatMap((one) => Object.keys(one)));
  return Object.fromEntries(
    [...kinds].map((kind) => [kind, sum(known.flatMap((one) => (one[kind] === undefined ? [] : [one[kind]])))]),
  );
};

/** The only value. Several targets have no common value: each shows its own. */
const only = (values: readonly unknown[]): unknown => {
  const known = values.filter((one) => one !== null);
  return known.length === 1 ? known[0] : null;
};

const rateOfAll = (rows: readonly PostFiguresRow[]): number | null => {
  const rated = rows.flatMap(({ figures }) => {
    const interactions = interactionsOf(figures);
    const impressions = figures.impressions ?? null;
    return interactions === null || impressions === null ? [] : [{ interactions, impressions }];
  });
  return rateOf(sum(rated.map((one) => one.interactions)), sum(rated.map((one) => one.impressions)));
};

/** The last instant of removal, once every network has removed the post. */
const removedAt = (rows: readonly PostFiguresRow[]): string | null => {
  const instants = rows.map(({ figures }) => figures.platformRemovedAt ?? null);
  return instants.includes(null) ? null : (instants.sort().at(-1) ?? null);
};

/** A member is absent where every target lacks it. */
const members = <Value>(
  rows: readonly PostFiguresRow[],
  names: readonly (keyof Figures)[],
  combine: (values: readonly Value[]) => unknown,
): readonly (readonly [string, unknown])[] =>
  names.flatMap((name) => {
    const values = rows.flatMap(({ figures }) => (figures[name] === undefined ? [] : [figures[name]]));
    return values.length === 0 ? [] : [[name, combine(values as Value[])] as const];
  });

export const combined = (rows: readonly PostFiguresRow[]): Metrics => {
  const [first] = rows;
  if (first === undefined) return {};
  if (rows.length === 1) return { ...first.figures, engagementRate: first.engagementRate };
  return Object.fromEntries([
    ...members(rows, counters, sum),
    ...members(rows, countsByKind, sumByKind),
    ...members(rows, single, only),
    ['platformRemovedAt', removedAt(rows)],
    ['engagementRate', rateOfAll(rows)],
  ]) as Metrics;
};
