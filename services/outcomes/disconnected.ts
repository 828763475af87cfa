import type { ClientBase, Pool } from 'pg';
import { account } from '#domain/account.ts';
import { invite } from '#domain/invite.ts';
import { type PostCommand, post } from '#domain/post/post.ts';
import { recycledOfClient } from '#projections/models/post-recycles.ts';
import {
  beforeAllTargets,
  type OpenTarget,
  openInvitesOf,
  openTargetsOf,
  openTargetsOfAccount,
} from '#projections/queries/disconnected-accounts.ts';
import type { CommandContext, DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { serviceContext } from '#runtime/eventing/service-context.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { instantOf } from '#schemas/common.ts';
import { fanOut } from '#services/workflows/fan-out.ts';
import { eachOfPage, type WalkedPage } from './clean-up-pages.ts';

/**
 * Cancels targets of one post: first the intent in the post's stream, then each target. After a crash in between, the
 * post's stream has the intent, and the post's row shows that its targets are behind.
 */
const cancelTargets = async (
  store: DomainStore,
  postId: string,
  { targetIds, reason }: Pick<Extract<PostCommand, { type: 'CancelTargets' }>, 'targetIds' | 'reason'>,
  context: () => CommandContext,
): Promise<void> => {
  const intent = await execute(store, post, postId, { type: 'CancelTargets', targetIds, reason }, context());
  faultPoint('outcomes:after-intent');
  await fanOut(store, postId, context(), { loaded: intent });
};

interface Disconnected {
  readonly accountId: string;
  /** Of the account when it was last disconnected, or later while it still was. */
  readonly revision: number;
  readonly workspaceId: string;
  readonly correlationId: string;
  readonly causationId: string;
}

/**
 * Cancels one page of the open targets of a disconnected account. The read model that names them may lag, so the sweeper
 * searches again, also after a person has connected the account again. If both searches miss a target, the publisher
 * cancels it at the claim while the account is disconnected.
 *
 * Where the network's own scheduler has the target, the publisher asks the network to delete it; then it is canceled.
 * @param after the last target that the walk has seen; null: the walk begins
 */
export const cleanUpDisconnected = async (
  store: DomainStore,
  pool: Pool | ClientBase,
  { accountId, revision, ...cause }: Disconnected,
  after: OpenTarget | null,
  now: () => number = Date.now,
  aheadMs?: number,
): Promise<WalkedPage<OpenTarget>> => {
  const context = (): CommandContext => serviceContext('outcomes', cause, now(), aheadMs);
  const { events } = await store.load(account, accountId);
  // Targets that were scheduled after a person connected the account again are not meant.
  const renewed = events.find((event) => event.type === 'AccountReauthorized' && event.revision > revision);
  const before = renewed === undefined ? null : instantOf(renewed.metadata);
  const targets = await openTargetsOfAccount(pool, accountId, before, after ?? beforeAllTargets);
  const fault = await eachOfPage(targets, async ({ id, postId }) => {
    await cancelTargets(store, postId, { targetIds: [id], reason: 'account_disconnected' }, context);
    faultPoint('outcomes:between-disconnected');
  });
  return { next: targets.at(-1) ?? null, fault };
};

/** Sorts before every id. */
const lowest = '00000000-0000-0000-0000-000000000000';

interface Archived {
  readonly clientId: string;
  readonly workspaceId: string;
  readonly correlationId: string;
  readonly causationId: string;
}

/** The last post or invite of a step that the walk has seen. */
interface ArchivedProgress {
  readonly step: 'targets' | 'recycles' | 'invites';
  readonly after: string;
}

const nextSteps = { targets: 'recycles', recycles: 'invites', invites: null } as const;

/**
 * Walks one page: cancels the open targets of an archived client, stops the recycling of its posts and revokes its open
 * invites. The read models that name them may lag, so the sweeper searches again. If both searches miss a target, the
 * publisher cancels it at the claim; no worker makes a copy of a recycled post for an archived client.
 * @param progress null: the walk begins
 */
export const cleanUpArchived = async (
  store: DomainStore,
  pool: Pool | ClientBase,
  { clientId, ...cause }: Archived,
  progress: ArchivedProgress | null,
  now: () => number = Date.now,
  aheadMs?: number,
): Promise<WalkedPage<ArchivedProgress>> => {
  const context = (): CommandContext => serviceContext('outcomes', cause, now(), aheadMs);
  const { step, after } = progress ?? { step: 'targets', after: lowest };
  const reason = 'client_archived';
  let last: string | undefined;
  let fault: unknown = null;
  if (step === 'targets') {
    const posts = await openTargetsOf(pool, clientId, after);
    fault = await eachOfPage(posts, ({ postId, targetIds }) =>
      cancelTargets(store, postId, { targetIds, reason }, context),
    );
    last = posts.at(-1)?.postId;
  } else if (step === 'recycles') {
    const ids = await recycledOfClient(pool, clientId, after);
    fault = await eachOfPage(ids, async (id) => {
      await execute(store, post, id, { type: 'StopRecycle', reason }, context());
    });
    last = ids.at(-1);
  } else {
    const ids = await openInvitesOf(pool, clientId, after);
    fault = await eachOfPage(ids, async (id) => {
      await execute(store, invite, id, { type: 'Revoke', reason }, context());
    });
    last = ids.at(-1);
  }
  if (last !== undefined) return { next: { step, after: last }, fault };
  const following = nextSteps[step];
  return { next: following === null ? null : { step: following, after: lowest }, fault };
};
