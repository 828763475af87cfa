import { busy } from './turns.ts';

/**
 * Bodies are held in memory from their first byte to the answer, and a caller may take a minute to send one, or say that
 * it sends more than it does: without a bound, a few hundred connections of one key hold a few hundred MiB.
 */

const mebibyte = 1024 * 1024;

export interface BodyShares {
  /** Bytes that one workspace may hold, unless it is one single body: no body is refused for its size here. */
  readonly each: number;
  readonly total: number;
  /**
   * What one workspace may hold even when the total is reached: workspaces that fill the total do not block a small
   * body of another.
   */
  readonly least: number;
}

const shares: BodyShares = { each: 16 * mebibyte, total: 128 * mebibyte, least: 64 * 1024 };

/** The bytes of one body. */
export interface HeldBytes {
  /** @throws Refusal `unavailable` when they are too many beside those that are held already. */
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

  /** Bytes that are held now. */
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
      throw busy('Too many large bodies are under way here. Wait until some are answered.');
    }
  }
}
