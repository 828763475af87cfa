import { Rejection } from '#domain/decider.ts';
import { type WebhookState, webhook } from '#domain/webhook.ts';
import { getReplays, type ReplayRow } from '#projections/webhooks/queries.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { type Loaded, uuidv7 } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import { IdParams } from '#schemas/http/common.ts';
import { ReplayParams, WebhookReplay, WebhookReplayCreate } from '#schemas/http/webhook.ts';
import type { WebhookEvent } from '#schemas/webhook.ts';
import { type Call, operation } from '../call/operation.ts';
import { invalid } from '../call/refusal.ts';
import { lastOf } from '../call/rows.ts';
import { requireKnownEvents } from './checks.ts';
import { isDispatched, lookMs, readDispatched } from './dispatched.ts';
import { ownLive, readWebhook } from './endpoints.ts';
import { exampleReplay, webhooksTag } from './examples.ts';

/** Replays of one endpoint. The endpoint's stream holds the requests; the dispatcher carries them out. */

interface ReplayCall extends Pick<Call, 'deps' | 'workspaceId' | 'behind'> {
  readonly params: { readonly id: string; readonly replayId: string };
}

const progressOf = ({ status, from_time, to_time, read_to }: ReplayRow): number => {
  if (status === 'completed') return 1;
  if (read_to === null) return 0;
  const [from, to, read] = [from_time, to_time, read_to].map(Date.parse) as [number, number, number];
  // The store's order and the order of `created` differ by milliseconds.
  return Math.round(Math.min(1, Math.max(0, (read - from) / (to - from))) * 1_000) / 1_000;
};

const renderReplay = (row: ReplayRow) => ({
  id: row.id,
  object: 'webhook_replay' as const,
  webhookId: row.endpoint_id,
  from: row.from_time,
  to: row.to_time,
  types: row.types,
  status: row.status,
  progress: progressOf(row),
  minted: row.minted,
  readTo: row.read_to,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  completedAt: row.completed_at,
});

/** The row that the dispatcher makes of this request. */
const rowOfRequest = (webhookId: string, { data, metadata }: DecodedEvent): ReplayRow => {
  const { replayId, from, to, types } = data as Extract<WebhookEvent, { type: 'WebhookReplayRequested' }>['data'];
  const at = metadata.occurredAt;
  return {
    id: replayId,
    endpoint_id: webhookId,
    from_time: from,
    to_time: to,
    types,
    status: 'running',
    read_to: null,
    minted: 0,
    created_at: at,
    updated_at: at,
    completed_at: null,
  };
};

/** A replay that the caller has just requested. */
const askedReplay = (webhookId: string, event: DecodedEvent) => renderReplay(rowOfRequest(webhookId, event));

const requests = (events: readonly DecodedEvent[]): readonly DecodedEvent[] =>
  events.filter(({ type }) => type === 'WebhookReplayRequested');

const replayIdOf = ({ data }: DecodedEvent): string => String(data.replayId);

/** A replay whose cancellation is stored, with its progress so far: none without a row. */
const canceledReplay = (
  webhookId: string,
  replayId: string,
  events: readonly DecodedEvent[],
  row: ReplayRow | undefined,
) => {
  const asked = requests(events).find((one) => replayIdOf(one) === replayId);
  const canceled = events.find((one) => one.type === 'WebhookReplayCanceled' && replayIdOf(one) === replayId);
  if (asked === undefined || canceled === undefined)
    throw new BrokenInvariant('a replay that was canceled has no events');
  const before = row ?? rowOfRequest(webhookId, asked);
  return renderReplay({ ...before, status: 'canceled', updated_at: canceled.metadata.occurredAt });
};

/** The replay of the path, not older than the caller's own writes. */
const readReplay = async (call: ReplayCall): Promise<ReplayRow> => {
  const { deps, params, workspaceId } = call;
  const { id: webhookId, replayId } = params;
  return readDispatched(call, {
    noun: 'replay',
    find: async () => (await getReplays(deps.knex, { workspaceId, webhookId }, [replayId])).get(replayId) ?? null,
    asks: (event) => requests([event]).length > 0 && replayIdOf(event) === replayId,
  });
};

/** Replays of one endpoint that may run at once. */
const maxRunning = 3;

/**
 * Rule for one more replay. The rule holds at the revision at which it is checked, because this stream has the request
 * of every replay. A replay without a row has not begun: at most `maxRunning` replays have no row, and they are the
 * newest.
 * @throws Rejection `too_many_replays`
 */
