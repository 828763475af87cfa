import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import type { BlobStore } from '#contracts/ports/blob-store.ts';
import type { EventStore } from '#contracts/ports/event-store.ts';
import { client } from '#domain/client.ts';
import { contentFor } from '#domain/content.ts';
import { normaliseName } from '#domain/ids.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import { post, statusOf } from '#domain/post.ts';
import { attemptAt, isOpen, type TargetState, target } from '#domain/target.ts';
import type { LedgerRow, SandboxNetwork } from '#infra/platforms/sandbox/index.ts';
import { projections } from '#projections/index.ts';
import { compareWithReplay } from '#projections/verify.ts';
import { webhooksGroup } from '#projections/webhooks/dispatcher.ts';
import type { DecodedEvent, EventCodec } from '#runtime/eventing/codec.ts';
import { foldEvents } from '#runtime/eventing/domain-store.ts';
import { idOf, kindOf, topics } from '#schemas/topics.ts';
import { patience } from '#test/support/patience.ts';
import { saysNoOther } from './builds.ts';
import { analyticsAtRest, checkAnalytics } from './check-analytics.ts';
import { checkApprovals } from './check-approvals.ts';
import { checkComments } from './check-comments.ts';
import { checkHooks, hooksAtRest } from './check-hooks.ts';
import { checkInsights, insightsAtRest } from './check-insights.ts';
import { type Live, LiveCheck } from './check-live.ts';
import { checkMedia, mediaAtRest } from './check-media.ts';
import { checkReports, reportsAtRest } from './check-reports.ts';
import type { Hooks } from './hooks.ts';

/** Invariants at rest, whatever was done to our processes before. */

export interface Checked {
  readonly pool: pg.Pool;
  readonly store: EventStore;
  readonly codec: EventCodec;
  readonly sandbox: SandboxNetwork;
  readonly hooks: Pick<Hooks, 'ids' | 'arrivals'>;
  readonly blobs: BlobStore;
  /** Folder of the blobs. */
  readonly blobRoot: string;
  /** Address of the present analytics store. */
  readonly analyticsUrl: () => string;
  /** A previous build wrote rows too: they lack members that it did not know. */
  readonly mixed: boolean;
  /** Live accounts, in a workspace of their own; null: there are none. */
  readonly live: Live | null;
  /** With an EventStoreDB: fills `es.events` with the end of each topic. */
  readonly ends: () => Promise<void>;
}

export interface CheckResult {
  readonly violations: readonly string[];
  readonly events: number;
  readonly posts: number;
  readonly targets: number;
  /** Targets by status. */
  readonly statuses: Readonly<Record<string, number>>;
  readonly rows: number;
  /** Observations, and requested runs of reports. */
  readonly observations: number;
  readonly runs: number;
  /** Minted deliveries, arrivals at receivers, and arrivals that came again after they were accepted. */
  readonly hooks: { readonly deliveries: number; readonly arrivals: number; readonly repeats: number };
}

/** A target due later than this, milliseconds, waits for its time. */
const laterMs = 120_000;
/** Without an append for this long, milliseconds, nothing is under way. */
const quietMs = 2_500;

const streamsOf = async ({ store, codec }: Checked): Promise<ReadonlyMap<string, readonly DecodedEvent[]>> => {
  const streams = new Map<string, DecodedEvent[]>();
  for (let after: bigint | null = null; ; ) {
    const page = await store.readAll({ after, limit: 1_000 });
    const last = page.at(-1);
    if (last === undefined) return streams;
    after = last.position;
    for (const event of await codec.decodeAll(page)) {
      const known = streams.get(event.stream);
      if (known === undefined) streams.set(event.stream, [event]);
      else known.push(event);
    }
  }
};

/**
 * Why a target has not ended yet; null when it has, or waits for its time or for a person.
 * @param shown how many posts of it its network shows
 */
