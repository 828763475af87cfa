import { decodeToken, encodeToken, mergePositions, RecentWrites } from '#runtime/eventing/consistency.ts';
import type { Positions } from '#runtime/eventing/domain-store.ts';
import type { Topic } from '#schemas/topics.ts';
import type { Deps, Readers } from './deps.ts';

/** How long a read waits until the read models have applied the caller's writes, milliseconds. */
const waitMs = 2_000;

/**
 * A caller reads its own writes: the consistency token names them, or this process remembers the recent writes of the
 * credential.
 */
export class OwnWrites {
  readonly #deps: Pick<Deps, 'secrets' | 'caughtUp'>;
  readonly #recent = new RecentWrites();
  /** Highest position per lane that these readers are known to have applied. A lower position needs no query. */
  readonly #reached: Readonly<Record<Readers, Positions>> = { 'read models': new Map(), dispatcher: new Map() };

  constructor(deps: Pick<Deps, 'secrets' | 'caughtUp'>) {
    this.#deps = deps;
  }

  /** The token of a call that stored something. */
  remember(credential: string, positions: Positions): string {
    this.#recent.remember(credential, positions);
    return encodeToken(this.#deps.secrets, positions);
  }

  /** True when the readers lack events that the caller wrote to these topics, after the wait. */
  async behind(
    credential: string,
    token: string,
    topics: readonly Topic[],
    readers: Readers = 'read models',
  ): Promise<boolean> {
    const reached = this.#reached[readers];
    const wanted: Positions = new Map();
    const brought = token === '' ? null : decodeToken(this.#deps.secrets, token);
    for (const positions of [this.#recent.of(credential), brought]) {
      if (positions !== null) mergePositions(wanted, positions);
    }
    for (const [lane, position] of wanted) {
      const elsewhere = !topics.some((topic) => lane.startsWith(`${topic}-`));
      if (elsewhere || position <= (reached.get(lane) ?? -1n)) wanted.delete(lane);
    }
    if (wanted.size === 0) return false;
    if (!(await this.#deps.caughtUp(wanted, waitMs, readers))) return true;
    mergePositions(reached, wanted);
    return false;
  }
}
