import { exampleAccount } from '../examples.ts';

/** The limits of an account, as the contract shows them. */

export const exampleCadence = {
  accountId: exampleAccount.id,
  platform: exampleAccount.platform,
  windows: [
    { name: '24 hours', limit: 20, used: 2, remaining: 18, resetsAt: '2026-02-01T06:30:00.000Z', source: 'workspace' },
  ],
  minIntervalMinutes: 30,
  nextFreeAt: '2026-01-31T08:12:00.000Z',
};
