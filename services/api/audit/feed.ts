import { setImmediate } from 'node:timers/promises';
import { pause } from '#contracts/base/pause.ts';
import type { RecordedEvent } from '#contracts/ports/event-store.ts';
import { momentOfInstant } from '#projections/feed/moments.ts';
import {
  type FeedEnd,
  type FeedFilters,
  type FeedRow,
  feedEnd,
  feedRows,
  keptOf,
  recordedOf,
  textsOf,
} from '#projections/feed/read.ts';
import { noteFeedUse } from '#projections/feed/uses.ts';
import { InvalidEvent } from '#runtime/eventing/codec.ts';
import { atMost, Slots } from '#runtime/work/slots.ts';
import { FeedEvent, FeedQuery } from '#schemas/http/event.ts';
import { namesOther } from '../call/access.ts';
import { type Call, type LineStream, type Many, operation } from '../call/operation.ts';
import { Refusal } from '../call/refusal.ts';
import { auditTag, exampleEvent } from './examples.ts';

/** The feed: what happened in the workspace, in the order of the store. */

const ndjson = 'application/x-ndjson';

type FeedCall = Call<
  unknown,
  {
    readonly after?: string;
    readonly limit: number;
    readonly types?: readonly string[];
    readonly stream?: string;
    readonly clientId?: string;
    readonly from?: string;
    readonly to?: string;
    readonly wait: number;
    readonly form: 'domain' | 'stored';
  }
>;

const cursorOf = (epoch: number, sequence: number): string => `${epoch}.${sequence}`;

/**
 * The sequence behind which the page begins.
 * @throws Refusal 400 `invalid_cursor`: a restore took back what the cursor names, or it lies ahead of the feed
 */
const startOf = async ({ deps, workspaceId, query }: FeedCall, { epoch, size }: FeedEnd): Promise<number> => {
  if (query.after === undefined) return 0;
  const [named = 0, sequence = 0] = query.after.split('.').map(Number);
  if (named === epoch && sequence <= size) return sequence;
  const kept = named < epoch ? await keptOf(deps.pool, workspaceId, named) : null;
  if (named < epoch && kept !== null && sequence <= kept) return sequence;
  const detail =
    named < epoch
      ? `A restore took back the events after ${kept ?? size}: read on after ${cursorOf(epoch, Math.min(kept ?? size, size))}, and count what you have from epoch ${named} behind it as lost.`
      : `The feed ends at ${cursorOf(epoch, size)}.`;
  throw new Refusal('invalid_cursor', detail);
};

/** What the caller may see, and asks for. */
const filtersOf = ({ principal: { clientIds }, query: { types, stream, clientId } }: FeedCall): FeedFilters => {
  const mine = clientId === undefined ? clientIds : [clientId];
  return {
    ...(types === undefined ? {} : { types }),
    ...(stream === undefined ? {} : { stream }),
    ...(mine === null ? {} : { clientIds: mine }),
  };
};

/** What the event says of who, when and why: as it is stored, so that an event which cannot be read still says it. */
interface Said {
  readonly schemaVersion?: number;
  readonly occurredAt?: string;
  readonly actor?: { readonly type: string; readonly id: string; readonly grantId?: string };
  readonly $correlationId?: string;
  readonly $causationId?: string;
  readonly commandId?: string;
}

const saidBy = ({ metadata }: RecordedEvent): Said => JSON.parse(Buffer.from(metadata).toString('utf8')) as Said;

