import type pg from 'pg';
import { accountmetrics, targetmetrics } from '#domain/insights.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { foldEvents } from '#runtime/eventing/domain-store.ts';
import { idOf, kindOf } from '#schemas/topics.ts';

/** Invariants of figures at rest: each observation is one event, each refresh was completed once. */

/**
 * False also while the worker's consumer is behind, or is about to ask; where none ever ran there is nothing to wait
 * for.
 */
export const insightsAtRest = async (pool: pg.Pool): Promise<boolean> => {
  const there = await pool.query(`select to_regclass('ops.insights_accounts') as there`);
  if (there.rows[0].there === null) return true;
  const { rows } = await pool.query(
    `select exists (select from ops.consumer_positions where consumer_group = 'metrics') as runs,
       exists (select from ops.insights_refreshes) as refreshing,
       exists (select from ops.insights_accounts where connected and next_at < now() + interval '5 seconds') as busy,
       exists (select from unnest(array['posts', 'workspace']) as topic
         join (select topic, max(position) as position from es.events where topic is not null group by topic) e using (topic)
         where coalesce((select max(position) from ops.consumer_positions where consumer_group = 'metrics'), 0)
           < e.position) as behind`,
  );
  const { runs, refreshing, busy, behind } = rows[0];
  return !runs || (!refreshing && !busy && !behind);
};

export const checkInsights = (streams: ReadonlyMap<string, readonly DecodedEvent[]>): readonly string[] => {
  const violations: string[] = [];
  for (const [stream, events] of streams) {
    const wrong = (what: string): void => void violations.push(`${stream} ${what}`);
    const kind = kindOf(stream);
    if (kind === 'targetmetrics' || kind === 'accountmetrics') {
      // One observation of an account may report several days of the network's own, each once.
      const looks = new Set(events.map(({ metadata, data }) => `${metadata.$causationId} ${data.figuresDay ?? ''}`));
      if (looks.size !== events.length) wrong(`has ${events.length} observations of ${looks.size} looks`);
      const times = events.map(({ metadata, data }) => ({ look: metadata.$causationId, at: String(data.observedAt) }));
      const wrongly = times.some(({ look, at }, place) => {
        const before = times[place - 1];
        return before !== undefined && (look === before.look ? at !== before.at : at <= before.at);
      });
      if (wrongly) wrong('goes back in time');
    }
    if (kind === 'targetmetrics') {
      const { last } = foldEvents(targetmetrics, events);
      const gone = (streams.get(`target-${idOf(stream)}`) ?? []).some(({ type }) => type === 'TargetRemovedOnPlatform');
      if (gone !== ((last?.platformRemovedAt ?? null) !== null))
        wrong('and its target do not agree on whether it is gone');
    }
    if (kind === 'accountmetrics' && foldEvents(accountmetrics, events).last === null) wrong('observed nothing');
    if (kind !== 'refresh') continue;
    const story = events.map(({ type }) => type).join(' ');
    if (story !== 'AnalyticsRefreshRequested AnalyticsRefreshed') wrong(`is ${story}`);
  }
  return violations;
};
