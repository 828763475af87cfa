import { nextDayIn } from '#domain/platforms/index.ts';
import { dayIn, zone } from './figures.ts';
import { dayMs } from './graph.ts';

/** Days of Meta's insights, which end at midnight of California. */

/** `YYYY-MM-DD`, so many days later. */
export const laterDay = (day: string, days: number): string =>
  new Date(Date.parse(`${day}T00:00:00Z`) + days * dayMs).toISOString().slice(0, 10);

/** The newest day that is over. @param now milliseconds since the epoch */
export const yesterdayOf = (now: number): string => laterDay(dayIn.format(now), -1);

/** The second with which a day of California begins, some hours after that of UTC. */
const beginOf = (day: string): string => String(nextDayIn(zone, Date.parse(`${day}T00:00:00Z`)) / 1_000);

/** A day as insights are asked for it. */
export const spanOfDay = (day: string): { readonly since: string; readonly until: string } => ({
  ...{ since: beginOf(day), until: beginOf(laterDay(day, 1)) },
});