const unsettled = (state: TargetState, shown: number): string | null => {
  switch (state.status) {
    case 'none':
      return 'was never written';
    case 'pending':
      return Date.parse(attemptAt(state)) > Date.now() + laterMs ? null : `is pending since ${attemptAt(state)}`;
    case 'publishing':
    case 'rate_limited':
      return `is ${state.status}`;
    case 'handed_to_platform':
      return state.undo === null ? null : 'is being taken back';
    case 'outcome_unknown': {
      const { absenceIsProof, readsBack } = rulesOf(state.common.platform).publish;
      if (shown > state.common.publishedSegments.length) return 'is said to be unknown, and the network shows it';
      return absenceIsProof && readsBack === 'own_posts' ? 'is said to be unknown, and its absence is proof' : null;
    }
    case 'published':
      return state.firstComment === null ? null : `has a first comment that is ${state.firstComment.status}`;
    default:
      return null;
  }
};

const consumersAt = async ({ pool, hooks }: Checked): Promise<boolean> => {
  const { rows } = await pool.query(
    `with ends as (select topic, max(position) as position from es.events where topic is not null group by topic),
     wanted as (
       select 'projection-' || p.name || '-v' || p.live as name, t.topic from ops.projections p
       join unnest($1::text[], $2::text[]) as t (name, topic) on t.name = p.name
       union all values ('outcomes', 'posts'), ('archives', 'workspace')
       union all select $3, topic from unnest($4::text[]) as topic)
     select 1 from wanted w join ends e using (topic)
     where coalesce((select max(position) from ops.consumer_positions c where c.consumer_group = w.name), 0) < e.position`,
    [
      projections.flatMap((one) => one.topics.map(() => one.name)),
      projections.flatMap((one) => [...one.topics]),
      webhooksGroup,
      hooks.ids.length === 0 ? [] : [...topics],
    ],
  );
  return rows.length === 0;
};

/** Waits until nothing is under way; returns what still is after the limit. */
export const untilQuiet = async (checked: Checked, limitMs: number): Promise<readonly string[]> => {
  let head: bigint | null = null;
  let since = performance.now();
  let left: readonly string[] = ['nothing was looked at'];
  for (const limit = performance.now() + limitMs; performance.now() < limit; await delay(150)) {
    const now = await checked.store.head();
    if (now !== head) {
      head = now;
      since = performance.now();
      left = ['events are still appended'];
      continue;
    }
    if (performance.now() - since < quietMs) continue;
    await checked.ends();
    if (!(await consumersAt(checked))) {
      left = ['a consumer is behind'];
      continue;
    }
    if (checked.hooks.ids.length > 0 && !(await hooksAtRest(checked.pool))) {
      left = ['deliveries are under way'];
      continue;
    }
    if (!(await mediaAtRest(checked.pool))) {
      left = ['media files are worked on'];
      continue;
    }
    if (!(await insightsAtRest(checked.pool))) {
      left = ['figures are asked for'];
      continue;
    }
    if (!(await analyticsAtRest(checked.pool))) {
      left = ['figures are counted'];
      continue;
    }
    if (!(await reportsAtRest(checked.pool))) {
      left = ['reports are made'];
      continue;
    }
    left = await openTargets(checked);
    if (left.length === 0) return [];
  }
  return left;
};

const openTargets = async (checked: Checked): Promise<readonly string[]> => {
  const { rows } = await checked.pool.query(
    `select id::text as id from read.post_targets where status in ('publishing', 'rate_limited', 'outcome_unknown')
       or (status = 'handed_to_platform' and undo = 'pending')
       or (status = 'pending' and next_action_at < now() + interval '2 minutes')
       or (status = 'published' and next_action_at is not null) limit 200`,
  );
  const found: string[] = [];
  const read = async (stream: string) => checked.codec.decodeAll(await checked.store.read(stream));
  const live = checked.live === null ? null : new LiveCheck(checked.live);
  for (const { id } of rows) {
    const events = await read(`target-${id}`);
    const state = foldEvents(target, events);
    const isLive = events[0]?.metadata.workspaceId === checked.live?.workspaceId;
    const shown =
      isLive && live !== null && state.status !== 'none'
        ? live.shown(state, await read(`post-${state.common.postId}`))
        : createdIn(await checked.sandbox.creates(id)).length;
    const why = unsettled(state, shown);
    if (why !== null) found.push(`target ${id} ${why}: ${story(events)}`);
  }
  const behind = await checked.pool.query('select id::text as id from read.posts where fan_out_behind limit 20');
  return [...found, ...behind.rows.map(({ id }) => `post ${id} has targets that are behind its plan`)];
};

