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
  itemOf,
  items,
  plain,
  type Source,
} from './figure-source.ts';

/**
 * Insights of Meta: `data[{name, values[{value}]}]` or `data[{name, total_value{value}}]`; values that come split by a
 * breakdown are added up. No value is no answer: an empty list is not 0.
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
  (metric: string, call = 'insights'): Source<T> =>
    plain(metric, (raw) => checking(check)(insightValue(raw, call, metric), metric));

export const insight = insightAs(asCount);
export const insightAmount = insightAs(asAmount);
export const insightCounts = insightAs(asCounts);
/** An object whose members are read one by one. */
export const insightObject = insightAs(asObject);

/** Of an insight of Meta by one breakdown: label and count. */
export const insightBreakdown = (metric: string, call = 'insights'): Source<Counted> =>
  plain(metric, (raw) => {
    const results = items(itemOf(raw, `${call}.data`, 'name', metric), 'total_value.breakdowns.0.results');
    if (results === null || results === undefined) return results;
    return counted(
      results.map((one) => [asLabel(dig(one, 'dimension_values.0'), metric), asCount(one.value, metric)] as const),
    );
  });

/** Followers by each breakdown that was asked for and answered; undefined: none was. */
export const followerDemographics: Source<Readonly<Record<string, Counted>>> = derived(
  'follower_demographics',
  (raw) => {
    const found = ['country', 'city', 'age', 'gender'].flatMap((dimension) => {
      const counts = insightBreakdown('follower_demographics', `follower_demographics.${dimension}`).read(raw);
      return counts === null || counts === undefined ? [] : [[dimension, counts] as const];
    });
    return found.length === 0 ? undefined : Object.fromEntries(found);
  },
);
