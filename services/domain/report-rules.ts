import type { ReportDefinition } from '#schemas/report.ts';

/** What a schema cannot say of a definition: where it is wrong and why. Null: nothing is. */
export const wrongOf = ({ kind, filters, schedule }: ReportDefinition): { path: string; message: string } | null => {
  const { clientId, socialAccountId, platform } = filters;
  if (kind === 'client' && clientId === null) return { path: '/filters/clientId', message: 'must name the client' };
  if (kind === 'account' && socialAccountId === null)
    return { path: '/filters/socialAccountId', message: 'must name the account' };
  if (kind === 'account' && platform !== null)
    return { path: '/filters/platform', message: 'must be null: the account has one network' };
  // Whose figures they are has to be told from the report alone: what is said of a client holds for its accounts.
  if (socialAccountId !== null && clientId === null)
    return { path: '/filters/clientId', message: 'must name the client of the account' };
  if (schedule === null) return null;
  if ((schedule.every === 'week') !== (schedule.weekday !== null))
    return { path: '/schedule/weekday', message: 'must be given of a weekly schedule, and of no other' };
  if ((schedule.every === 'month') !== (schedule.dayOfMonth !== null))
    return { path: '/schedule/dayOfMonth', message: 'must be given of a monthly schedule, and of no other' };
  return null;
};