/** The posts that the network still has. */
const createdIn = (rows: readonly LedgerRow[]): readonly LedgerRow[] =>
  rows.filter((one) => one.outcome === 'created' && one.undoneAt === null);
const story = (events: readonly DecodedEvent[]): string =>
  events
    .map(({ type, data }) => (data.step === 'boundary' ? 'boundary' : type.replace(/^(Target|Post)/, '')))
    .join(' ');

const ledgerOf = async (sandbox: SandboxNetwork): Promise<readonly LedgerRow[]> => {
  const all: LedgerRow[] = [];
  for (;;) {
    const page = await sandbox.ledger({ after: all.at(-1)?.seq ?? 0, limit: 5_000 });
    if (page.length === 0) return all;
    all.push(...page);
  }
};

/** The whole list. Nothing may be under way: see `untilQuiet`. */
export const check = async (checked: Checked): Promise<CheckResult> => {
  const violations: string[] = [];
  const statuses: Record<string, number> = {};
  const streams = await streamsOf(checked);
  const ofKind = (kind: string) => [...streams].filter(([stream]) => kindOf(stream) === kind);
  const made = Map.groupBy(createdIn(await ledgerOf(checked.sandbox)), (row) => row.targetId);

  for (const { targetId, posts } of await checked.sandbox.duplicates()) {
    violations.push(
      `target ${targetId} was created ${posts.length} times: ${story(streams.get(`target-${targetId}`) ?? [])}`,
    );
  }
  const states = new Map<string, TargetState>();
  const live = checked.live === null ? null : new LiveCheck(checked.live);
  const isLive = ([first]: readonly DecodedEvent[]) => first?.metadata.workspaceId === checked.live?.workspaceId;
  for (const [stream, events] of ofKind('target')) {
    const state = foldEvents(target, events);
    const id = idOf(stream);
    states.set(id, state);
    statuses[state.status] = (statuses[state.status] ?? 0) + 1;
    const itsPost = state.status === 'none' ? [] : (streams.get(`post-${state.common.postId}`) ?? []);
    const onNetwork =
      live !== null && isLive(events)
        ? ofLiveTarget(live, state, itsPost, events)
        : ofTarget(state, made.get(id) ?? [], events, itsPost);
    const wrong = [...onNetwork, ...ofClaims(events)];
    violations.push(...wrong.map((what) => `target ${id} ${what}: ${story(events)}`));
  }
  for (const [stream, events] of ofKind('post')) {
    violations.push(...ofPost(events, states).map((what) => `${stream} ${what}: ${story(events)}`));
  }
  for (const [stream, events] of ofKind('account')) {
    violations.push(
      ...onceBetween(stream, events, 'AccountReauthRequired', ['AccountReauthorized', 'AccountConnected']),
    );
  }
  violations.push(...ofDisconnected(streams, states), ...(live?.strangers() ?? []));
  for (const [stream, events] of ofKind('request')) {
    violations.push(...onceBetween(stream, events, 'RequestAccepted', ['RequestCompleted']));
    violations.push(...onceBetween(stream, events, 'RequestCompleted', ['RequestAccepted']));
  }
  violations.push(...names(ofKind('client')));
  violations.push(...references(ofKind('post')));
  violations.push(...(await relayed(checked.pool)));
  violations.push(...(await checkMedia(streams, checked.blobRoot)));
  violations.push(...checkInsights(streams));
  const inSandbox = new Map([...streams].filter(([, events]) => live === null || !isLive(events)));
  violations.push(...(await checkComments(inSandbox, checked.sandbox)));
  violations.push(...checkApprovals(streams));
  const { violations: ofAnalytics, observations } = await checkAnalytics(streams, {
    pool: checked.pool,
    url: checked.analyticsUrl,
  });
  const { violations: ofReports, runs } = await checkReports(streams, checked);
  violations.push(...ofAnalytics, ...ofReports);

  const { violations: ofHooks, ...hooks } = await checkHooks(checked, streams);
  violations.push(...ofHooks);

  // No event of these worlds is bad: a parked one was blamed for another fault.
  const parked = await checked.pool.query(
    'select consumer_group, stream, revision::int, type, reason from ops.parked_events order by parked_at limit 20',
  );
  violations.push(...parked.rows.map((row) => `parked: ${JSON.stringify(row)}`));
  const { rows, differences } = await compareWithReplay(checked);
  violations.push(
    ...differences
      .filter(({ live, replayed }) => !checked.mixed || !saysNoOther(live, replayed))
      .map(
        ({ table, id, live, replayed }) =>
          `${table} ${id} is not what its streams say: ${JSON.stringify(live)} and replayed ${JSON.stringify(replayed)}`,
      ),
  );
  const events = [...streams.values()].reduce((sum, one) => sum + one.length, 0);
  const posts = ofKind('post').length;
  return { violations, events, rows, statuses, hooks, observations, runs, posts, targets: states.size };
};

