import type { Slots, Taker } from './slots.ts';

export interface QueueOptions {
  /** The queue alone takes and gives them. */
  readonly slots: Slots;
  /** The smallest goes first, among equals the line served longest ago. Not negative. Default: all lines are equal. */
  readonly rank?: (taker: Taker, slots: Slots) => number;
  /** Default: any number of takers wait, and without end. */
  readonly limits?: QueueLimits;
}

export interface QueueLimits {
  /** Takers that may wait in one line. */
  readonly waiting: number;
  /** The longest wait, milliseconds. */
  readonly waitMs: number;
  /** `full`: too many wait already; `late`: this taker has waited too long. */
  readonly refusal: (reason: 'full' | 'late') => Error;
}

/** Waiters of one workspace on one network, oldest first. */
interface Line {
  readonly taker: Taker;
  readonly starts: (() => void)[];
}

interface Network {
  /** A workspace without a slot: a network that has none for it has none for any line, and no line is looked at. */
  readonly newcomer: Taker;
  /** By workspace. A served one moves to the end. */
  readonly lines: Map<string, Line>;
}

const equal = (): number => 0;

/** Runs one piece of work per slot. The work of one workspace on one network begins in its order. */
export class FairQueue {
  readonly #slots: Slots;
  readonly #rank: (taker: Taker, slots: Slots) => number;
  readonly #limits: QueueLimits | undefined;
  /** By name. A served one moves to the end. */
  readonly #networks = new Map<string, Network>();
  /** Workspace → number of networks on which it waits. */
  readonly #waiting = new Map<string, number>();

  constructor({ slots, rank = equal, limits }: QueueOptions) {
    this.#slots = slots;
    this.#rank = rank;
    this.#limits = limits;
  }

  /** @throws the refusal of the limits: the work has not begun and takes no slot */
  async run<T>(taker: Taker, work: () => Promise<T>): Promise<T> {
    // Overtakes no waiter: waiters have every slot that they may have, so this one is not for them.
    if (this.#lineOf(taker) === undefined && this.#admits(taker)) this.#slots.take(taker);
    else await this.#wait(taker);
    try {
      return await work();
    } finally {
      this.#slots.give(taker);
      this.#handOut();
    }
  }

  #admits(taker: Taker): boolean {
    const othersWait = this.#waiting.size > (this.#waiting.has(taker.workspaceId) ? 1 : 0);
    return this.#slots.admits(taker, othersWait);
  }

  #lineOf({ workspaceId, network = '' }: Taker): Line | undefined {
    return this.#networks.get(network)?.lines.get(workspaceId);
  }

  #wait(taker: Taker): Promise<void> {
    const limits = this.#limits;
    const known = this.#lineOf(taker);
    if (limits !== undefined && (known?.starts.length ?? 0) >= limits.waiting) throw limits.refusal('full');
    const line = known ?? this.#addLine(taker);
    return new Promise((resolve, reject) => {
      if (limits === undefined) {
        line.starts.push(resolve);
        return;
      }
      const start = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        line.starts.splice(line.starts.indexOf(start), 1);
        if (line.starts.length === 0) this.#remove(line);
        reject(limits.refusal('late'));
        // A share may give more to a workspace that waits alone now.
        this.#handOut();
      }, limits.waitMs);
      line.starts.push(start);
    });
  }

  #addLine(taker: Taker): Line {
    const { workspaceId, network: name = '' } = taker;
    const network = this.#networks.get(name) ?? { newcomer: { workspaceId: '', network: name }, lines: new Map() };
    const line: Line = { taker, starts: [] };
    this.#networks.set(name, network);
    network.lines.set(workspaceId, line);
    this.#waiting.set(workspaceId, (this.#waiting.get(workspaceId) ?? 0) + 1);
    return line;
  }

  #handOut(): void {
    for (let line = this.#next(); line !== null; line = this.#next()) {
      this.#slots.take(line.taker);
      const start = line.starts.shift();
      this.#served(line);
      start?.();
    }
  }

  #next(): Line | null {
    let best: Line | null = null;
    let least = Number.POSITIVE_INFINITY;
    const severalWait = this.#waiting.size > 1;
    for (const { newcomer, lines } of this.#networks.values()) {
      if (!this.#slots.admits(newcomer, severalWait)) continue;
      for (const line of lines.values()) {
        const rank = this.#rank(line.taker, this.#slots);
        if (rank >= least || !this.#admits(line.taker)) continue;
        best = line;
        least = rank;
        if (rank === 0) return best;
      }
    }
    return best;
  }

  /** The line, unless it is empty now, goes behind the others of its network, and the network behind the others. */
  #served(line: Line): void {
    const { workspaceId, network: name = '' } = line.taker;
    const network = this.#networks.get(name);
    if (network === undefined) return;
    network.lines.delete(workspaceId);
    if (line.starts.length > 0) network.lines.set(workspaceId, line);
    this.#networks.delete(name);
    if (network.lines.size > 0) this.#networks.set(name, network);
    if (line.starts.length === 0) this.#left(workspaceId);
  }

  #remove({ taker: { workspaceId, network = '' } }: Line): void {
    const lines = this.#networks.get(network)?.lines;
    lines?.delete(workspaceId);
    if (lines?.size === 0) this.#networks.delete(network);
    this.#left(workspaceId);
  }

  #left(workspaceId: string): void {
    const left = (this.#waiting.get(workspaceId) ?? 1) - 1;
    if (left === 0) this.#waiting.delete(workspaceId);
    else this.#waiting.set(workspaceId, left);
  }
}
