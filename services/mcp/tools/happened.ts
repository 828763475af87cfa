import { type Static, Type } from 'typebox';
import type { HistoryEntry } from '#schemas/http/audit.ts';
import type { FeedEvent } from '#schemas/http/event.ts';
import { invalid } from '#services/api/call/refusal.ts';
import type { ToolCall } from '../call.ts';
import { reads, tool } from '../tool.ts';
import { Args, Bare, Id, Instant, joined, Maybe, Mode, many, moreOf, Next, NextCursor } from '../words.ts';

/** What happened to a thing, or in a period: in a few lines, each with who and when. */

type Entry = Static<typeof HistoryEntry>;
type Stored = Static<typeof FeedEvent>;

const things = {
  post: 'getPostHistory',
  client: 'getClientHistory',
  account: 'getAccountHistory',
  campaign: 'getCampaignHistory',
  approval: 'getApprovalHistory',
  webhook: 'getWebhookHistory',
  member: 'getMemberHistory',
  api_key: 'getApiKeyHistory',
} as const;

/** Pages of the feed that one call counts, and events of each. */
const maxPages = 3;
const pageEvents = 500;
/** Entries of a history, newest first, and events of a period that are shown. */
const maxLines = 25;
const maxFields = 4;
const hourMs = 3_600_000;

const actorOf = (actor: { readonly type: string; readonly id: string } | null): string =>
  actor === null ? 'nobody known' : `${actor.type} ${actor.id}`;

const shownValue = (call: ToolCall, value: unknown): string =>
  value === null ? 'nothing' : call.cuts.text('values', JSON.stringify(value), 60);

/** `2026-01-31T08:00:00.000Z PostRevised of post …, by apikey …: /content "a" → "b"` */
const entryLine = (call: ToolCall, one: Entry): string => {
  const fields = call.cuts
    .rows('members that changed', one.changes, maxFields)
    .map(({ field, old, new: next }) => `${field} ${shownValue(call, old)} → ${shownValue(call, next)}`);
  const why = one.reason === null ? '' : `, because ${call.cuts.quoted('reasons', one.reason)}`;
  const what = fields.length === 0 ? '' : `: ${fields.join('; ')}`;
  return `${one.at} ${one.type} of ${one.resource} ${one.resourceId}, by ${actorOf(one.actor)}${why}${what}`;
};

const eventLine = ({ at, type, stream, actor, sequence }: Stored): string =>
  `${at} ${type} of ${stream}, by ${actorOf(actor)} (event ${sequence})`;

/** `12 PostScheduled`, the most first. */
const counted = (names: readonly string[]): string[] =>
  [...Map.groupBy(names, (name) => name)]
    .map(([name, all]) => ({ name, n: all.length }))
    .sort((a, b) => b.n - a.n || (a.name < b.name ? -1 : 1))
    .map(({ name, n }) => `${n} ${name}`);

interface Asked {
  readonly thing?: keyof typeof things;
  readonly id?: string;
  readonly clientId?: string;
  readonly from?: string;
  readonly to?: string;
  readonly cursor?: string;
}

const ofThing = async (call: ToolCall, thing: keyof typeof things, id: string, cursor: string | undefined) => {
  const asked = { params: { id }, query: { limit: maxLines, cursor } };
  const { data, page } = await call.invoke<Entry[]>(things[thing], asked);
  return {
    events: data.length,
    counts: counted(data.map(({ type }) => type)),
    actors: counted(data.map(({ actor }) => actorOf(actor))),
    lines: data.map((one) => entryLine(call, one)),
    nextCursor: page?.nextCursor ?? null,
  };
};

const ofPeriod = async (call: ToolCall, { clientId, from, to, cursor }: Asked) => {
  const begin = from ?? new Date(call.now() - 24 * hourMs).toISOString();
  const events: Stored[] = [];
  let after = cursor;
  let hasMore = true;
  for (let page = 0; page < maxPages && hasMore; page += 1) {
    const query = { after, from: begin, to, clientId, limit: pageEvents };
    const found = await call.invoke<Stored[]>('listEvents', { query });
    events.push(...found.data);
    after = found.page?.nextCursor ?? undefined;
    hasMore = found.page?.hasMore === true;
  }
  // What is new stands at the end of the feed.
  const newest = call.cuts.rows('events', events.toReversed(), maxLines);
  return {
    events: events.length,
    counts: counted(events.map(({ type }) => type)),
    actors: counted(events.map(({ actor }) => actorOf(actor))),
    lines: newest.map(eventLine),
    nextCursor: hasMore ? (after ?? null) : null,
  };
};

export const whatHappened = tool({
  name: 'what_happened',
  title: 'What happened, and who did it',
  description:
    'What happened and who did it: with thing and id its changes, old → new; else all events of a period (default: the last 24 hours), counted. Needs an API key: no app may.',
  scopes: ['events.read'],
  hints: reads,
  input: Args({
    thing: Maybe(Type.Enum(Object.keys(things) as (keyof typeof things)[])),
    ...Bare({ id: Maybe(Id()), clientId: Maybe(Id()), from: Maybe(Instant()), to: Maybe(Instant()) }),
    cursor: Maybe(Type.String()),
  }),
  output: Type.Object({
    mode: Mode,
    lines: Type.Array(Type.String()),
    nextCursor: NextCursor,
    nextStep: Next,
  }),
  run: async (call, args) => {
    const { thing, id, cursor } = args;
    if ((thing === undefined) !== (id === undefined)) {
      throw invalid(thing === undefined ? '/thing' : '/id', 'required', 'thing and id come together');
    }
    const found =
      thing !== undefined && id !== undefined ? await ofThing(call, thing, id, cursor) : await ofPeriod(call, args);
    const nextStep =
      moreOf(found.nextCursor) ?? 'GET of a thing with asOf = the number of an event shows it as it was then.';
    const lines = [
      `${many(found.events, 'event')}${found.counts.length === 0 ? '' : `: ${found.counts.join(', ')}`}.`,
      ...(found.actors.length === 0 ? [] : [`By: ${found.actors.join(', ')}.`]),
      ...found.lines,
    ];
    const data = { mode: call.mode, lines, nextCursor: found.nextCursor, nextStep };
    return { text: joined(...lines, nextStep), data };
  },
});
