/** Shapes that several answers of a network have in common. */
import type { Json } from '#contracts/ports/platform.ts';
import type { Members } from '../shared/members.ts';

export const insight = (name: string, value: Json, period = 'lifetime'): Members => ({
  name,
  period,
  values: [{ value }],
});
export const insights = (values: Members, period?: string): Members => ({
  data: Object.entries(values).map(([name, value]) => insight(name, value, period)),
});
export const split = (name: string, dimension: string, labels: Readonly<Record<string, number>>): Members => ({
  name,
  period: 'lifetime',
  total_value: {
    value: Object.values(labels).reduce((sum, one) => sum + one, 0),
    breakdowns: [
      {
        dimension_keys: [dimension],
        results: Object.entries(labels).map(([label, value]) => ({ dimension_values: [label], value })),
      },
    ],
  },
});

export const report = (columns: readonly string[], rows: readonly (readonly Json[])[]): Members => ({
  kind: 'youtubeAnalytics#resultTable',
  columnHeaders: columns.map((name) => ({ name })),
  rows,
});
