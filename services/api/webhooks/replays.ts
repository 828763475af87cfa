import { Rejection } from '#domain/decider.ts';
import type { WebhookState } from '#domain/webhook.ts';
import { getReplays, type ReplayRow } from '#projections/webhooks/queries.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { Loaded } from '#runtime/eventing/domain-store.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import type { WebhookEvent } from '#schemas/webhook.ts';
import type { Call } from '../operation.ts';
import { isDispatched, lookMs, readDispatched } from './dispatched.ts';

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

export const renderReplay = (row: ReplayRow) => ({
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
export const askedReplay = (webhookId: string, event: DecodedEvent) => renderReplay(rowOfRequest(webhookId, event));

const requests = (events: readonly DecodedEvent[]): readonly DecodedEvent[] =>
  events.filter(({ type }) => type === 'WebhookReplayRequested');

const replayIdOf = ({ data }: DecodedEvent): string => String(data.replayId);

/** A replay whose cancellation is stored, with its progress so far: none without a row. */
export const canceledReplay = (
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
export const readReplay = async (call: ReplayCall): Promise<ReplayRow> => {
  const { deps, params, workspaceId } = call;
  const { id: webhookId, replayId } = params;
  return readDispatched(call, {
    noun: 'replay',
    find: async () => (await getReplays(deps.knex, { workspaceId, webhookId }, [replayId])).get(replayId) ?? null,
    asks: (event) => requests([event]).length > 0 && replayIdOf(event) === replayId,
  });
};

/** Replays of one endpoint that may run at once. */
export const maxRunning = 3;

/**
 * Rule for one more replay. The rule holds at the revision at which it is checked, because this stream has the request
 * of every replay. A replay without a row has not begun: at most `maxRunning` replays have no row, and they are the
 * newest.
 * @throws Rejection `too_many_replays`
 */
export const requireRoomForReplay =
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