const requireRoomForReplay =
  ({ deps, workspaceId, params }: Pick<Call<{ readonly id: string }>, 'deps' | 'workspaceId' | 'params'>) =>
  async ({ events, state }: Loaded<WebhookState>): Promise<void> => {
    if (state.status !== 'live') return;
    const { replays } = state;
    const open = requests(events).filter((one) => replays[replayIdOf(one)]?.canceled === false);
    const find = () => getReplays(deps.knex, { workspaceId, webhookId: params.id }, open.map(replayIdOf));
    const begun = await find();
    const unbegun = open.filter((one) => !begun.has(replayIdOf(one))).slice(-maxRunning);
    // A replay that is not dispatched yet counts as running. The rule waits neither for this replay nor for later ones
    // in the stream.
    let at = 0;
    for (; at < unbegun.length; at += 1) {
      const event = unbegun[at];
      if (event !== undefined && !(await isDispatched(deps, event, lookMs))) break;
    }
    // The rule reads the rows again: a replay that was dispatched meanwhile has its row, or was deleted.
    const now = unbegun.length === 0 ? begun : await find();
    const running = [...now.values()].filter(({ status }) => status === 'running').length;
    const waiting = unbegun.slice(at).filter((one) => !now.has(replayIdOf(one))).length;
    if (running + waiting >= maxRunning) {
      throw new Rejection('too_many_replays', `At most ${maxRunning} replays of an endpoint run at once.`);
    }
  };

export const replayWebhook = operation({
  id: 'replayWebhook',
  method: 'POST',
  path: '/webhooks/{id}/replays',
  tag: webhooksTag,
  summary: 'Send the events of a time range again',
  description:
    'The service sends every event of the time range again, also events from before the endpoint existed, under their original event ids. Each gets a new delivery; new events go first. At most three replays of an endpoint run at once.',
  scope: 'webhooks.manage',
  limited: 'refused',
  idempotent: 'accepted',
  cost: 10,
  ifMatch: true,
  params: IdParams,
  body: WebhookReplayCreate,
  answer: WebhookReplay,
  codes: ['unknown_event_type', 'too_many_replays', 'stream_full'],
  example: {
    body: { from: exampleReplay.from, to: exampleReplay.to, types: exampleReplay.types },
    data: { ...exampleReplay, progress: 0, minted: 0, readTo: null },
  },
  handle: async (call) => {
    const { body, params } = call;
    const { events, replayed } = await call.stream(webhook).act({
      guard: ownLive(call),
      optional: true,
      accept: async () => {
        const from = Date.parse(body.from);
        const to = Math.min(Date.parse(body.to ?? call.now), Date.parse(call.now));
        if (to <= from)
          throw invalid(
            body.to === undefined ? '/from' : '/to',
            'wrong_order',
            body.to === undefined ? 'must lie before now' : 'must lie after from',
          );
        requireKnownEvents(body.types, '/types');
        return {
          replayId: uuidv7(),
          from: new Date(from).toISOString(),
          to: new Date(to).toISOString(),
          types: body.types === undefined ? null : [...new Set(body.types)],
        };
      },
      command: (decided, { commandId }) => ({ type: 'RequestReplay', commandId, ...decided }),
      rule: requireRoomForReplay(call),
    });
    return { data: askedReplay(params.id, lastOf(events)), replayed };
  },
});

export const getWebhookReplay = operation({
  id: 'getWebhookReplay',
  method: 'GET',
  path: '/webhooks/{id}/replays/{replayId}',
  tag: webhooksTag,
  summary: 'Get the progress of a replay',
  scope: 'webhooks.manage',
  limited: 'refused',
  idempotent: 'none',
  cost: 1,
  params: ReplayParams,
  answer: WebhookReplay,
  codes: [],
  example: { data: exampleReplay },
  handle: async (call) => {
    await readWebhook(call);
    return { data: renderReplay(await readReplay(call)) };
  },
});

export const cancelWebhookReplay = operation({
  id: 'cancelWebhookReplay',
  method: 'DELETE',
  path: '/webhooks/{id}/replays/{replayId}',
  tag: webhooksTag,
  summary: 'Cancel a replay',
  description:
    'Its deliveries that are not sent yet are canceled with it. A replay that has ended is answered unchanged; if the replay ends at the same time, either outcome is possible.',
  scope: 'webhooks.manage',
  limited: 'refused',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: ReplayParams,
  answer: WebhookReplay,
  codes: [],
  example: { data: { ...exampleReplay, status: 'canceled' } },
  handle: async (call) => {
    const { deps, workspaceId, context, positions } = call;
    const { id: webhookId, replayId } = call.params;
    const loaded = await deps.store.load(webhook, webhookId);
    const guard = ownLive(call);
    guard(loaded);
    const row = (await getReplays(deps.knex, { workspaceId, webhookId }, [replayId])).get(replayId);
    if (row !== undefined && row.status !== 'running') return { data: renderReplay(row) };
    const command = { type: 'CancelReplay', replayId } as const;
    const { events } = await execute(deps.store, webhook, webhookId, command, context, { positions, guard, loaded });
    return { data: canceledReplay(webhookId, replayId, events, row) };
  },
});
