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

const places: ReadonlyMap<string, number> = new Map(counters.map((counter, place) => [counter, place]));

type Target = Extract<TargetMetricsEvent, { type: 'TargetMetricsObserved' }>['data'];
type Account = Extract<AccountMetricsEvent, { type: 'AccountMetricsObserved' }>['data'];

/** Bytes, as all lines are: V8 would hold concatenated text as a tree of its pieces until the first read. */
const targetLine = ({ id, position, metadata, data }: DecodedEvent): Buffer => {
  const seen = data as Target;
  const { figures, platformRemovedAt } = seen;
  const values: string[] = counters.map(() => none);
  const more: Record<string, unknown> = {};
  let fetched = 0;
  for (const name of Object.keys(figures) as (keyof typeof figures)[]) {
    const place = places.get(name);
    const value = figures[name];
    if (place === undefined) more[name] = value;
    else {
      fetched |= 1 << place;
      if (value !== null) values[place] = String(value);
    }
  }
  const about = `${metadata.workspaceId}\t${seen.day}\t${seen.targetId}\t${at(seen.observedAt)}\t${id}\t${position}`;
  const of = `${seen.postId}\t${seen.clientId}\t${seen.accountId}\t${escaped(seen.platform)}\t${at(seen.publishedAt)}`;
  const removed = platformRemovedAt === null ? none : at(platformRemovedAt);
  const told = `${escaped(JSON.stringify(more))}\t${escaped(JSON.stringify(seen.raw))}\t${escaped(seen.source)}`;
  return Buffer.from(`${about}\t${of}\t${removed}\t${fetched}\t${values.join('\t')}\t${told}\n`);
};

/** What the columns can hold; ClickHouse would store a day beyond them as another day. */
const holdsDay = (day: string): boolean => day >= '1970-01-01' && day <= '2149-06-06';

const figuresDayOf = ({ figuresDay }: Pick<Account, 'figuresDay'>): string | null =>
  figuresDay !== null && holdsDay(figuresDay) ? figuresDay : null;

const accountLine = ({ id, position, metadata, data }: DecodedEvent): Buffer => {
  const seen = data as Account;
  const { demographics } = seen;
  const about = `${metadata.workspaceId}\t${seen.day}\t${seen.accountId}\t${at(seen.observedAt)}\t${id}\t${position}`;
  const of = `${seen.clientId}\t${escaped(seen.platform)}\t${figuresDayOf(seen) ?? none}`;
  const people = demographics === undefined ? '' : escaped(JSON.stringify(demographics));
  const told = `${escaped(JSON.stringify(seen.raw))}\t${escaped(seen.source)}`;
  return Buffer.from(`${about}\t${of}\t${escaped(JSON.stringify(seen.figures))}\t${people}\t${told}\n`);
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
