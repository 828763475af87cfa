import { Type } from 'typebox';
import { Instant, Nullable, Platform } from '#schemas/common.ts';
import { Named, said } from '#schemas/published.ts';

/** GET /quota: how many targets the workspace may still publish this month. */

const count = (description: string) => Type.Integer({ minimum: 0, description });

const QuotaPeriod = Named(
  'QuotaPeriod',
  Type.Object(
    {
      from: said(Instant, 'When the month begins, in the zone of the workspace.', {
        examples: ['2026-01-31T23:00:00.000Z'],
      }),
      to: said(Instant, 'When the next month begins: it is no part of this one.', {
        examples: ['2026-02-28T23:00:00.000Z'],
      }),
    },
    { description: 'A month in the zone of the workspace.' },
  ),
);

const QuotaPlatform = Named(
  'QuotaPlatform',
  Type.Object(
    {
      platform: said(Platform, 'The network.'),
      used: count('Targets on it that are published, or being published.'),
      scheduled: count('Targets on it that will go out this month.'),
    },
    { description: 'What one network takes of the quota.' },
  ),
);

export const Quota = Named(
  'Quota',
  Type.Object(
    {
      object: Type.Literal('quota', { description: 'The kind of resource.' }),
      period: said(QuotaPeriod, 'The present month.'),
      limit: said(
        Nullable(count('Targets.')),
        'Targets that may be due in the month; null: as many as the workspace likes. A thread is one target.',
        { examples: [500] },
      ),
      used: count('Targets of the month that are published, or being published.'),
      scheduled: count(
        'Targets of the month that will go out; those that wait for an approval count, drafts and canceled or failed targets do not.',
      ),
      remaining: said(Nullable(count('Targets.')), 'Targets that are left of the limit; null: no limit.', {
        examples: [458],
      }),
      resetsAt: said(Instant, 'When the next month begins, with a quota of its own.', {
        examples: ['2026-02-28T23:00:00.000Z'],
      }),
      perPlatform: Type.Array(QuotaPlatform, {
        description: 'The same by network; networks without targets are left out.',
      }),
    },
    { description: 'How many targets the workspace may publish in a month.' },
  ),
);
