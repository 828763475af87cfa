import { isConflict } from '#contracts/ports/event-store.ts';
import type { Decider } from '#domain/decider.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { type CommandContext, foldEvents, type Loaded, uuidv7 } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { createIdempotently, withIdempotencyRecord } from '#runtime/eventing/idempotency.ts';
import { requireRoom } from '#runtime/eventing/stream-room.ts';
import { type Acted, type Action, type Call, type Commands, nounOf, type Operation, type Stored } from './operation.ts';
import { Refusal } from './refusal.ts';
import { ownStream } from './rows.ts';

/** Attempts to append against other writers of the same stream; then the call gives up. */
const maxRounds = 50;

/** Whether an event is one of this command. */
export const isOf =
  ({ commandId }: CommandContext) =>
  ({ metadata }: DecodedEvent): boolean =>
    metadata.commandId === commandId;

/** The commands of one call: each carries its key, guards, audit context and consistency positions. */
export const commandsOf = (call: Omit<Call<unknown>, keyof Commands>, operation: Operation): Commands => {
  const { key, fingerprint, positions, context } = call;
  const { store } = call.deps;
  const { id: operationId } = operation;

  const once: Commands['once'] = (accept, effects) =>
    withIdempotencyRecord({ store, operation: operationId, key, fingerprint, context, accept, effects });

  const act = async <State, Command, Decided>(
    decider: Decider<State, Command, Stored>,
    action: Action<State, Command, Decided>,
  ): Promise<Acted<State>> => {
    const { id } = call.params as { readonly id: string };
    const { guard = ownStream(call, nounOf(operation)), rule, optional = false, partitionKey } = action;
    const load = action.load ?? (() => store.load(decider, id));
    let accepted: { readonly decided: Decided; readonly loaded: Loaded<State> } | undefined;
    let written: Loaded<State> | undefined;

    const accept = async (): Promise<Decided> => {
      const loaded = await load();
      guard(loaded);
      const decided = (await action.accept?.(loaded)) ?? ({} as Decided);
      // The rules refuse before the call accepts anything; the append checks them again.
      const events = decider.decide(action.command(decided, context), loaded.state);
      if (optional && events.length > 0) requireRoom(loaded.events);
      await rule?.(loaded, decided);
      accepted = { decided, loaded };
      return decided;
    };

    /** Appends at the revision that was checked. If another caller wrote meanwhile, it checks everything again. */
    const append = async (decided: Decided, by: CommandContext): Promise<Loaded<State>> => {
      // Values that another call accepted may rest on newer events than this call saw, so this call reads the stream
      // again.
      let checked = accepted !== undefined && accepted.decided === decided ? accepted.loaded : undefined;
      for (let round = 1; ; round += 1) {
        const loaded = checked ?? (await load());
        // This command's own event must not refuse its repeat: neither If-Match nor the rule is checked again.
        if (loaded.events.some(isOf(by))) return loaded;
        if (checked === undefined) {
          guard(loaded);
          await rule?.(loaded, decided);
        }
        checked = undefined;
        try {
          const ordered = partitionKey === undefined ? {} : { partitionKey: partitionKey(loaded.state) };
          const options = { positions, loaded, optional, redecide: false, ...ordered };
          return await execute(store, decider, id, action.command(decided, by), by, options);
        } catch (error) {
          if (!isConflict(error) || round >= maxRounds) throw error;
        }
      }
    };

    const { result, replayed } = await once(accept, async (decided, by) => {
      written = await append(decided, by);
      return { revision: written.events.findLast(isOf(by))?.revision ?? written.revision };
    });
    const left = await streamUpTo(call, decider, id, result.revision, written);
    // A repeat notes the events that the first call stored, so that its caller can read its own write. Without a key
    // too: the answer to a deletion may have been lost.
    store.note(left.events, positions);
    return { ...left, replayed };
  };

  return {
    stream: (decider) => ({
      // Without a key nobody can repeat the creation.
      create: (creation) =>
        createIdempotently({
          ...creation,
          store,
          decider,
          operation: operationId,
          key: key ?? uuidv7(),
          context,
          positions,
        }),
      act: (action) => act(decider, action),
    }),
    once,
  };
};

/** A stream up to this revision: from memory if the call has loaded so much of it, else from the store. */
export const streamUpTo = async <State>(
  { deps }: Pick<Call, 'deps'>,
  decider: Decider<State, never, Stored>,
  id: string,
  revision: number,
  loaded: Loaded<State> | undefined,
): Promise<Loaded<State>> => {
  if (loaded?.revision === revision) return loaded;
  const events =
    loaded === undefined || loaded.revision < revision
      ? await deps.store.readStream(`${decider.kind}-${id}`, revision)
      : loaded.events.filter((event) => event.revision <= revision);
  return { state: foldEvents(decider, events), revision, events };
};

/**
 * If-Match as a guard on a stream's revision: `*` (it exists), or a list of `"<revision>"`. A weak or foreign tag and
 * an empty list match nothing: a write is refused when its condition is not understood.
 * @param header undefined: the caller sent none, and the guard refuses nothing
 */
export const ifMatch = (header: string | undefined): ((loaded: { readonly revision: number }) => void) => {
  if (header === undefined) return () => undefined;
  const tags = header.split(',').map((tag) => tag.trim());
  const any = tags.length === 1 && tags[0] === '*';
  return ({ revision }) => {
    if ((any && revision >= 0) || tags.includes(`"${revision}"`)) return;
    throw new Refusal('revision_mismatch', `The current revision is ${revision}.`, {
      extra: { currentRevision: revision },
    });
  };
};
