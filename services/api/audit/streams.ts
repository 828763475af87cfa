import { setImmediate } from 'node:timers/promises';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import type { EventMetadata } from '#schemas/common.ts';
import { Refusal } from '../call/refusal.ts';

/** Streams as auditors read them: whole, within a budget of each call, and who stored an event with what. */

/** Events that one call reads, of all streams together: some seconds of work, in many turns of the event loop. */
const maxEvents = 100_000;
/** Those of several streams are in memory together. */
export const maxEventsInMemory = 20_000;
const pageSize = 1_000;

/** What is left of the events that one call may read. */
export class ReadBudget {
  readonly #all: number;
  #left: number;

  constructor(events = maxEvents) {
    this.#all = events;
    this.#left = events;
  }

  /** @throws Refusal `history_too_long` */
  take(events: number): void {
    this.#left -= events;
    if (this.#left >= 0) return;
    throw new Refusal('history_too_long', `One call reads at most ${this.#all} events here, and there are more.`);
  }
}

/** All events of a stream, in their order. @throws Refusal `history_too_long` */
export async function* pagesOf(
  store: DomainStore,
  stream: string,
  budget: ReadBudget,
): AsyncGenerator<readonly DecodedEvent[]> {
  let from = 0;
  for (;;) {
    const page = await store.readStream(stream, from + pageSize - 1, from);
    budget.take(page.length);
    yield page;
    const last = page.at(-1);
    if (last === undefined || page.length < pageSize) return;
    from = last.revision + 1;
    await setImmediate();
  }
}

export const readWithin = async (
  store: DomainStore,
  stream: string,
  budget: ReadBudget,
): Promise<readonly DecodedEvent[]> => {
  const events: DecodedEvent[] = [];
  for await (const page of pagesOf(store, stream, budget)) events.push(...page);
  return events;
};

const credentialOf = ({ actor }: EventMetadata) => {
  if (actor.type === 'apikey') return { type: 'api_key' as const, id: actor.id };
  return actor.grantId === undefined ? null : { type: 'grant' as const, id: actor.grantId };
};

/** Who stored an event, with what, in which request. */
export const originOf = ({ metadata }: Pick<DecodedEvent, 'metadata'>) => ({
  actor: { type: metadata.actor.type, id: metadata.actor.id },
  credential: credentialOf(metadata),
  correlationId: metadata.$correlationId,
  causationId: metadata.$causationId,
  commandId: metadata.commandId,
});

/** Why, as the event says it: its reason, or that of the change that it asks for, or what an approver wrote. */
export const reasonOf = ({ data }: Pick<DecodedEvent, 'data'>): string | null => {
  const { reason, change, comment } = data as {
    readonly reason?: unknown;
    readonly change?: { readonly reason?: unknown };
    readonly comment?: unknown;
  };
  const said = [reason, change?.reason, comment].find((one) => typeof one === 'string');
  return said === undefined ? null : String(said);
};
