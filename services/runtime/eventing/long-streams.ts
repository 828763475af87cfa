import type { DecodedEvent } from './codec.ts';

/**
 * Caches long streams, decoded and folded, so that the next command on one reads only newer events: otherwise every
 * change of an 8 MiB draft would read and decode all of it, and hold up all tenants. Stored events never change, so a
 * cached stream can only be incomplete; the reader reads on from its last event. Streams with personal members are
 * never cached: the very next read must see an erasure.
 */

interface CachedStream {
  readonly workspaceId: string;
  readonly bytes: number;
  readonly events: readonly DecodedEvent[];
  folded: { readonly decider: unknown; readonly state: unknown; readonly count: number } | null;
}

/** A stream shorter than both limits is read whole each time, together with others in one statement. */
const longBytes = 64 * 1_024;
const longEvents = 100;
/** Stored bytes in the cache of a process, over all streams. */
const maxCachedBytes = 32 * 1_024 * 1_024;
/** A stream above this (it grew before there was a limit) would evict all others. */
const maxCachedStreamBytes = 12 * 1_024 * 1_024;

const bytesOf = (events: readonly DecodedEvent[]): number => events.reduce((sum, { bytes }) => sum + bytes, 0);

export const isLong = (events: readonly DecodedEvent[]): boolean =>
  events.length >= longEvents || bytesOf(events) >= longBytes;

export class LongStreams {
  /** The least recently used first. */
  readonly #cached = new Map<string, CachedStream>();
  #bytes = 0;

  /** All cached events, from the first one on; null when the stream is not cached. */
  known(stream: string): readonly DecodedEvent[] | null {
    const cached = this.#cached.get(stream);
    if (cached === undefined) return null;
    this.#cached.delete(stream);
    this.#cached.set(stream, cached);
    return cached.events;
  }

  /** Caches a long stream; `events` are all of it, as just read. */
  keep(stream: string, events: readonly DecodedEvent[]): void {
    const before = this.#cached.get(stream);
    // Of two concurrent readers the one with more events wins.
    if (before !== undefined && before.events.length >= events.length) return;
    const bytes = bytesOf(events);
    const workspaceId = events[0]?.metadata.workspaceId;
    this.drop(stream);
    if (workspaceId === undefined || bytes > maxCachedStreamBytes) return;
    this.#cached.set(stream, { workspaceId, bytes, events, folded: before?.folded ?? null });
    this.#bytes += bytes;
    while (this.#bytes > maxCachedBytes) this.#evict();
  }

  drop(stream: string): void {
    this.#bytes -= this.#cached.get(stream)?.bytes ?? 0;
    this.#cached.delete(stream);
  }

  /** The last fold by this decider over these events or the first of them; null when there is none. */
  folded(stream: string, decider: unknown): { readonly state: unknown; readonly count: number } | null {
    const folded = this.#cached.get(stream)?.folded ?? null;
    return folded?.decider === decider ? folded : null;
  }

  /** Does nothing unless these are exactly the cached events. */
  keepFold(stream: string, events: readonly DecodedEvent[], decider: unknown, state: unknown): void {
    const cached = this.#cached.get(stream);
    if (cached?.events === events) cached.folded = { decider, state, count: events.length };
  }

  /** Evicts the least recently used stream of the workspace with the most bytes: one tenant never evicts the others. */
  #evict(): void {
    const bytesByWorkspace = new Map<string, number>();
    for (const { workspaceId, bytes } of this.#cached.values()) {
      bytesByWorkspace.set(workspaceId, (bytesByWorkspace.get(workspaceId) ?? 0) + bytes);
    }
    const [largest] = [...bytesByWorkspace].reduce((max, one) => (one[1] > max[1] ? one : max), ['', -1]);
    const [oldest] = [...this.#cached].find(([, { workspaceId }]) => workspaceId === largest) ?? [''];
    this.drop(oldest);
  }
}
