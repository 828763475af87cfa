import { BoundedMap } from '#contracts/base/bounded-map.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { kindOf } from '#schemas/topics.ts';
import type { StreamSubject } from '../engine/publisher.ts';
import { needsStream, subjectOf } from './types.ts';

/**
 * Folds the stream of an event up to the event: its payload shows members beyond the event itself. Recent streams are
 * cached, so that the next event of one folds on instead of reading the stream again.
 */

const maxRemembered = 4_000;

interface Remembered {
  readonly revision: number;
  readonly subject: StreamSubject;
}

export class Subjects {
  readonly #store: DomainStore;
  /** The stream whose events came longest ago is forgotten first. */
  readonly #known = new BoundedMap<string, Remembered>(maxRemembered);

  constructor(store: DomainStore) {
    this.#store = store;
  }

  /**
   * The subject at each of these events, in log order; never missing for an event that `renders` accepts.
   * @throws Unavailable when the store does not answer
   */
  async along(
    events: readonly DecodedEvent[],
    renders: (event: DecodedEvent) => boolean,
  ): Promise<ReadonlyMap<DecodedEvent, StreamSubject>> {
    const found = new Map<DecodedEvent, StreamSubject>();
    await Promise.all(
      [...Map.groupBy(events, ({ stream }) => stream)].map(([stream, own]) =>
        this.#follow(stream, own, renders, found),
      ),
    );
    return found;
  }

  async #follow(
    stream: string,
    events: readonly DecodedEvent[],
    renders: (event: DecodedEvent) => boolean,
    found: Map<DecodedEvent, StreamSubject>,
  ): Promise<void> {
    const kind = kindOf(stream);
    const { initial, evolve } = subjectOf(kind);
    const [first] = events;
    const last = events.at(-1);
    if (first === undefined || last === undefined) return;
    const gapless = events.every(({ revision }, at) => revision === first.revision + at);
    const known = first.revision === 0 ? { revision: -1, subject: initial } : this.#known.get(stream);
    let history: readonly DecodedEvent[] = events;
    let subject = known?.subject ?? initial;
    if (!gapless || known?.revision !== first.revision - 1) {
      const needed = events.some((event) => renders(event) && needsStream(kind, event.type));
      if (!needed) {
        for (const event of events) if (renders(event)) found.set(event, evolve(initial, event));
        return;
      }
      history = await this.#store.readStream(stream, last.revision);
      subject = initial;
    }
    const byId = new Map(events.map((event) => [event.id, event]));
    for (const event of history) {
      subject = evolve(subject, event);
      const requested = byId.get(event.id);
      if (requested !== undefined) found.set(requested, subject);
    }
    this.#known.set(stream, { revision: last.revision, subject });
  }
}
