import type { EventStore } from '#contracts/ports/event-store.ts';
import type { EventCodec } from '#runtime/eventing/codec.ts';
import { instantOf } from '#schemas/common.ts';
import { utcZones, type ZoneChange, type Zones } from './calendar.ts';

/** The zones of a workspace, from its stream: no read model keeps the former ones. */

export type ZonesOf = (workspaceId: string) => Promise<Zones>;

const types: ReadonlySet<string> = new Set(['WorkspaceCreated', 'WorkspaceProfileChanged']);

interface Known {
  /** The next revision to read. */
  readonly next: bigint;
  readonly zones: Zones | null;
}

/** Workspaces in the cache; for the others the whole stream is read. */
const maxKnown = 10_000;

const withChange = (zones: Zones | null, change: ZoneChange): Zones => {
  if (zones === null) return [{ ...change, since: Number.NEGATIVE_INFINITY }];
  const last = zones.at(-1) as ZoneChange;
  if (last.timezone === change.timezone) return zones;
  // A clock set back between two changes must not put the later change before the earlier.
  return [...zones, { ...change, since: Math.max(change.since, last.since + 1) }];
};

/** Each call reads the events since the previous call. A workspace without a stream is in UTC. */
export const zonesFrom = (store: Pick<EventStore, 'read'>, codec: EventCodec): ZonesOf => {
  const all = new Map<string, Known>();
  return async (workspaceId) => {
    const before = all.get(workspaceId) ?? { next: 0n, zones: null };
    const events = await store.read(`workspace-${workspaceId}`, { from: before.next });
    let { next, zones } = before;
    for (const event of events) {
      next = event.revision + 1n;
      if (!types.has(event.type)) continue;
      const { data, metadata } = await codec.decode(event);
      zones = withChange(zones, { since: Date.parse(instantOf(metadata)), timezone: String(data.timezone) });
    }
    if (all.size >= maxKnown) all.clear();
    all.set(workspaceId, { next, zones });
    return zones ?? utcZones;
  };
};
