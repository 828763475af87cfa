import type { DecodedEvent } from './codec.ts';
import { WorkspaceCache } from './workspace-cache.ts';

/**
 * Caches long streams, decoded and folded, so that the next command on one reads only newer events: otherwise every
 * change of an 8 MiB draft would read and decode all of it, and hold up all tenants. Stored events never change, so a
 * cached stream can only be incomplete; the reader reads on from its last event. Streams with personal members are
 * never cached: the very next read must see an erasure.
 */

interface CachedStream {
  readonly workspaceId: string;
  /** Stored bytes. */
  readonly size: number;
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
  readonly #cached = new WorkspaceCache<CachedStream>(maxCachedBytes);

  /** All cached events, from the first one on; null when the stream is not cached. */
  known(stream: string): readonly DecodedEvent[] | null {
    return this.#cached.get(stream)?.events ?? null;
  }

  /** Caches a long stream; `events` are all of it, as just read. */
  keep(stream: string, events: readonly DecodedEvent[]): void {
    const before = this.#cached.peek(stream);
    // Of two concurrent readers the one with more events wins.
    if (before !== undefined && before.events.length >= events.length) return;
    const bytes = bytesOf(events);
    const workspaceId = events[0]?.metadata.workspaceId;
    this.drop(stream);
    if (workspaceId === undefined || bytes > maxCachedStreamBytes) return;
    this.#cached.set(stream, { workspaceId, size: bytes, events, folded: before?.folded ?? null });
  }

  drop(stream: string): void {
    this.#cached.delete(stream);
  }

  /** The last fold by this decider over these events or the first of them; null when there is none. */
  folded(stream: string, decider: unknown): { readonly state: unknown; readonly count: number } | null {
    const folded = this.#cached.peek(stream)?.folded ?? null;
    return folded?.decider === decider ? folded : null;
  }

  /** Does nothing unless these are exactly the cached events. */
  keepFold(stream: string, events: readonly DecodedEvent[], decider: unknown, state: unknown): void {
    const cached = this.#cached.peek(stream);
    if (cached?.events === events) cached.folded = { decider, state, count: events.length };
  }
}
