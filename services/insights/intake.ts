import type { PoolClient } from 'pg';
import { type TargetState, target } from '#domain/post-target/target.ts';
import type { Applied } from '#runtime/consuming/options.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import type { AccountEvent } from '#schemas/account.ts';
import type { ClientEvent } from '#schemas/client.ts';
import type { RefreshEvent } from '#schemas/refresh.ts';
import type { TargetEvent } from '#schemas/target.ts';
import { idOf, kindOf } from '#schemas/topics.ts';
import type { WorkspaceEvent } from '#schemas/workspace.ts';
import { ensureAccounts, lockAccounts, onAccountEvent, recount, zoneOf } from './accounts.ts';
import { noteClosed } from './closings.ts';
import type { SourceOf } from './deps.ts';
import { onRefreshEvent } from './refreshes.ts';
import { type Cadence, nextObservation } from './schedule.ts';
import { settle } from './waiting.ts';

/**
 * Turns events into rows: time zones, accounts that can be polled, posts that are out. Rows and the consumer's position
 * change in one transaction. A row keeps the revision of its stream, so an event that comes twice changes nothing.
 */

export const insightsGroup = 'metrics';
export const subscribedKinds = ['target', 'account', 'client', 'workspace', 'refresh'] as const;
export const subscribedTypes: readonly (
  | TargetEvent
  | AccountEvent
  | ClientEvent
  | WorkspaceEvent
  | RefreshEvent
)['type'][] = [
  ...(['TargetPublished', 'TargetOutcomeSettled', 'TargetRemovedOnPlatform'] as const),
  ...(['AccountConnected', 'AccountReauthorized', 'AccountReauthRequired', 'AccountDisconnected'] as const),
  ...(['ClientCreated', 'ClientUpdated', 'ClientArchived', 'ClientErased'] as const),
  ...(['WorkspaceCreated', 'WorkspaceProfileChanged', 'AnalyticsRefreshRequested'] as const),
];

export interface IntakeDeps {
  readonly store: DomainStore;
  readonly sourceOf: SourceOf;
  readonly cadence: Cadence;
  /** Called after the commit of events that note work for pages. */
  readonly onNoted: () => void;
}

export const onEvents = async (
  tx: PoolClient,
  events: readonly DecodedEvent[],
  deps: IntakeDeps,
): Promise<Applied | null> => {
  const out = await publishedIn(events, deps.store);
  const closings = events.filter(closes).map(({ type, stream, metadata: { workspaceId } }) => ({
    ...{ clientId: idOf(stream), workspaceId, erased: type === 'ClientErased' },
  }));
  await noteClosed(tx, closings);
  await lockAll(tx, events, out);
  let noted = closings.length > 0;
  for (const event of events) {
    const kind = kindOf(event.stream);
    if (kind === 'workspace') await onWorkspaceEvent(tx, event);
    else if (kind === 'refresh') noted = (await onRefreshEvent(tx, event)) || noted;
    else if (kind === 'client') await onClientEvent(tx, event);
    else if (kind === 'account') await onAccountEvent(tx, event);
    else if (event.type === 'TargetRemovedOnPlatform') await onRemoved(tx, event);
    else await onPublished(tx, event, out.get(event.id), deps);
  }
  return noted ? { committed: deps.onNoted, rolledBack: () => undefined } : null;
};

type PublishedTarget = Extract<TargetState, { status: 'published' }>;

/** Streams read at once. */
const width = 16;

/** By id of an event that reports a publication: the target, because the event does not name its account. */
const publishedIn = async (
  events: readonly DecodedEvent[],
  store: DomainStore,
): Promise<ReadonlyMap<string, PublishedTarget>> => {
  const found = new Map<string, PublishedTarget>();
  const publications = events.filter(
    ({ type, data }) => type === 'TargetPublished' || (type === 'TargetOutcomeSettled' && data.outcome === 'published'),
  );
  for (let at = 0; at < publications.length; at += width) {
    await Promise.all(
      publications.slice(at, at + width).map(async ({ id, stream }) => {
        const { state } = await store.load(target, idOf(stream));
        if (state.status === 'published' && state.removedAt === null) found.set(id, state);
      }),
    );
  }
  return found;
};

