import type pg from 'pg';
import { accountmetrics, targetmetrics } from '#domain/insights.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { foldEvents } from '#runtime/eventing/domain-store.ts';
import { idOf, kindOf } from '#schemas/topics.ts';

/** Invariants of figures at rest: each observation is one event, each refresh was completed once. */

interface Asked {
  readonly accountId: string;
  readonly platform: string;
  readonly dueAt: Date;
  /** The end of the account's rest, and of its lease or the rest of that. */
  readonly restsUntil: Date | null;
  readonly leasedUntil: Date | null;
}

const isInstalled = async (pool: pg.Pool): Promise<boolean> => {
  const { rows } = await pool.query(`select to_regclass('ops.insights_accounts') as there`);
  return rows[0].there !== null;
};

/** How many accounts of the network rest: it is asked for none of their figures. */
export const restingAccounts = async (pool: pg.Pool, platform: string): Promise<number> => {
  const { rows } = await pool.query<{ n: number }>(
    'select count(*)::int4 as n from ops.insights_accounts where connected and platform = $1 and not_before > now()',
    [platform],
  );
  return rows[0]?.n ?? 0;
};

/** Ends the rests of accounts, so that their networks are asked at once. @returns the network of each that rested */
export const endRestsOfAccounts = async (pool: pg.Pool): Promise<readonly string[]> => {
  if (!(await isInstalled(pool))) return [];
  const { rows } = await pool.query<{ platform: string }>(
    'update ops.insights_accounts set not_before = now() where connected and not_before > now() returning platform',
  );
  return rows.map(({ platform }) => platform);
};

/**
 * Why figures are still asked for, or are about to be; empty where nothing is. An account that rests is among them: what
 * was due of it is not read yet. Where the worker never ran there is nothing to wait for.
 */
export const askedFigures = async (pool: pg.Pool): Promise<readonly string[]> => {
  if (!(await isInstalled(pool))) return [];
  const { rows } = await pool.query(
    `select exists (select from ops.consumer_positions where consumer_group = 'metrics') as runs,
       exists (select from unnest(array['posts', 'workspace']) as topic
         join (select topic, max(position) as position from es.events where topic is not null group by topic) e using (topic)
         where coalesce((select max(position) from ops.consumer_positions where consumer_group = 'metrics'), 0)
           < e.position) as behind`,
  );
  const { runs, behind } = rows[0];
  if (!runs) return [];
  const refreshes = await pool.query<{ id: string; waiting: number }>(
    'select refresh_id as id, waiting from ops.insights_refreshes limit 10',
  );
  const accounts = await pool.query<Asked>(
    `select a.account_id as "accountId", a.platform, a.next_at as "dueAt", a.not_before as "restsUntil",
       greatest(l.until, l.not_before) as "leasedUntil"
     from ops.insights_accounts a left join ops.work_leases l on l.kind = 'metrics' and l.id = a.account_id::text
     where a.connected and a.next_at < now() + interval '5 seconds' order by a.next_at limit 10`,
  );
  return [
    ...(behind ? ['the consumer of figures is behind'] : []),
    ...refreshes.rows.map(({ id, waiting }) => `the refresh ${id} waits for ${waiting} accounts`),
    ...accounts.rows.map((one) => `figures are asked for: ${JSON.stringify(one)}`),
  ];
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
