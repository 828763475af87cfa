import type { Room } from './concurrency-limiter.ts';
import { askedLane, type Claimed, type ClaimRequest, type Due } from './statements.ts';

/**
 * Which endpoints have something due, as far as the last look and the claims since tell, and what to claim of it: of
 * each as many as it has room for, in turn.
 */

export interface ClaimRequests {
  readonly claimRequests: readonly ClaimRequest[];
  /** Endpoints of which one delivery may pass a half-open breaker. */
  readonly probes: readonly string[];
}

/** What of one endpoint may be claimed now. */
export interface Claimable extends Room {
  /** Nothing stands in its way that is known here before the database knows it. */
  readonly open: boolean;
  /** So many will be claimed: it is less for others. */
  readonly take: (count: number) => void;
}

/** Rows one statement claims. */
const maxClaimed = 500;

export class Backlog {
  readonly #due = new Map<string, Due>();

  get size(): number {
    return this.#due.size;
  }

  /**
   * A look. What was found before and is not any more was sent by somebody else. Who waited for his turn waits on before
   * those who come, or come again: a look gives nobody the first turn twice while others share his limits.
   */
  found(due: readonly Due[]): void {
    const found = new Map(due.map((one) => [one.endpointId, one]));
    const waited = [...this.#due.keys()].flatMap((endpointId) => found.get(endpointId) ?? []);
    this.#due.clear();
    for (const one of [...waited, ...due]) if (!this.#due.has(one.endpointId)) this.#due.set(one.endpointId, one);
  }

  /** Do first tries wait that were there before any that come now? */
  hasFirst(endpointId: string): boolean {
    return this.#due.get(endpointId)?.first === true;
  }

  claimRequests(roomOf: (endpointId: string) => Claimable | null): ClaimRequests {
    const claimRequests: ClaimRequest[] = [];
    const probes: string[] = [];
    let left = maxClaimed;
    // One share each, so that no endpoint takes all of a statement while others wait.
    const share = Math.max(1, Math.ceil(maxClaimed / Math.max(1, this.#due.size)));
    for (const [endpointId, due] of this.#due) {
      if (left <= 0) break;
      const room = roomOf(endpointId);
      if (room === null) continue;
      if (due.probe) {
        if (room.all === 0) continue;
        claimRequests.push({ endpointId, lane: due.first ? 0 : due.later ? 1 : 2, most: 1 });
        probes.push(endpointId);
        room.take(1);
        left -= 1;
        continue;
      }
      for (const wish of claimRequestsOf(due, room, Math.min(room.all, share, left))) {
        claimRequests.push(wish);
        room.take(wish.most);
        left -= wish.most;
      }
    }
    return { claimRequests, probes };
  }

  /** A lane that gave less than was asked for has nothing more that is due. Who had his turn is behind the others. */
  claimed(claimRequests: readonly ClaimRequest[], claimed: readonly Claimed[]): void {
    const counts = new Map<string, number>();
    const count = (key: string): void => void counts.set(key, (counts.get(key) ?? 0) + 1);
    for (const one of claimed) {
      count(`${one.endpointId} ${one.queueLane}`);
      if (one.forced) count(`${one.endpointId} ${askedLane}`);
    }
    for (const { endpointId, lane, most } of claimRequests) {
      const due = this.#due.get(endpointId);
      if (due === undefined) continue;
      this.#due.delete(endpointId);
      // What comes after a probe the next look says.
      if (due.probe) continue;
      const more = (counts.get(`${endpointId} ${lane}`) ?? 0) >= most;
      const left = {
        ...due,
        first: lane === 0 ? more : due.first,
        later: lane === 1 ? more : due.later,
        replay: lane === 2 ? more : due.replay,
        asked: lane === askedLane ? more : due.asked,
      };
      if (left.first || left.later || left.replay || left.asked) this.#due.set(endpointId, left);
    }
  }
}

/**
 * First tries before retries before replays; but while something else waits one in eight is not for first tries. Of an
 * endpoint that did not take what it was sent last, one that a person asked for comes before all: a test would wait behind
 * everything that it is to show to be mended.
 */
const claimRequestsOf = (due: Due, { later, open, proven }: Claimable, most: number): readonly ClaimRequest[] => {
  const { endpointId } = due;
  const rest = Math.min(later, due.first ? Math.max(1, Math.floor(most / 8)) : most);
  const both = due.later && due.replay;
  const counts: readonly (readonly [lane: number, count: number])[] = [
    [askedLane, due.asked ? Math.min(later, most) : open && due.first && !proven ? Math.min(1, most) : 0],
    [0, open && due.first ? (due.later || due.replay ? most - rest : most) : 0],
    [1, open && due.later ? (both ? Math.ceil(rest / 2) : rest) : 0],
    [2, open && due.replay ? (both ? Math.floor(rest / 2) : rest) : 0],
  ];
  return counts.flatMap(([lane, count]) => (count > 0 ? [{ endpointId, lane, most: count }] : []));
};