/** By attempt: the instant from which it was allowed to start. */
const dueTimes = (events: readonly DecodedEvent[]): ReadonlyMap<number, string> =>
  new Map(
    events.flatMap(({ type, data }, at) => {
      if (type !== 'TargetPublishStarted') return [];
      const begun = foldEvents(target, events.slice(0, at + 1));
      return begun.status === 'publishing' ? [[Number(data.attempt), attemptAt(begun)] as const] : [];
    }),
  );

const ofLiveTarget = (
  live: LiveCheck,
  state: TargetState,
  itsPost: readonly DecodedEvent[],
  events: readonly DecodedEvent[],
): readonly string[] => {
  const open = unsettled(state, state.status === 'none' ? 0 : live.shown(state, itsPost));
  if (state.status === 'none') return [open ?? ''];
  const wrong = live.target(state, itsPost, events);
  return open === null ? wrong : [open, ...wrong];
};

/** Compares the target's stream with the network's posts. */
const ofTarget = (
  state: TargetState,
  made: readonly LedgerRow[],
  events: readonly DecodedEvent[],
  itsPost: readonly DecodedEvent[],
): readonly string[] => {
  const open = unsettled(state, made.length);
  if (open !== null || state.status === 'none') return [open ?? ''];
  const { publishedSegments: segments } = state.common;
  const [first] = made;
  const due = dueTimes(events);
  const wrong = made
    .filter(
      ({ attempt, callStartedAt, scheduledFor }) =>
        scheduledFor === null && callStartedAt.getTime() < Date.parse(due.get(attempt) ?? state.common.dueAt),
    )
    .map(({ attempt, callStartedAt }) => `was due ${due.get(attempt)} and published ${callStartedAt.toISOString()}`);
  const composed = foldEvents(
    post,
    itsPost.filter(({ revision }) => revision <= state.common.postRevision),
  );
  const sent = composed.status === 'live' ? contentFor(composed.body, state.common.platform).segments : [];
  for (const row of made) {
    if (row.content !== sent[row.segment]?.content)
      wrong.push(`has another text on its network in segment ${row.segment}`);
  }
  // For a thread: each segment once, in order, each a reply to the previous one, whatever the outcome of the whole.
  for (const [index, { externalId }] of segments.entries()) {
    const row = made[index];
    const parent = index === 0 ? null : segments[index - 1]?.externalId;
    if (row?.postId !== externalId || row.segment !== index || row.replyTo !== parent) {
      wrong.push(
        `has the segment ${index} as ${externalId}, and the network has ${row?.postId} in reply to ${row?.replyTo}`,
      );
    }
  }
  if (state.status === 'handed_to_platform') {
    return first?.postId === state.nativeId
      ? wrong
      : [...wrong, `is handed over as ${state.nativeId}, and the network has ${first?.postId}`];
  }
  if (state.status !== 'published') {
    const more = made[segments.length];
    return more === undefined ? wrong : [...wrong, `is ${state.status}, and the network has it as ${more.postId}`];
  }
  if (first === undefined) return [...wrong, 'is published, and the network has nothing'];
  if (first.postId !== state.externalId) wrong.push(`is ${state.externalId}, and the network has ${first.postId}`);
  // A scheduled post becomes visible by the network's clock, which the load moves.
  const isOut = first.scheduledFor !== null || (first.visibleAt !== null && first.visibleAt.getTime() <= Date.now());
  if (!isOut) wrong.push('is published, and does not show');
  return wrong;
};

