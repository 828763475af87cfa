import { EventStoreError } from '#contracts/ports/event-store.ts';
import { type WebhookCommand, type WebhookState, webhook } from '#domain/webhook.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { CommandContext, Loaded } from '#runtime/eventing/domain-store.ts';
import { type Executed, execute } from '#runtime/eventing/execute.ts';
import { withIdempotencyRecord } from '#runtime/eventing/idempotency.ts';
import { requireRoom } from '#runtime/eventing/stream-room.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import type { Call } from '../operation.ts';
import { ownLive } from './endpoints.ts';

export interface Acted {
  /** What the command stored, this time or the first. */
  readonly event: DecodedEvent;
  /** The endpoint's events up to it. */
  readonly events: readonly DecodedEvent[];
  readonly replayed: boolean;
}

interface Steps<Decided> {
  readonly operation: string;
  /** Checks and decides, once. May refuse by throwing. */
  readonly accept: (loaded: Loaded<WebhookState>) => Promise<Decided>;
  readonly command: (decided: Decided, context: CommandContext) => WebhookCommand;
  /** True: an endpoint whose stream is full refuses it, see `stream-room.ts`. */
  readonly optional?: boolean;
  /** A rule that asks more than the stream: it holds at the very revision the command is appended at. */
  readonly rule?: (loaded: Loaded<WebhookState>) => Promise<void>;
}

/** Rounds against other writers of the same endpoint before we give up. */
const maxRounds = 50;

/**
 * One action on one endpoint in the request form. If we die between acceptance and the append the repeat does it with
 * the accepted values; after the append the endpoint's fold knows the command and the repeat yields nothing.
 */
export const actOnWebhook = async <Decided>(
  call: Call<{ readonly id: string }>,
  steps: Steps<Decided>,
): Promise<Acted> => {
  const { deps, params, positions } = call;
  const { store } = deps;
  const { result, replayed } = await withIdempotencyRecord<Decided, { readonly revision: number }>({
    store,
    operation: steps.operation,
    key: call.key,
    fingerprint: call.fingerprint,
    context: call.context,
    accept: async () => {
      const loaded = await store.load(webhook, params.id);
      ownLive(call)(loaded);
      const decided = await steps.accept(loaded);
      // The rules refuse before anything is accepted; they are asked again at the append.
      const events = webhook.decide(steps.command(decided, call.context), loaded.state);
      if (steps.optional === true && events.length > 0) requireRoom(loaded.events);
      await steps.rule?.(loaded);
      return decided;
    },
    effects: async (decided, context) => {
      const done = await append(call, steps.command(decided, context), context, steps);
      return { revision: done.events.findLast(isOf(context))?.revision ?? done.revision };
    },
  });
  const events = await store.readStream(`webhook-${params.id}`, result.revision);
  const event = events.at(-1);
  if (event === undefined) throw new BrokenInvariant('an endpoint that was acted on has no events');
  store.note([event], positions);
  return { event, events, replayed };
};

const isOf =
  ({ commandId }: CommandContext) =>
  (event: DecodedEvent): boolean =>
    event.metadata.commandId === commandId;

/** Appends at the revision that was checked; when somebody else wrote, all of it is checked anew. */
const append = async (
  call: Call<{ readonly id: string }>,
  command: WebhookCommand,
  context: CommandContext,
  { rule, optional = false }: Pick<Steps<unknown>, 'rule' | 'optional'>,
): Promise<Executed<WebhookState>> => {
  const { deps, params, positions } = call;
  for (let round = 1; ; round += 1) {
    const loaded = await deps.store.load(webhook, params.id);
    // What this command has written is not in its own way: neither If-Match nor a rule is asked again.
    if (loaded.events.some(isOf(context))) return { ...loaded, appended: [] };
    ownLive(call)(loaded);
    await rule?.(loaded);
    try {
      const options = { positions, loaded, optional, redecide: false };
      return await execute(deps.store, webhook, params.id, command, context, options);
    } catch (error) {
      const conflict = error instanceof EventStoreError && error.code === 'wrong_expected_revision';
      if (!conflict || round >= maxRounds) throw error;
    }
  }
};
