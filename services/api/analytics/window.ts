import { Temporal } from 'temporal-polyfill';
import type { Window } from '#projections/analytics/rollup.ts';
import type { Comparison } from '#schemas/http/analytics.ts';
import { badParameter } from '../call/refusal.ts';

/** The days that a question is about. */

const defaultDays = 30;
const maxDays = 400;
/** Years in which each of our stores can hold a date. */
const earliest = '2000-01-01';
const latest = '2100-12-31';

const dateOf = (name: 'from' | 'to', text: string): Temporal.PlainDate => {
  if (text < earliest || text > latest)
    throw badParameter(name, 'out_of_range', `must be a day from ${earliest} to ${latest}`);
  try {
    return Temporal.PlainDate.from(text, { overflow: 'reject' });
  } catch {
    throw badParameter(name, 'no_such_time', 'is not a day of the calendar');
  }
};

/**
 * @param now ISO 8601
 * @throws Refusal 400 `invalid_parameter`
 */
export const windowOf = (
  asked: { readonly from?: string; readonly to?: string },
  timezone: string,
  now: string,
): Window => {
  const to =
    asked.to === undefined
      ? Temporal.Instant.from(now).toZonedDateTimeISO(timezone).toPlainDate()
      : dateOf('to', asked.to);
  const from = asked.from === undefined ? to.subtract({ days: defaultDays - 1 }) : dateOf('from', asked.from);
  const { days } = from.until(to, { largestUnit: 'days' });
  if (days < 0)
    throw badParameter('from', 'wrong_order', `must not be after ${asked.to === undefined ? 'today' : 'to'}`);
  if (days >= maxDays) throw badParameter('from', 'out_of_range', `must be less than ${maxDays} days before to`);
  return { from: from.toString(), to: to.toString() };
};

/**
 * The window before: as many days right before this one, or this window moved back by whole weeks, so that weekdays
 * match.
 */
export const previousOf = ({ from, to }: Window, comparison: Comparison): Window => {
  const [first, last] = [Temporal.PlainDate.from(from), Temporal.PlainDate.from(to)];
  const days = first.until(last, { largestUnit: 'days' }).days + 1;
  const back = { days: comparison === 'previous' ? days : Math.ceil(days / 7) * 7 };
  return { from: first.subtract(back).toString(), to: last.subtract(back).toString() };
};