const ofClaim = new Set([
  'TargetPublishCheckpointed',
  'TargetSegmentPublished',
  'TargetPublished',
  'TargetRateLimited',
  'TargetPublishDeferred',
  'TargetOutcomeUnknown',
]);

/** Attempts count up one by one, and only the newest claim of the present attempt writes. */
const ofClaims = (events: readonly DecodedEvent[]): readonly string[] => {
  const wrong: string[] = [];
  let attempt = 0;
  let takeover = 0;
  let under = false;
  let crossed = false;
  let handed = false;
  // Segments that reconcile finds are recorded after the attempt, in the same append as the requeue.
  const found = (at: number): boolean => /^Target(Requeued|OutcomeSettled)$/.test(events[at + 1]?.type ?? '') && !under;
  for (const [at, { type, data }] of events.entries()) {
    if (type === 'TargetPublishStarted') {
      if (under) wrong.push('was claimed while an attempt was under way');
      if (data.attempt !== attempt + 1) wrong.push(`began attempt ${data.attempt} after ${attempt}`);
      [attempt, takeover, under, crossed, handed] = [Number(data.attempt), 0, true, false, false];
    } else if (type === 'TargetPublishTakenOver') {
      if (!under || data.takeover !== takeover + 1) wrong.push('was taken over out of turn');
      takeover = Number(data.takeover);
    } else if (type === 'TargetHandedToPlatform' || (handed && type === 'TargetOutcomeUnknown')) {
      // Reconcile finds a hand-over after its attempt, and the network may say nothing at its time.
      if (data.attempt !== attempt || data.takeover !== takeover) wrong.push(`${type} by a lost claim`);
      [under, handed] = [false, true];
    } else if (type === 'TargetPublishDeferred' && !under) {
      // Put off before its claim: it names the attempt that the claim would have begun.
      if (data.attempt !== attempt + 1 || data.takeover !== 0) wrong.push(`${type} by a lost claim`);
    } else if (ofClaim.has(type) && !(type === 'TargetSegmentPublished' && found(at))) {
      if (!under || data.attempt !== attempt || data.takeover !== takeover) wrong.push(`${type} by a lost claim`);
      if (data.step === 'boundary') {
        if (crossed) wrong.push('crossed its boundary twice in an attempt');
        crossed = true;
      }
      if (type === 'TargetSegmentPublished') crossed = false;
      else if (type !== 'TargetPublishCheckpointed') under = false;
    } else if (type === 'TargetFailed') {
      [attempt, under] = [Math.max(attempt, Number(data.attempt)), false];
    }
  }
  return wrong;
};

/** Events about the whole occur once, and the post has the outcome of each target. */
const ofPost = (events: readonly DecodedEvent[], targets: ReadonlyMap<string, TargetState>): readonly string[] => {
  const wrong: string[] = [];
  for (const once of ['PostPartiallyPublished', 'PostCanceled', 'PostDrafted', 'PostDiscarded']) {
    const times = events.filter((one) => one.type === once).length;
    if (times > 1) wrong.push(`has ${times} times ${once}`);
  }
  wrong.push(...onceBetween('', events, 'PostScheduled', ['PostReturnedToDraft']));
  for (const whole of ['PostPublished', 'PostFailed'])
    wrong.push(...onceBetween('', events, whole, ['PostTargetReopened', 'PostRevised']));
  const state = foldEvents(post, events);
  if (state.status !== 'live') return wrong;
  for (const { targetId } of state.plan.targets) {
    const own = targets.get(targetId);
    if (own === undefined || own.status === 'none') {
      wrong.push(`planned the target ${targetId}, which is not there`);
      continue;
    }
    const settled = ['published', 'failed', 'canceled'].includes(own.status) ? own.status : null;
    const told = state.targets[targetId]?.outcome ?? null;
    if (told !== settled) wrong.push(`knows ${told} of ${targetId}, which is ${own.status}`);
  }
  const said = events.findLast((one) =>
    /^Post(Published|Failed|PartiallyPublished|Canceled|TargetReopened|Revised)$/.test(one.type),
  );
  const shown = statusOf(state);
  if (
    ['published', 'failed'].includes(shown ?? '') &&
    said?.type !== (shown === 'published' ? 'PostPublished' : 'PostFailed')
  )
    wrong.push(`is ${shown} and does not say so`);
  return wrong;
};