/** Null: the event names a client that the caller may not see. */
const shownOf = async (
  { deps, principal: { clientIds }, query: { form } }: FeedCall,
  epoch: number,
  row: FeedRow,
  event: RecordedEvent | null,
): Promise<FeedEvent | null> => {
  const { sequence, eventId: id, stream, revision, type, at, clientId } = row;
  const place = {
    sequence,
    cursor: cursorOf(epoch, sequence),
    id,
    object: 'event' as const,
    stream,
    revision: Number(revision),
    type,
    at,
    clientId,
  };
  const nothing = {
    schemaVersion: null,
    occurredAt: null,
    actor: null,
    correlationId: null,
    causationId: null,
    commandId: null,
  };
  if (event === null) return { ...place, ...nothing, data: null, expired: true };
  const said = saidBy(event);
  const { schemaVersion = null, occurredAt = null, actor = null, commandId = null } = said;
  const why = { correlationId: said.$correlationId ?? null, causationId: said.$causationId ?? null, commandId };
  const about = { ...place, schemaVersion, occurredAt, actor, ...why, expired: false };
  const stored = () => ({
    ...about,
    data: null,
    stored: { ...textsOf(event), hash: row.hash.toString('base64') },
  });
  if (form === 'stored' && clientIds === null) return stored();
  const data = await deps.store.decode(event).then(
    (decoded) => decoded.data,
    (error: unknown) => {
      if (error instanceof InvalidEvent) return null;
      throw error;
    },
  );
  // What a limited key may not see it may not see in the stored form either; what cannot be read may name anybody.
  if (clientIds !== null && (data === null || namesOther(data, clientIds))) return null;
  if (form === 'domain') return { ...about, data };
  return stored();
};

/** The last event before an instant: its number, 0 for none. */
const lastBefore = async ({ deps, workspaceId }: FeedCall, instant: string): Promise<number> => {
  const before = new Date(Date.parse(instant) - 1).toISOString();
  return (await momentOfInstant(deps.pool, workspaceId, before))?.moment?.sequence ?? 0;
};

/** The part of the feed that the instants of a call leave. */
const spanOf = async (call: FeedCall, after: number, size: number): Promise<{ after: number; until: number }> => {
  const { from, to } = call.query;
  const until = to === undefined ? size : Math.min(size, await lastBefore(call, to));
  const begin = from === undefined ? after : Math.max(after, await lastBefore(call, from));
  return { after: begin, until: Math.max(begin, until) };
};

interface Page {
  readonly events: readonly FeedEvent[];
  /** The sequence up to which nothing more fits. */
  readonly upTo: number;
}

const pageOf = async (
  call: FeedCall,
  epoch: number,
  place: { readonly after: number; readonly until: number; readonly limit: number },
): Promise<Page> => {
  const { deps, workspaceId, principal } = call;
  const filters = filtersOf(call);
  const found = await deps.lists.run(principal.liveWorkspaceId, filters, (knex) =>
    feedRows(knex, workspaceId, filters, place),
  );
  const recorded = await recordedOf(deps.store.stored, workspaceId, found.rows);
  const events: FeedEvent[] = [];
  for (const [at, row] of found.rows.slice(0, recorded.length).entries()) {
    const shown = await shownOf(call, epoch, row, recorded[at] ?? null);
    if (shown !== null) events.push(shown);
  }
  const isCut = recorded.length < found.rows.length;
  return { events, upTo: isCut ? (found.rows[recorded.length - 1]?.sequence ?? place.after) : found.upTo };
};

const noteUse = async (call: FeedCall, first: number, last: number): Promise<void> => {
  const { deps, workspaceId, principal, query } = call;
  const { types, stream, clientId, form, from, to } = query;
  const asked = JSON.stringify({ operation: 'listEvents', form, types, stream, clientId, from, to });
  const range = first > last ? null : ([first, last] as const);
  await noteFeedUse(deps.pool, { workspaceId, credential: `${principal.kind} ${principal.id}`, asked, range });
};

/** Calls that wait for an event: a workspace's share, and all together. */
const waiting = new Slots(64, atMost(4));
const lookMs = 250;
const never = new AbortController().signal;

