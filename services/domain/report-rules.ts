import type { ReportDefinition } from '#schemas/report.ts';

/**
 * Rules of a definition that a schema cannot express. Returns the place and the reason of the first fault; null: the
 * definition is valid.
 */
export const wrongOf = ({ kind, filters, schedule }: ReportDefinition): { path: string; message: string } | null => {
  const { clientId, socialAccountId, platform } = filters;
  if (kind === 'client' && clientId === null) return { path: '/filters/clientId', message: 'must name the client' };
  if (kind === 'account' && socialAccountId === null)
    return { path: '/filters/socialAccountId', message: 'must name the account' };
  if (kind === 'account' && platform !== null)
    return { path: '/filters/platform', message: 'must be null: the account has one network' };
  // The report alone must name the client of its figures, because the rules for a client also hold for its accounts.
  if (socialAccountId !== null && clientId === null)
    return { path: '/filters/clientId', message: 'must name the client of the account' };
  if (schedule === null) return null;
  if ((schedule.every === 'week') !== (schedule.weekday !== null))
    return { path: '/schedule/weekday', message: 'is required for a weekly schedule, and allowed for no other' };
  if ((schedule.every === 'month') !== (schedule.dayOfMonth !== null))
    return { path: '/schedule/dayOfMonth', message: 'is required for a monthly schedule, and allowed for no other' };
  return null;
};
