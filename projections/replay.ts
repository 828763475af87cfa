import type { Pool } from 'pg';
import type { EventStore } from '#contracts/ports/event-store.ts';
import type { EventCodec } from '#runtime/codec.ts';
import { inTransaction } from '#runtime/consume.ts';
import { kindOf } from '#schemas/topics.ts';
import { Projector } from './apply.ts';
import type { Projection } from './index.ts';

/** Events of one transaction of a replay. */
const pageEvents = 1_000;

export interface ReplayOptions {
  readonly pool: Pool;
  readonly store: EventStore;
  readonly codec: EventCodec;
  readonly projection: Projection;
  /** Its tables exist and are empty. */
  readonly generation: number;
  /** Commit position of the last event to apply; null = none. */
  readonly upTo: bigint | null;
  readonly signal?: AbortSignal;
  readonly progress?: (events: number, position: bigint) => void;
}

/** Applies the store from its first event. Returns how many events the projection wanted. @throws on a bad event. */
export const replay = async (options: ReplayOptions): Promise<number> => {
  const { pool, store, codec, projection, generation, upTo, signal, progress } = options;
  const projector = new Projector(projection, generation);
  const kinds = new Set(projector.kinds);
  let applied = 0;
  for (let after: bigint | null = null; upTo !== null && (after === null || after < upTo); ) {
    signal?.throwIfAborted();
    const page = await store.readAll({ after, limit: pageEvents });
    const last = page.at(-1);
    if (last === undefined) break;
    after = last.position;
    const wanted = page.filter((one) => one.position <= upTo && kinds.has(kindOf(one.stream)));
    if (wanted.length === 0) continue;
    const events = await codec.decodeAll(wanted);
    await inTransaction(pool, async (tx) => {
      const verdict = await projector.apply(tx, events);
      if (verdict !== null) throw new Error(`replay of ${projection.name} cannot go on: ${verdict.reason}`);
      return { commit: true, result: null };
    });
    applied += events.length;
    progress?.(applied, after);
  }
  return applied;
};