/** The end of the feed once it is behind that sequence; after the wait, or where too many wait already, the end as it is. */
const endBehind = async (
  { deps, workspaceId, principal, query }: FeedCall,
  after: number,
  now: FeedEnd,
): Promise<FeedEnd> => {
  const taker = { workspaceId: principal.liveWorkspaceId };
  if (query.wait === 0 || now.size > after || !waiting.admits(taker, false)) return now;
  const { draining = never } = deps;
  const until = performance.now() + query.wait * 1_000;
  waiting.take(taker);
  try {
    for (let end = now; ; end = await feedEnd(deps.pool, workspaceId)) {
      const left = until - performance.now();
      if (end.size > after || end.epoch !== now.epoch || left <= 0 || draining.aborted) return end;
      await pause(Math.min(lookMs, left), draining);
    }
  } finally {
    waiting.give(taker);
  }
};

const readPage = async (call: FeedCall): Promise<Many<FeedEvent>> => {
  const { deps, workspaceId, query } = call;
  const begun = await feedEnd(deps.pool, workspaceId);
  const start = await startOf(call, begun);
  const { epoch, size } = await endBehind(call, start, begun);
  const { after, until } = await spanOf(call, start, size);
  const { events, upTo } = await pageOf(call, epoch, { after, until, limit: query.limit });
  await noteUse(call, after + 1, upTo);
  return {
    data: events,
    page: { hasMore: upTo < until, cursor: query.after ?? null, nextCursor: cursorOf(epoch, upTo) },
  };
};

/** Answers in lines at once: of a workspace, and of all together. */
const streams = new Slots(16, atMost(2));
const linesAtOnce = 500;

/** Every event from there to the end of the feed as it is now, one a line. */
const readLines = async (call: FeedCall): Promise<LineStream> => {
  const { deps, workspaceId, principal } = call;
  const taker = { workspaceId: principal.liveWorkspaceId };
  const { epoch, size } = await feedEnd(deps.pool, workspaceId);
  const { after, until } = await spanOf(call, await startOf(call, { epoch, size }), size);
  await noteUse(call, after + 1, until);
  const { draining = never } = deps;
  async function* lines(): AsyncGenerator<string> {
    for (let from = after; from < until && !draining.aborted; ) {
      const { events, upTo } = await pageOf(call, epoch, { after: from, until, limit: linesAtOnce });
      if (events.length > 0) yield events.map((event) => `${JSON.stringify(event)}\n`).join('');
      from = upTo;
      await setImmediate();
    }
  }
  const begin = () => {
    if (!streams.admits(taker, false)) {
      const detail = 'Two answers in lines are being read by this workspace already, or too many by all together.';
      throw new Refusal('unavailable', detail, { headers: { 'Retry-After': '5' } });
    }
    streams.take(taker);
    return { lines: lines(), ended: () => streams.give(taker) };
  };
  return { type: ndjson, begin };
};

export const listEvents = operation({
  id: 'listEvents',
  method: 'GET',
  path: '/events',
  tag: auditTag,
  noun: 'event',
  summary: 'Read every event of the workspace in one order',
  description:
    'Events come in the order in which the store took them, numbered from 1 without a gap; events of `request` streams, which remember calls for a day, are no part of it. `nextCursor` is always answered, also on an empty page: pass it as `after`, with `wait` to be answered once something happens. With a filter a page may be empty though more follows; `hasMore` says so. After a restore the numbers of lost events are given again, in a new epoch: a cursor of a lost event is `invalid_cursor`, and `detail` says where to read on. A key that is limited to clients gets events of its clients alone, and sees gaps. With `Accept: application/x-ndjson` all events up to now come as lines, at most two such answers of a workspace at once; an answer that ends early, because the service restarts, goes on after the `cursor` of its last line. Each use is recorded with its credential, filter, range and hour.',
  scope: 'events.read',
  notesUse: true,
  limited: 'filtered',
  idempotent: 'none',
  cost: 2,
  query: FeedQuery,
  answer: FeedEvent,
  list: true,
  alsoAs: [ndjson],
  codes: [],
  example: { data: exampleEvent },
  handle: (call) => (call.accepts('application/json', ndjson) === ndjson ? readLines(call) : readPage(call)),
});
