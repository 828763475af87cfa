import { Shares, type Taker } from './shares.ts';

/** Waiting work of one workspace on one network, oldest first. */
interface Line {
  readonly taker: Taker;
  readonly starts: (() => void)[];
}

/**
 * Runs one piece of work per slot; `Shares` decides who may have a slot. A freed slot goes to the workspace with the
 * fewest slots, and among equals to the one served longest ago.
 */
export class SlotQueue {
  readonly #shares: Shares;
  /** By network, then workspace. A served workspace moves to the end. */
  readonly #lines = new Map<string, Map<string, Line>>();
  /** Workspace → number of networks on which it waits. */
  readonly #waiting = new Map<string, number>();

  constructor(slots: number) {
    this.#shares = new Shares(slots);
  }

  async run<T>(taker: Taker, work: () => Promise<T>): Promise<T> {
    await this.#slot(taker);
    try {
      return await work();
    } finally {
      this.#shares.give(taker);
      this.#handOut();
    }
  }

  /**
   * Overtakes no waiter: the last hand-out gave waiters every slot that they may have, so this slot was not for them.
   */
  async #slot(taker: Taker): Promise<void> {
    const lines = this.#lines.get(taker.network);
    if (lines?.has(taker.workspaceId) !== true && this.#shares.admits(taker, this.#othersWait(taker))) {
      this.#shares.take(taker);
      return;
    }
    await new Promise<void>((start) => this.#enqueue(taker, start));
  }

  #othersWait({ workspaceId }: Taker): boolean {
    return this.#waiting.size > (this.#waiting.has(workspaceId) ? 1 : 0);
  }

  #enqueue(taker: Taker, start: () => void): void {
    const { network, workspaceId } = taker;
    const lines = this.#lines.get(network) ?? new Map<string, Line>();
    this.#lines.set(network, lines);
    const line = lines.get(workspaceId);
    if (line !== undefined) line.starts.push(start);
    else {
      lines.set(workspaceId, { taker, starts: [start] });
      this.#waiting.set(workspaceId, (this.#waiting.get(workspaceId) ?? 0) + 1);
    }
  }

  #handOut(): void {
    for (let line = this.#next(); line !== null; line = this.#next()) {
      this.#shares.take(line.taker);
      this.#shift(line);
    }
  }

  /** Among the lines that may have a slot, the one whose workspace holds the fewest slots. */
  #next(): Line | null {
    let best: Line | null = null;
    let fewest = Number.POSITIVE_INFINITY;
    for (const [network, lines] of this.#lines) {
      // A network at its limit has no slot for any line, so its lines are skipped without a walk.
      if (this.#shares.takenOn(network) >= this.#shares.free) continue;
      for (const line of lines.values()) {
        const held = this.#shares.takenBy(line.taker.workspaceId);
        if (held >= fewest || !this.#shares.admits(line.taker, this.#othersWait(line.taker))) continue;
        best = line;
        fewest = held;
        if (held === 0) break;
      }
    }
    return best;
  }

  #shift(line: Line): void {
    const { network, workspaceId } = line.taker;
    const start = line.starts.shift();
    const lines = this.#lines.get(network);
    lines?.delete(workspaceId);
    if (line.starts.length > 0) lines?.set(workspaceId, line);
    else {
      if (lines?.size === 0) this.#lines.delete(network);
      const left = (this.#waiting.get(workspaceId) ?? 1) - 1;
      if (left === 0) this.#waiting.delete(workspaceId);
      else this.#waiting.set(workspaceId, left);
    }
    start?.();
  }
}
