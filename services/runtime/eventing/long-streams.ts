import type { DecodedEvent } from './codec.ts';

/**
 * Long streams that were read lately, decoded and folded, so that the next command on one reads only what came after:
 * otherwise every change of an 8 MiB draft would read and decode all of it, and all tenants would wait for that.
 * Stored events never change, so what is kept cannot be wrong, only incomplete; the reader reads on from its last event.
 * Streams with personal members are never kept: the very next read must see an erasure.
 */

interface Kept {
  readonly workspaceId: string;
  readonly bytes: number;
  readonly events: readonly DecodedEvent[];
  folded: { readonly decider: unknown; readonly state: unknown; readonly count: number } | null;
}

/** A stream shorter than both limits is read whole each time, together with others in one statement. */
const longBytes = 64 * 1_024;
const longEvents = 100;
/** Stored bytes kept in a process, of all streams. */
const maxKeptBytes = 32 * 1_024 * 1_024;
/** A stream above this (it grew before there was a limit) would push out all others. */
const maxKeptStreamBytes = 12 * 1_024 * 1_024;

const bytesOf = (events: readonly DecodedEvent[]): number => events.reduce((sum, { bytes }) => sum + bytes, 0);

export const isLong = (events: readonly DecodedEvent[]): boolean =>
  events.length >= longEvents || bytesOf(events) >= longBytes;

export class LongStreams {
  /** The one used longest ago first. */
  readonly #kept = new Map<string, Kept>();
  #bytes = 0;

  /** All events that are known, from the first one on; null when the stream is not kept. */
  known(stream: string): readonly DecodedEvent[] | null {
    const kept = this.#kept.get(stream);
    if (kept === undefined) return null;
    this.#kept.delete(stream);
    this.#kept.set(stream, kept);
    return kept.events;
  }

  /** Keeps a long stream; `events` are all of it, as just read. */
  keep(stream: string, events: readonly DecodedEvent[]): void {
    const before = this.#kept.get(stream);
    // Two readers at once: the one that knows more wins.
    if (before !== undefined && before.events.length >= events.length) return;
    const bytes = bytesOf(events);
    const workspaceId = events[0]?.metadata.workspaceId;
    this.drop(stream);
    if (workspaceId === undefined || bytes > maxKeptStreamBytes) return;
    this.#kept.set(stream, { workspaceId, bytes, events, folded: before?.folded ?? null });
    this.#bytes += bytes;
    while (this.#bytes > maxKeptBytes) this.#evict();
  }

  drop(stream: string): void {
    this.#bytes -= this.#kept.get(stream)?.bytes ?? 0;
    this.#kept.delete(stream);
  }

  /** The last fold of exactly this kind over these events or the first of them; null when it is to be folded anew. */
  folded(stream: string, decider: unknown): { readonly state: unknown; readonly count: number } | null {
    const folded = this.#kept.get(stream)?.folded ?? null;
    return folded?.decider === decider ? folded : null;
  }

  /** Nothing happens unless these are the very events that are kept. */
  keepFold(stream: string, events: readonly DecodedEvent[], decider: unknown, state: unknown): void {
    const kept = this.#kept.get(stream);
    if (kept?.events === events) kept.folded = { decider, state, count: events.length };
  }

  /** The stream used longest ago of the workspace that holds most: one tenant never pushes out the others. */
  #evict(): void {
    const held = new Map<string, number>();
    for (const { workspaceId, bytes } of this.#kept.values()) {
      held.set(workspaceId, (held.get(workspaceId) ?? 0) + bytes);
    }
    const [largest] = [...held].reduce((most, one) => (one[1] > most[1] ? one : most), ['', -1]);
    const [oldest] = [...this.#kept].find(([, { workspaceId }]) => workspaceId === largest) ?? [''];
    this.drop(oldest);
  }
}
