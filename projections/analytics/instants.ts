import { Temporal } from 'temporal-polyfill';
import type { Window } from './rollup.ts';

/** The instants at which these days begin and end in a zone. ISO 8601. */
export const instantsOf = ({ from, to }: Window, timezone: string): { readonly from: string; readonly to: string } => {
  const startOf = (day: Temporal.PlainDate): string =>
    new Date(day.toZonedDateTime(timezone).epochMilliseconds).toISOString();
  return { from: startOf(Temporal.PlainDate.from(from)), to: startOf(Temporal.PlainDate.from(to).add({ days: 1 })) };
};
