import type { Room } from './concurrency-limiter.ts';
import { askedLane, type Claimed, type ClaimRequest, type Due } from './statements.ts';

/**
 * The endpoints with due deliveries, from the last search and the claims since, and the next claims: for each endpoint
 * in turn as many deliveries as it has room for.
 */

export interface ClaimRequests {
  readonly claimRequests: readonly ClaimRequest[];
  /** Endpoints of which one delivery may pass a half-open breaker. */
  readonly probes: readonly string[];
}

/** The room of one endpoint for claims now. */
export interface Claimable extends Room {
  /** Whether deliveries that no person requested may be sent. */
  readonly open: boolean;
  /** Counts deliveries that will be claimed: the other endpoints then have less room. */
  readonly take: (count: number) => void;
}

/** Most rows that one statement claims. */
const maxClaimed = 500;

export class Backlog {
  readonly #due = new Map<string, Due>();

  get size(): number {
    return this.#due.size;
  }

  /**
   * Takes the result of a search. An endpoint that is missing in it was served by another process. Endpoints that wait
   * for their turn stay before new ones: else a search could give one endpoint the first turn again and again.
   */
  found(due: readonly Due[]): void {
    const found = new Map(due.map((one) => [one.endpointId, one]));
    const waited = [...this.#due.keys()].flatMap((endpointId) => found.get(endpointId) ?? []);
    this.#due.clear();
    for (const one of [...waited, ...due]) if (!this.#due.has(one.endpointId)) this.#due.set(one.endpointId, one);
  }

  /** Whether first tries of the endpoint already wait in the queue. */
  hasFirst(endpointId: string): boolean {
    return this.#due.get(endpointId)?.first === true;
  }

  claimRequests(roomOf: (endpointId: string) => Claimable | null): ClaimRequests {
    const claimRequests: ClaimRequest[] = [];
    const probes: string[] = [];
    let left = maxClaimed;
    // Each endpoint gets a share, so that none takes a whole statement while others wait.
    const share = Math.max(1, Math.ceil(maxClaimed / Math.max(1, this.#due.size)));
    for (const [endpointId, due] of this.#due) {
      if (left <= 0) break;
      const room = roomOf(endpointId);
      if (room === null) continue;
      if (due.probe) {
        if (room.all === 0) continue;
        claimRequests.push({ endpointId, lane: due.first ? 0 : due.later ? 1 : 2, max: 1 });
        probes.push(endpointId);
        room.take(1);
        left -= 1;
        continue;
      }
      for (const request of claimRequestsOf(due, room, Math.min(room.all, share, left))) {
        claimRequests.push(request);
        room.take(request.max);
        left -= request.max;
      }
    }
    return { claimRequests, probes };
  }

  /**
   * A lane that gave fewer rows than requested has nothing more due. An endpoint that had its turn goes behind the
   * others.
   */
  claimed(claimRequests: readonly ClaimRequest[], claimed: readonly Claimed[]): void {
    const counts = new Map<string, number>();
    const count = (key: string): void => void counts.set(key, (counts.get(key) ?? 0) + 1);
    for (const one of claimed) {
      count(`${one.endpointId} ${one.queueLane}`);
      if (one.forced) count(`${one.endpointId} ${askedLane}`);
    }
    for (const { endpointId, lane, max } of claimRequests) {
      const due = this.#due.get(endpointId);
      if (due === undefined) continue;
      this.#due.delete(endpointId);
      // After a probe only the next search knows what is due.
      if (due.probe) continue;
      const more = (counts.get(`${endpointId} ${lane}`) ?? 0) >= max;
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
 * First tries go before retries and retries before replays, but while those wait, one claim in eight is for them. To an
 * endpoint whose last request failed, a delivery that a person requested goes first: otherwise a test that shall show
 * the repair would wait behind the backlog.
 */
const claimRequestsOf = (due: Due, { later, open, proven }: Claimable, max: number): readonly ClaimRequest[] => {
  const { endpointId } = due;
  const rest = Math.min(later, due.first ? Math.max(1, Math.floor(max / 8)) : max);
  const both = due.later && due.replay;
  const counts: readonly (readonly [lane: number, count: number])[] = [
    [askedLane, due.asked ? Math.min(later, max) : open && due.first && !proven ? Math.min(1, max) : 0],
    [0, open && due.first ? (due.later || due.replay ? max - rest : max) : 0],
    [1, open && due.later ? (both ? Math.ceil(rest / 2) : rest) : 0],
    [2, open && due.replay ? (both ? Math.floor(rest / 2) : rest) : 0],
  ];
  return counts.flatMap(([lane, count]) => (count > 0 ? [{ endpointId, lane, max: count }] : []));
};
