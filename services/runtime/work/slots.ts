/** Work of one workspace on one network, which holds or wants a slot. */
export interface Taker {
  readonly workspaceId: string;
  /** Default: all work is of one network. */
  readonly network?: string;
}

/**
 * Whether the taker may have one more slot, while one is free. Queues and picks rely on two laws. While slots are only
 * taken and `othersWait` stays, a share never admits a taker that it refused. If it refuses a workspace that has no slot,
 * it refuses every workspace on that network.
 * @param othersWait whether another workspace wants a slot too
 */
export type Share = (taker: Taker, slots: Slots, othersWait: boolean) => boolean;

/** A workspace has at most so many slots. */
export const atMost =
  (share: number): Share =>
  ({ workspaceId }, slots) =>
    slots.of(workspaceId) < share;

const count = (counts: Map<string, number>, key: string, change: 1 | -1): void => {
  const next = (counts.get(key) ?? 0) + change;
  if (next === 0) counts.delete(key);
  else counts.set(key, next);
};

/** Slots of one kind of work in this process, counted by workspace and network, and the shares in which they are given. */
export class Slots {
  readonly size: number;
  readonly shares: readonly Share[];
  #taken = 0;
  readonly #ofWorkspace = new Map<string, number>();
  readonly #onNetwork = new Map<string, number>();
  /** Network → workspace → slots. */
  readonly #ofBoth = new Map<string, Map<string, number>>();

  /** @param shares a pick gives slots within the first share, then those that are left within the next */
  constructor(size: number, ...shares: readonly [Share, ...Share[]]) {
    this.size = size;
    this.shares = shares;
  }

  get taken(): number {
    return this.#taken;
  }

  get free(): number {
    return this.size - this.#taken;
  }

  of(workspaceId: string): number {
    return this.#ofWorkspace.get(workspaceId) ?? 0;
  }

  on(network: string): number {
    return this.#onNetwork.get(network) ?? 0;
  }

  ofBoth({ workspaceId, network = '' }: Taker): number {
    return this.#ofBoth.get(network)?.get(workspaceId) ?? 0;
  }

  /** Each workspace with each network on which it has a slot. */
  takers(): readonly Required<Taker>[] {
    return [...this.#ofBoth].flatMap(([network, counts]) =>
      [...counts.keys()].map((workspaceId) => ({ workspaceId, network })),
    );
  }

  /** Within the first share. */
  admits(taker: Taker, othersWait: boolean): boolean {
    return this.free > 0 && this.shares[0]?.(taker, this, othersWait) === true;
  }

  take(taker: Taker): void {
    this.#change(taker, 1);
  }

  give(taker: Taker): void {
    this.#change(taker, -1);
  }

  #change({ workspaceId, network = '' }: Taker, change: 1 | -1): void {
    this.#taken += change;
    count(this.#ofWorkspace, workspaceId, change);
    count(this.#onNetwork, network, change);
    const counts = this.#ofBoth.get(network);
    if (counts === undefined) this.#ofBoth.set(network, new Map([[workspaceId, change]]));
    else {
      count(counts, workspaceId, change);
      if (counts.size === 0) this.#ofBoth.delete(network);
    }
  }
}
