/** Every worker in one process, as in standalone's threads: the whole build starts once, not seven times. */
await Promise.all([
  import('#projections/main.ts'),
  import('#services/outcomes/main.ts'),
  import('#services/publisher/main.ts'),
  import('#services/webhooks/main.ts'),
  import('#services/media/main.ts'),
  import('#services/insights/main.ts'),
  import('#services/reports/main.ts'),
]);