/**
 * Locks all accounts of these events in the order of their ids, so that the transactions of two lanes never deadlock.
 */
const lockAll = async (
  tx: PoolClient,
  events: readonly DecodedEvent[],
  out: ReadonlyMap<string, PublishedTarget>,
): Promise<void> => {
  const made = new Map<string, string>();
  const named: string[] = [];
  for (const { id, stream, metadata } of events) {
    const posted = out.get(id);
    if (posted !== undefined) made.set(posted.common.accountId, metadata.workspaceId);
    else if (kindOf(stream) === 'account') made.set(idOf(stream), metadata.workspaceId);
  }
  const gone = events.flatMap((one) => (one.type === 'TargetRemovedOnPlatform' ? [idOf(one.stream)] : []));
  if (gone.length > 0) {
    const { rows } = await tx.query<{ id: string }>(
      'select account_id as id from ops.insights_jobs where id = any($1::uuid[])',
      [gone],
    );
    named.push(...rows.map(({ id }) => id));
  }
  if (made.size > 0) await ensureAccounts(tx, made);
  if (made.size + named.length > 0) await lockAccounts(tx, [...made.keys(), ...named]);
};

const setZone = (tx: PoolClient, id: string, timezone: string | null, revision: number) =>
  tx.query(
    `insert into ops.insights_zones (id, timezone, revision) values ($1, $2, $3)
     on conflict (id) do update set timezone = excluded.timezone, revision = excluded.revision
     where insights_zones.revision < excluded.revision`,
    [id, timezone, revision],
  );

const onWorkspaceEvent = async (tx: PoolClient, event: DecodedEvent): Promise<void> => {
  const { type, data } = { type: event.type, data: event.data } as unknown as WorkspaceEvent;
  if (type !== 'WorkspaceCreated' && type !== 'WorkspaceProfileChanged') return;
  await setZone(tx, idOf(event.stream), data.timezone, event.revision);
};

const closes = ({ type }: Pick<DecodedEvent, 'type'>): boolean => type === 'ClientArchived' || type === 'ClientErased';

const onClientEvent = async (tx: PoolClient, event: DecodedEvent): Promise<void> => {
  const { type, data } = { type: event.type, data: event.data } as unknown as ClientEvent;
  if (type !== 'ClientCreated' && type !== 'ClientUpdated') return;
  if (data.timezone !== undefined) await setZone(tx, idOf(event.stream), data.timezone, event.revision);
};

/** The worker that detected the removal may have crashed before it completed the pending refresh. */
const onRemoved = async (tx: PoolClient, event: DecodedEvent): Promise<void> => {
  const { rows } = await tx.query<{ id: string }>(
    'delete from ops.insights_jobs where id = $1 returning account_id as id',
    [idOf(event.stream)],
  );
  const accountIds = rows.map(({ id }) => id);
  await recount(tx, accountIds);
  await settle(tx, accountIds, false);
};

const onPublished = async (
  tx: PoolClient,
  event: DecodedEvent,
  out: PublishedTarget | undefined,
  { cadence }: IntakeDeps,
): Promise<void> => {
  // Without an external id no network can be asked about the post.
  if (out === undefined || out.externalId === '') return;
  const { externalId } = out;
  const { accountId, postId } = out.common;
  const { workspaceTimezone: timezone, closed, now } = await zoneOf(tx, accountId);
  if (closed) return;
  const publishedAt = Date.parse(out.publishedAt);
  const dueAt = nextObservation({ publishedAt, use: null, accountId, timezone }, now, cadence);
  if (dueAt === null) return;
  await tx.query(
    `insert into ops.insights_jobs (id, kind, workspace_id, account_id, due_at, post_id, external_id, published_at)
     values ($1, 'post', $2, $3, $4, $5, $6, $7) on conflict (id) do nothing`,
    [
      idOf(event.stream),
      event.metadata.workspaceId,
      accountId,
      new Date(dueAt),
      postId,
      externalId,
      new Date(publishedAt),
    ],
  );
  await recount(tx, [accountId]);
};
