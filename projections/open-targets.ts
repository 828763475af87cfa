/**
 * Targets that a change of many may still cancel. A target with an external id has published a part of its thread; the
 * publisher ends it at its claim.
 */
export const isOpenTarget = (t: string): string =>
  `${t}.status in ('awaiting_approval', 'pending', 'rate_limited') and ${t}.external_id is null`;
