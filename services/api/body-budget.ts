import { busy } from './turns.ts';

/**
 * The api holds a body in memory from its first byte to the answer. A caller may take a minute to send a body, or
 * announce more than it sends. Without a bound, a few hundred connections of one key hold a few hundred MiB.
 */

const mebibyte = 1024 * 1024;

export interface BodyShares {
  /** Bytes that one workspace may hold. A single body may be larger: this budget refuses no body for its own size. */
  readonly each: number;
  readonly total: number;
  /**
   * Bytes that one workspace may hold even when the total is reached, so that workspaces which fill the total do not
   * block a small body of another.
   */
  readonly least: number;
}

const shares: BodyShares = { each: 16 * mebibyte, total: 128 * mebibyte, least: 64 * 1024 };

/** The bytes of one body. */
export interface HeldBytes {
  /** @throws Refusal `unavailable` when these bytes and those already held exceed the budget. */
  take(bytes: number): void;
  /** Gives the bytes back, however the call ended. */
  release(): void;
}

export class BodyBudget {
  readonly #shares: BodyShares;
  readonly #owners = new Map<string, number>();
  #all = 0;

  constructor(most: Partial<BodyShares> = {}) {
    this.#shares = { ...shares, ...most };
  }

  /** Bytes that all bodies hold now. */
  get held(): number {
    return this.#all;
  }

  hold(workspaceId: string): HeldBytes {
    let own = 0;
    const add = (bytes: number): void => {
      own += bytes;
      this.#all += bytes;
      const held = this.#of(workspaceId) + bytes;
      if (held === 0) this.#owners.delete(workspaceId);
      else this.#owners.set(workspaceId, held);
    };
    return {
      take: (bytes) => {
        this.#allow(workspaceId, bytes, own);
        add(bytes);
      },
      release: () => add(-own),
    };
  }

  #of(workspaceId: string): number {
    return this.#owners.get(workspaceId) ?? 0;
  }

  #allow(workspaceId: string, bytes: number, own: number): void {
    const { each, total, least } = this.#shares;
    const held = this.#of(workspaceId);
    if (held + bytes > each && held > own) {
      throw busy(
        `Bodies of this workspace that are not answered yet have ${each} bytes. Wait until some are answered.`,
      );
    }
    if (this.#all + bytes > total && held + bytes > least) {
      throw busy('The service holds too many large bodies. Wait until some are answered.');
    }
  }
}
