/** The quota of the workspace, as the contract shows it. */

export const exampleQuota = {
  object: 'quota',
  period: { from: '2026-01-31T23:00:00.000Z', to: '2026-02-28T23:00:00.000Z' },
  limit: 500,
  used: 12,
  scheduled: 30,
  remaining: 458,
  resetsAt: '2026-02-28T23:00:00.000Z',
  perPlatform: [
    { platform: 'bluesky', used: 5, scheduled: 10 },
    { platform: 'x', used: 7, scheduled: 20 },
  ],
};
