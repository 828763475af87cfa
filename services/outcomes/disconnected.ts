import type { ClientBase, Pool } from 'pg';
import { account } from '#domain/account.ts';
import { beforeAllTargets, type OpenTarget, openTargetsOfAccount } from '#projections/disconnected-accounts.ts';
import type { CommandContext, DomainStore } from '#runtime/eventing/domain-store.ts';
import { serviceContext } from '#runtime/eventing/service-context.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { cancelTargets } from './cancel-targets.ts';
import { eachOfPage, type WalkedPage } from './clean-up-pages.ts';

/**
 * Cancels the open targets of a disconnected account. The read model that names them may be behind: so the sweeper
 * searches again, also after the account was connected again, and while it is not, the publisher cancels at the claim a
 * target that both missed.
 *
 * A target that the network's own scheduler has is canceled once the network deleted it, which its publisher asks for.
 */

export interface Disconnected {
  readonly accountId: string;
  /** Of the account when it was last disconnected, or later while it still was. */
  readonly revision: number;
  readonly workspaceId: string;
  readonly correlationId: string;
  readonly causationId: string;
}

/** Walks one page. @param after the last target that the walk has seen; null: the walk begins */
export const cleanUpDisconnected = async (
  store: DomainStore,
  pool: Pool | ClientBase,
  { accountId, revision, ...cause }: Disconnected,
  after: OpenTarget | null,
  now: () => number = Date.now,
): Promise<WalkedPage<OpenTarget>> => {
  const context = (): CommandContext => serviceContext('outcomes', cause, now());
  const { events } = await store.load(account, accountId);
  // Targets that were scheduled after a person connected the account again are not meant.
  const renewed = events.find((event) => event.type === 'AccountReauthorized' && event.revision > revision);
  const before = renewed?.metadata.occurredAt ?? null;
  const targets = await openTargetsOfAccount(pool, accountId, before, after ?? beforeAllTargets);
  const fault = await eachOfPage(targets, async ({ id, postId }) => {
    await cancelTargets(store, postId, { targetIds: [id], reason: 'account_disconnected' }, context);
    faultPoint('outcomes:between-disconnected');
  });
  return { next: targets.at(-1) ?? null, fault };
};
