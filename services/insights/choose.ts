import type { Platform } from '#schemas/common.ts';
import type { DueAccount } from './due.ts';

/**
 * Who gets a free place. Pure. A network that does not answer holds its places until its calls are given up, and a workspace
 * may have more accounts due than all others together: neither may have the places that others wait for.
 */

export type Holder = Pick<DueAccount, 'workspaceId' | 'platform'>;

/** Places under way, by workspace and by network. */
class RunningCounts {
  readonly #counts = new Map<string, number>();
  total = 0;

  constructor(holders: Iterable<Holder>) {
    for (const one of holders) this.add(one);
  }

  add({ workspaceId, platform }: Holder): void {
    this.total += 1;
    for (const key of [workspaceId, platform]) this.#counts.set(key, this.of(key) + 1);
  }

  of(key: string): number {
    return this.#counts.get(key) ?? 0;
  }
}

/** Of all places, so many are only for networks within their share, and never for one workspace that has all the others. */
const reserveOf = (places: number): number => (places < 2 ? 0 : Math.max(1, Math.floor(places / 8)));

/** A network has at most half of what the others leave it: so however many of them hang, a further one finds a place. */
const networkMay = (platform: Platform, held: RunningCounts, places: number): boolean =>
  held.of(platform) < Math.ceil((places - held.total + held.of(platform)) / 2);

/** Networks of which one more account could be asked now. */
export const openTo = (all: readonly Platform[], underWay: Iterable<Holder>, places: number): readonly Platform[] => {
  const held = new RunningCounts(underWay);
  if (held.total >= places) return [];
  return held.total < places - reserveOf(places) ? all : all.filter((one) => networkMay(one, held, places));
};

/**
 * Workspaces with the fewest accounts under way go first, then such networks, then who stands first in `due`. Places that
 * nobody within his shares waits for go to those beyond them, but for the reserve.
 */
export const choose = (
  due: readonly DueAccount[],
  underWay: Iterable<Holder>,
  places: number,
): readonly DueAccount[] => {
  const held = new RunningCounts(underWay);
  const waiting = new Set(due);
  const chosen: DueAccount[] = [];
  const most = places - reserveOf(places);
  const network = ({ platform }: DueAccount): boolean => networkMay(platform, held, places);
  const shares: readonly ((one: DueAccount) => boolean)[] = [
    (one) => network(one) && held.of(one.workspaceId) < most,
    () => held.total < most,
  ];
  const first = (among: (one: DueAccount) => boolean): DueAccount | null => {
    let best: DueAccount | null = null;
    for (const one of waiting) {
      if (!among(one)) continue;
      const less = best === null ? -1 : held.of(one.workspaceId) - held.of(best.workspaceId);
      if (less < 0 || (less === 0 && best !== null && held.of(one.platform) < held.of(best.platform))) best = one;
    }
    return best;
  };
  while (held.total < places) {
    let one: DueAccount | null = null;
    for (const share of shares) one ??= first(share);
    if (one === null) break;
    waiting.delete(one);
    held.add(one);
    chosen.push(one);
  }
  return chosen;
};
