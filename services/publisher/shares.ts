/**
 * How a number of slots is shared out, so that nobody's work keeps another's from its time. Work that hangs cannot be
 * taken back, so the rule must leave room before anybody else has asked for it.
 */

/** What holds a slot, or wants one: work of one workspace on one network. */
export interface Taker {
  readonly workspaceId: string;
  /** A network of the sandbox is another than the live one of its name. */
  readonly network: string;
}

const keyOf = ({ workspaceId, network }: Taker): string => `${workspaceId} ${network}`;

const count = (counts: Map<string, number>, key: string, change: 1 | -1): void => {
  const next = (counts.get(key) ?? 0) + change;
  if (next === 0) counts.delete(key);
  else counts.set(key, next);
};

/**
 * Counts who holds how many slots and says who may have one more.
 *
 * A workspace may have another slot on a network while the network's slots, and twice the workspace's own among them, are
 * fewer than those that are free. So a network never holds more than half and one workspace on one network never more than
 * a quarter, whether anybody waits or not; and as more of them are busy each gets less, so that some stay free for whoever
 * comes next. Where others wait, a workspace has at most a quarter over all networks too.
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

  /** Workspaces on networks that hold a slot. */
  takers(): readonly Taker[] {
    return [...this.#ofBoth.keys()].map((key) => {
      const [workspaceId = '', network = ''] = key.split(' ');
      return { workspaceId, network };
    });
  }

  /** @param othersWait whether a slot is wanted by another workspace as well */
  admits(taker: Taker, othersWait: boolean): boolean {
    if (this.roomOf(taker) === 0) return false;
    return !othersWait || this.takenBy(taker.workspaceId) < Math.max(1, Math.floor(this.slots / 4));
  }

  /** How many more it could be given, one after the other, if nobody else were given any. */
  roomOf(taker: Taker): number {
    const own = this.#ofBoth.get(keyOf(taker)) ?? 0;
    // Each slot given adds one to the network's, two to twice the workspace's own, and takes one from the free.
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
 * Takes a slot for as many of these as may have one, workspaces that hold fewest first, and answers them in that order.
 * @param wanting in the order in which each workspace wants them
 */
export const takeFairly = <T extends Taker>(shares: Shares, wanting: readonly T[]): readonly T[] => {
  const before = new Map<string, number>();
  const ranked = wanting.map((one) => {
    const rank = before.get(one.workspaceId) ?? shares.takenBy(one.workspaceId);
    before.set(one.workspaceId, rank + 1);
    return { one, rank };
  });
  // Sorting is stable: of equal ranks the earlier goes first.
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
