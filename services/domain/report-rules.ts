import type { Issue } from '#schemas/issues.ts';
import type { ReportDefinition } from '#schemas/report.ts';

/**
 * Rules of a definition that a schema cannot express. Returns the place and the reason of the first fault; null: the
 * definition is valid.
 */
export const wrongOf = ({ kind, filters, schedule }: ReportDefinition): Issue | null => {
  const { clientId, socialAccountId, platform } = filters;
  if (kind === 'client' && clientId === null)
    return { path: '/filters/clientId', code: 'required', message: 'must name the client' };
  if (kind === 'account' && socialAccountId === null)
    return { path: '/filters/socialAccountId', code: 'required', message: 'must name the account' };
  if (kind === 'account' && platform !== null)
    return { path: '/filters/platform', code: 'not_allowed', message: 'must be null: the account has one network' };
  // The report alone must name the client of its figures, because the rules for a client also hold for its accounts.
  if (socialAccountId !== null && clientId === null)
    return { path: '/filters/clientId', code: 'required', message: 'must name the client of the account' };
  if (schedule === null) return null;
  if ((schedule.every === 'week') !== (schedule.weekday !== null))
    return {
      path: '/schedule/weekday',
      code: 'mismatch',
      message: 'is required for a weekly schedule, and allowed for no other',
    };
  if ((schedule.every === 'month') !== (schedule.dayOfMonth !== null))
    return {
      path: '/schedule/dayOfMonth',
      code: 'mismatch',
      message: 'is required for a monthly schedule, and allowed for no other',
    };
  return null;
};