/** `what` occurred again before one of `between`. */
const onceBetween = (
  stream: string,
  events: readonly DecodedEvent[],
  what: string,
  between: readonly string[],
): readonly string[] => {
  let said = false;
  for (const { type } of events) {
    if (between.includes(type)) said = false;
    else if (type === what) {
      if (said) return [`${stream} says ${what} twice`];
      said = true;
    }
  }
  return [];
};

/** What was scheduled to an account before it was disconnected is canceled, also where it was connected again. */
const ofDisconnected = (
  streams: ReadonlyMap<string, readonly DecodedEvent[]>,
  states: ReadonlyMap<string, TargetState>,
): readonly string[] =>
  [...states].flatMap(([id, state]) => {
    if (state.status === 'none' || !isOpen(state)) return [];
    const since = streams.get(`target-${id}`)?.[0]?.position ?? 0n;
    const parting = streams
      .get(`account-${state.common.accountId}`)
      ?.find(({ type, position }) => type === 'AccountDisconnected' && position > since);
    return parting === undefined ? [] : [`target ${id} is ${state.status}, and its account was disconnected`];
  });

const names = (clients: readonly (readonly [string, readonly DecodedEvent[]])[]): readonly string[] => {
  const bearers = new Map<string, string>();
  return clients.flatMap(([stream, events]) => {
    const state = foldEvents(client, events);
    if (state.status !== 'live') return [];
    const name = `${events[0]?.metadata.workspaceId} ${normaliseName(state.fields.name)}`;
    const other = bearers.get(name);
    bearers.set(name, stream);
    return other === undefined ? [] : [`${stream} and ${other} both bear ${state.fields.name}`];
  });
};

const references = (posts: readonly (readonly [string, readonly DecodedEvent[]])[]): readonly string[] => {
  const bearers = new Map<string, string>();
  return posts.flatMap(([stream, events]) => {
    const state = foldEvents(post, events);
    if (state.status !== 'draft' && state.status !== 'live') return [];
    const { externalRef } = state.body;
    if (externalRef === undefined) return [];
    const reference = `${state.clientId} ${externalRef}`;
    const other = bearers.get(reference);
    bearers.set(reference, stream);
    return other === undefined ? [] : [`${stream} and ${other} both have the reference ${externalRef}`];
  });
};

/** Every event at least once, and in order: records of one key step back only to repeat. */
const relayed = async (pool: pg.Pool): Promise<readonly string[]> => {
  const there = await pool.query(`select to_regclass('relayed.records') is not null as ok`);
  if (!there.rows[0].ok) return [];
  for (const limit = performance.now() + 10_000 * patience; performance.now() < limit; await delay(100)) {
    const { rows } = await pool.query(
      `select count(*)::int as n from es.events e where topic is not null
       and not exists (select from relayed.records r where r.position = e.position)`,
    );
    if (rows[0].n === 0) break;
    if (performance.now() + 150 > limit) return [`the relay left out ${rows[0].n} events`];
  }
  const { rows } = await pool.query(
    `select count(*)::int as n from (
       select key, position, max(position) over (partition by key order by first rows between unbounded preceding and 1 preceding) as before
       from (select key, position, min(place) as first from relayed.records group by key, position) r) s
     where before > position`,
  );
  return rows[0].n === 0 ? [] : [`the relay changed the order ${rows[0].n} times`];
};
