/** Figures as Meta's insights report them: Instagram, Facebook and Threads answer in the same shapes. */
import {
  asAmount,
  asCount,
  asCounts,
  asLabel,
  asObject,
  type Counted,
  checking,
  counted,
  derived,
  dig,
  type FigureSource,
  itemOf,
  items,
  plain,
} from './figure-source.ts';

/**
 * `data[{name, values[{value}]}]` or `data[{name, total_value{value}}]`; values split by a breakdown are added up. An empty
 * list is a missing figure, not 0.
 */
const insightValue = (raw: unknown, call: string, metric: string): unknown => {
  const one = itemOf(raw, `${call}.data`, 'name', metric);
  if (one === null || one === undefined) return one;
  if (one.total_value !== undefined) return dig(one, 'total_value.value');
  const values = items(one, 'values');
  if (values === null || values === undefined || values.length < 2) return values?.[0]?.value;
  return values.reduce((sum, { value }) => sum + asCount(value, metric), 0);
};

const insightAs =
  <T>(check: (value: unknown, name: string) => T) =>
  (metric: string, call = 'insights'): FigureSource<T> =>
    plain(metric, (raw) => checking(check)(insightValue(raw, call, metric), metric));

export const insight = insightAs(asCount);
export const insightAmount = insightAs(asAmount);
export const insightCounts = insightAs(asCounts);
/** An object whose members the caller reads one by one. */
export const insightObject = insightAs(asObject);

/** Counts by the label of one breakdown. */
export const insightBreakdown = (metric: string, call = 'insights'): FigureSource<Counted> =>
  plain(metric, (raw) => {
    const results = items(itemOf(raw, `${call}.data`, 'name', metric), 'total_value.breakdowns.0.results');
    if (results === null || results === undefined) return results;
    return counted(
      results.map((one) => [asLabel(dig(one, 'dimension_values.0'), metric), asCount(one.value, metric)] as const),
    );
  });

/** Followers by each breakdown that the answer holds; undefined: it holds none. */
export const followerDemographics: FigureSource<Readonly<Record<string, Counted>>> = derived(
  'follower_demographics',
  (raw) => {
    const found = ['country', 'city', 'age', 'gender'].flatMap((dimension) => {
      const counts = insightBreakdown('follower_demographics', `follower_demographics.${dimension}`).read(raw);
      return counts === null || counts === undefined ? [] : [[dimension, counts] as const];
    });
    return found.length === 0 ? undefined : Object.fromEntries(found);
  },
);
