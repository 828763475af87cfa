import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { type AccountMetricsEvent, counters, type TargetMetricsEvent } from '#schemas/insights.ts';
import { columnOf } from './tables.ts';

/** Encodes events as rows of the raw tables. */

/** The part of an event that the ingester keeps until the insert. */
export interface Observation {
  /** Id of the event. */
  readonly id: string;
  readonly workspaceId: string;
  /** True for a post's target, false for an account. */
  readonly post: boolean;
  readonly position: bigint;
  /** Days whose grains the observation changes; the first is the day of its row. */
  readonly days: readonly string[];
  /** The row in the format TabSeparated, with the line's end. Null: no table holds its day. */
  readonly line: Buffer | null;
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

const special = /[\\\t\n\r\0]/;
const allSpecial = /[\\\t\n\r\0]/g;
const escapes: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '\t': '\\t',
  '\n': '\\n',
  '\r': '\\r',
  '\0': '\\0',
};

/** Only text from outside needs escaping: ids, instants, days and numbers have none of these characters. */
const escaped = (text: string): string =>
  special.test(text) ? text.replace(allSpecial, (one) => escapes[one] ?? one) : text;

const none = '\\N';

/** `2026-01-31T08:00:00.000Z` → `2026-01-31 08:00:00.000`: the columns are in UTC. */
const at = (instant: string): string => `${instant.slice(0, 10)} ${instant.slice(11, 23)}`;

const columnIndex: ReadonlyMap<string, number> = new Map(counters.map((counter, index) => [counter, index]));

type Target = Extract<TargetMetricsEvent, { type: 'TargetMetricsObserved' }>['data'];
type Account = Extract<AccountMetricsEvent, { type: 'AccountMetricsObserved' }>['data'];

/** Bytes, as all lines are: V8 would hold concatenated text as a tree of its pieces until the first read. */
const targetLine = ({ id, position, metadata, data }: DecodedEvent): Buffer => {
  const observed = data as Target;
  const { figures, platformRemovedAt } = observed;
  const values: string[] = counters.map(() => none);
  const more: Record<string, unknown> = {};
  let fetched = 0;
  for (const name of Object.keys(figures) as (keyof typeof figures)[]) {
    const index = columnIndex.get(name);
    const value = figures[name];
    if (index === undefined) more[name] = value;
    else {
      fetched |= 1 << index;
      if (value !== null) values[index] = String(value);
    }
  }
  const about = `${metadata.workspaceId}\t${observed.day}\t${observed.targetId}\t${at(observed.observedAt)}\t${id}\t${position}`;
  const of = `${observed.postId}\t${observed.clientId}\t${observed.accountId}\t${escaped(observed.platform)}\t${at(observed.publishedAt)}`;
  const removed = platformRemovedAt === null ? none : at(platformRemovedAt);
  const rest = `${escaped(JSON.stringify(more))}\t${escaped(JSON.stringify(observed.raw))}\t${escaped(observed.source)}`;
  return Buffer.from(`${about}\t${of}\t${removed}\t${fetched}\t${values.join('\t')}\t${rest}\n`);
};

/** Whether the columns can hold the day; ClickHouse would store a day beyond their range as another day. */
const holdsDay = (day: string): boolean => day >= '1970-01-01' && day <= '2149-06-06';

const figuresDayOf = ({ figuresDay }: Pick<Account, 'figuresDay'>): string | null =>
  figuresDay !== null && holdsDay(figuresDay) ? figuresDay : null;

const accountLine = ({ id, position, metadata, data }: DecodedEvent): Buffer => {
  const observed = data as Account;
  const { demographics } = observed;
  const about = `${metadata.workspaceId}\t${observed.day}\t${observed.accountId}\t${at(observed.observedAt)}\t${id}\t${position}`;
  const of = `${observed.clientId}\t${escaped(observed.platform)}\t${figuresDayOf(observed) ?? none}`;
  const people = demographics === undefined ? '' : escaped(JSON.stringify(demographics));
  const rest = `${escaped(JSON.stringify(observed.raw))}\t${escaped(observed.source)}`;
  return Buffer.from(`${about}\t${of}\t${escaped(JSON.stringify(observed.figures))}\t${people}\t${rest}\n`);
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
