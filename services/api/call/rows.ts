import { birthOf } from '#domain/decider.ts';
import { projections } from '#projections/index.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { type Loaded, Unavailable } from '#runtime/eventing/domain-store.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import type { Topic } from '#schemas/topics.ts';
import type { Call } from './operation.ts';
import { notFound } from './refusal.ts';

/** The last of the events that a command left. */
export const lastOf = (events: readonly DecodedEvent[]): DecodedEvent => {
  const event = events.at(-1);
  if (event === undefined) throw new BrokenInvariant('a stream that was written to has no events');
  return event;
};

/** The row of a stream that a command has just written to. */
export const writtenRow = <Row>(row: Row | null): Row => {
  if (row === null) throw new BrokenInvariant('a stream that was written to has no row');
  return row;
};

const modelOf = (kind: string) => projections.flatMap(({ models }) => models).find((model) => model.kind === kind);

/** Who stored an event, as callers see it. */
export const makerOf = ({
  metadata,
}: Pick<DecodedEvent, 'metadata'>): { readonly type: string; readonly id: string } => {
  const { type, id } = metadata.actor;
  return { type, id };
};

/**
 * One row by the id in the path, not older than the caller's own writes.
 * @param planned the row as another stream plans it, while its own stream does not exist yet
 * @throws Refusal 404; Unavailable when the stream exists and its row is not there yet: never 404 for what exists.
 */
export const readRow = async <Row, Planned = never>(
  call: Pick<Call<{ readonly id: string }>, 'deps' | 'workspaceId' | 'params' | 'behind'>,
  kind: string,
  topics: readonly Topic[],
  get: (id: string) => Promise<Row | null>,
  planned?: (id: string) => Promise<Planned | null>,
): Promise<Row | Planned> => {
  const { deps, workspaceId, params } = call;
  const behind = await call.behind(topics);
  const row = await get(params.id);
  if (row !== null && !behind) return row;
  const plan = row === null ? ((await planned?.(params.id)) ?? null) : null;
  const events = await deps.store.readStream(`${kind}-${params.id}`);
  const creation = birthOf(modelOf(kind) ?? {}, events);
  // A stream with more than its creation is newer than the plan: its row may be missing because the stream is parked.
  if (plan !== null && events.at(-1) === creation) return plan;
  // The plan of a stream that the read model lacks may name it.
  if (creation === undefined && behind && planned !== undefined)
    throw new Unavailable(`A plan of this ${kind} is behind.`);
  if (creation === undefined || creation.metadata.workspaceId !== workspaceId) throw notFound(kind);
  throw new Unavailable(`The read model of this ${kind} is behind.`);
};

/**
 * Guard for a command on the stream that the path names. The stream must belong to the caller (else 404, the same for
 * unknown and foreign ids) and be at the revision that If-Match names (else 412).
 */
export const ownStream =
  ({ workspaceId, guard }: Pick<Call, 'workspaceId' | 'guard'>, noun: string) =>
  (loaded: Pick<Loaded<unknown>, 'events' | 'revision'>): void => {
    if (loaded.events[0]?.metadata.workspaceId !== workspaceId) throw notFound(noun);
    guard(loaded);
  };

/**
 * The same guard for a deletion. It ignores If-Match once the resource is deleted: a caller that repeats a deletion,
 * because the answer was lost, cannot know the revision that the first call made.
 */
export const ownStreamToDelete = <State>(
  call: Pick<Call, 'workspaceId' | 'guard'>,
  noun: string,
  isDeleted: (state: State) => boolean,
): ((loaded: Loaded<State>) => void) => {
  const first = ownStream(call, noun);
  const again = ownStream({ ...call, guard: () => undefined }, noun);
  return (loaded) => (isDeleted(loaded.state) ? again : first)(loaded);
};
