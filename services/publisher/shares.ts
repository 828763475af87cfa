/**
 * Shares slots between workspaces and networks, so that no workspace delays another. A slot of hanging work cannot be
 * taken back, so the rule leaves slots free before another workspace asks for one.
 */

/** Work of one workspace on one network, which holds or wants a slot. */
export interface Taker {
  readonly workspaceId: string;
  /** `live/<platform>` or `sandbox/<platform>`; the two are different networks. */
  readonly network: string;
}

const keyOf = ({ workspaceId, network }: Taker): string => `${workspaceId} ${network}`;

const count = (counts: Map<string, number>, key: string, change: 1 | -1): void => {
  const next = (counts.get(key) ?? 0) + change;
  if (next === 0) counts.delete(key);
  else counts.set(key, next);
};

/**
 * Counts the slots of each workspace and network, and decides whether a workspace may have one more.
 *
 * A workspace may have another slot on a network while the network's taken slots plus twice the workspace's own slots
 * there are fewer than the free slots. So a network never holds more than half of all slots, and one workspace on one
 * network never more than a quarter, even if no other work waits. The more networks are busy, the fewer slots each
 * gets, so that some slots stay free for the next one. While other workspaces wait, a workspace holds at most a quarter
 * over all networks.
 */
export class Shares {
  readonly slots: number;
  #taken = 0;
  readonly #ofNetwork = new Map<string, number>();
  readonly #ofWorkspace = new Map<string, number>();
  readonly #ofBoth = new Map<string, number>();

  constructor(slots: number) {
    this.slots = slots;
  }

  get free(): number {
    return this.slots - this.#taken;
  }

  takenBy(workspaceId: string): number {
    return this.#ofWorkspace.get(workspaceId) ?? 0;
  }

  takenOn(network: string): number {
    return this.#ofNetwork.get(network) ?? 0;
  }

  /** Each pair of workspace and network that holds a slot. */
  takers(): readonly Taker[] {
    return [...this.#ofBoth.keys()].map((key) => {
      const [workspaceId = '', network = ''] = key.split(' ');
      return { workspaceId, network };
    });
  }

  /** @param othersWait whether another workspace wants a slot too */
  admits(taker: Taker, othersWait: boolean): boolean {
    if (this.roomOf(taker) === 0) return false;
    return !othersWait || this.takenBy(taker.workspaceId) < Math.max(1, Math.floor(this.slots / 4));
  }

  /** Slots that the taker could take one after the other while no other taker takes any. */
  roomOf(taker: Taker): number {
    const own = this.#ofBoth.get(keyOf(taker)) ?? 0;
    // Each slot adds 1 to the network's slots, adds 2 to twice the workspace's own, and removes 1 from the free slots:
    // 4.
    return Math.max(0, Math.ceil((this.free - this.takenOn(taker.network) - 2 * own) / 4));
  }

  take(taker: Taker): void {
    this.#change(taker, 1);
  }

  give(taker: Taker): void {
    this.#change(taker, -1);
  }

  #change(taker: Taker, change: 1 | -1): void {
    this.#taken += change;
    count(this.#ofNetwork, taker.network, change);
    count(this.#ofWorkspace, taker.workspaceId, change);
    count(this.#ofBoth, keyOf(taker), change);
  }
}

/**
 * Takes a slot for each candidate that may have one and returns these candidates. Workspaces with the fewest slots go
 * first.
 * @param wanting candidates; those of one workspace are in its order of preference
 */
export const takeFairly = <T extends Taker>(shares: Shares, wanting: readonly T[]): readonly T[] => {
  const before = new Map<string, number>();
  const ranked = wanting.map((one) => {
    const rank = before.get(one.workspaceId) ?? shares.takenBy(one.workspaceId);
    before.set(one.workspaceId, rank + 1);
    return { one, rank };
  });
  // The sort is stable: among equal ranks the earlier candidate goes first.
  ranked.sort((a, b) => a.rank - b.rank);
  const taken: T[] = [];
  const take = (left: readonly T[], othersWait: boolean): readonly T[] =>
    left.filter((one) => {
      if (!shares.admits(one, othersWait)) return true;
      shares.take(one);
      taken.push(one);
      return false;
    });
  const left = take(
    ranked.map(({ one }) => one),
    before.size > 1,
  );
  if (new Set(left.map(({ workspaceId }) => workspaceId)).size === 1) take(left, false);
  return taken;
};

/** A target with work to do, as the read model shows it. Its stream decides; the row only says where to look. */
export interface DueRow extends Taker {
  readonly id: string;
  readonly revision: number;
}
