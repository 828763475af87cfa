import type { DecodedEvent } from '#runtime/codec.ts';
import { type AccountMetricsEvent, counters, type TargetMetricsEvent } from '#schemas/metrics.ts';
import { columnOf } from './tables.ts';

/** Events as rows of the raw tables. */

/** What is kept of an event until it is inserted. */
export interface Observation {
  /** Its event's. */
  readonly id: string;
  readonly workspaceId: string;
  /** Of a post's target; else of an account. */
  readonly post: boolean;
  readonly position: bigint;
  /** Days whose grains change with it, first the one that its row is of. */
  readonly days: readonly string[];
  /** Its row in the format TabSeparated, without the line's end. Null: no table holds its day. */
  readonly line: string | null;
}

export const observationColumns: readonly string[] = [
  ...['workspace_id', 'day', 'target_id', 'observed_at', 'event_id', 'position'],
  ...['post_id', 'client_id', 'account_id', 'platform', 'published_at', 'removed_at', 'fetched'],
  ...counters.map(columnOf),
  ...['more', 'raw', 'source'],
];

export const accountObservationColumns: readonly string[] = [
  ...['workspace_id', 'day', 'account_id', 'observed_at', 'event_id', 'position', 'client_id', 'platform'],
  ...['figures_day', 'figures', 'demographics', 'raw', 'source'],
];

const escapes: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '\t': '\\t',
  '\n': '\\n',
  '\r': '\\r',
  '\0': '\\0',
};

/** Only what others have written needs it: ids, instants, days and numbers have none of these characters. */
const escaped = (text: string): string => text.replace(/[\\\t\n\r\0]/g, (one) => escapes[one] ?? one);

const none = '\\N';

/** `2026-01-31T08:00:00.000Z` → `2026-01-31 08:00:00.000`: the columns are in UTC. */
const at = (instant: string): string => `${instant.slice(0, 10)} ${instant.slice(11, 23)}`;

const places: Readonly<Record<string, number>> = Object.fromEntries(counters.map((counter, place) => [counter, place]));

type Target = Extract<TargetMetricsEvent, { type: 'TargetMetricsObserved' }>['data'];
type Account = Extract<AccountMetricsEvent, { type: 'AccountMetricsObserved' }>['data'];

/** Joined, as are all lines: one that was added up would be held as a tree of its pieces until somebody reads it. */
const targetLine = ({ id, position, metadata, data }: DecodedEvent): string => {
  const seen = data as Target;
  const { figures, platformRemovedAt } = seen;
  const values: string[] = counters.map(() => none);
  const more: Record<string, unknown> = {};
  let fetched = 0;
  for (const name of Object.keys(figures) as (keyof typeof figures)[]) {
    const place = places[name];
    const value = figures[name];
    if (place === undefined) more[name] = value;
    else {
      fetched |= 1 << place;
      if (value !== null) values[place] = String(value);
    }
  }
  return [
    ...[metadata.workspaceId, seen.day, seen.targetId, at(seen.observedAt), id, String(position)],
    ...[seen.postId, seen.clientId, seen.accountId, escaped(seen.platform), at(seen.publishedAt)],
    platformRemovedAt === null ? none : at(platformRemovedAt),
    String(fetched),
    ...values,
    ...[escaped(JSON.stringify(more)), escaped(JSON.stringify(seen.raw)), escaped(seen.source)],
  ].join('\t');
};

/** What the columns can hold; a day beyond them would be stored as another one. */
const holdsDay = (day: string): boolean => day >= '1970-01-01' && day <= '2149-06-06';

const figuresDayOf = ({ figuresDay }: Pick<Account, 'figuresDay'>): string | null =>
  figuresDay !== null && holdsDay(figuresDay) ? figuresDay : null;

const accountLine = ({ id, position, metadata, data }: DecodedEvent): string => {
  const seen = data as Account;
  const { demographics } = seen;
  return [
    ...[metadata.workspaceId, seen.day, seen.accountId, at(seen.observedAt), id, String(position)],
    ...[seen.clientId, escaped(seen.platform), figuresDayOf(seen) ?? none, escaped(JSON.stringify(seen.figures))],
    demographics === undefined ? '' : escaped(JSON.stringify(demographics)),
    ...[escaped(JSON.stringify(seen.raw)), escaped(seen.source)],
  ].join('\t');
};

export const observationOf = (event: DecodedEvent): Observation => {
  const { id, position, metadata, data, type } = event;
  const day = String(data.day);
  const post = type === 'TargetMetricsObserved';
  const other = post ? null : figuresDayOf(data as Account);
  const line = post ? targetLine : accountLine;
  return {
    id,
    workspaceId: metadata.workspaceId,
    post,
    position,
    days: other === null || other === day ? [day] : [day, other],
    line: holdsDay(day) ? line(event) : null,
  };
};
