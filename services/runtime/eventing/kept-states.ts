import { WorkspaceCache } from './workspace-cache.ts';

/**
 * Keeps the fold of streams that grow for as long as a month: their events alone would fill the cache of long streams,
 * and each command would then read all of them. What is kept may only be incomplete: the reader goes on behind it.
 */

export interface KeptState {
  readonly workspaceId: string;
  readonly size: number;
  readonly decider: unknown;
  readonly state: unknown;
  /** Of the last folded event. */
  readonly revision: number;
  readonly eventId: string;
}

/** Over all streams of a process, in the unit of the callers' sizes. */
const maxKept = 1_200_000;

interface Load<Result> {
  readonly running: Promise<Result>;
  next: Promise<Result> | null;
}

export class KeptStates {
  readonly #kept = new WorkspaceCache<KeptState>(maxKept);
  readonly #loads = new Map<string, Load<unknown>>();

  get(stream: string, decider: unknown): KeptState | null {
    const kept = this.#kept.get(stream);
    return kept !== undefined && kept.decider === decider ? kept : null;
  }

  keep(stream: string, state: KeptState): void {
    this.#kept.set(stream, state);
  }

  drop(stream: string): void {
    this.#kept.delete(stream);
  }

  /**
   * Runs one load of a stream at a time. Callers that come meanwhile share the one after it: it begins after they
   * asked, so it sees all that they may expect.
   */
  shared<Result>(stream: string, load: () => Promise<Result>): Promise<Result> {
    const known = this.#loads.get(stream) as Load<Result> | undefined;
    if (known === undefined) return this.#start(stream, load);
    known.next ??= known.running.then(
      () => this.#start(stream, load),
      () => this.#start(stream, load),
    );
    return known.next;
  }

  #start<Result>(stream: string, load: () => Promise<Result>): Promise<Result> {
    const running = load().finally(() => {
      if (this.#loads.get(stream) === entry && entry.next === null) this.#loads.delete(stream);
    });
    const entry: Load<Result> = { running, next: null };
    this.#loads.set(stream, entry);
    return running;
  }
}
