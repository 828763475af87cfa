import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import type { BlobStore } from '#contracts/ports/blob-store.ts';
import type { EventStore } from '#contracts/ports/event-store.ts';
import { client } from '#domain/client.ts';
import { normaliseName } from '#domain/ids.ts';
import { post } from '#domain/post/post.ts';
import { target } from '#domain/post-target/target.ts';
import type { SandboxNetwork } from '#infra/platforms/sandbox/index.ts';
import { liveGeneration } from '#projections/engine/tables.ts';
import { type Projection, projections } from '#projections/index.ts';
import { view } from '#projections/shapes.ts';
import { webhooksGroup } from '#projections/webhooks/dispatcher.ts';
import type { DecodedEvent, EventCodec } from '#runtime/eventing/codec.ts';
import { foldEvents } from '#runtime/eventing/domain-store.ts';
import { kindOf, topics } from '#schemas/topics.ts';
import { compareWithReplay } from '#test/support/compare-with-replay.ts';
import { patience } from '#test/support/patience.ts';
import { saysNoOther } from './builds.ts';
import { analyticsAtRest, checkAnalytics } from './check-analytics.ts';
import { checkComments } from './check-comments.ts';
import { checkHooks, hooksAtRest } from './check-hooks.ts';
import { askedFigures, checkInsights } from './check-insights.ts';
import { type Live, LiveCheck } from './check-live.ts';
import { checkMedia, mediaAtRest } from './check-media.ts';
import { checkReports, reportsAtRest } from './check-reports.ts';
import { checkTargets, createdIn, onceBetween, type Streams, story, unsettled } from './check-targets.ts';
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

/** Without an append for this long, milliseconds, nothing is under way. */
const quietMs = 2_500;

/** Every event of the store, by stream. */
export const streamsOf = async ({ store, codec }: Pick<Checked, 'store' | 'codec'>): Promise<Streams> => {
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

/** Whether all consumers have read everything, those of the former shape too while it has tables. */
const consumersAt = async ({ pool, hooks }: Checked): Promise<boolean> => {
  const { rows } = await pool.query(
    `with ends as (select topic, max(position) as position from es.events where topic is not null group by topic),
     wanted as (
       select 'projection-' || p.name || '-v' || p.live as name, t.topic from ops.projections p
       join unnest($1::text[], $2::text[]) as t (name, topic) on t.name = p.name where p.live is not null
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

/** The shapes of this build, and the former ones that processes of the former build still read. */
const writtenShapes = async (pool: pg.Pool): Promise<readonly Projection[]> => {
  const former = projections.flatMap((one) => one.former ?? []);
  const live = await Promise.all(former.map((one) => liveGeneration(pool, one)));
  return [...projections, ...former.filter((_, at) => live[at] !== null)];
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
    left = await askedFigures(checked.pool);
    if (left.length > 0) continue;
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

/** Targets that have not ended yet, and why. */
export const openTargets = async (checked: Checked): Promise<readonly string[]> => {
  const { rows } = await checked.pool.query(
    `select id::text as id from ${view('post_targets')} where status in ('publishing', 'processing', 'rate_limited', 'outcome_unknown')
       or (status = 'handed_to_platform' and undo = 'pending')
       or (status = 'pending' and next_action_at < now() + interval '2 minutes')
       or (status = 'published' and next_action_at is not null)`,
  );
  const found: string[] = [];
  const read = async (stream: string) => checked.codec.decodeAll(await checked.store.read(stream));
  const live = checked.live === null ? null : await LiveCheck.of(checked.live);
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
  const behind = await checked.pool.query(`select id::text as id from ${view('posts')} where fan_out_behind limit 20`);
  return [...found, ...behind.rows.map(({ id }) => `post ${id} has targets that are behind its plan`)];
};

/** The whole list. Nothing may be under way: see `untilQuiet`. */
export const check = async (checked: Checked): Promise<CheckResult> => {
  const streams = await streamsOf(checked);
  const ofKind = (kind: string) => [...streams].filter(([stream]) => kindOf(stream) === kind);
  const { violations: ofTargets, states, statuses } = await checkTargets(streams, checked.sandbox, checked.live);
  const violations = [...ofTargets];
  for (const [stream, events] of ofKind('account')) {
    violations.push(
      ...onceBetween(stream, events, 'AccountReauthRequired', ['AccountReauthorized', 'AccountConnected']),
    );
  }
  for (const [stream, events] of ofKind('request')) {
    violations.push(...onceBetween(stream, events, 'RequestAccepted', ['RequestCompleted']));
    violations.push(...onceBetween(stream, events, 'RequestCompleted', ['RequestAccepted']));
  }
  violations.push(...names(ofKind('client')));
  violations.push(...references(ofKind('post')));
  violations.push(...(await relayed(checked.pool)));
  violations.push(...(await checkMedia(streams, checked.blobRoot)));
  violations.push(...checkInsights(streams));
  const isLive = ([first]: readonly DecodedEvent[]) => first?.metadata.workspaceId === checked.live?.workspaceId;
  const inSandbox = new Map([...streams].filter(([, events]) => checked.live === null || !isLive(events)));
  violations.push(...(await checkComments(inSandbox, checked.sandbox)));
  const { violations: ofAnalytics, observations } = await checkAnalytics(streams, {
    pool: checked.pool,
    ...{ url: checked.analyticsUrl, sandbox: checked.sandbox },
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
  const { rows, differences } = await compareWithReplay({ ...checked, only: await writtenShapes(checked.pool) });
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
