import type { Decider } from '#domain/decider.ts';
import type { PostState } from '#domain/post.ts';
import { type TargetCommand, type TargetState, target } from '#domain/target.ts';
import type { Loaded } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { withIdempotencyRecord } from '#runtime/eventing/idempotency.ts';
import { requireRoom } from '#runtime/eventing/stream-room.ts';
import type { Call, One } from '../operation.ts';
import { answerTarget } from './answers.ts';
import { eventsUpTo, type LoadedTarget, loadTarget } from './load.ts';

/** What the call has read or written so far, so that it is not read again. */
interface ActionProgress<Decided> {
  accepted?: { readonly decided: Decided; readonly loaded: LoadedTarget };
  written?: { readonly target: Loaded<TargetState>; readonly post: Loaded<PostState> };
}

/**
 * One action on one target in the request form. If we die between acceptance and the append the repeat does it with the
 * accepted values; after the append the target's fold knows the command and the repeat yields nothing.
 */
export const actOnTarget = async <Decided>(
  call: Call<{ readonly id: string }>,
  operation: string,
  accept: (loaded: LoadedTarget) => Decided,
  command: (decided: Decided, commandId: string) => TargetCommand,
  /** Optional: a target whose stream is full refuses it, see `stream-room.ts`. */
  { optional }: { readonly optional: boolean },
): Promise<One<unknown>> => {
  const { deps, params, positions } = call;
  const held: ActionProgress<Decided> = {};
  const { result, replayed } = await withIdempotencyRecord<Decided, { readonly revision: number }>({
    store: deps.store,
    operation,
    key: call.key,
    fingerprint: call.fingerprint,
    context: call.context,
    accept: async () => {
      const loaded = await loadTarget(call, params.id);
      call.guard(loaded.target);
      const decided = accept(loaded);
      // The rules refuse before anything is accepted; they are asked again at the append.
      const events = (target as Decider<TargetState, TargetCommand, never>).decide(
        command(decided, call.context.commandId),
        loaded.target.state,
      );
      if (optional && events.length > 0) requireRoom(loaded.target.events);
      held.accepted = { decided, loaded };
      return decided;
    },
    effects: async (decided, context) => {
      // What another call has accepted may rest on newer events than this one saw: then they are read.
      const own = held.accepted?.decided === decided ? held.accepted.loaded : undefined;
      const { target: loaded, post } = own ?? (await loadTarget(call, params.id));
      const done = await execute(deps.store, target, params.id, command(decided, context.commandId), context, {
        partitionKey: loaded.state.postId,
        positions,
        optional,
        loaded,
        // If-Match holds at the append, not only at the acceptance; what this command has written is not in its way.
        guard: (now) => {
          if (!now.events.some((event) => event.metadata.commandId === context.commandId)) call.guard(now);
        },
      });
      held.written = { target: done, post };
      const last = done.events.findLast((one) => one.metadata.commandId === context.commandId);
      return { revision: last?.revision ?? done.revision };
    },
  });
  const { target: known, post } = held.written ?? (await loadTarget(call, params.id));
  const events = await eventsUpTo(deps.store, `target-${params.id}`, result.revision, known.events);
  deps.store.note(events, positions);
  return { data: answerTarget(events, post.state), revision: result.revision, replayed };
};
