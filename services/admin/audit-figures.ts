import { retentionMonths } from '#projections/analytics/tables.ts';
import { compareWithRecount } from '#projections/analytics/verify.ts';
import { zonesFrom } from '#projections/analytics/zones.ts';
import type { Say } from './audit-findings.ts';
import type { Admin } from './context.ts';

/** The totals of the analytics equal a recount, and every observation of the feed is in it. */

export const compareAnalytics = async (
  { analytics: client, pool, eventStore, codec, signal, note }: Admin,
  workspaceId: string,
  counted: Record<string, number>,
  say: Say,
): Promise<void> => {
  if (client === null) return note('no analytics are configured: their totals are not compared');
  const zones = await zonesFrom(eventStore, codec)(workspaceId);
  const { rows, observations, differing } = await compareWithRecount({ client, pool, workspaceId, zones, signal });
  counted.figures = rows;
  for (const one of differing) say(`the figures of ${one} are not what a recount gives`);
  const { rows: feed } = await pool.query<{ readonly n: string }>(
    `select count(*) as n from ops.feed_events where workspace_id = $1
       and (stream like 'targetmetrics-%' or stream like 'accountmetrics-%')
       and at > date_trunc('day', now()) - make_interval(months => $2)`,
    [workspaceId, retentionMonths - 2],
  );
  const known = Number(feed[0]?.n ?? 0);
  // The day of an observation may be another than that on which it was stored: the rest of the feed is not compared.
  if (observations < known) say(`the analytics have ${observations} observations, the feed has ${known}`);
};
