import type { Slot } from '#domain/cadence.ts';
import type { CadenceSource } from '#services/workflows/cadence/check.ts';

/** Milliseconds for which a start is remembered: the rows show it by then. */
const unreadMs = 30_000;

/** More than a process starts in that time; beyond it the oldest are forgotten, and the network has the last word. */
const maxAccounts = 10_000;

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
    const slots = [...this.of(accountId, slot.at), slot];
    this.#byAccount.delete(accountId);
    this.#byAccount.set(accountId, slots);
    this.#forget(slot.at);
  }

  /** Accounts that are remembered. */
  get size(): number {
    return this.#byAccount.size;
  }

  /** The account that started longest ago stands first. */
  #forget(now: number): void {
    for (const [accountId, slots] of this.#byAccount) {
      const isRead = (slots.at(-1)?.at ?? now) <= now - unreadMs;
      if (!isRead && this.#byAccount.size <= maxAccounts) return;
      this.#byAccount.delete(accountId);
    }
  }
}

/** Where the publisher learns of the limits of accounts and of their other targets. */
export interface PublishingCadence {
  readonly source: (workspaceId: string) => Promise<CadenceSource>;
  readonly starts: RecentStarts;
}
