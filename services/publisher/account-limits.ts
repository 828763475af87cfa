import { BoundedMap } from '#contracts/base/bounded-map.ts';
import { within } from '#contracts/base/pause.ts';
import { account } from '#domain/account.ts';
import { birthOf } from '#domain/decider.ts';
import { afterReport } from '#domain/observed-limits.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { causedByNewest, serviceContext } from '#runtime/eventing/service-context.ts';
import type { Logger } from '#runtime/process/telemetry.ts';
import type { ObservedWindow } from '#schemas/cadence.ts';

/**
 * Records what networks say of accounts' limits, so that the cadence holds to it. No publish waits for it, and a report
 * that is lost comes again with the next answer.
 */

/** Milliseconds between two looks into the stream of an account, however often its network answers. */
const restMs = 30_000;
/** Accounts that the process remembers, and writes at once. */
const maxRemembered = 10_000;
const maxWriting = 4;
const closeMs = 2_000;

export interface AccountLimitsOptions {
  readonly store: DomainStore;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly logger: Pick<Logger, 'warn'>;
}

export class AccountLimits {
  readonly #options: AccountLimitsOptions;
  /** Account → when it was last looked at, in the order of that. */
  readonly #looked = new BoundedMap<string, number>(maxRemembered);
  readonly #writing = new Set<Promise<void>>();

  constructor(options: AccountLimitsOptions) {
    this.#options = options;
  }

  /** Never throws: an adapter calls it before it has evaluated its answer. */
  readonly observe = (accountId: string, windows: readonly ObservedWindow[]): void => {
    const now = this.#options.now();
    const last = this.#looked.get(accountId);
    if (this.#writing.size >= maxWriting || (last !== undefined && now - last < restMs)) return;
    this.#looked.set(accountId, now);
    const written = this.#record(accountId, windows, now).finally(() => this.#writing.delete(written));
    this.#writing.add(written);
  };

  /** Never rejects. */
  async #record(accountId: string, reported: readonly ObservedWindow[], now: number): Promise<void> {
    const { store, logger } = this.#options;
    try {
      const loaded = await store.load(account, accountId);
      const first = birthOf(account, loaded.events);
      if (loaded.state.status === 'none' || first === undefined) return;
      const windows = afterReport(loaded.state.observed, reported, now);
      if (windows === null) return;
      const context = serviceContext(
        'publisher',
        causedByNewest(loaded.events, first.metadata.workspaceId, accountId),
        now,
      );
      await execute(store, account, accountId, { type: 'ObserveLimits', windows }, context, { loaded });
    } catch (error) {
      logger.warn({ err: error, accountId }, 'what a network said of an account’s limits was not recorded');
    }
  }

  /** Waits for what is being written, for some seconds at most. */
  async close(): Promise<void> {
    const all = Promise.all(this.#writing).then(() => undefined);
    await within(closeMs, all, () => undefined);
  }
}
