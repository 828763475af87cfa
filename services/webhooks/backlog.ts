import type { Room } from './concurrency-limiter.ts';
import { askedLane, type Claimed, type ClaimRequest, type Due } from './statements.ts';

/**
 * Which endpoints have something due according to the last look and the claims since, and what to claim next: for each
 * endpoint in turn as much as it has room for.
 */

export interface ClaimRequests {
  readonly claimRequests: readonly ClaimRequest[];
  /** Endpoints of which one delivery may pass a half-open breaker. */
  readonly probes: readonly string[];
}

/** What may be claimed for one endpoint now. */
export interface Claimable extends Room {
  /** No answer that is not recorded yet forbids it. */
  readonly open: boolean;
  /** So many will be claimed, and others have less room. */
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
   * Takes the result of a look. An endpoint that is no longer found was served by another process. Endpoints that wait for
   * their turn stay before new ones, so a look never gives an endpoint the first turn twice while others share its limits.
   */
  found(due: readonly Due[]): void {
    const found = new Map(due.map((one) => [one.endpointId, one]));
    const waited = [...this.#due.keys()].flatMap((endpointId) => found.get(endpointId) ?? []);
    this.#due.clear();
    for (const one of [...waited, ...due]) if (!this.#due.has(one.endpointId)) this.#due.set(one.endpointId, one);
  }

  /** Whether first tries wait that came before those of now. */
  hasFirst(endpointId: string): boolean {
    return this.#due.get(endpointId)?.first === true;
  }

  claimRequests(roomOf: (endpointId: string) => Claimable | null): ClaimRequests {
    const claimRequests: ClaimRequest[] = [];
    const probes: string[] = [];
    let left = maxClaimed;
    // A share for each, so that no endpoint takes a whole statement while others wait.
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
      for (const request of claimRequestsOf(due, room, Math.min(room.all, share, left))) {
        claimRequests.push(request);
        room.take(request.most);
        left -= request.most;
      }
    }
    return { claimRequests, probes };
  }

  /** A lane that gave less than was asked for has nothing more due. An endpoint that had its turn goes behind the others. */
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
      // The next look says what follows a probe.
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
 * First tries go before retries and retries before replays, but while others wait, one in eight is not for first tries.
 * To an endpoint whose last request failed, a delivery that a person asked for goes first: otherwise a test would wait
 * behind the backlog that it is to show to be mended.
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
