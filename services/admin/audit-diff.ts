import { setImmediate } from 'node:timers/promises';
import { streamPages } from '#contracts/ports/event-store.ts';
import { applyEvent, type Model, type Row } from '#projections/engine/model.ts';
import { type Change, changesOf } from '#projections/feed/changes.ts';
import type { FeedMoment } from '#projections/feed/moments.ts';
import { projections } from '#projections/index.ts';
import { UsageError } from '#runtime/process/usage-error.ts';
import { inParallel } from '#runtime/work/in-parallel.ts';
import { idOf, kindOf } from '#schemas/topics.ts';
import { feedOf, momentIn } from './audit.ts';
import type { Admin, CommandOutput, Given, Shown } from './context.ts';

/** What is different in a workspace between two moments: its rows as the folds of the read models make them. */

/** Things whose differences are shown, where no flag says another number, and at most. */
const defaultThings = 200;
const maxThings = 10_000;
/** Streams that are read at once, and events of one read. */
const width = 4;
const pageEvents = 500;

/** Columns that are secret, tell of a person whom an erasure cannot reach there, or follow from the others. */
const unseen: readonly string[] = [
  ...['hash', 'previous_hash', 'key_version', 'secrets', 'avatar_url'],
  ...['id', 'workspace_id', 'revision', 'created_at', 'updated_at'],
];

const modelOf = new Map(
  projections.flatMap(({ models }) => models).map((model): [string, Model] => [model.kind, model]),
);

interface Between {
  readonly stream: string;
  readonly events: number;
}

/** The streams with events after the one moment and up to the other, by name; one more than `limit` tells that there are more. */
const streamsBetween = async (
  { pool }: Admin,
  workspaceId: string,
  from: FeedMoment,
  to: FeedMoment,
  limit: number,
) => {
  const { rows } = await pool.query<Between & { total: number }>(
    `select stream, count(*)::int as events, (count(*) over ())::int as total from ops.feed_events
     where workspace_id = $1 and sequence > $2 and sequence <= $3 and split_part(stream, '-', 1) = any($4::text[])
     group by stream order by stream limit $5`,
    [workspaceId, from.sequence, to.sequence, [...modelOf.keys()], limit],
  );
  return rows;
};

type Members = Readonly<Record<string, unknown>>;

const viewOf = (row: Row<object> | null): Members | null =>
  row && Object.fromEntries(Object.entries(row).filter(([name]) => !unseen.includes(name)));

/** The row at both moments. The stream is read once, page by page, however long it is. */
const rowsAt = async (admin: Admin, model: Model, stream: string, from: FeedMoment, to: FeedMoment) => {
  let row: Row<object> | null = null;
  let before: Row<object> | null = null;
  for await (const page of streamPages(admin.eventStore, stream, pageEvents)) {
    admin.signal.throwIfAborted();
    const then = page.filter(({ position }) => position <= to.position);
    for (const event of await admin.codec.decodeAll(then)) {
      row = applyEvent(model, idOf(stream), row, event);
      if (event.position <= from.position) before = row;
    }
    if (then.length < page.length) break;
    await setImmediate();
  }
  return { before, after: row };
};

interface Difference {
  readonly stream: string;
  readonly events: number;
  /** made: it was not there before; changed; same: events came, and nothing that is kept of it differs. */
  readonly what: 'made' | 'changed' | 'same';
  readonly changes: readonly Change[];
  readonly more: number;
}

const differenceOf = async (
  admin: Admin,
  { stream, events }: Between,
  from: FeedMoment,
  to: FeedMoment,
): Promise<Difference> => {
  const model = modelOf.get(kindOf(stream)) as Model;
  const { before, after } = await rowsAt(admin, model, stream, from, to);
  const { changes, more } = changesOf(viewOf(before), viewOf(after));
  const what = before === null ? 'made' : changes.length === 0 ? 'same' : 'changed';
  return { stream, events, what, changes, more };
};

/** A line for each member that differs, values as JSON; of what was made, one line alone. */
const linesOf = ({ stream, what, changes, more, events }: Difference): readonly Shown[] => {
  if (what !== 'changed') return [{ stream, what, field: `${events} events`, old: null, new: null }];
  const shown = changes.map((one) => ({
    ...{ stream, what, field: one.field, old: JSON.stringify(one.old), new: JSON.stringify(one.new) },
  }));
  return more === 0 ? shown : [...shown, { stream, what, field: `and ${more} more`, old: null, new: null }];
};

const limitOf = (given: Given): number => {
  const text = given.flag('limit');
  const limit = text === undefined ? defaultThings : Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= maxThings) return limit;
  throw new UsageError(`--limit is a number from 1 to ${maxThings}.`);
};

/** @throws UsageError */
export const diffOf = async (admin: Admin, given: Given): Promise<CommandOutput> => {
  const workspaceId = await feedOf(admin, given);
  const limit = limitOf(given);
  const from = await momentIn(admin, workspaceId, given.at(0));
  const to = await momentIn(admin, workspaceId, given.at(1));
  if (from.sequence > to.sequence) throw new UsageError('The first moment is the earlier one.');
  const streams = await streamsBetween(admin, workspaceId, from, to, limit);
  const found: Difference[] = [];
  await inParallel([...streams.entries()], width, async ([at, one]) => {
    found[at] = await differenceOf(admin, one, from, to);
  });
  const things = streams[0]?.total ?? 0;
  const differing = found.filter(({ what }) => what !== 'same');
  // As `diff` and `git diff --exit-code` say it, so that a script need not read the answer.
  if (given.has('exit-code') && (differing.length > 0 || things > found.length)) process.exitCode = 1;
  const placeOf = ({ sequence, at }: FeedMoment): string => `${sequence} ${at}`;
  return {
    ...{ workspaceId, from: placeOf(from), to: placeOf(to), things },
    moreThings: things - found.length,
    differences: differing.flatMap(linesOf),
  };
};
