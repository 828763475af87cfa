import { isConflict } from '#contracts/ports/event-store.ts';
import { Rejection } from '#domain/decider.ts';
import { type QuotaCommand, type QuotaState, quota } from '#domain/quota.ts';
import {
  type CommandContext,
  type DomainStore,
  type Loaded,
  partitionKeyOf,
  Unavailable,
} from '#runtime/eventing/domain-store.ts';
import { serviceContext } from '#runtime/eventing/service-context.ts';
import type { QuotaEvent } from '#schemas/quota.ts';

/**
 * Writes to the stream of a month. The commands of one process that arrive while an append is under way share the next
 * one: each is decided by itself, in order, and the refusal of one stops no other. So a burst of posts costs a few
 * appends and no race of the process against itself.
 */

interface Asked {
  readonly command: QuotaCommand;
  readonly context: CommandContext;
  readonly done: () => void;
  readonly failed: (error: unknown) => void;
}

type Month = Pick<Loaded<QuotaState>, 'state' | 'revision'>;

/** Of the cache of states: each place counts one. */
const sizeOf = ({ held }: QuotaState): number => held + 1;

/** The places of a month. */
export const loadPlaces = (store: DomainStore, id: string): Promise<Month> => store.loadState(quota, id, sizeOf);

/** Commands of one append: their events stay far below the largest append. */
const maxAtOnce = 25;
/** Appends that other processes may win before the commands give up. */
const maxRounds = 50;

const queues = new WeakMap<DomainStore, Map<string, Asked[]>>();

/** @throws Rejection `quota_exceeded` */
export const writeQuota = (
  store: DomainStore,
  id: string,
  command: QuotaCommand,
  context: CommandContext,
): Promise<void> =>
  new Promise((done, failed) => {
    const open = queues.get(store) ?? new Map<string, Asked[]>();
    queues.set(store, open);
    const asked = { command, context, done, failed };
    const queue = open.get(id);
    if (queue !== undefined) {
      queue.push(asked);
      return;
    }
    const fresh = [asked];
    open.set(id, fresh);
    void work(store, id, fresh, () => open.delete(id));
  });

/** @param close called in the turn in which the queue is found empty, so that no command joins a queue without a worker */
const work = async (store: DomainStore, id: string, queue: Asked[], close: () => void): Promise<void> => {
  while (queue.length > 0) {
    const some = queue.splice(0, maxAtOnce);
    try {
      const refused = await append(store, id, some);
      for (const one of some) {
        const refusal = refused.get(one);
        if (refusal === undefined) one.done();
        else one.failed(refusal);
      }
    } catch (error) {
      for (const one of some) one.failed(error);
    }
  }
  close();
};

/** @returns why each refused command was */
const append = async (
  store: DomainStore,
  id: string,
  some: readonly Asked[],
): Promise<ReadonlyMap<Asked, Rejection>> => {
  // What this process wrote last is mostly the newest. Where another one was first the append conflicts; what appends
  // nothing is decided on what the store has now.
  let known = store.knownState(quota, id);
  for (let round = 1; round <= maxRounds; round += 1) {
    const loaded = known ?? (await loadPlaces(store, id));
    const { events, refused } = decideAll(loaded, some);
    const isBelieved = known !== null;
    known = null;
    if (isBelieved && (refused.size > 0 || events.length === 0)) continue;
    if (events.length === 0) return refused;
    try {
      const by = contextOf(some);
      const appended = await store.append(`quota-${id}`, loaded.revision, events, by, partitionKeyOf('quota', id));
      store.noteState(quota, id, appended, sizeOf);
      return refused;
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  }
  throw new Unavailable('Other processes change the places of this month all the time.');
};

const decideAll = ({ state: from, revision }: Month, some: readonly Asked[]) => {
  const events: QuotaEvent[] = [];
  const refused = new Map<Asked, Rejection>();
  let state = from;
  for (const one of some) {
    try {
      for (const event of quota.decide(one.command, state)) {
        events.push(event);
        const fact = { eventId: '', revision: revision + events.length, commandId: '', occurredAt: one.context.now };
        state = quota.evolve(state, event, fact);
      }
    } catch (error) {
      if (!(error instanceof Rejection)) throw error;
      refused.set(one, error);
    }
  }
  return { events, refused };
};

/** The events of several callers name the service; the events of their posts name the callers. */
const contextOf = (some: readonly Asked[]): CommandContext => {
  const [first] = some as readonly [Asked, ...Asked[]];
  const { workspaceId, correlationId, causationId, now, aheadMs } = first.context;
  const patience = some.map(({ context }) => context.giveUpAt ?? Number.POSITIVE_INFINITY);
  const giveUpAt = Math.max(...patience);
  return {
    ...serviceContext('quota', { workspaceId, correlationId, causationId }, Date.parse(now), aheadMs),
    ...(giveUpAt === Number.POSITIVE_INFINITY ? {} : { giveUpAt }),
  };
};
