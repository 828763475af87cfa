import { type SearchLimits, spareRows } from '#projections/queries/due-targets.ts';
import type { Slots } from '#runtime/work/slots.ts';
import { roomOf } from './shares.ts';
import type { StaleRows } from './stale-rows.ts';

/** Limits shared by the searches for due targets and for unknown outcomes. */

/** This process's own work, which limits its searches. */
export interface SearchScope {
  /** Ids of the targets that this process works on. A search leaves them out, because their rows may be stale. */
  readonly underWay: readonly string[];
  readonly slots: Slots;
  readonly staleRows: StaleRows;
}

const modes = ['live', 'sandbox'] as const;
const platformOf = (network: string): string => network.slice(network.indexOf('/') + 1);

/** Slots open to a workspace that has none on the platform, on the network (live or sandbox) with more room. */
export const roomOn = (slots: Slots, platform: string): number =>
  Math.max(...modes.map((mode) => roomOf(slots, { workspaceId: '', network: `${mode}/${platform}` })));

export const takenOn = (slots: Slots, platform: string): number =>
  modes.reduce((sum, mode) => sum + slots.on(`${mode}/${platform}`), 0);

/** Workspace and platform → rows that a search may return: the workspace's room there plus its stale rows. */
const roomsOf = ({ slots, staleRows }: SearchScope): Readonly<Record<string, number>> => {
  const rooms: Record<string, number> = {};
  for (const taker of slots.takers()) {
    const key = taker.workspaceId + platformOf(taker.network);
    rooms[key] = Math.max(rooms[key] ?? 0, roomOf(slots, taker));
  }
  for (const [{ workspaceId, network }, rows] of staleRows.counts()) {
    const key = workspaceId + platformOf(network);
    const room = rooms[key] ?? roomOf(slots, { workspaceId, network });
    if (rows > spareRows && room > 0) rooms[key] = room + rows;
  }
  return rooms;
};

export const limitsOf = (scope: SearchScope, leaseKind: string): SearchLimits => ({
  leaseKind,
  except: scope.underWay,
  rooms: roomsOf(scope),
});
