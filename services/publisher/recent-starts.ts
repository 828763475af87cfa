import type { Slot } from '#domain/cadence.ts';
import type { CadenceSource } from '#services/workflows/cadence/check.ts';

/** Milliseconds for which a start is remembered: the rows show it by then. */
const unreadMs = 30_000;

/**
 * The starts of this process that rows may not show yet: so two targets of one account that are due at the same instant
 * do not both find it free. Two processes may; then the network has the last word.
 */
export class RecentStarts {
  readonly #byAccount = new Map<string, Slot[]>();

  /** @param now milliseconds since the epoch */
  of(accountId: string, now: number): readonly Slot[] {
    const fresh = (this.#byAccount.get(accountId) ?? []).filter(({ at }) => at > now - unreadMs);
    if (fresh.length === 0) this.#byAccount.delete(accountId);
    else this.#byAccount.set(accountId, fresh);
    return fresh;
  }

  note(accountId: string, slot: Slot): void {
    this.#byAccount.set(accountId, [...this.of(accountId, slot.at), slot]);
  }
}

/** Where the publisher learns of the limits of accounts and of their other targets. */
export interface PublishingCadence {
  readonly source: (workspaceId: string) => Promise<CadenceSource>;
  readonly starts: RecentStarts;
}
